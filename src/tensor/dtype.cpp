// Names, sizes and the promotion lattice of the element types.
#include "tensor/dtype.h"

#include <array>
#include <atomic>

namespace prong {

size_t size_of(DType dtype) {
  static constexpr std::array<uint8_t, kNumDTypes> bytes = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};
  return bytes[static_cast<size_t>(dtype)];
}

std::string_view name_of(DType dtype) {
  static constexpr std::array<std::string_view, kNumDTypes> names = {
      "bool",    "uint8",    "int8",    "int16",   "int32",     "int64",
      "float16", "bfloat16", "float32", "float64", "complex64", "complex128"};
  return names[static_cast<size_t>(dtype)];
}

std::optional<DType> dtype_from_name(std::string_view name) {
  for (int i = 0; i < kNumDTypes; ++i)
    if (name_of(static_cast<DType>(i)) == name) return static_cast<DType>(i);
  if (name == "float") return DType::kFloat32;
  if (name == "double") return DType::kFloat64;
  if (name == "half") return DType::kFloat16;
  if (name == "cfloat") return DType::kComplex64;
  if (name == "cdouble") return DType::kComplex128;
  if (name == "short") return DType::kInt16;
  if (name == "int") return DType::kInt32;
  if (name == "long") return DType::kInt64;
  return std::nullopt;
}

DType real_dtype(DType d) {
  return d == DType::kComplex64 ? DType::kFloat32 : d == DType::kComplex128 ? DType::kFloat64 : d;
}

DType complex_dtype(DType d) {
  return d == DType::kFloat64 || d == DType::kComplex128 ? DType::kComplex128 : DType::kComplex64;
}

std::string_view scalar_type_name(DType dtype) {
  static constexpr std::array<std::string_view, kNumDTypes> names = {
      "Bool", "Byte",     "Char",  "Short",  "Int",          "Long",
      "Half", "BFloat16", "Float", "Double", "ComplexFloat", "ComplexDouble"};
  return names[static_cast<size_t>(dtype)];
}

void throw_complex(DType dtype) {
  throw_error(ErrorKind::kNotImplemented,
              cat("not implemented for '", scalar_type_name(dtype), "'"));
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (a > b) std::swap(a, b);  // so b is the later one of the enum
  if (a == DType::kUInt8 && b == DType::kInt8) return DType::kInt16;
  if (a == DType::kFloat16 && b == DType::kBFloat16) return DType::kFloat32;
  if (a == DType::kFloat64 && b == DType::kComplex64) return DType::kComplex128;
  return b;
}

bool can_cast(DType from, DType to) {
  if (is_complex(from) && !is_complex(to)) return false;
  if (is_floating(from) && !is_inexact(to)) return false;
  return from == DType::kBool || to != DType::kBool;
}

namespace {
std::atomic<DType> default_dtype_{DType::kFloat32};
}

DType default_dtype() { return default_dtype_.load(std::memory_order_relaxed); }

void set_default_dtype(DType dtype) {
  PRONG_CHECK(is_floating(dtype), kType,
              "only floating-point types are supported as the default type, but got ", dtype);
  default_dtype_.store(dtype, std::memory_order_relaxed);
}

}  // namespace prong
