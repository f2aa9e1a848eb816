// Kernels along one dim: softmax, extremes with their places. Called through rows.h.
#include "ops/kernels/rows.h"

#include <limits>

#include "ops/kernels/folds.h"
#include "ops/scalar_math.h"

namespace prong {

namespace {

constexpr int64_t kWork = 16 * 1024;  // elements worth another thread
constexpr int64_t kStrip = 128;       // columns worked on side by side

template <class T>
struct LargestFold {
  using Acc = T;
  PRONG_INLINE T identity() const { return lowest<T>(); }
  PRONG_INLINE T lift(T x) const { return x; }
  PRONG_INLINE T combine(T a, T b) const { return math::larger(a, b); }
  template <class U>
  static constexpr U lowest() {
    if constexpr (std::is_floating_point_v<U>)
      return -std::numeric_limits<U>::infinity();
    else
      return std::numeric_limits<U>::min();
  }
};
template <class T>
struct SmallestFold {
  using Acc = T;
  PRONG_INLINE T identity() const {
    if constexpr (std::is_floating_point_v<T>)
      return std::numeric_limits<T>::infinity();
    else
      return std::numeric_limits<T>::max();
  }
  PRONG_INLINE T lift(T x) const { return x; }
  PRONG_INLINE T combine(T a, T b) const { return math::smaller(a, b); }
};

using detail::fold_row;

template <class T, bool kIsLog>
struct SoftmaxRows {
  static PRONG_INLINE void run(const T* x, T* out, int64_t n, int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* in = x + r * n;
      T* y = out + r * n;
      const T top = fold_row(LargestFold<T>{}, in, n);
      for (int64_t i = 0; i < n; ++i) y[i] = math::exp(in[i] - top);
      const T sum = fold_row(SumFold<T>{}, y, n);
      if constexpr (kIsLog) {
        const T shift = math::log(sum);
        for (int64_t i = 0; i < n; ++i) y[i] = in[i] - top - shift;
      } else {
        for (int64_t i = 0; i < n; ++i) y[i] = y[i] / sum;
      }
    }
  }
};

template <class T, bool kIsLog>
struct SoftmaxColumns {
  static PRONG_INLINE void run(const T* x, T* out, int64_t n, int64_t stride, int64_t width) {
    T top[kStrip], sum[kStrip];
    for (int64_t c = 0; c < width; ++c) top[c] = LargestFold<T>{}.identity(), sum[c] = 0;
    for (int64_t r = 0; r < n; ++r)
      for (int64_t c = 0; c < width; ++c) top[c] = math::larger(top[c], x[r * stride + c]);
    for (int64_t r = 0; r < n; ++r)
      for (int64_t c = 0; c < width; ++c) {
        const T e = math::exp(x[r * stride + c] - top[c]);
        sum[c] += e;
        out[r * stride + c] = e;
      }
    if constexpr (kIsLog)
      for (int64_t c = 0; c < width; ++c) sum[c] = math::log(sum[c]);
    for (int64_t r = 0; r < n; ++r)
      for (int64_t c = 0; c < width; ++c) {
        T& y = out[r * stride + c];
        if constexpr (kIsLog)
          y = x[r * stride + c] - top[c] - sum[c];
        else
          y = y / sum[c];
      }
  }
};

template <class T, bool kIsLog>
void softmax(const ReduceView& v, T* out) {
  const T* x = static_cast<const T*>(v.data.raw());
  if (v.inner == 1) {
    parallel_for(
        0, v.outer, std::max<int64_t>(1, kWork / std::max<int64_t>(1, v.length)),
        [&](int64_t b, int64_t e) { run_simd<SoftmaxRows<T, kIsLog>>(x, out, v.length, b, e); });
    return;
  }
  const int64_t strips = (v.inner + kStrip - 1) / kStrip;
  const int64_t work = std::max<int64_t>(1, v.length * std::min(v.inner, kStrip));
  parallel_for(0, v.outer * strips, std::max<int64_t>(1, kWork / work), [&](int64_t b, int64_t e) {
    for (int64_t s = b; s < e; ++s) {
      const int64_t at = s / strips * v.length * v.inner + s % strips * kStrip;
      run_simd<SoftmaxColumns<T, kIsLog>>(x + at, out + at, v.length, v.inner,
                                          std::min(kStrip, v.inner - s % strips * kStrip));
    }
  });
}

// (g - sum(g * y)) * y, or for the logarithm g - exp(y) * sum(g).
template <class T, bool kIsLog>
struct SoftmaxSlopeRows {
  static PRONG_INLINE void run(const T* grad, const T* result, T* out, int64_t n, int64_t begin,
                               int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T *g = grad + r * n, *y = result + r * n;
      T* dx = out + r * n;
      if constexpr (kIsLog) {
        const T sum = fold_row(SumFold<T>{}, g, n);
        for (int64_t i = 0; i < n; ++i) dx[i] = g[i] - math::exp(y[i]) * sum;
      } else {
        for (int64_t i = 0; i < n; ++i) dx[i] = g[i] * y[i];
        const T sum = fold_row(SumFold<T>{}, dx, n);
        for (int64_t i = 0; i < n; ++i) dx[i] = (g[i] - sum) * y[i];
      }
    }
  }
};

