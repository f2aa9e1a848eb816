// Comparisons, logic, bits: ops that answer with bools or move bits.
#include "ops/kernels/pointwise.h"
#include <cmath>

#include "ops/scalar_math.h"

namespace prong {
namespace {

using namespace math;

constexpr const char* kNoSlope = "the result is not a continuous number";
constexpr const char* kVmapLater = "vmap is not built yet";

OpDef& add_op(Registry& r, std::string_view schema) {
  return r.add(schema).no_grad(kNoSlope).not_differentiable(kNoSlope).no_vmap(kVmapLater);
}

template <class T, class F>
OpDef& comparison(Registry& r, const char* name, const char* sign, std::vector<std::string> aliases,
                  F body) {
  return add_op(r, cat(name, "(input: Tensor, other: Tensor) -> Tensor"))
      .doc(cat("input ", sign, " other, as bools."))
      .pointwise<T>(body)
      .where({.inplace = true, .aliases = std::move(aliases)})
      .samples({{"t(3, 4), t(3, 4)"}, {"t(3, 1), t(4)"}, {"t(3, 4), 0"}, {"t(0, 4), t(4)"}})
      .reference(cat("input ", sign, " other"));
}

void register_comparisons(Registry& r) {
  comparison<AllTypes>(r, "eq", "==", {}, [](auto x, auto y) {
    return x == y;
  }).complex([](auto x, auto y) { return x == y; });
  comparison<AllTypes>(r, "ne", "!=", {"not_equal"}, [](auto x, auto y) {
    return x != y;
  }).complex([](auto x, auto y) { return x != y; });
  comparison<Numbers>(r, "lt", "<", {"less"}, [](auto x, auto y) { return x < y; });
  comparison<Numbers>(r, "le", "<=", {"less_equal"}, [](auto x, auto y) { return x <= y; });
  comparison<Numbers>(r, "gt", ">", {"greater"}, [](auto x, auto y) { return x > y; });
  comparison<Numbers>(r, "ge", ">=", {"greater_equal"}, [](auto x, auto y) { return x >= y; });
}

template <class F>
OpDef& test(Registry& r, const char* name, const char* doc, const char* reference, F body) {
  return add_op(r, cat(name, "(input: Tensor) -> Tensor"))
      .doc(doc)
      .pointwise<Numbers>(body)
      .samples({{"t(3, 4)"}, {"t(0, 5)"}, {"strided(4, 6)"}})
      .reference(reference);
}

void register_tests(Registry& r) {
  test(r, "isnan", "True for a NaN.", "np.isnan(input)", [](auto x) {
    return x != x;
  }).complex([](auto x) { return std::isnan(x.real()) || std::isnan(x.imag()); });
  test(r, "isinf", "True for an infinity.", "np.isinf(input)", [](auto x) {
    return if_real(x, false, [](auto v) { return abs(v) == infinity_like(v); });
  }).complex([](auto x) { return std::isinf(x.real()) || std::isinf(x.imag()); });
  test(r, "isfinite", "True for neither NaN nor infinity.", "np.isfinite(input)", [](auto x) {
    return if_real(x, true, [](auto v) { return abs(v) < infinity_like(v); });
  }).complex([](auto x) { return std::isfinite(x.real()) && std::isfinite(x.imag()); });
  test(r, "isposinf", "True for plus infinity.", "np.isposinf(input)",
       [](auto x) { return if_real(x, false, [](auto v) { return v == infinity_like(v); }); });
  test(r, "isneginf", "True for minus infinity.", "np.isneginf(input)",
       [](auto x) { return if_real(x, false, [](auto v) { return v == -infinity_like(v); }); });
  test(r, "signbit", "True for negative numbers, -0 among them.", "np.signbit(input)", [](auto x) {
    if constexpr (is_scalar<decltype(x)>)
      return is_floating(x.dtype()) ? to_bits(x) < 0 : x < 0;
    else if constexpr (std::is_floating_point_v<decltype(x)>)
      return to_bits(x) < 0;
    else
      return x < 0;
  });
}

template <class F>
OpDef& logical(Registry& r, const char* name, const char* doc, F body) {
  return add_op(r, cat(name, "(input: Tensor, other: Tensor) -> Tensor"))
      .doc(doc)
      .pointwise<AllTypes>(body)
      .where({.inplace = true})
      .samples({{"b(3, 4), b(3, 4)"}, {"t(3, 4), b(4)"}})
      .reference(cat("np.", name, "(input, other)"));
}

void register_logic(Registry& r) {
  logical(r, "logical_and", "True where both are not 0.", [](auto x, auto y) {
    return truth((x != 0) & (y != 0));
  }).complex([](auto x, auto y) { return x != decltype(x)(0) && y != decltype(x)(0); });
  logical(r, "logical_or", "True where one is not 0.", [](auto x, auto y) {
    return truth((x != 0) | (y != 0));
  }).complex([](auto x, auto y) { return x != decltype(x)(0) || y != decltype(x)(0); });
  logical(r, "logical_xor", "True where just one is not 0.", [](auto x, auto y) {
    return truth((x != 0) ^ (y != 0));
  }).complex([](auto x, auto y) { return (x != decltype(x)(0)) != (y != decltype(y)(0)); });
  add_op(r, "logical_not(input: Tensor) -> Tensor")
      .doc("True where input is 0.")
      .pointwise<AllTypes>([](auto x) { return x == 0; })
      .complex([](auto x) { return x == decltype(x)(0); })
      .where({.inplace = true})
      .samples({{"b(3, 4)"}, {"t(3, 4)"}})
      .reference("np.logical_not(input)");
}

template <class F>
void bitwise(Registry& r, const char* name, const char* doc, const char* error_name, F body) {
  add_op(r, cat(name, "(input: Tensor, other: Tensor) -> Tensor"))
      .doc(doc)
      .pointwise<Bits>(body, {.error_name = error_name})
      .where({.inplace = true})
      .samples({{"t(3, 4, dtype=int64), t(3, 4, dtype=int64)"}, {"b(3, 4), b(4)"}})
      .reference(cat("np.", name, "(input, other)"));
}

template <class F>
void shift(Registry& r, const char* name, const char* doc, const char* error_name,
           const char* reference, F body) {
  add_op(r, cat(name, "(input: Tensor, other: Tensor) -> Tensor"))
      .doc(doc)
      .pointwise<Ints>(body, {.error_name = error_name})
      .where({.inplace = true})
      .samples({{"t(3, 4, dtype=int64), 2"}})
      .reference(reference);
}

void register_bits(Registry& r) {
  bitwise(r, "bitwise_and", "Bits that both have.", "bitwise_and_cpu",
          [](auto x, auto y) { return x & y; });
  bitwise(r, "bitwise_or", "Bits that one has.", "bitwise_or_cpu",
          [](auto x, auto y) { return x | y; });
  bitwise(r, "bitwise_xor", "Bits that just one has.", "bitwise_xor_cpu",
          [](auto x, auto y) { return x ^ y; });
  add_op(r, "bitwise_not(input: Tensor) -> Tensor")
      .doc("All bits turned over; of bools, not.")
      .pointwise<Bits>([](auto x) { return bit_not(x); }, {.error_name = "bitwise_not_cpu"})
      .where({.inplace = true})
      .samples({{"t(3, 4, dtype=int64)"}, {"b(3, 4)"}})
      .reference("np.bitwise_not(input)");
  shift(r, "bitwise_left_shift", "input * 2^other; 0 for counts outside the width.", "lshift_cpu",
        "np.left_shift(input, other)", [](auto x, auto y) {
          const auto is_outside = truth((y < 0) | (y > 63));
          return select(is_outside, x ^ x, x << select(is_outside, y ^ y, y));
        });
  shift(r, "bitwise_right_shift", "input / 2^other, rounded down.", "rshift_cpu",
        "np.right_shift(input, other)",
        [](auto x, auto y) { return x >> select(truth((y < 0) | (y > 63)), lit(y, 63), y); });
}

}  // namespace

void register_compare(Registry& r) {
  register_comparisons(r);
  register_tests(r);
  register_logic(r);
  register_bits(r);
}

}  // namespace prong
