// Range checks of fills; see fill.h.
#include "ops/kernels/fill.h"

#include <cmath>
#include <limits>

namespace prong {

const char* ctype_name(DType dtype) {
  static constexpr const char* kNames[] = {"bool",
                                           "uint8_t",
                                           "int8_t",
                                           "int16_t",
                                           "int32_t",
                                           "int64_t",
                                           "at::Half",
                                           "at::BFloat16",
                                           "float",
                                           "double",
                                           "c10::complex<float>",
                                           "c10::complex<double>"};
  return kNames[static_cast<size_t>(dtype)];
}

const char* type_name(DType dtype) { return scalar_type_name(dtype).data(); }

DType dtype_of(const Number& value) {
  if (value.is_bool()) return DType::kBool;
  if (value.is_complex()) return complex_dtype(default_dtype());
  return value.is_int() ? DType::kInt64 : default_dtype();
}

void fill_number(const Tensor& dst, const Number& value) {
  const DType dtype = dst.dtype();
  if (is_complex(dtype)) return fill(dst, value.as_complex());
  if (value.is_complex()) {
    const Complex128 z = value.as_complex();
    PRONG_CHECK(z.imag() == 0, kRuntime, "value cannot be converted to type ", ctype_name(dtype),
                " without overflow");
    return fill_number(dst, Number{IValue(z.real())});
  }
  bool fits = true;
  if (is_integral(dtype))
    visit(dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_integral_v<T>) {
        // An unsigned type also takes the negatives of what it holds (-1 is 255).
        const double high = static_cast<double>(std::numeric_limits<T>::max());
        const double low =
            std::is_signed_v<T> ? static_cast<double>(std::numeric_limits<T>::min()) : -high;
        if (value.is_int()) {
          const int64_t x = value.as_int();
          if constexpr (sizeof(T) < 8)
            fits = static_cast<double>(x) >= low && static_cast<double>(x) <= high;
        } else {
          const double x = value.as_double();
          fits = x >= low && x <= high;
        }
      }
    });
  else if (is_floating(dtype) && dtype != DType::kFloat64 && !value.is_int()) {
    const double x = std::fabs(value.as_double());
    const double high = dtype == DType::kFloat16 ? 65504.0
                        : dtype == DType::kBFloat16
                            ? 3.3895313892515355e38
                            : static_cast<double>(std::numeric_limits<float>::max());
    fits = !(x > high) || std::isinf(x);
  }
  PRONG_CHECK(fits, kRuntime, "value cannot be converted to type ", ctype_name(dtype),
              " without overflow");
  if (value.is_int())
    fill(dst, value.as_int());
  else
    fill(dst, value.as_double());
}

}  // namespace prong
