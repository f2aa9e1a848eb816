// The table of row conversions behind convert.h. Compiled at -O3, so that the contiguous loops
// become SIMD.
#include "tensor/convert.h"

#include <cstring>

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace prong {

namespace {

// The dense row of a pair; the compiler makes SIMD of it, except for half precision, where it does
// not.
template <class D, class S>
void convert_dense(D* __restrict d, const S* __restrict s, int64_t n) {
  int64_t i = 0;
#if defined(__F16C__)
  if constexpr (std::is_same_v<D, float> && std::is_same_v<S, Half>) {
    for (; i + 8 <= n; i += 8)
      _mm256_storeu_ps(d + i,
                       _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(s + i))));
  } else if constexpr (std::is_same_v<D, Half> && std::is_same_v<S, float>) {
    for (; i + 8 <= n; i += 8)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(d + i),
                       _mm256_cvtps_ph(_mm256_loadu_ps(s + i), _MM_FROUND_TO_NEAREST_INT));
  }
#endif
  for (; i < n; ++i) d[i] = convert<D>(s[i]);
}

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
      convert_dense(d, s, n);
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
  return visit_any(dst, [&](auto d) {
    return visit_any(src, [](auto s) -> RowFn {
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
