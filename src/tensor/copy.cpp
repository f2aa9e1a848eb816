// Moving elements: copy_into (broadcasting, converting, transposing, safe on overlap) and fill.
#include <bit>
#include <cstring>

#include "runtime/parallel.h"
#include "tensor/convert.h"
#include "tensor/strided.h"
#include "tensor/tensor.h"

namespace prong {

namespace {

// Elements a task must have before another thread is worth its waking.
constexpr int64_t kCopyGrain = 32 * 1024;

// First and last byte that a view touches.
struct Extent {
  const char *first, *last;
};
Extent extent_of(const Tensor& t) {
  int64_t reach = 0;
  for (size_t i = 0; i < t.sizes().size(); ++i) reach += (t.sizes()[i] - 1) * t.strides()[i];
  const char* first = static_cast<const char*>(t.raw());
  return {first, first + (reach + 1) * static_cast<int64_t>(t.item_bytes())};
}

bool may_overlap(const Tensor& a, const Tensor& b) {
  if (a.numel() == 0 || b.numel() == 0) return false;
  const Extent x = extent_of(a), y = extent_of(b);
  return x.first < y.last && y.first < x.last;
}

void check_writable(const Tensor& dst) {
  for (size_t i = 0; i < dst.sizes().size(); ++i)
    PRONG_CHECK(dst.sizes()[i] <= 1 || dst.strides()[i] != 0, kRuntime,
                "unsupported operation: more than one element of the written-to tensor refers to a "
                "single memory "
                "location. Please clone() the tensor before performing the operation.");
}

// dst rows run along `inner`, src rows along `outer`: both are read and written a cache line at a
// time.
template <class T>
void transpose_block(T* __restrict dst, int64_t dst_outer, const T* __restrict src,
                     int64_t src_inner, int64_t outer, int64_t inner) {
  constexpr int64_t kTile = sizeof(T) == 8 ? 8 : 16;
  for (int64_t o = 0; o < outer; o += kTile)
    for (int64_t i = 0; i < inner; i += kTile) {
      const int64_t o_end = std::min(outer, o + kTile), i_end = std::min(inner, i + kTile);
      if (o_end - o == kTile && i_end - i == kTile) {
        // Through a tile on the stack, whose rows are read and written whole.
        T tile[kTile][kTile];
        for (int64_t y = 0; y < kTile; ++y)
          std::memcpy(tile[y], src + o + (i + y) * src_inner, sizeof tile[y]);
        for (int64_t x = 0; x < kTile; ++x) {
          T* out = dst + (o + x) * dst_outer + i;
          for (int64_t y = 0; y < kTile; ++y) out[y] = tile[y][x];
        }
        continue;
      }
      for (int64_t x = o; x < o_end; ++x)
        for (int64_t y = i; y < i_end; ++y) dst[x * dst_outer + y] = src[x + y * src_inner];
    }
}

// The dimension along which src is dense while dst is dense along the last one; -1 when the copy is
// no transpose.
int transposed_dim(const StridedLoop<2>& loop) {
  const size_t last = loop.sizes.size() - 1;
  if (loop.strides[0][last] != 1 || loop.strides[1][last] == 1 || loop.strides[1][last] == 0)
    return -1;
  for (size_t i = 0; i < last; ++i)
    if (loop.strides[1][i] == 1 && loop.sizes[i] >= 8 && loop.sizes[last] >= 8)
      return static_cast<int>(i);
  return -1;
}

template <class T>
void copy_transposed(T* dst, const T* src, const StridedLoop<2>& loop, size_t dim) {
  const size_t last = loop.sizes.size() - 1;
  const int64_t inner = loop.sizes[last], outer = loop.sizes[dim];
  const int64_t dst_outer = loop.strides[0][dim], src_inner = loop.strides[1][last];
  // What is left to loop over: the other dimensions, and blocks of `outer`.
  Dims sizes, dst_strides, src_strides;
  for (size_t i = 0; i < last; ++i) {
    if (i == dim) continue;
    sizes.push_back(loop.sizes[i]);
    dst_strides.push_back(loop.strides[0][i]);
    src_strides.push_back(loop.strides[1][i]);
  }
  constexpr int64_t kBlock = 64;
  const int64_t blocks = (outer + kBlock - 1) / kBlock, planes = product(sizes);
  parallel_for(0, planes * blocks, std::max<int64_t>(1, kCopyGrain / (kBlock * inner)),
               [&](int64_t b, int64_t e) {
                 for (; b < e; ++b) {
                   int64_t plane = b / blocks, to = 0, from = 0;
                   for (size_t i = sizes.size(); i-- > 0; plane /= sizes[i]) {
                     to += plane % sizes[i] * dst_strides[i];
                     from += plane % sizes[i] * src_strides[i];
                   }
                   const int64_t start = b % blocks * kBlock;
                   transpose_block(dst + to + start * dst_outer, dst_outer, src + from + start,
                                   src_inner, std::min(kBlock, outer - start), inner);
                 }
               });
}

void copy_dense(char* dst, const char* src, int64_t bytes) {
  parallel_for(0, bytes, kCopyGrain * 8, [&](int64_t b, int64_t e) {
    std::memcpy(dst + b, src + b, static_cast<size_t>(e - b));
  });
}

// The element as the low bytes of two words.
Element16 element_bits(DType dtype, auto value) {
  return visit_any(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T x = convert<T>(value);
    Element16 bits;
    std::memcpy(&bits, &x, sizeof x);
    return bits;
  });
}

void fill_bits(const Tensor& dst, Element16 bits) {
  if (dst.numel() == 0) return;
  visit_width(dst.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T value;
    std::memcpy(&value, &bits, sizeof value);

    T* data = static_cast<T*>(dst.raw());
    if (dst.is_contiguous()) {
      parallel_for(0, dst.numel(), kCopyGrain,
                   [&](int64_t b, int64_t e) { std::fill(data + b, data + e, value); });
      return;
    }
    const StridedLoop<1> loop(dst.sizes(), {&dst.strides()});
    const int64_t stride = loop.strides[0].back();
    loop.for_pieces(kCopyGrain, [&](const std::array<int64_t, 1>& at, int64_t n) {
      T* row = data + at[0];
      if (stride == 1)
        std::fill(row, row + n, value);
      else
        for (int64_t i = 0; i < n; ++i) row[i * stride] = value;
    });
  });
}

}  // namespace

