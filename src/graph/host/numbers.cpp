// Arithmetic, comparison and bits of int, float and bool, with Python's meaning. Ints have 64 bits:
// what does not fit raises OverflowError instead of wrapping around, since Python would go on with
// the right number.
#include <cmath>
#include <limits>

#include "graph/host/tables.h"

namespace prong {
namespace {

using Args = std::span<IValue>;

[[noreturn]] void too_large() {
  throw_error(ErrorKind::kOverflow, "the result of int arithmetic does not fit into 64 bits");
}
[[noreturn]] void zero(const char* text) { throw_error(ErrorKind::kZeroDivision, text); }

int64_t i(Args a, size_t n) { return a[n].to_int(); }
double d(Args a, size_t n) { return a[n].to_double(); }

// ── ints ──

int64_t add(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r)) too_large();
  return r;
}
int64_t sub(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_sub_overflow(a, b, &r)) too_large();
  return r;
}
int64_t mul(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) too_large();
  return r;
}
int64_t floordiv(int64_t a, int64_t b) {
  if (b == 0) zero("integer division or modulo by zero");
  if (b == -1) return sub(0, a);
  const int64_t q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0));
}
int64_t mod(int64_t a, int64_t b) {
  if (b == 0) zero("integer modulo by zero");
  if (b == -1) return 0;
  const int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
int64_t pow(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) zero("0.0 cannot be raised to a negative power");
    throw_error(ErrorKind::kValue, cat("int ** negative int is a float in Python, but an int in a "
                                       "script: write float(a) ** b (got ",
                                       base, " ** ", exponent, ")"));
  }
  int64_t result = 1;
  while (true) {
    if (exponent & 1) result = mul(result, base);
    exponent >>= 1;
    if (exponent == 0) return result;
    base = mul(base, base);
  }
}
int64_t lshift(int64_t a, int64_t n) {
  PRONG_CHECK(n >= 0, kValue, "negative shift count");
  if (a == 0) return 0;
  if (n >= 63) too_large();
  return mul(a, int64_t{1} << n);
}
int64_t rshift(int64_t a, int64_t n) {
  PRONG_CHECK(n >= 0, kValue, "negative shift count");
  return a >> (n > 63 ? 63 : n);
}

// ── floats ──

double truediv(double a, double b) {
  if (b == 0) zero("float division by zero");
  return a / b;
}
// Python's: the sign of the divisor, exact where fmod is.
double mod(double a, double b) {
  if (b == 0) zero("float modulo");
  double r = std::fmod(a, b);
  if (r != 0) {
    if ((b < 0) != (r < 0)) r += b;
  } else {
    r = std::copysign(0.0, b);
  }
  return r;
}
double floordiv(double a, double b) {
  if (b == 0) zero("float floor division by zero");
  double r = std::fmod(a, b);
  double q = (a - r) / b;
  if (r != 0 && (b < 0) != (r < 0)) q -= 1.0;
  if (q == 0) return std::copysign(0.0, a / b);
  const double f = std::floor(q);
  return q - f > 0.5 ? f + 1.0 : f;
}
double pow(double a, double b) {
  if (a == 0 && b < 0) zero("0.0 cannot be raised to a negative power");
  PRONG_CHECK(!(a < 0 && std::isfinite(a) && std::isfinite(b) && b != std::floor(b)), kValue,
              "negative float ** fraction is a complex number, which scripts do not have (got ", a,
              " ** ", b, ")");
  const double r = std::pow(a, b);
  PRONG_CHECK(!(std::isinf(r) && std::isfinite(a) && std::isfinite(b)), kOverflow,
              "(34, 'Numerical result out of range')");
  return r;
}

// ── either: the result of Tensor.item() ──

bool ints(Args a) { return !a[0].is_float() && !a[1].is_float(); }
// Exact also where an int does not fit into a double.
int compare(const IValue& a, const IValue& b) {
  if (!a.is_float() && !b.is_float()) return a.to_int() < b.to_int() ? -1 : a.to_int() > b.to_int();
  const long double x =
      a.is_float() ? static_cast<long double>(a.to_double()) : static_cast<long double>(a.to_int());
  const long double y =
      b.is_float() ? static_cast<long double>(b.to_double()) : static_cast<long double>(b.to_int());
  return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;  // 2: NaN
}

#define PRONG_ARITHMETIC(name)                                                            \
  r.add(Effect::kPure, #name ".int(a: int, b: int) -> int",                               \
        [](Args a) { return IValue(name(i(a, 0), i(a, 1))); });                           \
  r.add(Effect::kPure, #name ".float(a: float, b: float) -> float",                       \
        [](Args a) { return IValue(d(a, 0) PRONG_SIGN d(a, 1)); });                       \
  r.add(Effect::kPure, #name ".number(a: Scalar, b: Scalar) -> Scalar", [](Args a) {      \
    return ints(a) ? IValue(name(i(a, 0), i(a, 1))) : IValue(d(a, 0) PRONG_SIGN d(a, 1)); \
  });

// With functions of both; they may raise.
#define PRONG_DIVISION(name)                                                             \
  r.add(Effect::kMayRaise, #name ".int(a: int, b: int) -> int",                          \
        [](Args a) { return IValue(name(i(a, 0), i(a, 1))); });                          \
  r.add(Effect::kMayRaise, #name ".float(a: float, b: float) -> float",                  \
        [](Args a) { return IValue(name(d(a, 0), d(a, 1))); });                          \
  r.add(Effect::kMayRaise, #name ".number(a: Scalar, b: Scalar) -> Scalar", [](Args a) { \
    return ints(a) ? IValue(name(i(a, 0), i(a, 1))) : IValue(name(d(a, 0), d(a, 1)));    \
  });

