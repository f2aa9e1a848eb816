// log(1 + z) and log(e^a + e^b) of single numbers, complex ones too. Used by
// defs/pointwise_math.cpp and softmax.cpp.
#pragma once

#include <cmath>
#include <complex>

namespace prong {

// Of complex numbers: log|1 + z| from |1 + z|^2 - 1 near 0, where 1 + z would be rounded.
template <class T>
std::complex<T> log1p_of(std::complex<T> z) {
  const T x = z.real(), y = z.imag(), above = x * (2 + x) + y * y;
  const T size = std::abs(above) < T(0.5) ? std::log1p(above) / 2 : std::log(std::hypot(1 + x, y));
  return {size, std::atan2(y, 1 + x)};
}

inline double log1p_of(double x) { return std::log1p(x); }
inline double real_of(double x) { return x; }
template <class T>
T real_of(std::complex<T> z) {
  return z.real();
}

template <class T>
T log_add_exp(T a, T b) {
  const bool is_first = real_of(a) >= real_of(b) || a != a;
  const T large = is_first ? a : b, small = is_first ? b : a;
  // Equal infinities have no difference; nothing is added by e^-inf.
  if (a == b && std::isinf(real_of(a))) return a;
  if (std::isinf(real_of(small)) && real_of(small) < 0) return large;
  return large + log1p_of(std::exp(small - large));
}

}  // namespace prong
