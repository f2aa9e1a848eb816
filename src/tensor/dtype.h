// Element types, their C++ types, and PyTorch's promotion rules. Used by every folder above base.
#pragma once

#include <bit>
#include <complex>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/error.h"

namespace prong {

// In order of PyTorch's promotion within a category. The numbers are an on-disk format: append
// only.
enum class DType : uint8_t {
  kBool = 0,
  kUInt8 = 1,
  kInt8 = 2,
  kInt16 = 3,
  kInt32 = 4,
  kInt64 = 5,
  kFloat16 = 6,
  kBFloat16 = 7,
  kFloat32 = 8,
  kFloat64 = 9,
  kComplex64 = 10,  // two float32
  kComplex128 = 11,
};
inline constexpr int kNumDTypes = 12;

using Complex64 = std::complex<float>;
using Complex128 = std::complex<double>;

struct Half {
  uint16_t bits = 0;
  Half() = default;
  explicit Half(float x) : bits(std::bit_cast<uint16_t>(static_cast<_Float16>(x))) {}
  operator float() const { return static_cast<float>(std::bit_cast<_Float16>(bits)); }
};

struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  // Rounds to nearest even; a NaN stays a (quiet) NaN.
  explicit BFloat16(float x) {
    const uint32_t u = std::bit_cast<uint32_t>(x);
    bits = (x != x) ? static_cast<uint16_t>(0x7fc0)
                    : static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

size_t size_of(DType dtype);            // bytes per element
std::string_view name_of(DType dtype);  // "float32"
std::optional<DType>
dtype_from_name(std::string_view name);  // also the aliases: "float", "long", "half", ...

inline bool is_floating(DType d) { return d >= DType::kFloat16 && d <= DType::kFloat64; }
inline bool is_complex(DType d) { return d >= DType::kComplex64; }
inline bool is_inexact(DType d) {
  return d >= DType::kFloat16;
}  // floating or complex: what has gradients
inline bool is_integral(DType d) {
  return d >= DType::kUInt8 && d <= DType::kInt64;
}  // without bool
inline bool is_signed(DType d) { return d != DType::kBool && d != DType::kUInt8; }

// The dtype of the real and imaginary part (itself unless complex), and the complex dtype with
// parts that hold `d`.
DType real_dtype(DType d);
DType complex_dtype(DType d);
std::string_view
scalar_type_name(DType dtype);  // PyTorch's names of element types in messages: "Float", "Long"

// PyTorch's lattice: promote(uint8, int8) is int16, promote(float16, bfloat16) is float32, ...
DType promote(DType a, DType b);
// True where a value of `from` may be stored in an in-place result of `to` (no category is lost).
bool can_cast(DType from, DType to);

DType default_dtype();  // of factories and of int → float results; float32 unless set for this
                        // thread's context
void set_default_dtype(DType dtype);  // kType unless floating

inline void append_to(std::string& out, DType d) { out.append(name_of(d)); }

template <class T>
struct DTypeOf;
#define PRONG_FORALL_DTYPES(_) \
  _(bool, kBool)               \
  _(uint8_t, kUInt8)           \
  _(int8_t, kInt8)             \
  _(int16_t, kInt16)           \
  _(int32_t, kInt32)           \
  _(int64_t, kInt64)           \
  _(Half, kFloat16)            \
  _(BFloat16, kBFloat16)       \
  _(float, kFloat32)           \
  _(double, kFloat64)
#define PRONG_DTYPE_OF(T, name)                 \
  template <>                                   \
  struct DTypeOf<T> {                           \
    static constexpr DType value = DType::name; \
  };
PRONG_FORALL_DTYPES(PRONG_DTYPE_OF)
PRONG_DTYPE_OF(Complex64, kComplex64)
PRONG_DTYPE_OF(Complex128, kComplex128)
#undef PRONG_DTYPE_OF

template <class T>
struct TypeTag {
  using type = T;
};

[[noreturn]] void
throw_complex(DType dtype);  // kNotImplemented: not implemented for 'ComplexFloat'

// Calls f(TypeTag<T>{}) with the C++ type of `dtype`: visit(d, [&](auto tag) { using T =
// decltype(tag)::type; ... }). Of the real dtypes only (bool, integers, floats): a complex one is
// refused.
template <class F>
decltype(auto) visit(DType dtype, F&& f) {
  switch (dtype) {
#define PRONG_VISIT(T, name) \
  case DType::name:          \
    return f(TypeTag<T>{});
    PRONG_FORALL_DTYPES(PRONG_VISIT)
#undef PRONG_VISIT
  default:
    throw_complex(dtype);
  }
}

// Of the complex dtypes only.
template <class F>
decltype(auto) visit_complex(DType dtype, F&& f) {
  if (dtype == DType::kComplex64) return f(TypeTag<Complex64>{});
  return f(TypeTag<Complex128>{});
}

// Of all dtypes.
template <class F>
decltype(auto) visit_any(DType dtype, F&& f) {
  if (is_complex(dtype)) return visit_complex(dtype, f);
  return visit(dtype, f);
}

// An element of 16 bytes, where only its bits matter.
struct Element16 {
  uint64_t low = 0, high = 0;
  Element16() = default;
  explicit Element16(uint64_t bits) : low(bits) {}
  friend bool operator==(const Element16&, const Element16&) = default;
};

// Moves elements whatever they are: calls f with a type of the element's width (an unsigned integer
// or Element16).
template <class F>
decltype(auto) visit_width(DType dtype, F&& f) {
  switch (size_of(dtype)) {
  case 1:
    return f(TypeTag<uint8_t>{});
  case 2:
    return f(TypeTag<uint16_t>{});
  case 4:
    return f(TypeTag<uint32_t>{});
  case 8:
    return f(TypeTag<uint64_t>{});
  default:
    return f(TypeTag<Element16>{});
  }
}

}  // namespace prong