template <class T, bool kIsLog>
struct SoftmaxSlopeColumns {
  static PRONG_INLINE void run(const T* g, const T* y, T* dx, int64_t n, int64_t stride,
                               int64_t width) {
    T sum[kStrip];
    for (int64_t c = 0; c < width; ++c) sum[c] = 0;
    for (int64_t at = 0; at < n * stride; at += stride)
      for (int64_t c = 0; c < width; ++c) sum[c] += kIsLog ? g[at + c] : g[at + c] * y[at + c];
    for (int64_t at = 0; at < n * stride; at += stride)
      for (int64_t c = 0; c < width; ++c)
        dx[at + c] =
            kIsLog ? g[at + c] - math::exp(y[at + c]) * sum[c] : (g[at + c] - sum[c]) * y[at + c];
  }
};

template <class T, bool kIsLog>
void softmax_slope(const ReduceView& grad, const ReduceView& result, T* out) {
  const T *g = static_cast<const T*>(grad.data.raw()),
          *y = static_cast<const T*>(result.data.raw());
  const int64_t n = grad.length, inner = grad.inner;
  if (inner == 1) {
    parallel_for(
        0, grad.outer, std::max<int64_t>(1, kWork / std::max<int64_t>(1, n)),
        [&](int64_t b, int64_t e) { run_simd<SoftmaxSlopeRows<T, kIsLog>>(g, y, out, n, b, e); });
    return;
  }
  const int64_t strips = (inner + kStrip - 1) / kStrip;
  const int64_t work = std::max<int64_t>(1, n * std::min(inner, kStrip));
  parallel_for(0, grad.outer * strips, std::max<int64_t>(1, kWork / work),
               [&](int64_t b, int64_t e) {
                 for (int64_t s = b; s < e; ++s) {
                   const int64_t column = s % strips * kStrip, at = s / strips * n * inner + column;
                   run_simd<SoftmaxSlopeColumns<T, kIsLog>>(g + at, y + at, out + at, n, inner,
                                                            std::min(kStrip, inner - column));
                 }
               });
}

// Where `value` (perhaps a NaN) first is in x.
template <class T>
PRONG_INLINE int64_t find_first(const T* x, int64_t n, T value) {
  const bool is_nan = value != value;
  int64_t i = 0;
  for (; i + 64 <= n; i += 64) {
    int found = 0;
    for (int64_t j = 0; j < 64; ++j)
      found |= (x[i + j] == value) | ((x[i + j] != x[i + j]) & is_nan);
    if (found) break;
  }
  while (i < n && !(x[i] == value || (is_nan && x[i] != x[i]))) ++i;
  return i;
}

template <class T, class Fold>
struct ExtremeRows {
  static PRONG_INLINE void run(const T* x, int64_t n, int64_t begin, int64_t end, T* values,
                               int64_t* places) {
    for (int64_t r = begin; r < end; ++r) {
      values[r] = fold_row(Fold{}, x + r * n, n);
      places[r] = find_first(x + r * n, n, values[r]);
    }
  }
};

