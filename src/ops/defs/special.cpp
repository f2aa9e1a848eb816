// Special functions (torch.special and their old names), greatest common divisors. Loops over plain
// doubles: rare ops.
#include "ops/kernels/special.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "ops/gradient.h"
#include "runtime/parallel.h"

namespace prong {
namespace {

constexpr const char* kVmapLater = "vmap is not built yet";
constexpr const char* kNoRule = "PyTorch has no derivative of it";
constexpr Spelling kModuleOnly{.function = false, .method = false};
constexpr double kRootTwoOverPi = 0.797884560802865356;

Cost function_cost(const OpDef&, std::span<const IValue> args) {
  double n = 1;
  for (const IValue& v : args)
    if (v.is_tensor() || v.is_meta()) n = std::max(n, static_cast<double>(meta_from(v).numel()));
  return {50 * n, 16 * n};
}

OpDef& add_op(Registry& r, std::string_view schema) {
  return r.add(schema).cost(function_cost).no_vmap(kVmapLater);
}

DType floating(DType d) {
  PRONG_CHECK(!is_complex(d), kNotImplemented, "not implemented for '", scalar_type_name(d), "'");
  return is_floating(d) ? d : default_dtype();
}

DType floating(const TensorMeta& a, const TensorMeta& b) {
  ResultType type;
  type.add(a);
  type.add(b);
  return floating(type.get());
}

constexpr int64_t kGrain = 2048;

template <double (*kF)(double)>
Tensor map_one(const Tensor& given) {
  const DType dtype = floating(given.dtype());
  const Tensor x = given.to(DType::kFloat64).contiguous();
  const Tensor out = Tensor::empty(x.sizes(), DType::kFloat64);
  const double* from = x.data<double>();
  double* to = out.data<double>();
  parallel_for(0, x.numel(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = kF(from[i]);
  });
  return out.to(dtype);
}

template <double (*kF)(double, double)>
Tensor map_two(const Tensor& a, const Tensor& b) {
  const DType dtype = floating(a.meta(), b.meta());
  const Dims sizes = broadcast_shapes(a.sizes(), b.sizes());
  const Tensor x = broadcast_to(a.to(DType::kFloat64), sizes).contiguous();
  const Tensor y = broadcast_to(b.to(DType::kFloat64), sizes).contiguous();
  const Tensor out = Tensor::empty(sizes, DType::kFloat64);
  const double *p = x.data<double>(), *q = y.data<double>();
  double* to = out.data<double>();
  parallel_for(0, out.numel(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = kF(p[i], q[i]);
  });
  return out.to(dtype);
}

template <double (*kF)(double)>
OpDef& one(Registry& r, const char* name, const char* doc, const char* samples) {
  return add_op(r, cat(name, "(input: Tensor) -> Tensor"))
      .doc(doc)
      .where(std::string_view(name).starts_with("special_") ? kModuleOnly
                                                            : Spelling{.inplace = true})
      .shape([](const TensorMeta& x) {
        return TensorMeta{x.sizes, floating(x.dtype)};
      })
      .kernel([](const Tensor& x) { return map_one<kF>(x); })
      .samples({{cat(samples, "(3, 4)")},
                {cat(samples, "(0, 5)")},
                {cat(samples, "(3, dtype=float64)")}});
}

template <double (*kF)(double, double)>
OpDef& two(Registry& r, const char* name, const char* doc, std::vector<Sample> samples) {
  return add_op(r, cat(name, "(input: Tensor, other: Tensor) -> Tensor"))
      .doc(doc)
      .where(std::string_view(name).starts_with("special_") ? kModuleOnly
                                                            : Spelling{.inplace = true})
      .shape([](const TensorMeta& a, const TensorMeta& b) {
        return TensorMeta{broadcast_shapes(a.sizes, b.sizes), floating(a, b)};
      })
      .kernel([](const Tensor& a, const Tensor& b) { return map_two<kF>(a, b); })
      .samples(std::move(samples));
}

double sine_free_j0(double x) { return ::j0(x); }
double sine_free_j1(double x) { return ::j1(x); }
double second_y0(double x) { return x < 0 ? std::nan("") : ::y0(x); }
double second_y1(double x) { return x < 0 ? std::nan("") : ::y1(x); }
double entropy(double x) {
  if (std::isnan(x)) return x;
  return x > 0 ? -x * std::log(x) : x == 0 ? 0 : -std::numeric_limits<double>::infinity();
}
double normal_distribution(double x) { return std::erfc(-x * 0.707106781186547524) / 2; }
double x_log1p_y(double x, double y) {
  if (std::isnan(y)) return y;
  return x == 0 ? 0 : x * std::log1p(y);
}

void register_bessel(Registry& r) {
  for (const char* name : {"i0", "special_i0"})
    one<special::bessel_i0>(r, name, "The modified Bessel function of the first kind, of order 0.",
                            "t")
        .grad("input", "input", [](Gradient& g) { return g.out() * op<"special_i1">(g["input"]); });
  one<special::bessel_i0e>(r, "special_i0e", "exp(-|input|) i0(input).", "t")
      .grad("input", "input, result", [](Gradient& g) {
        const Expr x = g["input"];
        return g.out() * (op<"special_i1e">(x) - op<"sign">(x) * g["result"]);
      });
  one<special::bessel_i1>(r, "special_i1",
                          "The modified Bessel function of the first kind, of order 1.", "t")
      .grad("input", "input, result", [](Gradient& g) {
        const Expr x = g["input"], quotient = op<"where">(op<"eq">(x, 0), 0.5, g["result"] / x);
        return g.out() * (op<"special_i0">(x) - quotient);
      });
  one<special::bessel_i1e>(r, "special_i1e", "exp(-|input|) i1(input).", "t")
      .grad("input", "input, result", [](Gradient& g) {
        const Expr x = g["input"], y = g["result"];
        const Expr quotient = op<"where">(op<"eq">(x, 0), 0.5, y / x);
        return g.out() * (op<"special_i0e">(x) - y * op<"sign">(x) - quotient);
      });
  one<sine_free_j0>(r, "special_bessel_j0", "The Bessel function of the first kind, of order 0.",
                    "t")
      .not_differentiable(kNoRule);
  one<sine_free_j1>(r, "special_bessel_j1", "The Bessel function of the first kind, of order 1.",
                    "t")
      .not_differentiable(kNoRule);
  one<second_y0>(r, "special_bessel_y0", "The Bessel function of the second kind, of order 0.",
                 "pos")
      .not_differentiable(kNoRule);
  one<second_y1>(r, "special_bessel_y1", "The Bessel function of the second kind, of order 1.",
                 "pos")
      .not_differentiable(kNoRule);
  one<special::bessel_i0>(r, "special_modified_bessel_i0", "The same as i0.", "t")
      .not_differentiable(kNoRule);
  one<special::bessel_i1>(r, "special_modified_bessel_i1", "The same as i1.", "t")
      .not_differentiable(kNoRule);
  one<special::bessel_k0>(r, "special_modified_bessel_k0",
                          "The modified Bessel function of the second kind, of order 0.", "pos")
      .not_differentiable(kNoRule);
  one<special::bessel_k1>(r, "special_modified_bessel_k1",
                          "The modified Bessel function of the second kind, of order 1.", "pos")
      .not_differentiable(kNoRule);
  one<special::bessel_k0e>(r, "special_scaled_modified_bessel_k0",
                           "exp(input) modified_bessel_k0(input).", "pos")
      .not_differentiable(kNoRule);
  one<special::bessel_k1e>(r, "special_scaled_modified_bessel_k1",
                           "exp(input) modified_bessel_k1(input).", "pos")
      .not_differentiable(kNoRule);
  one<special::spherical_j0>(r, "special_spherical_bessel_j0", "sin(input) / input.", "t")
      .not_differentiable(kNoRule);
  one<special::airy_ai>(r, "special_airy_ai", "The Airy function Ai.", "t")
      .not_differentiable(kNoRule);
}

void register_normal(Registry& r) {
  one<entropy>(r, "special_entr", "-input log(input), elementwise.", "pos")
      .grad("input", "input", [](Gradient& g) { return g.out() * (-op<"log">(g["input"]) - 1.0); });
  one<special::erfcx>(r, "special_erfcx", "exp(input^2) erfc(input).", "t")
      .grad("input", "input, result", [](Gradient& g) {
        return g.out() * (2.0 * g["input"] * g["result"] - 1.12837916709551257);
      });
  one<normal_distribution>(r, "special_ndtr", "The normal distribution function.", "t")
      .grad("input", "input", [](Gradient& g) {
        return g.out() * (op<"exp">(op<"square">(g["input"]) * -0.5) * 0.398942280401432678);
      });
  one<special::log_ndtr>(r, "special_log_ndtr",
                         "The logarithm of the normal distribution function.", "t")
      .grad("input", "input", [](Gradient& g) {
        return g.out() / op<"special_erfcx">(g["input"] * -0.707106781186547524) * kRootTwoOverPi;
      });
  one<special::ndtri>(r, "special_ndtri", "The inverse of the normal distribution function.", "pos")
      .grad("input", "result",
            [](Gradient& g) {
              return g.out() * (op<"exp">(op<"square">(g["result"]) * 0.5) * 2.50662827463100050);
            })
      .samples({{"pos(3, 4) / 2.2"}, {"pos(3, dtype=float64) / 2.2"}});
  two<x_log1p_y>(r, "special_xlog1py", "input log1p(other), 0 where input is 0.",
                 {{"t(3, 4), pos(3, 4)"}, {"t(3, 1), pos(4)"}, {"t(3, 4), 0.5"}})
      .grad("input", "input, other",
            [](Gradient& g) {
              const Expr slope = op<"log1p">(g["other"]);
              return g.out() * op<"where">(op<"logical_and">(op<"eq">(g["input"], 0),
                                                             op<"le">(g["other"], -1.0)),
                                           0.0, slope);
            })
      .grad("other", "input, other",
            [](Gradient& g) { return g.out() * (g["input"] / (g["other"] + 1.0)); });
}

double polygamma_of(double n, double x) { return special::polygamma(static_cast<int>(n), x); }

Expr incomplete_gamma_slope(Gradient& g) {
  const Expr a = g["input"], x = g["other"];
  return g.out() * op<"exp">(op<"xlogy">(a - 1.0, x) - x - op<"lgamma">(a));
}

void register_gamma(Registry& r) {
  const std::vector<Sample> pairs = {
      {"pos(3, 4), pos(3, 4)"}, {"pos(3, 1), pos(4)"}, {"pos(0), pos(0)"}};
  for (const char* name : {"igamma", "special_gammainc"})
    two<special::gamma_lower>(r, name, "The lower incomplete gamma function over gamma(input).",
                              pairs)
        .where(name[0] == 's' ? kModuleOnly : Spelling{.inplace = true})
        .grad("other", "input, other", [](Gradient& g) { return incomplete_gamma_slope(g); });
  for (const char* name : {"igammac", "special_gammaincc"})
    two<special::gamma_upper>(r, name, "The upper incomplete gamma function over gamma(input).",
                              pairs)
        .grad("other", "input, other", [](Gradient& g) { return -incomplete_gamma_slope(g); });
  two<special::zeta>(r, "special_zeta", "The Hurwitz zeta function: the sum of (k + other)^-input.",
                     {{"pos(3, 4) + 1, pos(3, 4)"}, {"pos(4) + 1, 2.0"}})
      .grad("other", "input, other", [](Gradient& g) {
        const Expr x = g["input"];
        return g.out() * (-x * op<"special_zeta">(x + 1.0, g["other"]));
      });
  add_op(r, "special_polygamma(n: int, input: Tensor) -> Tensor")
      .doc("The n-th derivative of digamma.")
      .where(kModuleOnly)
      .shape([](int64_t, const TensorMeta& x) {
        return TensorMeta{x.sizes, floating(x.dtype)};
      })
      .kernel([](int64_t n, const Tensor& x) {
        PRONG_CHECK(n >= 0, kRuntime, "polygamma(n, x) does not support negative n.");
        const Tensor order = Tensor::empty({}, DType::kFloat64);
        fill(order, static_cast<double>(n));
        return map_two<polygamma_of>(order, x.to(DType::kFloat64)).to(floating(x.dtype()));
      })
      .grad("input", "input",
            [](Gradient& g) {
              return g.out() * op<"special_polygamma">(g.integer("n") + 1, g["input"]);
            })
      .samples({{"1, pos(3, 4)"}, {"2, pos(3)"}, {"0, pos(3)"}});
}

template <double (*kF)(double, double)>
void polynomial(Registry& r, const char* name, const char* word) {
  two<kF>(r, cat("special_", name).c_str(),
          cat("The ", word, " polynomial of degree other at input.").c_str(),
          {{"unit(3, 4), index(4, high=6)"}, {"unit(3), 3"}})
      .not_differentiable(kNoRule);
}
// Of 2 x - 1.
template <double (*kF)(double, double)>
double shifted(double x, double n) {
  return kF(2 * x - 1, n);
}

void register_polynomials(Registry& r) {
  polynomial<special::chebyshev_t>(r, "chebyshev_polynomial_t", "Chebyshev");
  polynomial<special::chebyshev_u>(r, "chebyshev_polynomial_u", "Chebyshev");
  polynomial<special::chebyshev_v>(r, "chebyshev_polynomial_v", "Chebyshev");
  polynomial<special::chebyshev_w>(r, "chebyshev_polynomial_w", "Chebyshev");
  polynomial<shifted<special::chebyshev_t>>(r, "shifted_chebyshev_polynomial_t",
                                            "shifted Chebyshev");
  polynomial<shifted<special::chebyshev_u>>(r, "shifted_chebyshev_polynomial_u",
                                            "shifted Chebyshev");
  polynomial<shifted<special::chebyshev_v>>(r, "shifted_chebyshev_polynomial_v",
                                            "shifted Chebyshev");
  polynomial<shifted<special::chebyshev_w>>(r, "shifted_chebyshev_polynomial_w",
                                            "shifted Chebyshev");
  polynomial<special::hermite_h>(r, "hermite_polynomial_h", "physicists' Hermite");
  polynomial<special::hermite_he>(r, "hermite_polynomial_he", "probabilists' Hermite");
  polynomial<special::laguerre_l>(r, "laguerre_polynomial_l", "Laguerre");
  polynomial<special::legendre_p>(r, "legendre_polynomial_p", "Legendre");
}

// ── divisors ──

TensorMeta divisor_meta(const char* op, const TensorMeta& a, const TensorMeta& b) {
  ResultType type;
  type.add(a);
  type.add(b);
  PRONG_CHECK(is_integral(type.get()), kNotImplemented, '"', op, "_cpu\" not implemented for '",
              scalar_type_name(type.get()), "'");
  return {broadcast_shapes(a.sizes, b.sizes), type.get()};
}

template <bool kIsMultiple>
Tensor divisors(const char* op, const Tensor& a, const Tensor& b) {
  const TensorMeta result = divisor_meta(op, a.meta(), b.meta());
  const Tensor x = broadcast_to(a.to(DType::kInt64), result.sizes).contiguous();
  const Tensor y = broadcast_to(b.to(DType::kInt64), result.sizes).contiguous();
  const Tensor out = Tensor::empty(result.sizes, DType::kInt64);
  const int64_t *p = x.data<int64_t>(), *q = y.data<int64_t>();
  int64_t* to = out.data<int64_t>();
  parallel_for(0, out.numel(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t g = std::gcd(p[i], q[i]);
      to[i] = kIsMultiple ? (g == 0 ? 0 : std::abs(p[i] / g * q[i])) : g;
    }
  });
  return out.to(result.dtype);
}

void register_divisors(Registry& r) {
  add_op(r, "gcd(input: Tensor, other: Tensor) -> Tensor")
      .doc("The greatest common divisor.")
      .where({.inplace = true})
      .not_differentiable("of integers")
      .shape([](const TensorMeta& a, const TensorMeta& b) { return divisor_meta("gcd", a, b); })
      .kernel([](const Tensor& a, const Tensor& b) { return divisors<false>("gcd", a, b); })
      .samples({{"t(3, 4, dtype=int64), t(3, 4, dtype=int64)"}, {"t(4, dtype=int32), 6"}})
      .reference("np.gcd(input, other)");
  add_op(r, "lcm(input: Tensor, other: Tensor) -> Tensor")
      .doc("The least common multiple.")
      .where({.inplace = true})
      .not_differentiable("of integers")
      .shape([](const TensorMeta& a, const TensorMeta& b) { return divisor_meta("lcm", a, b); })
      .kernel([](const Tensor& a, const Tensor& b) { return divisors<true>("lcm", a, b); })
      .samples({{"t(3, 4, dtype=int64), t(3, 4, dtype=int64)"}, {"t(4, dtype=int32), 6"}})
      .reference("np.lcm(input, other)");
}

}  // namespace

void register_special(Registry& r) {
  register_bessel(r);
  register_normal(r);
  register_gamma(r);
  register_polynomials(r);
  register_divisors(r);
}

}  // namespace prong
