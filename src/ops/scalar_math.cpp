// The float64 functions that eager kernels and generated code call: one address each in both
// worlds.
#include "ops/scalar_math.h"

#include <cmath>

namespace prong::math {

namespace library {

using std::acos, std::acosh, std::asin, std::asinh, std::atan, std::atan2, std::atanh, std::cos,
    std::cosh, std::erf, std::erfc, std::exp, std::exp2, std::expm1, std::fmod, std::hypot,
    std::log, std::log10, std::log1p, std::log2, std::pow, std::sin, std::sinh, std::tan, std::tanh;

// The inverse of erf: a start from the tail's logarithm, then two steps of Halley's method.
double erfinv(double y) {
  const double a = std::fabs(y);
  if (!(a < 1))
    return a == 1 ? std::copysign(std::numeric_limits<double>::infinity(), y) : std::nan("");
  if (a < 1e-300) return y * 0.88622692545275801;
  const double l = std::log((1 - a) * (1 + a));
  const double k = 4.3307467508 + 0.5 * l;  // 2 / (pi * 0.147) + l / 2
  double x = std::sqrt(std::sqrt(k * k - l / 0.147) - k);
  for (int step = 0; step < 3; ++step) {
    // erfc keeps the digits of the tail that erf loses.
    const double error = x > 0.5 ? (1 - a) - std::erfc(x) : std::erf(x) - a;
    const double slope = 1.1283791670955126 * std::exp(-x * x);
    if (slope == 0) break;
    const double newton = error / slope;
    x -= newton / (1 + x * newton);
  }
  return std::copysign(x, y);
}

double digamma(double x) {
  if (x == 0) return std::copysign(std::numeric_limits<double>::infinity(), -x);
  if (x < 0) {
    if (x == std::floor(x)) return std::nan("");
    const double fraction = x - std::nearbyint(x);  // exact, also for a tiny x
    return digamma(1 - x) - 3.14159265358979324 / std::tan(3.14159265358979324 * fraction);
  }
  double result = 0;
  for (; x < 10; ++x) result -= 1 / x;
  const double z = 1 / (x * x);
  const double series =
      z *
      (1.0 / 12 -
       z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760))))));
  return result + std::log(x) - 0.5 / x - series;
}

double lgamma(double x) {
  int sign;
  return ::lgamma_r(x, &sign);  // std::lgamma writes a global
}

}  // namespace library

#define PRONG_DEFINE_1(name)                                                        \
  extern "C" __attribute__((noinline)) double prong_f64_##name(double x) noexcept { \
    return library::name(x);                                                        \
  }                                                                                 \
  const ExternalFunction k_##name = {"prong_f64_" #name,                            \
                                     reinterpret_cast<void*>(&prong_f64_##name), 1};
#define PRONG_DEFINE_2(name)                                                                  \
  extern "C" __attribute__((noinline)) double prong_f64_##name(double x, double y) noexcept { \
    return library::name(x, y);                                                               \
  }                                                                                           \
  const ExternalFunction k_##name = {"prong_f64_" #name,                                      \
                                     reinterpret_cast<void*>(&prong_f64_##name), 2};
PRONG_FORALL_EXTERNALS_1(PRONG_DEFINE_1)
PRONG_FORALL_EXTERNALS_2(PRONG_DEFINE_2)

}  // namespace prong::math