void copy_into(const Tensor& dst, const Tensor& given) {
  Tensor src = given;
  if (src.sizes() != dst.sizes()) {
    const Dims common = broadcast_shapes(dst.sizes(), src.sizes());
    PRONG_CHECK(common == dst.sizes(), kRuntime, "output with shape ", dst.sizes(),
                " doesn't match the broadcast shape ", common);
    src = broadcast_to(src, dst.sizes());
  }
  if (dst.numel() == 0) return;
  const bool same_dtype = src.dtype() == dst.dtype();
  if (dst.is_contiguous() && src.is_contiguous() && same_dtype && !may_overlap(dst, src)) {
    copy_dense(static_cast<char*>(dst.raw()), static_cast<const char*>(src.raw()),
               dst.numel() * static_cast<int64_t>(dst.item_bytes()));
    return;
  }
  if (dst.is_same(src) || (same_dtype && dst.raw() == src.raw() && dst.strides() == src.strides()))
    return;
  check_writable(dst);
  if (may_overlap(dst, src)) src = src.clone();

  const StridedLoop<2> loop(dst.sizes(), {&dst.strides(), &src.strides()});
  if (same_dtype) {
    if (const int dim = transposed_dim(loop); dim >= 0) {
      visit_width(dst.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        copy_transposed(static_cast<T*>(dst.raw()), static_cast<const T*>(src.raw()), loop,
                        static_cast<size_t>(dim));
      });
      return;
    }
  }
  const RowFn row = row_converter(dst.dtype(), src.dtype());
  char* to = static_cast<char*>(dst.raw());
  const char* from = static_cast<const char*>(src.raw());
  const int64_t to_bytes = static_cast<int64_t>(dst.item_bytes()),
                from_bytes = static_cast<int64_t>(src.item_bytes());
  const int64_t to_stride = loop.strides[0].back(), from_stride = loop.strides[1].back();
  loop.for_pieces(kCopyGrain, [&](const std::array<int64_t, 2>& at, int64_t n) {
    row(to + at[0] * to_bytes, to_stride, from + at[1] * from_bytes, from_stride, n);
  });
}

void fill(const Tensor& dst, double value) { fill_bits(dst, element_bits(dst.dtype(), value)); }
void fill(const Tensor& dst, int64_t value) { fill_bits(dst, element_bits(dst.dtype(), value)); }
void fill(const Tensor& dst, Complex128 value) { fill_bits(dst, element_bits(dst.dtype(), value)); }

}  // namespace prong
