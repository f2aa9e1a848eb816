// Ops that draw by rejection: gamma, Dirichlet, Poisson and binomial numbers, PyTorch's own for the
// same seed. What they are built of is in kernels/rejection.h.
#include <algorithm>
#include <limits>

#include "ops/data_check.h"
#include "ops/gradient.h"
#include "ops/kernels/fill.h"
#include "ops/kernels/rejection.h"
#include "ops/like.h"
#include "runtime/parallel.h"

namespace prong {

namespace {

constexpr Spelling kFunctionOnly{.method = false};
constexpr const char* kNoVmap = "numbers are drawn sample by sample";

void check_floating(const Tensor& x, const char* name) {
  PRONG_CHECK(is_floating(x.dtype()), kNotImplemented, "\"", name, "\" not implemented for '",
              type_name(x.dtype()), "'");
}

double smallest_normal(DType dtype) {
  switch (dtype) {
  case DType::kFloat64:
    return std::numeric_limits<double>::min();
  case DType::kFloat16:
    return 0x1p-14;
  default:
    return static_cast<double>(std::numeric_limits<float>::min());
  }
}
double last_below_one(DType dtype) {
  switch (dtype) {
  case DType::kFloat64:
    return 1 - 0x1p-53;
  case DType::kFloat16:
    return 1 - 0x1p-11;
  case DType::kBFloat16:
    return 1 - 0x1p-8;
  default:
    return 1 - 0x1p-24;
  }
}

// draw(generator, parameter) for each element, in doubles.
template <class Draw>
Tensor drawn_each(const Tensor& parameter, const IValue& generator, Draw&& draw) {
  const Tensor p = parameter.to(DType::kFloat64).contiguous();
  const Tensor out = Tensor::empty(p.sizes(), DType::kFloat64);
  const Ref<Generator> g = generator_from(generator);
  std::lock_guard lock(g->mutex());
  for (int64_t i = 0; i < p.numel(); ++i) out.data<double>()[i] = draw(*g, p.data<double>()[i]);
  return out;
}

Tensor standard_gamma(const Tensor& shape, const IValue& generator) {
  check_floating(shape, "gamma_cpu");
  const double least = smallest_normal(shape.dtype());
  const bool is_double = shape.dtype() == DType::kFloat64;
  return drawn_each(shape, generator,
                    [&](Generator& g, double a) {
                      const double x =
                          is_double ? draw_gamma(g, a) : draw_gamma(g, static_cast<float>(a));
                      return std::max(least, x);
                    })
      .to(shape.dtype());
}

// Gamma numbers over their sum.
Tensor dirichlet(const Tensor& concentration, const IValue& generator) {
  check_floating(concentration, "dirichlet");
  PRONG_CHECK(concentration.rank() > 0, kRuntime,
              "_sample_dirichlet expects a concentration of at least one dimension");
  const DType dtype = concentration.dtype();
  Tensor out = drawn_each(concentration, generator, draw_gamma<double>);
  const int64_t n = concentration.sizes().back();
  for (int64_t row = 0; row < out.numel(); row += n) {
    double* x = out.data<double>() + row;
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += x[i];
    for (int64_t i = 0; i < n; ++i)
      x[i] = std::min(last_below_one(dtype), std::max(smallest_normal(dtype), x[i] / sum));
  }
  return out.to(dtype);
}

Tensor poisson(const Tensor& rate, const IValue& generator) {
  check_floating(rate, "poisson_cpu");
  return drawn_each(rate, generator,
                    [](Generator& g, double r) {
                      PRONG_CHECK(r >= 0, kRuntime,
                                  "invalid Poisson rate, expected rate to be non-negative");
                      return draw_poisson(g, r);
                    })
      .to(rate.dtype());
}

Tensor binomial(const Tensor& count, const Tensor& chance, const IValue& generator) {
  check_floating(count, "binomial_cpu");
  PRONG_CHECK(count.dtype() == chance.dtype(), kRuntime,
              "binomial expects count and prob of one dtype, but got ", type_name(count.dtype()),
              " and ", type_name(chance.dtype()));
  const bool is_double = count.dtype() == DType::kFloat64;
  const Tensor chances = broadcast_to(chance.to(DType::kFloat64), count.sizes()).contiguous();
  const double* p = chances.data<double>();
  return drawn_each(count, generator,
                    [&](Generator& g, double n) {
                      const double q = *p++;
                      return is_double ? draw_binomial(g, n, q)
                                       : static_cast<double>(draw_binomial(g, static_cast<float>(n),
                                                                           static_cast<float>(q)));
                    })
      .to(count.dtype());
}

using Rows = std::vector<const double*>;

// slope(rows, i), of the i-th number of each tensor) for each element, in doubles.
template <class Slope>
Tensor slopes(const std::vector<Tensor>& given, Slope&& slope) {
  std::vector<Tensor> kept;
  Rows x;
  for (const Tensor& t : given) {
    kept.push_back(broadcast_to(t.to(DType::kFloat64), given[0].sizes()).contiguous());
    x.push_back(kept.back().data<double>());
  }
  const Tensor out = Tensor::empty(given[0].sizes(), DType::kFloat64);
  double* to = out.data<double>();
  parallel_for(0, out.numel(), 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = slope(x, i);
  });
  return out.to(given[0].dtype());
}

TensorMeta like(const TensorMeta& x) { return TensorMeta{x.sizes, x.dtype}; }

OpDef& drawing(Registry& r, const char* schema, const char* doc) {
  return r.add(schema)
      .doc(doc)
      .family(Family::kOpaque)
      .where(kFunctionOnly)
      .random()
      .no_vmap(kNoVmap)
      .shape([](const TensorMeta& x, const IValue&) { return like(x); });
}

OpDef& slope_op(Registry& r, const char* schema, const char* doc) {
  return r.add(schema)
      .doc(doc)
      .family(Family::kOpaque)
      .where(kFunctionOnly)
      .no_vmap(kNoVmap)
      .no_grad("an implicit gradient has no second one");
}

void register_gamma(Registry& r) {
  drawing(r, "_standard_gamma(input: Tensor, generator: Generator? = None) -> Tensor",
          "Gamma-distributed numbers of the shapes in input and of scale 1.")
      .kernel([](const Tensor& a, const IValue& g) { return standard_gamma(a, g); })
      .grad(
          "input", "input, result",
          [](Gradient& g) { return g.out() * op<"_standard_gamma_grad">(g["input"], g["result"]); })
      .samples({{"pos(2, 3)"}});
  slope_op(r, "_standard_gamma_grad(input: Tensor, output: Tensor) -> Tensor",
           "How a gamma-distributed number moves with its shape, at one quantile.")
      .shape([](const TensorMeta& shape, const TensorMeta& x) {
        check_expands(x.sizes, shape.sizes);
        return like(shape);
      })
      .kernel([](const Tensor& shape, const Tensor& x) {
        return slopes({shape, x},
                      [](const Rows& n, int64_t i) { return gamma_slope(n[0][i], n[1][i]); });
      })
      .samples({{"pos(2, 3), pos(2, 3)"}});
  drawing(r, "_sample_dirichlet(input: Tensor, generator: Generator? = None) -> Tensor",
          "Dirichlet-distributed numbers; the last dimension sums to 1.")
      .kernel([](const Tensor& a, const IValue& g) { return dirichlet(a, g); })
      .grad("input", "input, result",
            [](Gradient& g) {
              const Expr x = g["result"], a = g["input"];
              const Expr total = op<"expand">(op<"sum">(a, Dims{-1}, true), a.sizes());
              const Expr moved = op<"sum">(x * g.out(), Dims{-1}, true);
              return op<"_dirichlet_grad">(x, a, total) * (g.out() - moved);
            })
      .samples({{"pos(2, 3)"}});
  slope_op(r, "_dirichlet_grad(x: Tensor, alpha: Tensor, total: Tensor) -> Tensor",
           "How an element of a Dirichlet sample moves with its concentration, over 1 - x.")
      .shape([](const TensorMeta& x, const TensorMeta& a, const TensorMeta& total) {
        check_expands(a.sizes, x.sizes);
        check_expands(total.sizes, x.sizes);
        return like(x);
      })
      .kernel([](const Tensor& x, const Tensor& a, const Tensor& total) {
        return slopes({x, a, total}, [](const Rows& n, int64_t i) {
          return dirichlet_slope(n[0][i], n[1][i], n[2][i]);
        });
      })
      .samples({{"torch.full((2, 3), 0.3), pos(2, 3), pos(2, 3) + 9"}});
}

void register_counts(Registry& r) {
  drawing(r, "poisson(input: Tensor, generator: Generator? = None) -> Tensor",
          "Poisson-distributed counts of the rates in input.")
      .checks(&any_data_may_fail)
      .kernel([](const Tensor& rate, const IValue& g) { return poisson(rate, g); })
      .grad("input", "", [](Gradient& g) { return g.zeros(g.meta("input")); })
      .samples({{"pos(2, 3)"}});
  r.add("binomial(count: Tensor, prob: Tensor, generator: Generator? = None) -> Tensor")
      .doc("How many of count trials succeed, each with the chance prob.")
      .checks(&any_data_may_fail)
      .family(Family::kOpaque)
      .where(kFunctionOnly)
      .random()
      .no_vmap(kNoVmap)
      .shape([](const TensorMeta& n, const TensorMeta&, const IValue&) { return like(n); })
      .kernel([](const Tensor& n, const Tensor& p, const IValue& g) { return binomial(n, p, g); })
      .grad("count", "", [](Gradient& g) { return g.zeros(g.meta("count")); })
      .grad("prob", "", [](Gradient& g) { return g.zeros(g.meta("prob")); })
      .samples({{"torch.full((2, 3), 9.0), torch.full((2, 3), 0.4)"}});
}

}  // namespace

void register_random_rejection(Registry& r) {
  register_gamma(r);
  register_counts(r);
}

}  // namespace prong
