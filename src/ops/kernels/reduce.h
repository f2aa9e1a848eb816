// Reductions over some dims: the tensor as [outer, length, inner], and loops that fold `length` in
// a fixed order, so that any number of threads gives the same bits. Used by defs/reduce.cpp and the
// other families that reduce.
#pragma once

#include <algorithm>
#include <vector>

#include "ops/kernels/simd.h"
#include "runtime/parallel.h"

namespace prong {

// Which dims an op reduces, from its dim argument: nothing, an int, or a list (empty: all). Checks
// range and repeats.
struct ReducedDims {
  SmallVector<bool, 8> is_reduced;  // a flag a dim
  bool all = false;                 // every dim
};
ReducedDims reduced_dims(const IValue& dim, int64_t rank);
// Sizes of the result.
Dims reduced_sizes(DimsView sizes, const ReducedDims& dims, bool keepdim);

// `data`, contiguous and of dtype `dtype`, holds the elements of a tensor ordered as [outer,
// length, inner], where `length` runs over what is reduced and outer x inner over the result, in
// the result's own order.
struct ReduceView {
  Tensor data;
  int64_t outer = 1, length = 1, inner = 1;
};
ReduceView reduce_view(const Tensor& x, const ReducedDims& dims, DType dtype);

// A fold gives: Acc; Acc identity(); Acc lift(T); Acc combine(Acc, Acc), associative but for
// rounding.
inline constexpr int64_t kFoldLanes = 64;  // partial results a row is dealt out to

namespace detail {

inline constexpr int64_t kFoldColumns = 128;  // results folded side by side
inline constexpr int64_t kFoldRun = 32;       // folded one after another; runs are joined pairwise

// Folds `length` rows, `stride` apart, into out[0, width), width <= kWidth.
template <int64_t kWidth, class Fold, class T, class Acc = typename Fold::Acc>
PRONG_INLINE void fold_columns(const Fold& f, const T* x, int64_t length, int64_t stride,
                               int64_t width, Acc* out) {
  // As in binary addition: partial[k] stands for 2^k runs.
  Acc partial[32][kWidth];
  int64_t runs = 0;
  for (int64_t i = 0; i < length || runs == 0; i += kFoldRun, ++runs) {
    Acc a[kWidth];
    for (int64_t c = 0; c < kWidth; ++c) a[c] = f.identity();
    const int64_t stop = std::min(length, i + kFoldRun);
    for (int64_t r = i; r < stop; ++r) {
      const T* row = x + r * stride;
      for (int64_t c = 0; c < width; ++c) a[c] = f.combine(a[c], f.lift(row[c]));
    }
    int k = 0;
    for (int64_t bits = runs; bits & 1; bits >>= 1, ++k)
      for (int64_t c = 0; c < width; ++c) a[c] = f.combine(partial[k][c], a[c]);
    for (int64_t c = 0; c < width; ++c) partial[k][c] = a[c];
  }
  bool is_first = true;
  for (int k = 0; runs >> k; ++k)
    if (runs >> k & 1) {
      for (int64_t c = 0; c < width; ++c)
        out[c] = is_first ? partial[k][c] : f.combine(partial[k][c], out[c]);
      is_first = false;
    }
}

// Folds one row: dealt out to lanes, the lanes joined pairwise.
template <class Fold, class T, class Acc = typename Fold::Acc>
PRONG_INLINE Acc fold_row(const Fold& f, const T* x, int64_t n) {
  if (n < kFoldLanes / 2) {  // the lanes would cost more than the row
    Acc a = f.identity();
    for (int64_t i = 0; i < n; ++i) a = f.combine(a, f.lift(x[i]));
    return a;
  }
  Acc lanes[kFoldLanes];
  const int64_t whole = n / kFoldLanes * kFoldLanes;
  if (n <= kFoldLanes * kFoldRun) {
    for (int64_t j = 0; j < kFoldLanes; ++j) lanes[j] = f.identity();
    for (int64_t i = 0; i < whole; i += kFoldLanes)
      for (int64_t j = 0; j < kFoldLanes; ++j) lanes[j] = f.combine(lanes[j], f.lift(x[i + j]));
  } else {
    fold_columns<kFoldLanes>(f, x, n / kFoldLanes, kFoldLanes, kFoldLanes, lanes);
  }
  for (int64_t i = whole, j = 0; i < n; ++i, ++j) lanes[j] = f.combine(lanes[j], f.lift(x[i]));
  for (int64_t width = kFoldLanes / 2; width > 0; width /= 2)
    for (int64_t j = 0; j < width; ++j) lanes[j] = f.combine(lanes[j], lanes[j + width]);
  return lanes[0];
}

// Joins n partial results pairwise, in place.
template <class Fold, class Acc>
Acc fold_pairwise(const Fold& fold, Acc* partial, int64_t n) {
  for (; n > 1; n = (n + 1) / 2) {
    for (int64_t i = 0; i + 1 < n; i += 2)
      partial[i / 2] = fold.combine(partial[i], partial[i + 1]);
    if (n % 2) partial[n / 2] = partial[n - 1];
  }
  return n ? partial[0] : fold.identity();
}

template <class Fold, class T>
struct FoldRows {
  // Rows [begin, end) of `length` elements.
  static PRONG_INLINE void run(const Fold* fold, const T* x, int64_t length, int64_t begin,
                               int64_t end, typename Fold::Acc* out) {
    const Fold f = *fold;
    for (int64_t r = begin; r < end; ++r) out[r] = fold_row(f, x + r * length, length);
  }
};

template <class Fold, class T>
struct FoldColumns {
  static PRONG_INLINE void run(const Fold* fold, const T* x, int64_t length, int64_t stride,
                               int64_t width, typename Fold::Acc* out) {
    const Fold f = *fold;
    fold_columns<kFoldColumns>(f, x, length, stride, width, out);
  }
};

}  // namespace detail

// out[outer x inner] = the fold of each result's elements.
template <class T, class Fold>
void fold_into(const ReduceView& v, const Fold& fold, typename Fold::Acc* out) {
  using Acc = typename Fold::Acc;
  const T* x = static_cast<const T*>(v.data.raw());
  constexpr int64_t kWork = 32 * 1024;  // elements worth another thread
  if (v.inner == 1 && v.outer == 1 && v.length > kWork) {
    // One long row: pieces that depend on its length only, joined pairwise.
    const int64_t pieces = (v.length + kWork - 1) / kWork;
    std::vector<Acc> partial(static_cast<size_t>(pieces));
    parallel_chunks(0, pieces, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p)
        run_simd<detail::FoldRows<Fold, T>>(&fold, x + p * kWork,
                                            std::min(kWork, v.length - p * kWork), int64_t{0},
                                            int64_t{1}, &partial[static_cast<size_t>(p)]);
    });
    *out = detail::fold_pairwise(fold, partial.data(), pieces);
    return;
  }
  if (v.inner == 1) {
    parallel_for(0, v.outer, std::max<int64_t>(1, kWork / std::max<int64_t>(1, v.length)),
                 [&](int64_t begin, int64_t end) {
                   run_simd<detail::FoldRows<Fold, T>>(&fold, x, v.length, begin, end, out);
                 });
    return;
  }
  const int64_t strips = (v.inner + detail::kFoldColumns - 1) / detail::kFoldColumns;
  const int64_t work = std::max<int64_t>(1, v.length * std::min(v.inner, detail::kFoldColumns));
  parallel_for(0, v.outer * strips, std::max<int64_t>(1, kWork / work),
               [&](int64_t begin, int64_t end) {
                 for (int64_t s = begin; s < end; ++s) {
                   const int64_t o = s / strips, c = s % strips * detail::kFoldColumns;
                   run_simd<detail::FoldColumns<Fold, T>>(
                       &fold, x + o * v.length * v.inner + c, v.length, v.inner,
                       std::min(detail::kFoldColumns, v.inner - c), out + o * v.inner + c);
                 }
               });
}

// f(TypeTag<T>{}) for the type that reductions compute in: float, double or int64.
template <class F>
decltype(auto) visit_reduced(DType dtype, F&& f) {
  if (dtype == DType::kFloat64) return f(TypeTag<double>{});
  if (is_floating(dtype)) return f(TypeTag<float>{});
  return f(TypeTag<int64_t>{});
}
inline DType reduce_dtype(DType dtype) {
  return dtype == DType::kFloat64 ? dtype : is_floating(dtype) ? DType::kFloat32 : DType::kInt64;
}

}  // namespace prong
