// Elementary and special functions, one element at a time.
#include "ops/kernels/pointwise.h"
#include "ops/scalar_math.h"

namespace prong {
namespace {

using namespace math;

constexpr const char* kGradLater = "the tape is not built yet";
constexpr const char* kVmapLater = "vmap is not built yet";

// A function of one number; integers go in as the default floating dtype.
template <class F>
OpDef& function(Registry& r, const char* name, const char* doc, const char* samples,
                const char* reference, F body) {
  return r.add(cat(name, "(input: Tensor) -> Tensor"))
      .doc(doc)
      .pointwise<Floats>(body, {.int_to_float = kEveryVariant})
      .where({.inplace = true})
      .no_grad(kGradLater)
      .no_vmap(kVmapLater)
      .samples({{cat(samples, "(3, 4)")}, {cat(samples, "()")}, {cat(samples, "(0, 5)")}})
      .reference(reference);
}

void register_exponentials(Registry& r) {
  function(r, "exp", "e to the power of input.", "t", "np.exp(input)", [](auto x) {
    return exp(x);
  }).complex([](auto x) { return std::exp(x); });
  function(r, "exp2", "2 to the power of input.", "t", "np.exp2(input)",
           [](auto x) { return exp2(x); });
  function(r, "expm1", "exp(input) - 1, also right near 0.", "t", "np.expm1(input)",
           [](auto x) { return expm1(x); });
  function(r, "log", "The natural logarithm.", "pos", "np.log(input)", [](auto x) {
    return log(x);
  }).complex([](auto x) { return std::log(x); });
  function(r, "log2", "The logarithm to base 2.", "pos", "np.log2(input)", [](auto x) {
    return log2(x);
  }).complex([](auto x) { return std::log(x) / decltype(x)(0.69314718055994531); });
  function(r, "log10", "The logarithm to base 10.", "pos", "np.log10(input)", [](auto x) {
    return log10(x);
  }).complex([](auto x) { return std::log10(x); });
  function(r, "log1p", "log(1 + input), also right near 0.", "pos", "np.log1p(input)",
           [](auto x) { return log1p(x); });
  function(r, "sqrt", "The square root.", "pos", "np.sqrt(input)", [](auto x) {
    return sqrt(x);
  }).complex([](auto x) { return std::sqrt(x); });
  function(r, "rsqrt", "1 / sqrt(input).", "pos", "1 / np.sqrt(input)", [](auto x) {
    return rsqrt(x);
  }).complex([](auto x) { return decltype(x)(1) / std::sqrt(x); });
  function(r, "sigmoid", "1 / (1 + exp(-input)).", "t", "1 / (1 + np.exp(-input))", [](auto x) {
    return sigmoid(x);
  }).complex([](auto x) {
      return decltype(x)(1) / (decltype(x)(1) + std::exp(-x));
    }).where({.nn_functional = true, .inplace = true, .aliases = {"expit"}});
}

void register_trigonometry(Registry& r) {
  // float32 reaches as far as angles can be reduced in float64: a NaN beyond 2^50.
  function(r, "sin", "The sine; of float32 up to 2^50.", "t", "np.sin(input)", [](auto x) {
    return sin(x);
  }).complex([](auto x) { return std::sin(x); });
  function(r, "cos", "The cosine; of float32 up to 2^50.", "t", "np.cos(input)", [](auto x) {
    return cos(x);
  }).complex([](auto x) { return std::cos(x); });
  function(r, "tan", "The tangent.", "t", "np.tan(input)", [](auto x) {
    return tan(x);
  }).complex([](auto x) { return std::tan(x); });
  function(r, "asin", "The angle whose sine is input.", "unit", "np.arcsin(input)", [](auto x) {
    return asin(x);
  }).complex([](auto x) {
      return std::asin(x);
    }).where({.inplace = true, .aliases = {"arcsin"}});
  function(r, "acos", "The angle whose cosine is input.", "unit", "np.arccos(input)", [](auto x) {
    return acos(x);
  }).complex([](auto x) {
      return std::acos(x);
    }).where({.inplace = true, .aliases = {"arccos"}});
  function(r, "atan", "The angle whose tangent is input.", "t", "np.arctan(input)", [](auto x) {
    return atan(x);
  }).complex([](auto x) {
      return std::atan(x);
    }).where({.inplace = true, .aliases = {"arctan"}});
  function(r, "sinh", "The hyperbolic sine.", "t", "np.sinh(input)", [](auto x) {
    return sinh(x);
  }).complex([](auto x) { return std::sinh(x); });
  function(r, "cosh", "The hyperbolic cosine.", "t", "np.cosh(input)", [](auto x) {
    return cosh(x);
  }).complex([](auto x) { return std::cosh(x); });
  function(r, "tanh", "The hyperbolic tangent.", "t", "np.tanh(input)", [](auto x) {
    return tanh(x);
  }).complex([](auto x) {
      return std::tanh(x);
    }).where({.nn_functional = true, .inplace = true});
  function(r, "asinh", "The inverse of sinh.", "t", "np.arcsinh(input)", [](auto x) {
    return asinh(x);
  }).complex([](auto x) {
      return std::asinh(x);
    }).where({.inplace = true, .aliases = {"arcsinh"}});
  function(r, "acosh", "The inverse of cosh.", "pos", "np.arccosh(input)", [](auto x) {
    return acosh(x);
  }).complex([](auto x) {
      return std::acosh(x);
    }).where({.inplace = true, .aliases = {"arccosh"}});
  function(r, "atanh", "The inverse of tanh.", "unit", "np.arctanh(input)", [](auto x) {
    return atanh(x);
  }).complex([](auto x) {
      return std::atanh(x);
    }).where({.inplace = true, .aliases = {"arctanh"}});
  function(r, "sinc", "sin(pi input) / (pi input), 1 at 0.", "t", "np.sinc(input)", [](auto x) {
    const auto a = x * lit(x, 3.14159265358979324);
    return select(x == 0, lit(x, 1.0), sin(a) / a);
  });
  function(r, "deg2rad", "Degrees to radians.", "t", "np.deg2rad(input)",
           [](auto x) { return x * lit(x, 0.017453292519943296); });
  function(r, "rad2deg", "Radians to degrees.", "t", "np.rad2deg(input)",
           [](auto x) { return x * lit(x, 57.295779513082321); });
}

void register_special(Registry& r) {
  function(r, "erf", "The error function.", "t", "np.vectorize(math.erf, otypes=[float])(input)",
           [](auto x) { return erf(x); });
  function(r, "erfc", "1 - erf(input), also right where that is small.", "t",
           "np.vectorize(math.erfc, otypes=[float])(input)", [](auto x) { return erfc(x); });
  function(r, "erfinv", "The inverse of erf.", "unit", "scipy.special.erfinv(input)",
           [](auto x) { return erfinv(x); });
  function(r, "lgamma", "The logarithm of the size of the gamma function.", "pos",
           "np.vectorize(math.lgamma, otypes=[float])(input)", [](auto x) { return lgamma(x); });
  function(r, "digamma", "The derivative of lgamma.", "pos", "scipy.special.digamma(input)",
           [](auto x) { return digamma(x); });
  r.add("logit(input: Tensor, eps: float? = None) -> Tensor")
      .doc("log(input / (1 - input)), of input cut off to [eps, 1 - eps] where eps is given.")
      .pointwise<Floats>(
          [](auto x) { return log(x / (1 - x)); },
          {.int_to_float = kEveryVariant,
           .choose = [](std::span<const IValue> args, DType) { return args[1].is_none() ? 0 : 1; }})
      .variant<Floats>({0, 1},
                       [](auto x, auto eps) {
                         const auto low = select(x < eps, eps, x);
                         const auto y = select(low > 1 - eps, 1 - eps, low);
                         return log(y / (1 - y));
                       })
      .where({.inplace = true})
      .no_grad(kGradLater)
      .no_vmap(kVmapLater)
      .samples({{"pos(3, 4), 1e-3"}})
      .reference("(lambda p: np.log(p / (1 - p)))(np.clip(input, eps, 1 - eps))");
}

// A function of two numbers.
template <class F>
OpDef& function2(Registry& r, const char* name, const char* doc, const char* samples,
                 const char* reference, F body, bool int_to_float = true) {
  return r.add(cat(name, "(input: Tensor, other: Tensor) -> Tensor"))
      .doc(doc)
      .pointwise<Floats>(body, {.int_to_float = int_to_float ? kEveryVariant : 0})
      .no_grad(kGradLater)
      .no_vmap(kVmapLater)
      .samples({{samples}})
      .reference(reference);
}

void register_pairs(Registry& r) {
  function2(r, "atan2", "The angle of the point (other, input).", "t(3, 4), t(3, 4)",
            "np.arctan2(input, other)", [](auto y, auto x) { return atan2(y, x); })
      .where({.inplace = true, .aliases = {"arctan2"}});
  function2(
      r, "xlogy", "input * log(other), 0 where input is 0.", "t(3, 4), pos(3, 4)",
      "np.where(input == 0, 0, input * np.log(other))",
      [](auto x, auto y) { return select(y != y, y, select(x == 0, lit(x, 0.0), x * log(y))); })
      .where({.inplace = true});
  function2(
      r, "logaddexp", "log(exp(input) + exp(other)).", "t(3, 4), t(3, 4)",
      "np.logaddexp(input, other)",
      [](auto x, auto y) {
        const auto m = larger(x, y);
        // Equal infinities have no difference.
        return select((x == y) & (abs(x) == infinity_like(x)), x, m + log1p(exp(-abs(x - y))));
      },
      false);
  function2(
      r, "logaddexp2", "log2(2^input + 2^other).", "t(3, 4), t(3, 4)",
      "np.logaddexp2(input, other)",
      [](auto x, auto y) {
        const auto m = larger(x, y);
        return select((x == y) & (abs(x) == infinity_like(x)), x,
                      m + log1p(exp2(-abs(x - y))) * lit(x, 1.44269504088896341));
      },
      false);
}

}  // namespace

void register_pointwise_math(Registry& r) {
  register_exponentials(r);
  register_trigonometry(r);
  register_special(r);
  register_pairs(r);
}

}  // namespace prong
