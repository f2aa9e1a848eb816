// Elementary and special functions, one element at a time.
#include "ops/gradient.h"
#include "ops/kernels/log_sum.h"
#include "ops/kernels/pointwise.h"
#include "ops/scalar_math.h"

namespace prong {
namespace {

using namespace math;

constexpr const char* kVmapLater = "vmap is not built yet";

// A function of one number; integers go in as the default floating dtype.
template <class F>
OpDef& function(Registry& r, const char* name, const char* doc, const char* samples,
                const char* reference, F body) {
  return r.add(cat(name, "(input: Tensor) -> Tensor"))
      .doc(doc)
      .pointwise<Floats>(body, {.int_to_float = kEveryVariant})
      .where({.inplace = true})
      .no_vmap(kVmapLater)
      .samples({{cat(samples, "(3, 4)")}, {cat(samples, "()")}, {cat(samples, "(0, 5)")}})
      .reference(reference);
}

// What sigmoid and tanh send back, from their results.
void register_result_slopes(Registry& r) {
  const auto backward = [&](const char* schema, const char* doc, auto body) -> OpDef& {
    return r.add(schema)
        .doc(doc)
        .pointwise<Floats>(body)
        .where({.function = false, .method = false})
        .no_vmap(kVmapLater)
        .samples({{"t(3, 4), unit(3, 4)"}, {"t(0, 5), t(0, 5)"}});
  };
  backward("sigmoid_backward(grad: Tensor, output: Tensor) -> Tensor",
           "grad * output * (1 - output).", [](auto g, auto y) { return g * ((1 - y) * y); })
      .complex([](auto g, auto y) { return g * std::conj((decltype(y)(1) - y) * y); })
      .grad("grad", "output",
            [](Gradient& g) { return op<"sigmoid_backward">(g.out(), g["output"]); })
      .grad("output", "grad, output",
            [](Gradient& g) { return g.out() * conj(g["grad"] * (1.0 - g["output"] * 2.0)); });
  backward("tanh_backward(grad: Tensor, output: Tensor) -> Tensor", "grad * (1 - output^2).",
           [](auto g, auto y) { return g * (1 - y * y); })
      .complex([](auto g, auto y) { return g * std::conj(decltype(y)(1) - y * y); })
      .grad("grad", "output", [](Gradient& g) { return op<"tanh_backward">(g.out(), g["output"]); })
      .grad("output", "grad, output",
            [](Gradient& g) { return g.out() * conj(g["grad"] * (g["output"] * -2.0)); });
}

// 0 at 0, where the quotient has no value.
Expr sinc_slope(Gradient& g) {
  const Expr x = g["input"], a = x * 3.14159265358979324;
  const Expr slope = (a * op<"cos">(a) - op<"sin">(a)) / (a * x);
  return op<"where">(op<"eq">(a * x, 0), 0.0, g.out() * conj(slope));
}

// Near 0 the textbook formula loses every digit: this one doesn't.
template <class T>
std::complex<T> complex_expm1(std::complex<T> z) {
  const T half_sine = std::sin(z.imag() / 2);
  const T grown = std::expm1(z.real());
  return {grown * std::cos(z.imag()) - 2 * half_sine * half_sine, (grown + 1) * std::sin(z.imag())};
}

void register_exponentials(Registry& r) {
  register_result_slopes(r);
  function(r, "exp", "e to the power of input.", "t", "np.exp(input)", [](auto x) {
    return exp(x);
  }).complex([](auto x) {
      return std::exp(x);
    }).grad("input", "result", [](Gradient& g) { return g.out() * conj(g["result"]); });
  function(r, "exp2", "2 to the power of input.", "t", "np.exp2(input)",
           [](auto x) { return exp2(x); })
      .complex([](auto x) {
        using C = decltype(x);
        return std::exp(C(0.69314718055994531) * x);
      })
      .grad("input", "result",
            [](Gradient& g) { return g.out() * conj(g["result"] * 0.69314718055994531); });
  function(r, "expm1", "exp(input) - 1, also right near 0.", "t", "np.expm1(input)", [](auto x) {
    return expm1(x);
  }).complex([](auto x) {
      return complex_expm1(x);
    }).grad("input", "result", [](Gradient& g) { return g.out() * conj(g["result"] + 1.0); });
  function(r, "log", "The natural logarithm.", "pos", "np.log(input)", [](auto x) {
    return log(x);
  }).complex([](auto x) {
      return std::log(x);
    }).grad("input", "input", [](Gradient& g) { return g.out() / conj(g["input"]); });
  function(r, "log2", "The logarithm to base 2.", "pos", "np.log2(input)",
           [](auto x) { return log2(x); })
      .complex(
          [](auto x) { return std::log(x) * typename decltype(x)::value_type(1.4426950408889634); })
      .grad("input", "input",
            [](Gradient& g) { return g.out() / conj((g["input"] * 0.69314718055994531)); });
  function(r, "log10", "The logarithm to base 10.", "pos", "np.log10(input)", [](auto x) {
    return log10(x);
  }).complex([](auto x) {
      return std::log10(x);
    }).grad("input", "input", [](Gradient& g) {
    return g.out() / conj((g["input"] * 2.30258509299404568));
  });
  function(r, "log1p", "log(1 + input), also right near 0.", "pos", "np.log1p(input)", [](auto x) {
    return log1p(x);
  }).complex([](auto x) {
      return log1p_of(x);
    }).grad("input", "input", [](Gradient& g) { return g.out() / conj(g["input"] + 1.0); });
  function(r, "sqrt", "The square root.", "pos", "np.sqrt(input)", [](auto x) {
    return sqrt(x);
  }).complex([](auto x) {
      return std::sqrt(x);
    }).grad("input", "result", [](Gradient& g) { return g.out() / conj((g["result"] * 2.0)); });
  function(r, "rsqrt", "1 / sqrt(input).", "pos", "1 / np.sqrt(input)", [](auto x) {
    return rsqrt(x);
  }).complex([](auto x) {
      return decltype(x)(1) / std::sqrt(x);
    }).grad("input", "result", [](Gradient& g) {
    return g.out() * conj((op<"pow">(g["result"], 3) * -0.5));
  });
  function(r, "sigmoid", "1 / (1 + exp(-input)).", "t", "1 / (1 + np.exp(-input))",
           [](auto x) { return sigmoid(x); })
      .complex([](auto x) { return decltype(x)(1) / (decltype(x)(1) + std::exp(-x)); })
      .where({.nn_functional = true, .inplace = true, .aliases = {"expit"}})
      .grad("input", "result",
            [](Gradient& g) { return op<"sigmoid_backward">(g.out(), g["result"]); });
}

void register_trigonometry(Registry& r) {
  // float32 reaches as far as angles can be reduced in float64: a NaN beyond 2^50.
  function(r, "sin", "The sine; of float32 up to 2^50.", "t", "np.sin(input)", [](auto x) {
    return sin(x);
  }).complex([](auto x) {
      return std::sin(x);
    }).grad("input", "input", [](Gradient& g) { return g.out() * conj(op<"cos">(g["input"])); });
  function(r, "cos", "The cosine; of float32 up to 2^50.", "t", "np.cos(input)", [](auto x) {
    return cos(x);
  }).complex([](auto x) {
      return std::cos(x);
    }).grad("input", "input", [](Gradient& g) { return -g.out() * conj(op<"sin">(g["input"])); });
  function(r, "tan", "The tangent; of float32 up to 2^50.", "t", "np.tan(input)", [](auto x) {
    return tan(x);
  }).complex([](auto x) {
      return std::tan(x);
    }).grad("input", "result", [](Gradient& g) {
    return g.out() * conj((op<"square">(g["result"]) + 1.0));
  });
  function(r, "asin", "The angle whose sine is input.", "unit", "np.arcsin(input)",
           [](auto x) { return asin(x); })
      .complex([](auto x) { return std::asin(x); })
      .where({.inplace = true, .aliases = {"arcsin"}})
      .grad("input", "input", [](Gradient& g) {
        return g.out() * conj(op<"rsqrt">(1.0 - op<"square">(g["input"])));
      });
  function(r, "acos", "The angle whose cosine is input.", "unit", "np.arccos(input)",
           [](auto x) { return acos(x); })
      .complex([](auto x) { return std::acos(x); })
      .where({.inplace = true, .aliases = {"arccos"}})
      .grad("input", "input", [](Gradient& g) {
        return -g.out() * conj(op<"rsqrt">(1.0 - op<"square">(g["input"])));
      });
  function(r, "atan", "The angle whose tangent is input.", "t", "np.arctan(input)",
           [](auto x) { return atan(x); })
      .complex([](auto x) { return std::atan(x); })
      .where({.inplace = true, .aliases = {"arctan"}})
      .grad("input", "input",
            [](Gradient& g) { return g.out() / conj((op<"square">(g["input"]) + 1.0)); });
  function(r, "sinh", "The hyperbolic sine.", "t", "np.sinh(input)", [](auto x) {
    return sinh(x);
  }).complex([](auto x) {
      return std::sinh(x);
    }).grad("input", "input", [](Gradient& g) { return g.out() * conj(op<"cosh">(g["input"])); });
  function(r, "cosh", "The hyperbolic cosine.", "t", "np.cosh(input)", [](auto x) {
    return cosh(x);
  }).complex([](auto x) {
      return std::cosh(x);
    }).grad("input", "input", [](Gradient& g) { return g.out() * conj(op<"sinh">(g["input"])); });
  function(r, "tanh", "The hyperbolic tangent.", "t", "np.tanh(input)",
           [](auto x) { return tanh(x); })
      .complex([](auto x) { return std::tanh(x); })
      .where({.nn_functional = true, .inplace = true})
      .grad("input", "result",
            [](Gradient& g) { return op<"tanh_backward">(g.out(), g["result"]); });
  function(r, "asinh", "The inverse of sinh.", "t", "np.arcsinh(input)",
           [](auto x) { return asinh(x); })
      .complex([](auto x) { return std::asinh(x); })
      .where({.inplace = true, .aliases = {"arcsinh"}})
      .grad("input", "input", [](Gradient& g) {
        return g.out() * conj(op<"rsqrt">(op<"square">(g["input"]) + 1.0));
      });
  function(r, "acosh", "The inverse of cosh.", "pos", "np.arccosh(input)",
           [](auto x) { return acosh(x); })
      .complex([](auto x) { return std::acosh(x); })
      .samples({{"pos(3, 4) + 1"}, {"pos() + 1"}, {"t(0, 5)"}})
      .where({.inplace = true, .aliases = {"arccosh"}})
      .grad("input", "input", [](Gradient& g) {
        return g.out() * conj(op<"rsqrt">(op<"square">(g["input"]) - 1.0));
      });
  function(r, "atanh", "The inverse of tanh.", "unit", "np.arctanh(input)",
           [](auto x) { return atanh(x); })
      .complex([](auto x) { return std::atanh(x); })
      .where({.inplace = true, .aliases = {"arctanh"}})
      .grad("input", "input",
            [](Gradient& g) { return g.out() / conj((1.0 - op<"square">(g["input"]))); });
  function(r, "sinc", "sin(pi input) / (pi input), 1 at 0.", "t", "np.sinc(input)",
           [](auto x) {
             const auto a = x * lit(x, 3.14159265358979324);
             return select(x == 0, lit(x, 1.0), sin(a) / a);
           })
      .complex([](auto x) {
        const auto a = x * decltype(x)(3.14159265358979324);
        return x == decltype(x)(0) ? decltype(x)(1) : std::sin(a) / a;
      })
      .grad("input", "input", [](Gradient& g) { return sinc_slope(g); });
  function(r, "deg2rad", "Degrees to radians.", "t", "np.deg2rad(input)", [](auto x) {
    return x * lit(x, 0.017453292519943296);
  }).grad("input", "", [](Gradient& g) { return g.out() * 0.017453292519943296; });
  function(r, "rad2deg", "Radians to degrees.", "t", "np.rad2deg(input)", [](auto x) {
    return x * lit(x, 57.295779513082321);
  }).grad("input", "", [](Gradient& g) { return g.out() * 57.295779513082321; });
}

// Flat where input was cut off; without eps no value outside [0, 1].
Expr logit_slope(Gradient& g) {
  const Expr x = g["input"];
  const Expr inside = g.out() / (x * (1.0 - x));
  const double eps = g.is_given("eps") ? g.number("eps") : 0;
  const Expr is_outside = op<"logical_or">(op<"lt">(x, eps), op<"gt">(x, 1 - eps));
  const double outside = g.is_given("eps") ? 0 : std::numeric_limits<double>::quiet_NaN();
  return op<"where">(is_outside, outside, inside);
}

void register_special(Registry& r) {
  function(r, "erf", "The error function.", "t", "np.vectorize(math.erf, otypes=[float])(input)",
           [](auto x) { return erf(x); })
      .grad("input", "input", [](Gradient& g) {
        return g.out() * (op<"exp">(-op<"square">(g["input"])) * 1.12837916709551257);
      });
  function(r, "erfc", "1 - erf(input), also right where that is small.", "t",
           "np.vectorize(math.erfc, otypes=[float])(input)", [](auto x) { return erfc(x); })
      .grad("input", "input", [](Gradient& g) {
        return g.out() * (op<"exp">(-op<"square">(g["input"])) * -1.12837916709551257);
      });
  function(r, "erfinv", "The inverse of erf.", "unit", "scipy.special.erfinv(input)", [](auto x) {
    return erfinv(x);
  }).grad("input", "result", [](Gradient& g) {
    return g.out() * (op<"exp">(op<"square">(g["result"])) * 0.88622692545275801);
  });
  function(r, "lgamma", "The logarithm of the size of the gamma function.", "pos",
           "np.vectorize(math.lgamma, otypes=[float])(input)", [](auto x) { return lgamma(x); })
      .grad("input", "input", [](Gradient& g) { return g.out() * op<"digamma">(g["input"]); });
  function(r, "digamma", "The derivative of lgamma.", "pos", "scipy.special.digamma(input)",
           [](auto x) { return digamma(x); })
      .grad("input", "input", [](Gradient& g) {
        return g.out() * op<"special_polygamma">(IValue(int64_t{1}), g["input"]);
      });
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
      .grad("input", "input", [](Gradient& g) { return logit_slope(g); })
      .where({.inplace = true})
      .no_vmap(kVmapLater)
      .samples({{"pos(3, 4), 1e-3"}, {"t(3, 4).sigmoid(), 1e-3"}})
      .reference("(lambda p: np.log(p / (1 - p)))(np.clip(input, eps, 1 - eps))");
}

// A function of two numbers.
template <class F>
OpDef& function2(Registry& r, const char* name, const char* doc, const char* samples,
                 const char* reference, F body, bool int_to_float = true) {
  return r.add(cat(name, "(input: Tensor, other: Tensor) -> Tensor"))
      .doc(doc)
      .pointwise<Floats>(body, {.int_to_float = int_to_float ? kEveryVariant : 0})
      .no_vmap(kVmapLater)
      .samples({{samples}})
      .reference(reference);
}

// 1 / (input^2 + other^2); 0 at the origin.
Expr inverse_square(Gradient& g) {
  const Expr square = op<"square">(g["input"]) + op<"square">(g["other"]);
  return op<"where">(op<"eq">(square, 0), 0.0, op<"reciprocal">(square));
}

void register_pairs(Registry& r) {
  function2(r, "atan2", "The angle of the point (other, input).", "t(3, 4), t(3, 4)",
            "np.arctan2(input, other)", [](auto y, auto x) { return atan2(y, x); })
      .where({.inplace = true, .aliases = {"arctan2"}})
      .grad("input", "input, other",
            [](Gradient& g) { return g.out() * g["other"] * inverse_square(g); })
      .grad("other", "input, other",
            [](Gradient& g) { return g.out() * -g["input"] * inverse_square(g); });
  function2(
      r, "xlogy", "input * log(other), 0 where input is 0.", "t(3, 4), pos(3, 4)",
      "np.where(input == 0, 0, input * np.log(other))",
      [](auto x, auto y) { return select(y != y, y, select(x == 0, lit(x, 0.0), x * log(y))); })
      .where({.inplace = true})
      .grad("input", "input, other",
            [](Gradient& g) {
              const Expr is_flat =
                  op<"logical_and">(op<"eq">(g["input"], 0), op<"le">(g["other"], 0));
              return op<"where">(is_flat, 0.0, op<"xlogy">(g.out(), g["other"]));
            })
      .grad("other", "input, other", [](Gradient& g) { return g.out() * g["input"] / g["other"]; });
  function2(
      r, "logaddexp", "log(exp(input) + exp(other)).", "t(3, 4), t(3, 4)",
      "np.logaddexp(input, other)",
      [](auto x, auto y) {
        const auto m = larger(x, y);
        // Equal infinities have no difference.
        return select((x == y) & (abs(x) == infinity_like(x)), x, m + log1p(exp(-abs(x - y))));
      },
      false)
      .complex([](auto x, auto y) { return log_add_exp(x, y); })
      .grad("input", "input, other",
            [](Gradient& g) { return g.out() / conj(op<"exp">(g["other"] - g["input"]) + 1.0); })
      .grad("other", "input, other",
            [](Gradient& g) { return g.out() / conj(op<"exp">(g["input"] - g["other"]) + 1.0); });
  function2(
      r, "logaddexp2", "log2(2^input + 2^other).", "t(3, 4), t(3, 4)",
      "np.logaddexp2(input, other)",
      [](auto x, auto y) {
        const auto m = larger(x, y);
        return select((x == y) & (abs(x) == infinity_like(x)), x,
                      m + log1p(exp2(-abs(x - y))) * lit(x, 1.44269504088896341));
      },
      false)
      .grad("input", "input, other",
            [](Gradient& g) { return g.out() / (op<"exp2">(g["other"] - g["input"]) + 1.0); })
      .grad("other", "input, other",
            [](Gradient& g) { return g.out() / (op<"exp2">(g["input"] - g["other"]) + 1.0); });
}

}  // namespace

void register_pointwise_math(Registry& r) {
  register_exponentials(r);
  register_trigonometry(r);
  register_special(r);
  register_pairs(r);
}

}  // namespace prong
