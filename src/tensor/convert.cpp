// The table of row conversions behind convert.h. Compiled at -O3, so that the contiguous loops become SIMD.
#include "tensor/convert.h"

#include <cstring>

namespace prong {

namespace {

template <class D, class S>
void convert_row(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, int64_t n) {
  D* __restrict d = static_cast<D*>(dst);
  const S* __restrict s = static_cast<const S*>(src);
  if (src_stride == 0) {
    const D value = convert<D>(*s);
    if (dst_stride == 1) {
      for (int64_t i = 0; i < n; ++i) d[i] = value;
    } else {
      for (int64_t i = 0; i < n; ++i) d[i * dst_stride] = value;
    }
  } else if (dst_stride == 1 && src_stride == 1) {
    if constexpr (std::is_same_v<D, S>) {
      std::memcpy(d, s, static_cast<size_t>(n) * sizeof(D));
    } else {
      for (int64_t i = 0; i < n; ++i) d[i] = convert<D>(s[i]);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) d[i * dst_stride] = convert<D>(s[i * src_stride]);
  }
}

}  // namespace

RowFn row_converter(DType dst, DType src) {
  if (dst == src)
    return visit_width(dst, [](auto tag) -> RowFn {
      using T = typename decltype(tag)::type;
      return &convert_row<T, T>;
    });
  return visit(dst, [&](auto d) {
    return visit(src, [](auto s) -> RowFn {
      using D = typename decltype(d)::type;
      using S = typename decltype(s)::type;
      if constexpr (std::is_same_v<D, S>)
        return nullptr;  // handled above
      else
        return &convert_row<D, S>;
    });
  });
}

}  // namespace prong
