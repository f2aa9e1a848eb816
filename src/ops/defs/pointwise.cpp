// Arithmetic, one element at a time: sums, products, quotients, powers, rounding, bounds, blends.
#include <cmath>
#include <limits>

#include "ops/data_check.h"
#include "ops/gradient.h"
#include "ops/kernels/pointwise.h"
#include "ops/scalar_math.h"

namespace prong {
namespace {

constexpr int64_t kLargestTerm = int64_t{1} << 62;  // sums of two such numbers don't overflow

// Of input + sign * alpha * other, where alpha is one.
std::optional<IntRange> bounds_of_sum(const BoundsCall& c, int64_t sign) {
  const std::optional<IntRange> a = c.range(0), b = c.range(1);
  if (!a || !b || c.number(2) != std::optional<int64_t>(1)) return std::nullopt;
  for (const int64_t x : {a->low, a->high, b->low, b->high})
    if (x > kLargestTerm || x < -kLargestTerm) return std::nullopt;
  return sign > 0 ? IntRange{a->low + b->low, a->high + b->high}
                  : IntRange{a->low - b->high, a->high - b->low};
}

using namespace math;

constexpr const char* kVmapLater = "vmap is not built yet";

OpDef& add_op(Registry& r, std::string_view schema) {
  return r.add(schema).no_grad("its rule is not written yet").no_vmap(kVmapLater);
}

const Spelling kWithInplace = {.inplace = true};

std::vector<Sample> unary_samples() {
  return {{"t(3, 4)"}, {"t()"}, {"t(0, 5)"}, {"strided(4, 6)"}};
}
// Of ops that PyTorch gives no Python numbers.
std::vector<Sample> pair_samples() {
  return {{"t(3, 4), t(3, 4)"}, {"t(3, 1), t(4)"}, {"t(0, 4), t(4)"}, {"strided(4, 6), t(4, 6)"}};
}
std::vector<Sample> binary_samples() {
  return {{"t(3, 4), t(3, 4)"},
          {"t(3, 1), t(4)"},
          {"t(3, 4), 2.5"},
          {"t(0, 4), t(4)"},
          {"strided(4, 6), t(4, 6)"}};
}

bool is_one(const IValue& v) { return v.is_number() && v.to_double() == 1; }

void check_alpha(const OpDef& op, const IValue& alpha, DType common) {
  PRONG_CHECK(!alpha.is_bool() || common == DType::kBool, kRuntime,
              "Boolean alpha only supported for Boolean results.");
  PRONG_CHECK(!alpha.is_float() || is_inexact(common), kRuntime,
              "For integral input tensors, argument alpha must not be a floating point number.");
  PRONG_CHECK(!alpha.is_complex() || is_complex(common), kRuntime,
              "For non-complex input tensors, argument alpha must not be a complex number.");
  (void)op;
}

void check_sub(const OpDef& op, std::span<const IValue> args, DType common) {
  check_alpha(op, args[2], common);
  const int bools =
      (meta_from(args[0]).dtype == DType::kBool) + (meta_from(args[1]).dtype == DType::kBool);
  PRONG_CHECK(bools != 2, kRuntime,
              "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` "
              "or `logical_xor()` "
              "operator instead.");
  PRONG_CHECK(bools == 0, kRuntime,
              "Subtraction, the `-` operator, with a bool tensor is not supported. If you are "
              "trying to invert a mask, use "
              "the `~` or `logical_not()` operator instead.");
}

Expr scaled(Expr gradient, const IValue& alpha) {
  if (is_one(alpha)) return gradient;
  if (alpha.is_complex()) return conj(op<"mul">(conj(gradient), alpha));
  return op<"mul">(gradient, alpha);
}
// Of steps: flat wherever they have a slope at all.
Expr no_slope(Gradient& g, std::string_view argument) { return g.zeros(g.meta(argument)); }
Expr one_minus(const Expr& x) {
  if (x.value().is_number() && !x.value().is_complex())
    return Expr(x.builder(), IValue(1 - x.value().to_double()));
  return 1.0 - x;
}
// x / |x|, 0 for 0.
Expr direction(const Expr& x) {
  if (!is_complex(x.dtype())) return op<"sign">(x);
  const Expr size = op<"abs">(x);
  return x / op<"where">(op<"eq">(size, 0), 1.0, size);
}

void register_sums(Registry& r) {
  const PointwiseOptions sum = {
      .check = [](const OpDef& op, std::span<const IValue> args,
                  DType common) { check_alpha(op, args[2], common); },
      .choose = [](std::span<const IValue> args, DType) { return is_one(args[2]) ? 0 : 1; }};
  PointwiseOptions difference = sum;
  difference.check = check_sub;
  add_op(r, "add(input: Tensor, other: Tensor, *, alpha: Scalar = 1) -> Tensor")
      .doc("input + alpha * other.")
      .pointwise<Numbers>([](auto x, auto y) { return x + y; }, sum)
      .complex([](auto x, auto y) { return x + y; })
      .variant<Numbers>({0, 1, 2}, [](auto x, auto y, auto alpha) { return x + alpha * y; })
      .complex([](auto x, auto y, auto alpha) { return x + alpha * y; })
      .grad("input", "", [](Gradient& g) { return g.out(); })
      .grad("other", "", [](Gradient& g) { return scaled(g.out(), g.value("alpha")); })
      .bounds([](const BoundsCall& c) { return bounds_of_sum(c, 1); })
      .where(kWithInplace)
      .samples(binary_samples())
      .reference("input + alpha * other");
  add_op(r, "sub(input: Tensor, other: Tensor, *, alpha: Scalar = 1) -> Tensor")
      .doc("input - alpha * other.")
      .pointwise<Numbers>([](auto x, auto y) { return x - y; }, difference)
      .complex([](auto x, auto y) { return x - y; })
      .variant<Numbers>({0, 1, 2}, [](auto x, auto y, auto alpha) { return x - alpha * y; })
      .complex([](auto x, auto y, auto alpha) { return x - alpha * y; })
      .grad("input", "", [](Gradient& g) { return g.out(); })
      .grad("other", "", [](Gradient& g) { return -scaled(g.out(), g.value("alpha")); })
      .bounds([](const BoundsCall& c) { return bounds_of_sum(c, -1); })
      .where({.inplace = true, .aliases = {"subtract"}})
      .samples(binary_samples())
      .reference("input - alpha * other");
  add_op(r, "rsub(input: Tensor, other: Tensor, *, alpha: Scalar = 1) -> Tensor")
      .doc("other - alpha * input.")
      .pointwise<Numbers>([](auto x, auto y) { return y - x; }, difference)
      .complex([](auto x, auto y) { return y - x; })
      .variant<Numbers>({0, 1, 2}, [](auto x, auto y, auto alpha) { return y - alpha * x; })
      .complex([](auto x, auto y, auto alpha) { return y - alpha * x; })
      .grad("input", "", [](Gradient& g) { return -scaled(g.out(), g.value("alpha")); })
      .grad("other", "", [](Gradient& g) { return g.out(); })
      .where({.method = false})
      .samples(binary_samples())
      .reference("other - alpha * input");
  add_op(r, "neg(input: Tensor) -> Tensor")
      .doc("-input.")
      .pointwise<Numbers>(
          [](auto x) { return -x; },
          {.check =
               [](const OpDef&, std::span<const IValue>, DType common) {
                 PRONG_CHECK(
                     common != DType::kBool, kRuntime,
                     "Negation, the `-` operator, on a bool tensor is not supported. If you are "
                     "trying to invert a mask, use the `~` or `logical_not()` operator instead.");
               }})
      .complex([](auto x) { return -x; })
      .grad("input", "", [](Gradient& g) { return -g.out(); })
      .where({.inplace = true, .aliases = {"negative"}})
      .samples(unary_samples())
      .reference("-input");
  add_op(r,
         "addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1) -> Tensor")
      .doc("input + value * tensor1 * tensor2.")
      .pointwise<Numbers>([](auto x, auto a, auto b, auto value) { return x + value * a * b; })
      .complex([](auto x, auto a, auto b, auto value) { return x + value * a * b; })
      .grad("input", "", [](Gradient& g) { return g.out(); })
      .grad("tensor1", "tensor2",
            [](Gradient& g) { return scaled(g.out() * conj(g["tensor2"]), g.value("value")); })
      .grad("tensor2", "tensor1",
            [](Gradient& g) { return scaled(g.out() * conj(g["tensor1"]), g.value("value")); })
      .where(kWithInplace)
      .samples({{"t(3, 4), t(3, 4), t(3, 4)"}, {"t(3, 4), t(4), t(3, 1), value=0.5"}})
      .reference("input + value * tensor1 * tensor2");
  add_op(r,
         "addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1) -> Tensor")
      .doc("input + value * tensor1 / tensor2.")
      .pointwise<Floats>(
          [](auto x, auto a, auto b, auto value) { return x + value * a / b; },
          {.check =
               [](const OpDef&, std::span<const IValue>, DType common) {
                 PRONG_CHECK(
                     is_inexact(common), kRuntime,
                     "Integer division with addcdiv is no longer supported, and in a future "
                     "release addcdiv will perform a true division of tensor1 and tensor2.");
               }})
      .complex([](auto x, auto a, auto b, auto value) { return x + value * a / b; })
      .grad("input", "", [](Gradient& g) { return g.out(); })
      .grad("tensor1", "tensor2",
            [](Gradient& g) { return scaled(g.out() / conj(g["tensor2"]), g.value("value")); })
      .grad("tensor2", "tensor1, tensor2",
            [](Gradient& g) {
              const Expr t = g["tensor2"];
              return -scaled(g.out() * conj(g["tensor1"] / (t * t)), g.value("value"));
            })
      .where(kWithInplace)
      .samples({{"t(3, 4), t(3, 4), pos(3, 4)"}, {"t(3, 4), t(4), pos(3, 1), value=0.5"}})
      .reference("input + value * tensor1 / tensor2");
  add_op(r, "lerp(input: Tensor, end: Tensor, weight: Tensor) -> Tensor")
      .doc("input + weight * (end - input), exact at both ends.")
      .pointwise<Floats>(
          [](auto x, auto end, auto w) {
            const auto d = end - x;
            return select(abs(w) < 0.5f, x + w * d, end - d * (1 - w));
          },
          {.error_name = "lerp_kernel_scalar", .promotes = 3})
      .complex([](auto x, auto end, auto w) {
        const auto d = end - x;
        return std::abs(w) < 0.5 ? x + w * d : end - d * (decltype(w)(1) - w);
      })
      .grad("input", "weight", [](Gradient& g) { return g.out() * conj(one_minus(g["weight"])); })
      .grad("end", "weight", [](Gradient& g) { return g.out() * conj(g["weight"]); })
      .grad("weight", "input, end",
            [](Gradient& g) { return g.out() * conj(g["end"] - g["input"]); })
      .where(kWithInplace)
      .samples({{"t(3, 4), t(3, 4), 0.25"}, {"t(3, 4), t(4), t(3, 4)"}})
      .reference("input + weight * (end - input)");
}

enum class Rounding { kNone, kTrunc, kFloor };
Rounding rounding_of(const IValue& mode) {
  if (mode.is_none()) return Rounding::kNone;
  if (mode.to_string() == "trunc") return Rounding::kTrunc;
  PRONG_CHECK(mode.to_string() == "floor", kRuntime,
              "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '",
              mode.to_string(), "'");
  return Rounding::kFloor;
}

// condition ? x : y by masks, for conditions that arbitrary data decide: of a select the compiler
// may make a branch, which is then mispredicted every other time.
template <class T>
PRONG_INLINE T pick(bool condition, T x, T y) {
  if constexpr (std::is_same_v<T, bool>) {
    return (condition & x) | (!condition & y);
  } else {
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    const Bits mask = Bits(0) - static_cast<Bits>(condition);
    return std::bit_cast<T>((std::bit_cast<Bits>(x) & mask) | (std::bit_cast<Bits>(y) & ~mask));
  }
}
Scalar pick(const Scalar& condition, const Scalar& x, const Scalar& y) {
  return select(condition, x, y);
}

// The quotient rounded down, as Python rounds it: from the exact remainder, so that it agrees with
// remainder().
template <class T>
PRONG_INLINE T floor_div(const T& x, const T& y) {
  const T r = fmod(x, y);
  T q = (x - r) / y;
  q = select((r != 0) & ((y < 0) != (r < 0)), q - 1, q);
  const T down = floor(q);
  const T near = select(q - down > lit(x, 0.5), down + 1, down);
  const T zero = copysign(lit(x, 0.0), x / y);
  return select(y == 0, x / y, pick(q != 0, near, zero));
}
template <class T>
PRONG_INLINE T floor_div_int(const T& x, const T& y) {
  const T q = div_trunc(x, y);
  const T r = rem_trunc(x, y);
  return select(truth((r != 0) & ((r < 0) != (y < 0))), q - 1, q);
}
// Sign of the divisor.
template <class T>
PRONG_INLINE T remainder_float(const T& x, const T& y) {
  const T r = fmod(x, y);
  return select((r != 0) & ((y < 0) != (r < 0)), r + y, r);
}
template <class T>
PRONG_INLINE T remainder_int(const T& x, const T& y) {
  const T r = rem_trunc(x, y);
  return select(truth((r != 0) & ((r < 0) != (y < 0))), r + y, r);
}

// 0 for floats, 1 for the rest: ops whose integer form is another body.
int float_or_int(std::span<const IValue>, DType common) { return is_floating(common) ? 0 : 1; }

Expr quotient_slope(Gradient& g) {
  const Expr y = g["other"];
  return -g.out() * conj(g["input"] / y / y);
}

void register_products(Registry& r) {
  add_op(r, "mul(input: Tensor, other: Tensor) -> Tensor")
      .doc("input * other.")
      .pointwise<Numbers>([](auto x, auto y) { return x * y; }, {.keeps_numbers = true})
      .complex([](auto x, auto y) { return x * y; })
      .grad("input", "other", [](Gradient& g) { return g.out() * conj(g["other"]); })
      .grad("other", "input", [](Gradient& g) { return g.out() * conj(g["input"]); })
      .where({.inplace = true, .aliases = {"multiply"}})
      .samples(binary_samples())
      .reference("input * other");
  add_op(r, "square(input: Tensor) -> Tensor")
      .doc("input * input.")
      .pointwise<Numbers>([](auto x) { return x * x; }, {.bool_to_int = true})
      .complex([](auto x) { return x * x; })
      .grad("input", "input", [](Gradient& g) { return g.out() * conj(g["input"] * 2.0); })
      .where(kWithInplace)
      .samples(unary_samples())
      .reference("input * input");
  add_op(r, "reciprocal(input: Tensor) -> Tensor")
      .doc("1 / input.")
      .pointwise<Floats>([](auto x) { return 1 / x; }, {.int_to_float = kEveryVariant})
      .complex([](auto x) { return decltype(x)(1) / x; })
      .grad("input", "result",
            [](Gradient& g) { return -g.out() * conj(g["result"] * g["result"]); })
      .where(kWithInplace)
      .samples({{"pos(3, 4)"}, {"pos()"}, {"t(0, 5)"}})
      .reference("1 / input");
  add_op(r, "div(input: Tensor, other: Tensor, *, rounding_mode: str? = None) -> Tensor")
      .doc("input / other; rounded towards zero ('trunc') or down ('floor') where asked.")
      .pointwise<Floats>([](auto x, auto y) { return x / y; },
                         {.keeps_numbers = true,
                          .int_to_float = 1,
                          .divisor = 1,
                          .choose =
                              [](std::span<const IValue> args, DType common) {
                                const Rounding mode = rounding_of(args[2]);
                                if (mode == Rounding::kNone) return 0;
                                return (mode == Rounding::kTrunc ? 1 : 3) +
                                       (is_floating(common) ? 0 : 1);
                              }})
      .complex([](auto x, auto y) { return x / y; })
      .variant<Floats>({0, 1}, [](auto x, auto y) { return trunc(x / y); })
      .variant<Ints>({0, 1}, [](auto x, auto y) { return div_trunc(x, y); })
      .variant<Floats>({0, 1}, [](auto x, auto y) { return floor_div(x, y); })
      .variant<Ints>({0, 1}, [](auto x, auto y) { return floor_div_int(x, y); })
      .grad("input", "other",
            [](Gradient& g) {
              return g.is_given("rounding_mode") ? no_slope(g, "input")
                                                 : g.out() / conj(g["other"]);
            })
      .grad("other", "input, other",
            [](Gradient& g) {
              return g.is_given("rounding_mode") ? no_slope(g, "other") : quotient_slope(g);
            })
      .where({.inplace = true, .aliases = {"divide"}})
      .samples({{"t(3, 4), pos(3, 4)"},
                {"t(3, 1), pos(4)"},
                {"t(3, 4), 2.5"},
                {"t(3, 4), pos(3, 4), rounding_mode='floor'"},
                {"t(3, 4), pos(3, 4), rounding_mode='trunc'"}})
      .reference(
          "np.floor(input / other) if rounding_mode == 'floor' else np.trunc(input / other) if "
          "rounding_mode == "
          "'trunc' else input / other");
  add_op(r, "true_divide(input: Tensor, other: Tensor) -> Tensor")
      .doc("input / other; the quotient of integers is floating.")
      .pointwise<Floats>([](auto x, auto y) { return x / y; },
                         {.keeps_numbers = true, .int_to_float = kEveryVariant})
      .complex([](auto x, auto y) { return x / y; })
      .grad("input", "other", [](Gradient& g) { return g.out() / conj(g["other"]); })
      .grad("other", "input, other", [](Gradient& g) { return quotient_slope(g); })
      .where(kWithInplace)
      .samples({{"t(3, 4), pos(3, 4)"}, {"t(3, 4), 2.5"}})
      .reference("input / other");
  add_op(r, "floor_divide(input: Tensor, other: Tensor) -> Tensor")
      .doc("input / other, rounded down.")
      .pointwise<Floats>([](auto x, auto y) { return floor_div(x, y); },
                         {.error_name = "div_floor_cpu",
                          .refuses_bool = true,
                          .divisor = 1,
                          .choose = float_or_int})
      .variant<Ints>({0, 1}, [](auto x, auto y) { return floor_div_int(x, y); })
      .no_grad("PyTorch has none either: it is a step function")
      .where(kWithInplace)
      .samples({{"t(3, 4), pos(3, 4)"}, {"t(3, 4), 2.5"}})
      .reference("np.floor_divide(input, other)");
  add_op(r, "remainder(input: Tensor, other: Tensor) -> Tensor")
      .doc("input - other * floor(input / other): Python's %, with the sign of other.")
      .pointwise<Floats>([](auto x, auto y) { return remainder_float(x, y); },
                         {.refuses_bool = true, .divisor = 1, .choose = float_or_int})
      .variant<Ints>({0, 1}, [](auto x, auto y) { return remainder_int(x, y); })
      .grad("input", "", [](Gradient& g) { return g.out(); })
      .grad("other", "input, other",
            [](Gradient& g) { return -g.out() * op<"div">(g["input"], g["other"], "floor"); })
      .bounds([](const BoundsCall& c) -> std::optional<IntRange> {
        const std::optional<IntRange> by = c.range(1);
        if (!by || by->low <= 0) return std::nullopt;
        return IntRange{0, by->high - 1};
      })
      .where(kWithInplace)
      .samples({{"t(3, 4), pos(3, 4)"}, {"t(3, 4), 2.5"}})
      .reference("np.remainder(input, other)");
  add_op(r, "fmod(input: Tensor, other: Tensor) -> Tensor")
      .doc("The remainder with the sign of input: C's fmod.")
      .pointwise<Floats>([](auto x, auto y) { return fmod(x, y); },
                         {.refuses_bool = true, .divisor = 1, .choose = float_or_int})
      .variant<Ints>({0, 1}, [](auto x, auto y) { return rem_trunc(x, y); })
      .grad("input", "", [](Gradient& g) { return g.out(); })
      .grad("other", "input, other",
            [](Gradient& g) { return -g.out() * op<"div">(g["input"], g["other"], "trunc"); })
      .where(kWithInplace)
      .samples({{"t(3, 4), pos(3, 4)"}, {"t(3, 4), 2.5"}})
      .reference("np.fmod(input, other)");
}

// x to the power of the integer y, wrapping; for y < 0 what 1 / x^-y rounds to.
template <class T>
PRONG_INLINE T pow_int(T x, T y) {
  const T one = lit(x, 1);
  const T first = x;
  const T sign_of_odd = select(truth((y & one) == one), first, one);  // x^y for x = -1
  T result = one;
  T bits = y;
  for (int step = 0; step < 63; ++step) {
    if constexpr (!is_scalar<T>)
      if (bits <= 0) break;
    result = select(truth((bits & one) == one), result * x, result);
    x = x * x;
    bits = bits >> one;
  }
  const T inverse = select(first == 1, one, select(first == -1, sign_of_odd, one - one));
  return select(y < 0, inverse, result);
}

// Powers that are written as something else: which variant serves a number as exponent.
int pow_variant(std::span<const IValue> args, DType common) {
  const bool is_float = is_floating(common);
  if (args[1].is_number()) {
    const double e = args[1].to_double();
    if (e == 2) return 2;
    if (e == 3) return 3;
    if (is_inexact(common) && e == 0.5) return 4;
    if (is_inexact(common) && e == -0.5) return 5;
    if (is_float && e == -1) return 6;
    if (is_float && e == -2) return 7;
  }
  return is_inexact(common) ? 0 : 1;
}

// x^0 is flat, also where the factor x^-1 has no value.
Expr base_slope(Gradient& g) {
  const Expr x = g["input"], e = g["exponent"];
  if (e.value().is_number() && !e.value().is_complex()) {
    const double n = e.value().to_double();
    if (n == 0) return no_slope(g, "input");
    if (n == 2) return g.out() * conj(x * 2.0);
    return g.out() * conj(op<"pow">(x, n - 1) * n);
  }
  const Expr slope = g.out() * conj(e * op<"pow">(x, e - 1.0));
  return op<"where">(op<"eq">(e, 0), 0.0, slope);
}
// 0^e is flat for e >= 0, where the logarithm has no value.
Expr exponent_slope(Gradient& g) {
  const Expr x = g["input"], e = g["exponent"], y = g["result"];
  if (x.value().is_number() && !x.value().is_complex()) {
    const double base = x.value().to_double();
    const Expr slope = g.out() * conj(y * std::log(base));
    const Expr sign = is_complex(e.dtype()) ? op<"real">(e) : e;
    return base == 0 ? op<"where">(op<"ge">(sign, 0), 0.0, slope) : slope;
  }
  const Expr sign = is_complex(e.dtype()) ? op<"real">(e) : e;
  const Expr is_flat = op<"logical_and">(op<"eq">(x, 0), op<"ge">(sign, 0));
  return op<"where">(is_flat, 0.0, g.out() * conj(y * op<"log">(x)));
}

void register_powers(Registry& r) {
  add_op(r, "pow(input: Tensor, exponent: Tensor) -> Tensor")
      .doc("input to the power of exponent.")
      .pointwise<Floats>(
          [](auto x, auto y) { return pow(x, y); },
          {.error_name = "pow",
           .keeps_numbers = true,
           .refuses_bool = true,
           .check =
               [](const OpDef&, std::span<const IValue> args, DType common) {
                 PRONG_CHECK(is_inexact(common) || !args[1].is_number() || args[1].to_double() >= 0,
                             kRuntime, "Integers to negative integer powers are not allowed.");
               },
           .choose = pow_variant})
      .complex([](auto x, auto y) { return std::pow(x, y); })
      .variant<Ints>({0, 1}, [](auto x, auto y) { return pow_int(x, y); })
      .variant<Numbers>({0}, [](auto x) { return x * x; })
      .complex([](auto x) { return x * x; })
      .variant<Numbers>({0}, [](auto x) { return x * x * x; })
      .complex([](auto x) { return x * x * x; })
      .variant<Floats>({0}, [](auto x) { return sqrt(x); })
      .complex([](auto x) { return std::sqrt(x); })
      .variant<Floats>({0}, [](auto x) { return rsqrt(x); })
      .complex([](auto x) { return decltype(x)(1) / std::sqrt(x); })
      .variant<Floats>({0}, [](auto x) { return 1 / x; })
      .variant<Floats>({0}, [](auto x) { return 1 / (x * x); })
      .grad("input", "input, exponent", [](Gradient& g) { return base_slope(g); })
      .grad("exponent", "input, exponent, result", [](Gradient& g) { return exponent_slope(g); })
      .where(kWithInplace)
      .samples({{"pos(3, 4), t(3, 4)"},
                {"t(3, 4), 2"},
                {"pos(3, 4), 0.5"},
                {"2.0, t(3, 4)"},
                {"pos(0, 4), t(4)"}})
      .reference("np.power(input, exponent)");
  add_op(r, "hypot(input: Tensor, other: Tensor) -> Tensor")
      .doc("sqrt(input^2 + other^2), without overflow on the way.")
      .pointwise<Floats>([](auto x, auto y) { return hypot(x, y); })
      .grad("input", "input, result",
            [](Gradient& g) { return g.out() * (g["input"] / g["result"]); })
      .grad("other", "other, result",
            [](Gradient& g) { return g.out() * (g["other"] / g["result"]); })
      .where(kWithInplace)
      .samples(pair_samples())
      .reference("np.hypot(input, other)");
}

void register_rounding(Registry& r) {
  const auto rounding = [&](const char* name, const char* doc, const char* alias,
                            const char* error_name, auto body) {
    OpDef& op = add_op(r, cat(name, "(input: Tensor) -> Tensor"));
    op.doc(doc)
        .pointwise<Numbers>(body, {.error_name = error_name, .refuses_bool = true})
        .grad("input", "", [](Gradient& g) { return no_slope(g, "input"); })
        .samples(unary_samples())
        .reference(cat("np.", name, "(input)"));
    op.where(*alias ? Spelling{.inplace = true, .aliases = {alias}} : kWithInplace);
  };
  rounding("floor", "The largest integer that is not above.", "", "floor_vml_cpu",
           [](auto x) { return if_float(x, [](auto v) { return floor(v); }); });
  rounding("ceil", "The smallest integer that is not below.", "", "ceil_vml_cpu",
           [](auto x) { return if_float(x, [](auto v) { return ceil(v); }); });
  rounding("trunc", "The integer part.", "fix", "trunc_vml_cpu",
           [](auto x) { return if_float(x, [](auto v) { return trunc(v); }); });
  add_op(r, "round(input: Tensor, *, decimals: int = 0) -> Tensor")
      .doc("The nearest integer, halves to even; or the nearest number of that many decimals.")
      .pointwise<Numbers>([](auto x) { return if_float(x, [](auto v) { return round_even(v); }); },
                          {.error_name = "round_vml_cpu",
                           .refuses_bool = true,
                           .check =
                               [](const OpDef&, std::span<const IValue> args, DType common) {
                                 PRONG_CHECK(args[1].to_int() == 0 || is_floating(common),
                                             kNotImplemented, "\"round_cpu\" not implemented for '",
                                             scalar_type_name(common), "'");
                               },
                           .choose =
                               [](std::span<const IValue> args, DType) {
                                 const int64_t d = args[1].to_int();
                                 return d == 0 ? 0 : d > 0 ? 1 : 2;
                               }})
      .variant<Floats>({0, 1},
                       [](auto x, auto d) {
                         const auto scale = pow(lit(x, 10.0), d);
                         return round_even(x * scale) / scale;
                       })
      .variant<Floats>({0, 1},
                       [](auto x, auto d) {
                         const auto scale = pow(lit(x, 10.0), -d);
                         return round_even(x / scale) * scale;
                       })
      .grad("input", "", [](Gradient& g) { return no_slope(g, "input"); })
      .where(kWithInplace)
      .samples({{"t(3, 4)"}, {"t(3, 4), decimals=2"}, {"t(3, 4), decimals=-1"}, {"t(0, 5)"}})
      .reference("np.round(input, decimals)");
  add_op(r, "frac(input: Tensor) -> Tensor")
      .doc("input - trunc(input).")
      .pointwise<Floats>([](auto x) { return x - trunc(x); })
      .grad("input", "", [](Gradient& g) { return g.out(); })
      .where(kWithInplace)
      .samples(unary_samples())
      .reference("input - np.trunc(input)");
  add_op(r, "abs(input: Tensor) -> Tensor")
      .doc("The absolute value.")
      .pointwise<Numbers>([](auto x) { return abs(x); }, {.refuses_bool = true})
      .complex([](auto x) { return std::abs(x); })
      .grad("input", "input", [](Gradient& g) { return g.out() * direction(g["input"]); })
      .where({.inplace = true, .aliases = {"absolute"}})
      .samples(unary_samples())
      .reference("np.abs(input)");
  add_op(r, "sign(input: Tensor) -> Tensor")
      .doc("-1, 0 or 1; 0 for a NaN.")
      .pointwise<Numbers>(
          [](auto x) { return select(x > 0, lit(x, 1), select(x < 0, lit(x, -1), lit(x, 0))); })
      .complex([](auto x) { return x == decltype(x)(0) ? x : x / std::abs(x); })
      .grad("input", "input",
            [](Gradient& g) {
              if (!is_complex(g.meta("input").dtype)) return no_slope(g, "input");
              // Only the angle counts: what is along x falls away.
              const Expr x = g["input"], size = op<"abs">(x);
              const Expr safe = op<"where">(op<"eq">(size, 0), 1.0, size);
              const Expr turn = op<"imag">(g.out() * conj(x)) / safe;
              return op<"complex">(-op<"imag">(x), op<"real">(x)) * (turn / (safe * safe));
            })
      .where({.inplace = true, .aliases = {"sgn"}})
      .samples(unary_samples())
      .reference("np.sign(input)");
  add_op(r, "copysign(input: Tensor, other: Tensor) -> Tensor")
      .doc("The size of input with the sign of other.")
      .pointwise<Floats>([](auto x, auto y) { return copysign(x, y); },
                         {.int_to_float = kEveryVariant})
      .grad("input", "input, result",
            [](Gradient& g) {
              const Expr x = g["input"];
              return g.out() * op<"where">(op<"eq">(x, 0), 0.0, g["result"] / x);
            })
      .grad("other", "", [](Gradient& g) { return no_slope(g, "other"); })
      .where(kWithInplace)
      .samples(binary_samples())
      .reference("np.copysign(input, other)");
  add_op(r, "nextafter(input: Tensor, other: Tensor) -> Tensor")
      .doc("The next number after input, towards other.")
      .pointwise<Floats>([](auto x, auto y) { return next_after(x, y); },
                         {.check =
                              [](const OpDef&, std::span<const IValue>, DType common) {
                                // A step of a 16-bit number is none of the float that it is
                                // computed as.
                                PRONG_CHECK(common != DType::kFloat16 && common != DType::kBFloat16,
                                            kNotImplemented,
                                            "nextafter: prong has float32 and float64, not ",
                                            common, " yet");
                              }})
      .grad("input", "input, other",
            [](Gradient& g) { return op<"where">(op<"eq">(g["input"], g["other"]), 0.0, g.out()); })
      .grad("other", "input, other",
            [](Gradient& g) { return op<"where">(op<"eq">(g["input"], g["other"]), g.out(), 0.0); })
      .where(kWithInplace)
      .samples(pair_samples())
      .reference("np.nextafter(input, np.asarray(other, input.dtype))");
}

// 0: both bounds, 1: below only, 2: above only.
int clamp_variant(std::span<const IValue> args, DType) {
  return args[2].is_none() ? 1 : args[1].is_none() ? 2 : 0;
}

// A NaN in either gives NaN.
template <class T>
PRONG_INLINE T at_least(const T& x, const T& low) {
  return select((x < low) | (low != low), low, x);
}
template <class T>
PRONG_INLINE T at_most(const T& x, const T& high) {
  return select((x > high) | (high != high), high, x);
}

// Of bounds that are tensors: what is cut off at a bound moves with it; max wins over min.
Expr low_bound_slope(Gradient& g) {
  const Expr x = g["input"], low = g["min"];
  Expr is_bound = op<"lt">(x, low);
  if (g.is_given("max")) is_bound = op<"logical_and">(is_bound, op<"lt">(low, g["max"]));
  return op<"where">(is_bound, g.out(), 0.0);
}
Expr high_bound_slope(Gradient& g) {
  const Expr x = g["input"], high = g["max"];
  Expr is_bound = op<"gt">(x, high);
  if (g.is_given("min")) is_bound = op<"logical_or">(is_bound, op<"lt">(high, g["min"]));
  return op<"where">(is_bound, g.out(), 0.0);
}

// The gradient of the better one of two; half of it where they are equal.
Expr winner_share(Gradient& g, const Expr& loses) {
  const Expr all = op<"where">(loses, 0.0, g.out());
  return op<"where">(op<"eq">(g["input"], g["other"]), all * 0.5, all);
}
Expr wins_over(const Expr& is_better, const Expr& other) {
  return op<"logical_or">(is_better, op<"isnan">(other));
}

void register_clamp_backward(Registry& r) {
  add_op(r,
         "clamp_backward(grad: Tensor, input: Tensor, min: Tensor? = None, max: Tensor? = None) -> "
         "Tensor")
      .doc("grad where input lies within the bounds (or on them), 0 elsewhere.")
      .pointwise<Floats>(
          [](auto g, auto x, auto low, auto high) {
            return select(truth((x >= low) & (x <= high)), g, lit(g, 0));
          },
          {.choose =
               [](std::span<const IValue> args, DType) {
                 return args[2].is_none() ? (args[3].is_none() ? 3 : 2) : args[3].is_none() ? 1 : 0;
               }})
      .variant<Floats>({0, 1, 2},
                       [](auto g, auto x, auto low) { return select(x >= low, g, lit(g, 0)); })
      .variant<Floats>({0, 1, 3},
                       [](auto g, auto x, auto high) { return select(x <= high, g, lit(g, 0)); })
      .variant<Floats>({0}, [](auto g) { return g; })
      .grad("grad", "input, min, max",
            [](Gradient& g) {
              return op<"clamp_backward">(g.out(), g["input"], g.value("min"), g.value("max"));
            })
      .where({.function = false, .method = false})
      .samples({{"t(3, 4), t(3, 4), -0.5, 0.5"}, {"t(3, 4), t(3, 4), max=0.5"}});
}

// A Python number that the dtype does not hold is refused.
void check_bound(const IValue& v, DType common) {
  double bound = 0;
  if (v.is_float())
    bound = v.to_double();
  else if (v.is_int())
    bound = static_cast<double>(v.to_int());
  else
    return;
  double low = 0, high = 0;
  const char* type = "float";
  switch (common) {
  case DType::kFloat32:
    high = std::numeric_limits<float>::max();
    break;
  case DType::kFloat16:
    high = 65504.0, type = "c10::Half";
    break;
  case DType::kBFloat16:
    high = 3.3895313892515355e38, type = "c10::BFloat16";
    break;
  case DType::kInt8:
    high = 127, low = -128, type = "signed char";
    break;
  case DType::kUInt8:
    high = 255, type = "uint8_t";
    break;  // its negatives wrap
  case DType::kInt16:
    high = 32767, low = -32768, type = "short";
    break;
  case DType::kInt32:
    high = 2147483647, low = -2147483648.0, type = "int";
    break;
  default:
    return;
  }
  PRONG_CHECK((bound <= high && bound >= (low != 0 ? low : -high)) || !std::isfinite(bound),
              kRuntime, "value cannot be converted to type ", type, " without overflow");
}

void register_bounds(Registry& r) {
  add_op(r, "clamp(input: Tensor, min: Tensor? = None, max: Tensor? = None) -> Tensor")
      .doc("Numbers below min become min, those above max become max.")
      .pointwise<Numbers>(
          [](auto x, auto low, auto high) { return at_most(at_least(x, low), high); },
          {.error_name = "clamp_scalar_cpu",
           .check =
               [](const OpDef&, std::span<const IValue> args, DType common) {
                 PRONG_CHECK(!args[1].is_none() || !args[2].is_none(), kRuntime,
                             "torch.clamp: At least one of 'min' or 'max' must not be None");
                 PRONG_CHECK(common != DType::kBool, kNotImplemented,
                             "\"clamp_scalar_cpu\" not implemented for 'Bool'");
                 const auto is_nan = [](const IValue& v) {
                   return v.is_float() && std::isnan(v.to_double());
                 };
                 if (is_nan(args[1]) || is_nan(args[2])) return;  // so is the result
                 for (const IValue& bound : args.subspan(1, 2)) check_bound(bound, common);
               },
           .choose = clamp_variant})
      .variant<Numbers>({0, 1}, [](auto x, auto low) { return at_least(x, low); })
      .variant<Numbers>({0, 2}, [](auto x, auto high) { return at_most(x, high); })
      .grad("input", "input, min, max",
            [](Gradient& g) {
              return op<"clamp_backward">(g.out(), g["input"], g.value("min"), g.value("max"));
            })
      .grad("min", "input, min, max", [](Gradient& g) { return low_bound_slope(g); })
      .grad("max", "input, min, max", [](Gradient& g) { return high_bound_slope(g); })
      .where({.inplace = true, .aliases = {"clip"}})
      .samples(
          {{"t(3, 4), -0.5, 0.5"}, {"t(3, 4), min=0.0"}, {"t(3, 4), max=t(4)"}, {"t(0, 5), 0, 1"}})
      .reference("np.clip(input, min, max)");
  add_op(r, "clamp_min(input: Tensor, min: Tensor) -> Tensor")
      .doc("Numbers below min become min.")
      .pointwise<Numbers>([](auto x, auto low) { return at_least(x, low); },
                          {.check = [](const OpDef&, std::span<const IValue> args,
                                       DType common) { check_bound(args[1], common); }})
      .grad("input", "input, min",
            [](Gradient& g) { return op<"clamp_backward">(g.out(), g["input"], g.value("min")); })
      .grad("min", "input, min",
            [](Gradient& g) { return op<"where">(op<"lt">(g["input"], g["min"]), g.out(), 0.0); })
      .where(kWithInplace)
      .samples({{"t(3, 4), 0.5"}, {"t(3, 4), t(4)"}})
      .reference("np.maximum(input, min)");
  add_op(r, "clamp_max(input: Tensor, max: Tensor) -> Tensor")
      .doc("Numbers above max become max.")
      .pointwise<Numbers>([](auto x, auto high) { return at_most(x, high); },
                          {.check = [](const OpDef&, std::span<const IValue> args,
                                       DType common) { check_bound(args[1], common); }})
      .grad("input", "input, max",
            [](Gradient& g) {
              return op<"clamp_backward">(g.out(), g["input"], IValue(), g.value("max"));
            })
      .grad("max", "input, max",
            [](Gradient& g) { return op<"where">(op<"gt">(g["input"], g["max"]), g.out(), 0.0); })
      .where(kWithInplace)
      .samples({{"t(3, 4), 0.5"}, {"t(3, 4), t(4)"}})
      .reference("np.minimum(input, max)");
  register_clamp_backward(r);
  const auto pair = [&](const char* schema, const char* doc, const char* reference,
                        auto body) -> OpDef& {
    return add_op(r, schema)
        .doc(doc)
        .pointwise<Numbers>(body)
        .samples(pair_samples())
        .reference(reference);
  };
  // Two that are equal share the gradient of the larger (smaller); of fmax and fmin the first has
  // it. Where one is a NaN, neither is less.
  pair("maximum(input: Tensor, other: Tensor) -> Tensor",
       "The larger of two; NaN if either is NaN.", "np.maximum(input, other)",
       [](auto x, auto y) { return larger(x, y); })
      .grad("input", "input, other",
            [](Gradient& g) { return winner_share(g, op<"lt">(g["input"], g["other"])); })
      .grad("other", "input, other",
            [](Gradient& g) { return winner_share(g, op<"gt">(g["input"], g["other"])); });
  pair("minimum(input: Tensor, other: Tensor) -> Tensor",
       "The smaller of two; NaN if either is NaN.", "np.minimum(input, other)",
       [](auto x, auto y) { return smaller(x, y); })
      .grad("input", "input, other",
            [](Gradient& g) { return winner_share(g, op<"gt">(g["input"], g["other"])); })
      .grad("other", "input, other",
            [](Gradient& g) { return winner_share(g, op<"lt">(g["input"], g["other"])); });
  pair("fmax(input: Tensor, other: Tensor) -> Tensor", "The larger of two; a NaN loses.",
       "np.fmax(input, other)", [](auto x, auto y) { return select((x >= y) | (y != y), x, y); })
      .grad("input", "input, other",
            [](Gradient& g) {
              return op<"where">(wins_over(op<"ge">(g["input"], g["other"]), g["other"]), g.out(),
                                 0.0);
            })
      .grad("other", "input, other", [](Gradient& g) {
        return op<"where">(wins_over(op<"ge">(g["input"], g["other"]), g["other"]), 0.0, g.out());
      });
  pair("fmin(input: Tensor, other: Tensor) -> Tensor", "The smaller of two; a NaN loses.",
       "np.fmin(input, other)", [](auto x, auto y) { return select((x <= y) | (y != y), x, y); })
      .grad("input", "input, other",
            [](Gradient& g) {
              return op<"where">(wins_over(op<"le">(g["input"], g["other"]), g["other"]), g.out(),
                                 0.0);
            })
      .grad("other", "input, other", [](Gradient& g) {
        return op<"where">(wins_over(op<"le">(g["input"], g["other"]), g["other"]), 0.0, g.out());
      });
}

// As PyTorch prints C++ types.
const char* c_type_name(DType dtype) {
  static constexpr const char* names[] = {
      "bool",  "unsigned char", "signed char",         "short int",
      "int",   "long int",      "c10::Half",           "c10::BFloat16",
      "float", "double",        "c10::complex<float>", "c10::complex<double>"};
  return names[static_cast<size_t>(dtype)];
}

void check_condition(const IValue& condition) {
  const DType dtype = meta_from(condition).dtype;
  PRONG_CHECK(dtype == DType::kBool || dtype == DType::kUInt8, kRuntime,
              "where expected condition to be a boolean tensor, but got a tensor with dtype ",
              scalar_type_name(dtype));
}

void register_choices(Registry& r) {
  add_op(r, "where(condition: Tensor, input: Tensor, other: Tensor) -> Tensor")
      .doc("input where condition is true, other elsewhere.")
      .conditional<AllTypes>([](auto c, auto x, auto y) { return pick(c, x, y); },
                             {.check = [](const OpDef&, std::span<const IValue> args,
                                          DType) { check_condition(args[0]); }})
      .complex<true>([](auto c, auto x, auto y) { return c ? x : y; })
      .grad("input", "condition",
            [](Gradient& g) { return op<"where">(g["condition"], g.out(), 0.0); })
      .grad("other", "condition",
            [](Gradient& g) { return op<"where">(g["condition"], 0.0, g.out()); })
      .where({.method = false})
      .samples({{"b(3, 4), t(3, 4), t(3, 4)"}, {"b(3, 1), t(4), 0.0"}})
      .reference("np.where(condition, input, other)");
  add_op(r, "where.method(input: Tensor, condition: Tensor, other: Tensor) -> Tensor")
      .doc("input where condition is true, other elsewhere.")
      .conditional<AllTypes>([](auto c, auto x, auto y) { return pick(c, x, y); },
                             {.promotes = 5,
                              .check = [](const OpDef&, std::span<const IValue> args,
                                          DType) { check_condition(args[1]); }})
      .complex<true>([](auto c, auto x, auto y) { return c ? x : y; })
      .inputs({1, 0, 2})
      .grad("input", "condition",
            [](Gradient& g) { return op<"where">(g["condition"], g.out(), 0.0); })
      .grad("other", "condition",
            [](Gradient& g) { return op<"where">(g["condition"], 0.0, g.out()); })
      .where({.function = false})
      .samples({{"t(3, 4), b(3, 4), t(3, 4)"}, {"t(3, 1), b(3, 4), 0.0"}})
      .reference("np.where(condition, input, other)");
  add_op(r, "masked_fill(input: Tensor, mask: Tensor, value: Tensor) -> Tensor")
      .doc("value where mask is true, input elsewhere.")
      .conditional<AllTypes>(
          [](auto c, auto v, auto x) { return pick(c, v, x); },
          {.promotes = 1,
           .check =
               [](const OpDef&, std::span<const IValue> args, DType) {
                 const TensorMeta mask = meta_from(args[1]), value = meta_from(args[2]);
                 PRONG_CHECK(mask.dtype == DType::kBool, kRuntime,
                             "masked_fill_ only supports boolean masks, but got mask with dtype ",
                             c_type_name(mask.dtype));
                 PRONG_CHECK(value.rank() == 0, kRuntime,
                             "masked_fill_ only supports a 0-dimensional value tensor, but got "
                             "tensor with ",
                             value.rank(), " dimension(s).");
               }})
      .complex<true>([](auto c, auto v, auto x) { return c ? v : x; })
      .inputs({1, 2, 0})
      .grad("input", "mask", [](Gradient& g) { return op<"where">(g["mask"], 0.0, g.out()); })
      .grad("value", "mask", [](Gradient& g) { return op<"where">(g["mask"], g.out(), 0.0); })
      .where(kWithInplace)
      .samples({{"t(3, 4), b(3, 4), 0.0"}, {"t(3, 4), b(4), -1.5"}})
      .reference("np.where(mask, value, input)");
  add_op(r, "heaviside(input: Tensor, values: Tensor) -> Tensor")
      .doc("0 below zero, values at zero, 1 above.")
      .pointwise<Numbers>(
          [](auto x, auto v) { return select(x == 0, v, select(x > 0, lit(x, 1), lit(x, 0))); },
          {.check =
               [](const OpDef&, std::span<const IValue> args, DType) {
                 PRONG_CHECK(meta_from(args[0]).dtype == meta_from(args[1]).dtype, kRuntime,
                             "heaviside is not yet implemented for tensors with different dtypes.");
               }})
      .no_grad("a step: PyTorch has none either")
      .where(kWithInplace)
      .samples({{"t(3, 4), t(3, 4)"}})
      .reference("np.heaviside(input, values)");
}

}  // namespace

void register_pointwise(Registry& r) {
  register_sums(r);
  register_products(r);
  register_powers(r);
  register_rounding(r);
  register_bounds(r);
  register_choices(r);
}

}  // namespace prong
