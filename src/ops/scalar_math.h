// Mathematical functions as bodies: one text for float, double and Scalar, so that eager kernels
// and generated code compute the same bits. Used by the op definitions.
//
// float32 runs the polynomials of scalar_float_math.h. float64 calls the C library through the
// functions in scalar_math.cpp, from kernels and generated code alike.
#pragma once

#include "ops/scalar_float_math.h"

namespace prong::math {

// name, its ExternalFunction k_name and the C++ function f64_name.
#define PRONG_FORALL_EXTERNALS_1(_)                                                         \
  _(exp)                                                                                    \
  _(expm1)                                                                                  \
  _(exp2)                                                                                   \
  _(log)                                                                                    \
  _(log2)                                                                                   \
  _(log10) _(log1p) _(tanh) _(sinh) _(cosh) _(asinh) _(acosh) _(atanh) _(sin) _(cos) _(tan) \
      _(asin) _(acos) _(atan) _(erf) _(erfc) _(erfinv) _(lgamma) _(digamma)
#define PRONG_FORALL_EXTERNALS_2(_) _(pow) _(atan2) _(fmod) _(hypot)

#define PRONG_DECLARE_1(name)                            \
  extern "C" double prong_f64_##name(double x) noexcept; \
  extern const ExternalFunction k_##name;
#define PRONG_DECLARE_2(name)                                      \
  extern "C" double prong_f64_##name(double x, double y) noexcept; \
  extern const ExternalFunction k_##name;
PRONG_FORALL_EXTERNALS_1(PRONG_DECLARE_1)
PRONG_FORALL_EXTERNALS_2(PRONG_DECLARE_2)
#undef PRONG_DECLARE_1
#undef PRONG_DECLARE_2

template <class T>
inline bool is_single(const T& x) {
  if constexpr (is_scalar<T>) return x.dtype() == DType::kFloat32;
  return std::is_same_v<T, float>;
}

// Defines name(x): the polynomial for float, the C library for double; a Scalar goes by its dtype.
#define PRONG_BY_PRECISION_1(name)                                                        \
  template <class T>                                                                      \
  PRONG_INLINE T name(const T& x) {                                                       \
    if constexpr (std::is_same_v<T, float>)                                               \
      return name##_f32(x);                                                               \
    else if constexpr (std::is_same_v<T, double>)                                         \
      return prong_f64_##name(x);                                                         \
    else                                                                                  \
      return is_single(x) ? name##_f32(x) : call_external(k_##name, prong_f64_##name, x); \
  }
// Defines name(x) for float too by the C library's double function: right, but a call an element.
#define PRONG_BY_LIBRARY_1(name)                                                             \
  template <class T>                                                                         \
  PRONG_INLINE T name(const T& x) {                                                          \
    if constexpr (std::is_same_v<T, float>)                                                  \
      return static_cast<float>(prong_f64_##name(x));                                        \
    else if constexpr (std::is_same_v<T, double>)                                            \
      return prong_f64_##name(x);                                                            \
    else                                                                                     \
      return call_external(k_##name, prong_f64_##name, x.to(DType::kFloat64)).to(x.dtype()); \
  }
#define PRONG_BY_LIBRARY_2(name)                                              \
  template <class T>                                                          \
  PRONG_INLINE T name(const T& x, const T& y) {                               \
    if constexpr (std::is_same_v<T, float>)                                   \
      return static_cast<float>(prong_f64_##name(x, y));                      \
    else if constexpr (std::is_same_v<T, double>)                             \
      return prong_f64_##name(x, y);                                          \
    else                                                                      \
      return call_external(k_##name, prong_f64_##name, x.to(DType::kFloat64), \
                           y.to(DType::kFloat64))                             \
          .to(x.dtype());                                                     \
  }

// ── the public names ──

PRONG_BY_PRECISION_1(exp)
PRONG_BY_PRECISION_1(exp2)
PRONG_BY_PRECISION_1(expm1)
PRONG_BY_PRECISION_1(log)
PRONG_BY_PRECISION_1(log2)
PRONG_BY_PRECISION_1(log10)
PRONG_BY_PRECISION_1(log1p)
PRONG_BY_PRECISION_1(tanh)
PRONG_BY_PRECISION_1(erf)
PRONG_BY_PRECISION_1(sin)
PRONG_BY_PRECISION_1(cos)
PRONG_BY_PRECISION_1(atan)
PRONG_BY_PRECISION_1(tan)
PRONG_BY_PRECISION_1(asin)
PRONG_BY_PRECISION_1(acos)
PRONG_BY_PRECISION_1(sinh)
PRONG_BY_PRECISION_1(cosh)
PRONG_BY_PRECISION_1(asinh)
PRONG_BY_PRECISION_1(acosh)
PRONG_BY_PRECISION_1(atanh)
PRONG_BY_PRECISION_1(erfc)
PRONG_BY_PRECISION_1(erfinv)
PRONG_BY_LIBRARY_1(lgamma)
PRONG_BY_LIBRARY_1(digamma)
PRONG_BY_LIBRARY_2(hypot)
PRONG_BY_LIBRARY_2(fmod)

// The neighbour of x towards y: one step in the order of the bit patterns.
template <class T>
PRONG_INLINE T next_after(const T& x, const T& y) {
  const auto bits = to_bits(x);
  const auto one = lit(bits, 1);
  const auto away = truth((x < y) == (x > 0));  // from zero
  const T step = from_bits(select(away, bits + one, bits - one));
  const T from_zero = with_sign(from_bits(one), y);
  const T moved = select(x == 0, from_zero, step);
  return select((x != x) | (y != y), x + y, select(x == y, y, moved));
}

#define PRONG_BY_PRECISION_2(name)                                                              \
  template <class T>                                                                            \
  PRONG_INLINE T name(const T& x, const T& y) {                                                 \
    if constexpr (std::is_same_v<T, float>)                                                     \
      return name##_f32(x, y);                                                                  \
    else if constexpr (std::is_same_v<T, double>)                                               \
      return prong_f64_##name(x, y);                                                            \
    else                                                                                        \
      return is_single(x) ? name##_f32(x, y) : call_external(k_##name, prong_f64_##name, x, y); \
  }
PRONG_BY_PRECISION_2(pow)
PRONG_BY_PRECISION_2(atan2)

// For kernels, with the same bits, since fmod is exact: one division where the quotient is short,
// as it nearly always is. No quotient of two floats below 2^27 lies so near to a whole number that
// the division in double would round it there, and what is left after the product needs no
// rounding.
PRONG_INLINE float fmod(float x, float y) {
  const double q = __builtin_trunc(static_cast<double>(x) / static_cast<double>(y));
  if (__builtin_fabs(q) < 0x1p27 && __builtin_isfinite(y)) [[likely]]
    return __builtin_copysignf(static_cast<float>(__builtin_fma(-q, y, x)), x);
  return static_cast<float>(prong_f64_fmod(x, y));
}

// ── built from those above ──

template <class T>
PRONG_INLINE T rsqrt(const T& x) {
  return 1 / sqrt(x);
}
template <class T>
PRONG_INLINE T sigmoid(const T& x) {
  return 1 / (1 + exp(-x));
}
template <class T>
PRONG_INLINE T one_plus_erf(const T& x) {
  if constexpr (std::is_same_v<T, float>)
    return one_plus_erf_f32(x);
  else if constexpr (std::is_same_v<T, double>)
    return erfc(-x);
  else
    return is_single(x) ? one_plus_erf_f32(x) : erfc(-x);
}
// log(1 + exp(x)) without overflow.
template <class T>
PRONG_INLINE T log1p_exp(const T& x) {
  return select(x > 0, x, x - x) + log1p(exp(-abs(x)));
}

// ── what a type decides ──

template <class T>
PRONG_INLINE bool is_float_like(const T& x) {
  if constexpr (is_scalar<T>) return is_floating(x.dtype());
  return std::is_floating_point_v<T>;
}
// f(x) for floats; integers stay as they are.
template <class T, class F>
PRONG_INLINE T if_float(const T& x, F f) {
  if constexpr (is_scalar<T>)
    return is_floating(x.dtype()) ? f(x) : x;
  else if constexpr (std::is_floating_point_v<T>)
    return f(x);
  else
    return x;
}
// A condition on floats; of integers its answer is known.
template <class T, class F>
PRONG_INLINE auto if_real(const T& x, bool of_integers, F f) {
  if constexpr (is_scalar<T>)
    return is_floating(x.dtype()) ? f(x) : Scalar::constant(of_integers);
  else if constexpr (std::is_floating_point_v<T>)
    return f(x);
  else
    return of_integers;
}
PRONG_INLINE int64_t bit_not(int64_t x) { return ~x; }
PRONG_INLINE bool bit_not(bool x) { return !x; }
inline Scalar bit_not(const Scalar& x) { return ~x; }

template <class T>
PRONG_INLINE T larger(const T& x, const T& y) {  // a NaN wins
  return select((x > y) | (x != x), x, y);
}
template <class T>
PRONG_INLINE T smaller(const T& x, const T& y) {
  return select((x < y) | (x != x), x, y);
}

// ── integers ──

// x / y towards zero and the remainder with the sign of x; y is not 0 (the engine has checked); -1
// wraps.
template <class T>
PRONG_INLINE T div_trunc(const T& x, const T& y) {
  const auto is_special = (y == -1) | (y == 0);
  return select(y == -1, -x, x / select(is_special, lit(y, 1), y));
}
template <class T>
PRONG_INLINE T rem_trunc(const T& x, const T& y) {
  return x % select((y == -1) | (y == 0), lit(y, 1), y);
}

}  // namespace prong::math
