// abs, min, max, round and the functions of Python's module math, with its errors.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "graph/host/tables.h"

namespace prong {
namespace {

using Args = std::span<IValue>;

// What Python makes of a result: NaN from a number and infinity from a finite one are errors.
double checked(double result, double x) {
  PRONG_CHECK(!(std::isnan(result) && !std::isnan(x)), kValue, "math domain error");
  PRONG_CHECK(!(std::isinf(result) && std::isfinite(x)), kOverflow, "math range error");
  return result;
}

template <double (*f)(double)>
IValue unary(Args a) {
  const double x = a[0].to_double();
  return IValue(checked(f(x), x));
}
template <double (*f)(double)>
IValue logarithm(Args a) {
  const double x = a[0].to_double();
  PRONG_CHECK(!(x <= 0), kValue, "math domain error");
  return IValue(f(x));
}

int64_t whole(double x) {
  PRONG_CHECK(!std::isnan(x), kValue, "cannot convert float NaN to integer");
  PRONG_CHECK(!std::isinf(x), kOverflow, "cannot convert float infinity to integer");
  PRONG_CHECK(x >= -9223372036854775808.0 && x < 9223372036854775808.0, kOverflow, "the float ", x,
              " does not fit into 64 bits as an int");
  return static_cast<int64_t>(x);
}

// round(x, n): decimal, correctly rounded, half to even, by way of text as Python does.
double round_digits(double x, int64_t n) {
  if (!std::isfinite(x) || n > 323) return x;
  if (n < -308) return std::copysign(0.0, x);
  if (n < 0) {
    const double scale = std::pow(10.0, static_cast<double>(-n));
    return std::nearbyint(x / scale) * scale;
  }
  char text[700];
  std::snprintf(text, sizeof text, "%.*f", static_cast<int>(n), x);
  return std::strtod(text, nullptr);
}
int64_t round_digits(int64_t x, int64_t n) {
  if (n >= 0) return x;
  if (n < -18) return 0;
  int64_t scale = 1;
  for (; n < 0; ++n) scale *= 10;
  const int64_t rest = ((x % scale) + scale) % scale;
  const int64_t low = x - rest;
  const bool up = rest > scale / 2 || (rest == scale / 2 && (low / scale) % 2 != 0);
  return up ? low + scale : low;
}

double pow_checked(double x, double y) {
  const double r = std::pow(x, y);
  if (std::isfinite(x) && std::isfinite(y)) {
    PRONG_CHECK(!std::isnan(r) && !(x == 0 && y < 0), kValue, "math domain error");
    PRONG_CHECK(!std::isinf(r), kOverflow, "math range error");
  }
  return r;
}

int64_t factorial(int64_t n) {
  PRONG_CHECK(n >= 0, kValue, "factorial() not defined for negative values");
  PRONG_CHECK(n <= 20, kOverflow, "factorial(", n, ") does not fit into 64 bits");
  int64_t r = 1;
  for (int64_t k = 2; k <= n; ++k) r *= k;
  return r;
}

bool is_close(double a, double b, double relative, double absolute) {
  PRONG_CHECK(relative >= 0 && absolute >= 0, kValue, "tolerances must be non-negative");
  if (a == b) return true;
  if (std::isinf(a) || std::isinf(b)) return false;
  const double diff = std::fabs(b - a);
  return diff <= std::fabs(relative * b) || diff <= std::fabs(relative * a) || diff <= absolute;
}

double degrees(double x) { return x * (180.0 / M_PI); }
double radians(double x) { return x * (M_PI / 180.0); }

void register_functions(HostRegistry& r) {
  const auto add = [&r](std::string_view name, HostFn f) {
    r.add(Effect::kMayRaise, cat("math_", name, "(x: float) -> float"), f);
  };
  add("sqrt", unary<std::sqrt>);
  add("exp", unary<std::exp>);
  add("exp2", unary<std::exp2>);
  add("expm1", unary<std::expm1>);
  add("sin", unary<std::sin>);
  add("cos", unary<std::cos>);
  add("tan", unary<std::tan>);
  add("asin", unary<std::asin>);
  add("acos", unary<std::acos>);
  add("atan", unary<std::atan>);
  add("sinh", unary<std::sinh>);
  add("cosh", unary<std::cosh>);
  add("tanh", unary<std::tanh>);
  add("asinh", unary<std::asinh>);
  add("acosh", unary<std::acosh>);
  add("atanh", unary<std::atanh>);
  add("erf", unary<std::erf>);
  add("erfc", unary<std::erfc>);
  add("gamma", unary<std::tgamma>);
  add("lgamma", unary<std::lgamma>);
  add("fabs", unary<std::fabs>);
  add("degrees", unary<degrees>);
  add("radians", unary<radians>);
  add("log", logarithm<std::log>);
  add("log2", logarithm<std::log2>);
  add("log10", logarithm<std::log10>);
  r.add(Effect::kMayRaise, "math_log1p(x: float) -> float", [](Args a) {
    PRONG_CHECK(!(a[0].to_double() <= -1), kValue, "math domain error");
    return IValue(std::log1p(a[0].to_double()));
  });
  r.add(Effect::kMayRaise, "math_log.base(x: float, base: float) -> float", [](Args a) {
    PRONG_CHECK(!(a[0].to_double() <= 0 || a[1].to_double() <= 0), kValue, "math domain error");
    const double below = std::log(a[1].to_double());
    PRONG_CHECK(below != 0, kZeroDivision, "float division by zero");
    return IValue(std::log(a[0].to_double()) / below);
  });
}

}  // namespace

void register_math(HostRegistry& r) {
  register_functions(r);
  r.add(Effect::kMayRaise, "math_pow(x: float, y: float) -> float",
        [](Args a) { return IValue(pow_checked(a[0].to_double(), a[1].to_double())); });
  r.add(Effect::kMayRaise, "math_fmod(x: float, y: float) -> float", [](Args a) {
    const double x = a[0].to_double(), y = a[1].to_double(), result = std::fmod(x, y);
    PRONG_CHECK(!std::isnan(result) || std::isnan(x) || std::isnan(y), kValue, "math domain error");
    return IValue(result);
  });
  r.add(Effect::kPure, "math_atan2(y: float, x: float) -> float",
        [](Args a) { return IValue(std::atan2(a[0].to_double(), a[1].to_double())); });
  r.add(Effect::kPure, "math_hypot(x: float, y: float) -> float",
        [](Args a) { return IValue(std::hypot(a[0].to_double(), a[1].to_double())); });
  r.add(Effect::kPure, "math_copysign(x: float, y: float) -> float",
        [](Args a) { return IValue(std::copysign(a[0].to_double(), a[1].to_double())); });
  r.add(Effect::kMayRaise, "math_ldexp(x: float, i: int) -> float", [](Args a) {
    const int64_t e = std::clamp<int64_t>(a[1].to_int(), -5000, 5000);
    return IValue(checked(std::ldexp(a[0].to_double(), static_cast<int>(e)), a[0].to_double()));
  });
  r.add(Effect::kPure, "math_frexp(x: float) -> Tuple[float, int]", [](Args a) {
    int e = 0;
    const double m = std::frexp(a[0].to_double(), &e);
    return IValue::tuple({IValue(m), IValue(static_cast<int64_t>(e))});
  });
  r.add(Effect::kPure, "math_modf(x: float) -> Tuple[float, float]", [](Args a) {
    double whole_part = 0;
    const double fraction = std::modf(a[0].to_double(), &whole_part);
    return IValue::tuple({IValue(fraction), IValue(whole_part)});
  });
  r.add(Effect::kPure, "math_floor.int(x: int) -> int",
        [](Args a) { return IValue(a[0].to_int()); });
  r.add(Effect::kMayRaise, "math_floor.float(x: float) -> int",
        [](Args a) { return IValue(whole(std::floor(a[0].to_double()))); });
  r.add(Effect::kPure, "math_ceil.int(x: int) -> int",
        [](Args a) { return IValue(a[0].to_int()); });
  r.add(Effect::kMayRaise, "math_ceil.float(x: float) -> int",
        [](Args a) { return IValue(whole(std::ceil(a[0].to_double()))); });
  r.add(Effect::kPure, "math_trunc.int(x: int) -> int",
        [](Args a) { return IValue(a[0].to_int()); });
  r.add(Effect::kMayRaise, "math_trunc.float(x: float) -> int",
        [](Args a) { return IValue(whole(a[0].to_double())); });
  r.add(Effect::kPure, "math_isnan(x: float) -> bool",
        [](Args a) { return IValue(static_cast<bool>(std::isnan(a[0].to_double()))); });
  r.add(Effect::kPure, "math_isinf(x: float) -> bool",
        [](Args a) { return IValue(static_cast<bool>(std::isinf(a[0].to_double()))); });
  r.add(Effect::kPure, "math_isfinite(x: float) -> bool",
        [](Args a) { return IValue(static_cast<bool>(std::isfinite(a[0].to_double()))); });
  r.add(Effect::kMayRaise,
        "math_isclose(a: float, b: float, *, rel_tol: float = 1e-09, abs_tol: float = 0.0) -> bool",
        [](Args a) {
          return IValue(
              is_close(a[0].to_double(), a[1].to_double(), a[2].to_double(), a[3].to_double()));
        });
  r.add(Effect::kMayRaise, "math_factorial(n: int) -> int",
        [](Args a) { return IValue(factorial(a[0].to_int())); });
  r.add(Effect::kPure, "math_gcd(a: int, b: int) -> int",
        [](Args a) { return IValue(std::gcd(a[0].to_int(), a[1].to_int())); });

  r.add(Effect::kPure, "abs.int(x: int) -> int", [](Args a) {
    PRONG_CHECK(a[0].to_int() != INT64_MIN, kOverflow, "abs(", a[0].to_int(),
                ") does not fit into 64 bits");
    return IValue(a[0].to_int() < 0 ? -a[0].to_int() : a[0].to_int());
  });
  r.add(Effect::kPure, "abs.float(x: float) -> float",
        [](Args a) { return IValue(std::fabs(a[0].to_double())); });
  r.add(Effect::kPure, "abs.number(x: Scalar) -> Scalar", [](Args a) {
    return a[0].is_float() ? IValue(std::fabs(a[0].to_double()))
                           : IValue(a[0].to_int() < 0 ? -a[0].to_int() : a[0].to_int());
  });
  // The first of equals, as Python has it (also with NaN).
  r.add(Effect::kPure, "min.int(a: int, b: int) -> int",
        [](Args a) { return IValue(std::min(a[0].to_int(), a[1].to_int())); });
  r.add(Effect::kPure, "max.int(a: int, b: int) -> int",
        [](Args a) { return IValue(std::max(a[0].to_int(), a[1].to_int())); });
  r.add(Effect::kPure, "min.float(a: float, b: float) -> float", [](Args a) {
    return IValue(a[1].to_double() < a[0].to_double() ? a[1].to_double() : a[0].to_double());
  });
  r.add(Effect::kPure, "max.float(a: float, b: float) -> float", [](Args a) {
    return IValue(a[1].to_double() > a[0].to_double() ? a[1].to_double() : a[0].to_double());
  });
  r.add(Effect::kPure, "min.number(a: Scalar, b: Scalar) -> Scalar",
        [](Args a) { return a[1].to_double() < a[0].to_double() ? a[1] : a[0]; });
  r.add(Effect::kPure, "max.number(a: Scalar, b: Scalar) -> Scalar",
        [](Args a) { return a[1].to_double() > a[0].to_double() ? a[1] : a[0]; });
  r.add(Effect::kPure, "round.int(x: int) -> int", [](Args a) { return IValue(a[0].to_int()); });
  r.add(Effect::kMayRaise, "round.float(x: float) -> int",
        [](Args a) { return IValue(whole(std::nearbyint(a[0].to_double()))); });
  r.add(Effect::kPure, "round.int_digits(x: int, ndigits: int) -> int",
        [](Args a) { return IValue(round_digits(a[0].to_int(), a[1].to_int())); });
  r.add(Effect::kPure, "round.float_digits(x: float, ndigits: int) -> float",
        [](Args a) { return IValue(round_digits(a[0].to_double(), a[1].to_int())); });
}

}  // namespace prong