template <class T, class Fold>
struct ExtremeColumns {
  static PRONG_INLINE void run(const T* x, int64_t n, int64_t stride, int64_t width, T* values,
                               int64_t* places) {
    for (int64_t c = 0; c < width; ++c) values[c] = x[c], places[c] = 0;
    for (int64_t r = 1; r < n; ++r)
      for (int64_t c = 0; c < width; ++c) {
        const T candidate = x[r * stride + c], best = values[c];
        // Only a strictly better one, or the first NaN, moves the place.
        const bool wins =
            std::is_same_v<Fold, LargestFold<T>> ? candidate > best : candidate < best;
        const bool moves = wins | ((candidate != candidate) & (best == best));
        const bool stays_nan = best != best;
        values[c] = moves & !stays_nan ? candidate : best;
        places[c] = moves & !stays_nan ? r : places[c];
      }
  }
};

template <class T, class Fold>
void extremes(const ReduceView& v, T* values, int64_t* places) {
  const T* x = static_cast<const T*>(v.data.raw());
  if (v.inner == 1) {
    parallel_for(0, v.outer, std::max<int64_t>(1, kWork / std::max<int64_t>(1, v.length)),
                 [&](int64_t b, int64_t e) {
                   run_simd<ExtremeRows<T, Fold>>(x, v.length, b, e, values, places);
                 });
    return;
  }
  const int64_t strips = (v.inner + kStrip - 1) / kStrip;
  const int64_t work = std::max<int64_t>(1, v.length * std::min(v.inner, kStrip));
  parallel_for(0, v.outer * strips, std::max<int64_t>(1, kWork / work), [&](int64_t b, int64_t e) {
    for (int64_t s = b; s < e; ++s) {
      const int64_t o = s / strips, c = s % strips * kStrip;
      run_simd<ExtremeColumns<T, Fold>>(x + o * v.length * v.inner + c, v.length, v.inner,
                                        std::min(kStrip, v.inner - c), values + o * v.inner + c,
                                        places + o * v.inner + c);
    }
  });
}

}  // namespace

ReduceView view_along(const Tensor& x, int64_t dim, DType dtype) {
  ReduceView v;
  v.data = x.to(dtype).contiguous();
  if (x.rank() == 0) return v;
  const auto d = static_cast<size_t>(dim);
  v.outer = product(DimsView(x.sizes()).first(d));
  v.length = x.sizes()[d];
  v.inner = product(DimsView(x.sizes()).subspan(d + 1));
  return v;
}

Tensor softmax_along(const Tensor& x, int64_t dim, bool is_log) {
  const DType compute = reduce_dtype(x.dtype());
  const ReduceView v = view_along(x, dim, compute);
  const Tensor out = Tensor::empty(x.sizes(), compute);
  if (x.numel() == 0) return out.to(x.dtype());
  if (compute == DType::kFloat64) {
    is_log ? softmax<double, true>(v, out.data<double>())
           : softmax<double, false>(v, out.data<double>());
  } else {
    is_log ? softmax<float, true>(v, out.data<float>())
           : softmax<float, false>(v, out.data<float>());
  }
  return out.to(x.dtype());
}

Tensor softmax_slope_along(const Tensor& grad, const Tensor& result, int64_t dim, bool is_log) {
  const DType compute = reduce_dtype(result.dtype());
  const ReduceView g = view_along(grad, dim, compute), y = view_along(result, dim, compute);
  const Tensor out = Tensor::empty(result.sizes(), compute);
  if (result.numel() == 0) return out.to(result.dtype());
  if (compute == DType::kFloat64) {
    is_log ? softmax_slope<double, true>(g, y, out.data<double>())
           : softmax_slope<double, false>(g, y, out.data<double>());
  } else {
    is_log ? softmax_slope<float, true>(g, y, out.data<float>())
           : softmax_slope<float, false>(g, y, out.data<float>());
  }
  return out.to(result.dtype());
}

std::tuple<Tensor, Tensor> extreme_along(const ReduceView& v, DimsView sizes, DType dtype,
                                         bool is_largest) {
  const Tensor values = Tensor::empty(sizes, v.data.dtype()),
               places = Tensor::empty(sizes, DType::kInt64);
  if (values.numel() > 0)
    visit_reduced(v.data.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      if (is_largest)
        extremes<T, LargestFold<T>>(v, values.data<T>(), places.data<int64_t>());
      else
        extremes<T, SmallestFold<T>>(v, values.data<T>(), places.data<int64_t>());
    });
  return {values.to(dtype), places};
}

}  // namespace prong