#define PRONG_COMPARISON(name, sign)                                               \
  r.add(Effect::kPure, #name ".int(a: int, b: int) -> bool",                       \
        [](Args a) { return IValue(i(a, 0) sign i(a, 1)); });                      \
  r.add(Effect::kPure, #name ".float(a: float, b: float) -> bool",                 \
        [](Args a) { return IValue(d(a, 0) sign d(a, 1)); });                      \
  r.add(Effect::kPure, #name ".number(a: Scalar, b: Scalar) -> bool", [](Args a) { \
    const int c = compare(a[0], a[1]);                                             \
    return IValue(c == 2 ? std::string_view(#name) == "ne" : c sign 0);            \
  });

#define PRONG_BITS(name, sign)                                                                 \
  r.add(Effect::kPure, #name ".bool(a: bool, b: bool) -> bool",                                \
        [](Args a) { return IValue(static_cast<bool>(a[0].to_bool() sign a[1].to_bool())); }); \
  r.add(Effect::kPure, #name ".int(a: int, b: int) -> int",                                    \
        [](Args a) { return IValue(i(a, 0) sign i(a, 1)); });

}  // namespace

void register_numbers(HostRegistry& r) {
#define PRONG_SIGN +
  PRONG_ARITHMETIC(add)
#undef PRONG_SIGN
#define PRONG_SIGN -
  PRONG_ARITHMETIC(sub)
#undef PRONG_SIGN
#define PRONG_SIGN *
  PRONG_ARITHMETIC(mul)
#undef PRONG_SIGN
  r.add(Effect::kMayRaise, "truediv.int(a: int, b: int) -> float", [](Args a) {
    if (i(a, 1) == 0) zero("division by zero");
    return IValue(
        static_cast<double>(static_cast<long double>(i(a, 0)) / static_cast<long double>(i(a, 1))));
  });
  r.add(Effect::kMayRaise, "truediv.float(a: float, b: float) -> float",
        [](Args a) { return IValue(truediv(d(a, 0), d(a, 1))); });
  r.add(Effect::kMayRaise, "truediv.number(a: Scalar, b: Scalar) -> float", [](Args a) {
    if (ints(a) && i(a, 1) == 0) zero("division by zero");
    return IValue(truediv(d(a, 0), d(a, 1)));
  });
  PRONG_DIVISION(floordiv)
  PRONG_DIVISION(mod)
  PRONG_DIVISION(pow)
  PRONG_COMPARISON(eq, ==)
  PRONG_COMPARISON(ne, !=)
  PRONG_COMPARISON(lt, <)
  PRONG_COMPARISON(le, <=)
  PRONG_COMPARISON(gt, >)
  PRONG_COMPARISON(ge, >=)
  PRONG_BITS(and, &)
  PRONG_BITS(or, |)
  PRONG_BITS(xor, ^)
  r.add(Effect::kPure, "not_.bool(a: bool) -> bool",
        [](Args a) { return IValue(!a[0].to_bool()); });
  r.add(Effect::kPure, "eq.bool(a: bool, b: bool) -> bool",
        [](Args a) { return IValue(a[0].to_bool() == a[1].to_bool()); });
  r.add(Effect::kPure, "ne.bool(a: bool, b: bool) -> bool",
        [](Args a) { return IValue(a[0].to_bool() != a[1].to_bool()); });
  r.add(Effect::kPure, "neg.int(a: int) -> int", [](Args a) { return IValue(sub(0, i(a, 0))); });
  r.add(Effect::kPure, "neg.float(a: float) -> float", [](Args a) { return IValue(-d(a, 0)); });
  r.add(Effect::kPure, "neg.number(a: Scalar) -> Scalar",
        [](Args a) { return a[0].is_float() ? IValue(-d(a, 0)) : IValue(sub(0, i(a, 0))); });
  r.add(Effect::kPure, "pos.int(a: int) -> int", [](Args a) { return IValue(i(a, 0)); });
  r.add(Effect::kPure, "pos.float(a: float) -> float", [](Args a) { return IValue(d(a, 0)); });
  r.add(Effect::kPure, "pos.number(a: Scalar) -> Scalar",
        [](Args a) { return a[0].is_float() ? IValue(d(a, 0)) : IValue(i(a, 0)); });
  r.add(Effect::kPure, "invert.int(a: int) -> int", [](Args a) { return IValue(~i(a, 0)); });
  r.add(Effect::kMayRaise, "lshift.int(a: int, b: int) -> int",
        [](Args a) { return IValue(lshift(i(a, 0), i(a, 1))); });
  r.add(Effect::kMayRaise, "rshift.int(a: int, b: int) -> int",
        [](Args a) { return IValue(rshift(i(a, 0), i(a, 1))); });
  r.add(Effect::kMayRaise, "divmod.int(a: int, b: int) -> Tuple[int, int]", [](Args a) {
    return IValue::tuple({IValue(floordiv(i(a, 0), i(a, 1))), IValue(mod(i(a, 0), i(a, 1)))});
  });
  r.add(Effect::kMayRaise, "divmod.float(a: float, b: float) -> Tuple[float, float]", [](Args a) {
    if (d(a, 1) == 0) zero("float divmod()");
    return IValue::tuple({IValue(floordiv(d(a, 0), d(a, 1))), IValue(mod(d(a, 0), d(a, 1)))});
  });
}

}  // namespace prong
