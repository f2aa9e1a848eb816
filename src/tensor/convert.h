// Conversion of one element, and of a row of them, between any two element types. Called by copies
// and kernels.
#pragma once

#include <type_traits>

#include "tensor/dtype.h"

namespace prong {

template <class T>
inline constexpr bool is_complex_type =
    std::is_same_v<T, Complex64> || std::is_same_v<T, Complex128>;

// As PyTorch converts: to bool by "is not zero", floating to integral towards zero, and to the
// small integers by way of a wide one, so that -1.0 is 255 as a uint8. Complex to real drops the
// imaginary part (to bool asks for both).
template <class D, class S>
inline D convert(S x) {
  constexpr bool from_small_float = std::is_same_v<S, Half> || std::is_same_v<S, BFloat16>;
  if constexpr (std::is_same_v<D, S>) {
    return x;
  } else if constexpr (is_complex_type<D> && is_complex_type<S>) {
    return D(x);
  } else if constexpr (is_complex_type<D>) {
    return D(convert<typename D::value_type>(x));
  } else if constexpr (is_complex_type<S>) {
    if constexpr (std::is_same_v<D, bool>)
      return x != S(0);
    else
      return convert<D>(x.real());
  } else if constexpr (from_small_float) {
    return convert<D>(static_cast<float>(x));
  } else if constexpr (std::is_same_v<D, bool>) {
    return x != S(0);
  } else if constexpr (std::is_same_v<D, Half> || std::is_same_v<D, BFloat16>) {
    return D(static_cast<float>(x));
  } else if constexpr (std::is_floating_point_v<S> && std::is_same_v<D, uint8_t>) {
    return static_cast<D>(static_cast<int64_t>(x));
  } else if constexpr (std::is_floating_point_v<S> && std::is_integral_v<D> && sizeof(D) < 4) {
    return static_cast<D>(static_cast<int32_t>(x));
  } else {
    return static_cast<D>(x);
  }
}

// dst[i * dst_stride] = src[i * src_stride] for i < n; strides in elements; the rows do not
// overlap.
using RowFn = void (*)(void* dst, int64_t dst_stride, const void* src, int64_t src_stride,
                       int64_t n);
RowFn row_converter(DType dst, DType src);  // a plain move when they are equal

}  // namespace prong
