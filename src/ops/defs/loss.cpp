// Losses of numbers against numbers: mse, l1, smooth_l1, huber, kl_div, binary cross entropies.
// Made of other ops; what they send back is one pass each.
#include <limits>

#include "ops/gradient.h"
#include "ops/kernels/pointwise.h"
#include "ops/scalar_math.h"
#include "ops/shape_of.h"

namespace prong {
namespace {

constexpr const char* kVmapLater = "vmap is not built yet";
constexpr Spelling kFunctional = {.function = false, .method = false, .nn_functional = true};

void check_reduction(const std::string& reduction) {
  PRONG_CHECK(reduction == "mean" || reduction == "sum" || reduction == "none", kValue, reduction,
              " is not a valid value for reduction");
}

Tensor reduce(const Tensor& values, const std::string& reduction) {
  check_reduction(reduction);
  if (reduction == "none") return values;
  return call_tensor(reduction == "mean" ? "mean" : "sum", values);
}

TensorMeta reduced_meta(const TensorMeta& values, const std::string& reduction) {
  check_reduction(reduction);
  return reduction == "none" ? values : TensorMeta{{}, values.dtype};
}

TensorMeta pair_meta(const TensorMeta& a, const TensorMeta& b) {
  ResultType t;
  t.add(a);
  t.add(b);
  return {broadcast_shapes(a.sizes, b.sizes), t.get()};
}

Cost loss_cost(const OpDef&, std::span<const IValue> args) {
  const double n = static_cast<double>(meta_from(args[0]).numel());
  return {4 * n, 12 * n};
}

// ── what goes back ──

// The gradient of a mean is spread over its elements.
double share(Gradient& g) {
  if (g.value("reduction").to_string() != "mean") return 1;
  const Dims sizes = broadcast_shapes(g["input"].sizes(), g["target"].sizes());
  return 1.0 / static_cast<double>(product(DimsView(sizes)));
}
// Losses of input - target: the gradients to both.
std::tuple<Expr, Expr> both_ways(Gradient& g, const Expr& to_input) {
  return {to_input, g.needs("target") ? -to_input : g.none()};
}
// scale * (input - target), the difference cut off to [-bound, bound].
std::tuple<Expr, Expr> difference_slopes(Gradient& g, double bound, double scale) {
  return both_ways(g, op<"bounded_difference_backward">(g.out(), g["input"], g["target"], bound,
                                                        scale * share(g)));
}
std::tuple<Expr, Expr> sign_slopes(Gradient& g) {
  if (is_complex(g["input"].dtype()) || is_complex(g["target"].dtype()))
    return both_ways(g, g.out() * share(g) * op<"sign">(g["input"] - g["target"]));
  return both_ways(g, op<"l1_loss_backward">(g.out(), g["input"], g["target"], share(g)));
}

OpDef& backward_op(Registry& r, std::string_view schema) {
  return r.add(schema).where({.function = false, .method = false}).no_vmap(kVmapLater);
}

void register_difference_slopes(Registry& r) {
  using namespace math;
  backward_op(r,
              "bounded_difference_backward(grad: Tensor, input: Tensor, target: Tensor, bound: "
              "Scalar, scale: Scalar) -> Tensor")
      .doc("grad * scale * (input - target), the difference cut off to [-bound, bound].")
      .pointwise<Floats>([](auto g, auto x, auto y, auto bound, auto scale) {
        const auto d = x - y;
        const auto low = select(d < -bound, -bound, d);
        return g * scale * select(low > bound, bound, low);
      })
      .grad("grad", "input, target",
            [](Gradient& g) {
              return op<"bounded_difference_backward">(g.out(), g["input"], g["target"],
                                                       g.value("bound"), g.value("scale"));
            })
      .grad("input, target", "grad, input, target",
            [](Gradient& g) {
              const Expr slope = g.out() * g["grad"] * g.number("scale");
              const Expr size = op<"abs">(g["input"] - g["target"]);
              return both_ways(g, op<"where">(op<"lt">(size, g.value("bound")), slope, 0.0));
            })
      .samples({{"t(3, 4), t(3, 4), t(3, 4), 0.5, 2.0"}, {"t(), t(3, 4), t(4), inf, 2.0"}});
  backward_op(r,
              "smooth_difference(input: Tensor, target: Tensor, bound: Scalar, inner: Scalar, "
              "outer: Scalar) -> Tensor")
      .doc(
          "With d = |input - target|: inner * d^2 below bound, outer * (d - bound / 2) from there.")
      .pointwise<Floats>([](auto x, auto y, auto bound, auto inner, auto outer) {
        const auto d = abs(x - y);
        return select(d < bound, d * d * inner, (d - bound * lit(x, 0.5)) * outer);
      })
      .grad("input, target", "input, target",
            [](Gradient& g) {
              const Expr d = g["input"] - g["target"];
              const Expr far = op<"sign">(d) * g.number("outer");
              const Expr near = d * (2 * g.number("inner"));
              const Expr is_near = op<"lt">(op<"abs">(d), g.value("bound"));
              return both_ways(g, g.out() * op<"where">(is_near, near, far));
            })
      .samples({{"t(3, 4), t(3, 4), 0.5, 0.5, 0.5"}, {"t(3, 4), t(4), 1.5, 0.25, 2.0"}});
  backward_op(
      r, "l1_loss_backward(grad: Tensor, input: Tensor, target: Tensor, scale: Scalar) -> Tensor")
      .doc("grad * scale with the sign of input - target.")
      .pointwise<Floats>([](auto g, auto x, auto y, auto scale) {
        const auto one = lit(g, 1);
        const auto sign = select(x > y, one, select(x < y, -one, one - one));
        return g * scale * sign;
      })
      .grad("grad", "input, target",
            [](Gradient& g) {
              return op<"l1_loss_backward">(g.out(), g["input"], g["target"], g.value("scale"));
            })
      .samples({{"t(), t(3, 4), t(3, 4), 0.5"}});
}

void register_binary_slopes(Registry& r) {
  using namespace math;
  backward_op(
      r, "binary_cross_entropy_backward(grad: Tensor, input: Tensor, target: Tensor) -> Tensor")
      .doc("grad * (input - target) / (input * (1 - input)), the divisor at least 1e-12.")
      .pointwise<Floats>([](auto g, auto x, auto y) {
        const auto d = (1 - x) * x;
        const auto least = lit(x, 1e-12);
        return g * (x - y) / select(d < least, least, d);
      })
      .grad("grad", "input, target",
            [](Gradient& g) {
              return op<"binary_cross_entropy_backward">(g.out(), g["input"], g["target"]);
            })
      .grad("input, target", "grad, input, target",
            [](Gradient& g) {
              const Expr x = g["input"], y = g["target"], flow = g.out() * g["grad"];
              const Expr inverse = op<"reciprocal">(op<"clamp">((1.0 - x) * x, 1e-12));
              return std::tuple(flow * inverse * (1.0 - (x - y) * (1.0 - x * 2.0) * inverse),
                                -(flow * inverse));
            })
      .samples({{"t(3, 4), t(3, 4).sigmoid(), t(3, 4).sigmoid()"}});
  backward_op(r,
              "binary_cross_entropy_with_logits_backward(grad: Tensor, input: Tensor, target: "
              "Tensor) -> Tensor")
      .doc("grad * (sigmoid(input) - target).")
      .pointwise<Floats>([](auto g, auto x, auto y) { return g * (sigmoid(x) - y); })
      .grad("grad", "input, target",
            [](Gradient& g) {
              return op<"binary_cross_entropy_with_logits_backward">(g.out(), g["input"],
                                                                     g["target"]);
            })
      .grad("input, target", "grad, input",
            [](Gradient& g) {
              const Expr flow = g.out() * g["grad"], s = op<"sigmoid">(g["input"]);
              return std::tuple(op<"sigmoid_backward">(flow, s), -flow);
            })
      .samples({{"t(3, 4), t(3, 4), t(3, 4).sigmoid()"}});
}

// grad, spread and weighted.
Expr weighted_grad(Gradient& g) {
  const Expr dy = g.out() * share(g);
  return g.is_given("weight") ? dy * g["weight"] : dy;
}

std::tuple<Expr, Expr, Expr> binary_slopes(Gradient& g) {
  const Expr x = g["input"], y = g["target"];
  Expr to_input = g.none(), to_target = g.none(), to_weight = g.none();
  if (g.needs("input")) to_input = op<"binary_cross_entropy_backward">(weighted_grad(g), x, y);
  if (g.needs("target")) to_target = weighted_grad(g) * (op<"log">(1.0 - x) - op<"log">(x));
  if (g.needs("weight"))
    to_weight = g.out() * share(g) * op<"binary_cross_entropy">(x, y, IValue(), "none");
  return {to_input, to_target, to_weight};
}

// With l = log(sigmoid(x)) the loss is (1 - y) x - (1 + (p - 1) y) l, p the weight of positives.
std::tuple<Expr, Expr, Expr, Expr> logit_slopes(Gradient& g) {
  const Expr x = g["input"], y = g["target"], dy = weighted_grad(g);
  const bool has_positive = g.is_given("pos_weight");
  Expr to_input = g.none(), to_target = g.none(), to_weight = g.none(), to_positive = g.none();
  if (g.needs("input") && !has_positive)
    to_input = op<"binary_cross_entropy_with_logits_backward">(dy, x, y);
  if (g.needs("input") && has_positive) {
    const Expr factor = (g["pos_weight"] - 1.0) * y + 1.0;
    to_input = dy * ((1.0 - y) - factor * op<"sigmoid">(-x));
  }
  if (g.needs("target")) {
    const Expr slope = has_positive ? x + (g["pos_weight"] - 1.0) * op<"logsigmoid">(x) : x;
    to_target = -(dy * slope);
  }
  if (g.needs("weight"))
    to_weight =
        g.out() * share(g) *
        op<"binary_cross_entropy_with_logits">(x, y, IValue(), "none", g.value("pos_weight"));
  if (g.needs("pos_weight")) to_positive = -(dy * y * op<"logsigmoid">(x));
  return {to_input, to_target, to_weight, to_positive};
}

std::tuple<Expr, Expr> divergence_slopes(Gradient& g) {
  const Expr x = g["input"], y = g["target"];
  double scale = share(g);
  if (g.value("reduction").to_string() == "batchmean")
    scale = x.rank() ? 1.0 / static_cast<double>(x.sizes()[0]) : 1.0;
  const Expr dy = g.out() * scale;
  const bool is_log = g.flag("log_target");
  const Expr p = is_log ? op<"exp">(y) : y;
  Expr to_target = g.none();
  if (g.needs("target")) to_target = dy * (is_log ? p * (y - x + 1.0) : op<"log">(y) + y / y - x);
  return {g.needs("input") ? p * -dy : g.none(), to_target};
}

// ── the losses ──

// Losses of (input, target, reduction) that are a pointwise formula and a reduction.
template <class F>
OpDef& pair_loss(Registry& r, const char* name, const char* doc, const char* reference, F f) {
  return r.add(cat(name, "(input: Tensor, target: Tensor, reduction: str = \"mean\") -> Tensor"))
      .doc(doc)
      .where(kFunctional)
      .shape([](const TensorMeta& a, const TensorMeta& b, const std::string& reduction) {
        return reduced_meta(shape_of("sub", a, b), reduction);
      })
      .kernel(f)
      .cost(loss_cost)
      .no_vmap(kVmapLater)
      .samples({{"t(3, 4), t(3, 4)"},
                {"t(3, 4), t(3, 4), 'sum'"},
                {"t(2, 3), t(2, 3), reduction='none'"}})
      .reference(cat(
          "(lambda v: v.mean() if reduction == 'mean' else v.sum() if reduction == 'sum' else v)(",
          reference, ")"));
}

void register_regression(Registry& r) {
  pair_loss(r, "mse_loss", "Mean squared error.", "(input - target) ** 2",
            [](const Tensor& a, const Tensor& b, const std::string& reduction) {
              const Tensor d = call_tensor("sub", a, b);
              return reduce(call_tensor("mul", d, d), reduction);
            })
      .grad("input, target", "input, target", [](Gradient& g) {
        return difference_slopes(g, std::numeric_limits<double>::infinity(), 2);
      });
  pair_loss(r, "l1_loss", "Mean absolute error.", "np.abs(input - target)",
            [](const Tensor& a, const Tensor& b, const std::string& reduction) {
              return reduce(call_tensor("abs", call_tensor("sub", a, b)), reduction);
            })
      .takes_complex()
      .shape([](const TensorMeta& a, const TensorMeta& b, const std::string& reduction) {
        TensorMeta sizes = shape_of("sub", a, b);
        sizes.dtype = real_dtype(sizes.dtype);
        return reduced_meta(sizes, reduction);
      })
      .grad("input, target", "input, target", [](Gradient& g) { return sign_slopes(g); });
  r.add(
       "smooth_l1_loss(input: Tensor, target: Tensor, reduction: str = \"mean\", beta: float = "
       "1.0) -> Tensor")
      .doc("0.5 d^2 / beta where |d| < beta, |d| - 0.5 beta elsewhere.")
      .where(kFunctional)
      .shape([](const TensorMeta& a, const TensorMeta& b, const std::string& reduction, double) {
        return reduced_meta(pair_meta(a, b), reduction);
      })
      .kernel([](const Tensor& a, const Tensor& b, const std::string& reduction, double beta) {
        PRONG_CHECK(beta >= 0, kRuntime,
                    "smooth_l1_loss does not support negative values for beta.");
        return reduce(beta == 0 ? call_tensor("abs", call_tensor("sub", a, b))
                                : call_tensor("smooth_difference", a, b, beta, 0.5 / beta, 1.0),
                      reduction);
      })
      .cost(loss_cost)
      .grad("input, target", "input, target",
            [](Gradient& g) {
              const double beta = g.number("beta");
              return beta == 0 ? sign_slopes(g) : difference_slopes(g, beta, 1 / beta);
            })
      .no_vmap(kVmapLater)
      .samples({{"t(3, 4), t(3, 4)"}, {"t(3, 4), t(3, 4), 'none', 0.5"}})
      .reference(
          "(lambda v: v.mean() if reduction == 'mean' else v.sum() if reduction == 'sum' else "
          "v)((lambda d: np.where(d < beta, 0.5 * d * d / beta, d - 0.5 * beta))(np.abs(input - "
          "target)))");
  r.add(
       "huber_loss(input: Tensor, target: Tensor, reduction: str = \"mean\", delta: float = 1.0) "
       "-> Tensor")
      .doc("0.5 d^2 where |d| < delta, delta (|d| - 0.5 delta) elsewhere.")
      .where(kFunctional)
      .shape([](const TensorMeta& a, const TensorMeta& b, const std::string& reduction, double) {
        return reduced_meta(pair_meta(a, b), reduction);
      })
      .kernel([](const Tensor& a, const Tensor& b, const std::string& reduction, double delta) {
        PRONG_CHECK(delta > 0, kRuntime,
                    "huber_loss does not support non-positive values for delta.");
        return reduce(call_tensor("smooth_difference", a, b, delta, 0.5, delta), reduction);
      })
      .cost(loss_cost)
      .grad("input, target", "input, target",
            [](Gradient& g) { return difference_slopes(g, g.number("delta"), 1); })
      .no_vmap(kVmapLater)
      .samples({{"t(3, 4), t(3, 4)"}, {"t(3, 4), t(3, 4), 'sum', 0.5"}})
      .reference(
          "(lambda v: v.mean() if reduction == 'mean' else v.sum() if reduction == 'sum' else "
          "v)((lambda d: np.where(d < delta, 0.5 * d * d, delta * (d - 0.5 * delta)))(np.abs(input "
          "- target)))");
  r.add(
       "kl_div(input: Tensor, target: Tensor, reduction: str = \"mean\", *, log_target: bool = "
       "False) -> Tensor")
      .doc("target * (log(target) - input), pointwise; input holds log-probabilities.")
      .where({.method = false, .nn_functional = true})
      .shape([](const TensorMeta& a, const TensorMeta& b, const std::string& reduction, bool) {
        shape_of("sub", b, a);  // not of bools
        return reduction == "batchmean" ? TensorMeta{{}, pair_meta(a, b).dtype}
                                        : reduced_meta(pair_meta(a, b), reduction);
      })
      .kernel([](const Tensor& x, const Tensor& y, const std::string& reduction, bool log_target) {
        const Tensor v =
            log_target ? call_tensor("mul", call_tensor("exp", y), call_tensor("sub", y, x))
                       : call_tensor("sub", call_tensor("xlogy", y, y), call_tensor("mul", y, x));
        if (reduction != "batchmean") return reduce(v, reduction);
        return call_tensor("div", call_tensor("sum", v), x.rank() ? x.size(0) : int64_t{1});
      })
      .cost(loss_cost)
      .grad("input, target", "input, target", [](Gradient& g) { return divergence_slopes(g); })
      .no_vmap(kVmapLater)
      .samples({{"t(3, 4), pos(3, 4)"}, {"t(3, 4), t(3, 4), 'batchmean', log_target=True"}});
}

void check_probabilities(const TensorMeta& x, const TensorMeta& y) {
  PRONG_CHECK(x.sizes == y.sizes, kValue, "Using a target size (torch.Size(", y.sizes,
              ")) that is different to the input size (torch.Size(", x.sizes,
              ")) is deprecated. Please ensure they have the same size.");
}
void check_logits(const TensorMeta& x, const TensorMeta& y) {
  PRONG_CHECK(x.sizes == y.sizes, kValue, "Target size (torch.Size(", y.sizes,
              ")) must be the same as input size (torch.Size(", x.sizes, "))");
}
// Losses times a weight that is broadcast, if there is one.
TensorMeta weighted_meta(const TensorMeta& losses, const std::optional<TensorMeta>& weight) {
  return weight ? pair_meta(losses, *weight) : losses;
}

void register_binary(Registry& r) {
  r.add(
       "binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor? = None, reduction: str "
       "= \"mean\") -> Tensor")
      .doc("-(target log(input) + (1 - target) log(1 - input)), logs cut off at -100.")
      .where(kFunctional)
      .shape([](const TensorMeta& a, const TensorMeta& b, std::optional<TensorMeta> w,
                const std::string& reduction) {
        check_probabilities(a, b);
        shape_of("rsub", a, 1);  // not of bools
        const TensorMeta product = shape_of("mul", shape_of("rsub", b, 1), shape_of("log", a));
        return reduced_meta(weighted_meta(product, w), reduction);
      })
      .kernel([](const Tensor& x, const Tensor& y, std::optional<Tensor> w,
                 const std::string& reduction) {
        check_probabilities(x.meta(), y.meta());
        const auto clamped_log = [](const Tensor& t) {
          return call_tensor("clamp", call_tensor("log", t), -100.0);
        };
        const Tensor one_minus_y = call_tensor("rsub", y, 1),
                     one_minus_x = call_tensor("rsub", x, 1);
        Tensor v = call_tensor(
            "neg", call_tensor("add", call_tensor("mul", y, clamped_log(x)),
                               call_tensor("mul", one_minus_y, clamped_log(one_minus_x))));
        if (w) v = call_tensor("mul", v, *w);
        return reduce(v, reduction);
      })
      .cost(loss_cost)
      .grad("input, target, weight", "input, target, weight",
            [](Gradient& g) { return binary_slopes(g); })
      .no_vmap(kVmapLater)
      .samples({{"t(3, 4).sigmoid(), t(3, 4).sigmoid()"},
                {"t(3, 4).sigmoid(), t(3, 4).sigmoid(), t(3, 4), 'none'"}});
  r.add(
       "binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor? = None, "
       "reduction: str = \"mean\", pos_weight: Tensor? = None) -> Tensor")
      .doc("Binary cross entropy of sigmoid(input), stable for large inputs.")
      .where({.method = false, .nn_functional = true})
      .shape([](const TensorMeta& a, const TensorMeta& b, std::optional<TensorMeta> w,
                const std::string& reduction, std::optional<TensorMeta> pos_weight) {
        check_logits(a, b);
        const TensorMeta product =
            shape_of("mul", shape_of("rsub", b, 1), shape_of("logsigmoid", a));
        if (pos_weight) shape_of("sub", *pos_weight, 1);
        return reduced_meta(weighted_meta(weighted_meta(product, pos_weight), w), reduction);
      })
      .kernel([](const Tensor& x, const Tensor& y, std::optional<Tensor> w,
                 const std::string& reduction, std::optional<Tensor> pos_weight) {
        check_logits(x.meta(), y.meta());
        const Tensor log_sig = call_tensor("logsigmoid", x),
                     one_minus_y = call_tensor("rsub", y, 1);
        Tensor v = call_tensor("mul", one_minus_y, x);
        if (pos_weight) {
          const Tensor scale =
              call_tensor("add", call_tensor("mul", call_tensor("sub", *pos_weight, 1), y), 1);
          v = call_tensor("sub", v, call_tensor("mul", scale, log_sig));
        } else {
          v = call_tensor("sub", v, log_sig);
        }
        if (w) v = call_tensor("mul", v, *w);
        return reduce(v, reduction);
      })
      .cost(loss_cost)
      .grad("input, target, weight, pos_weight", "input, target, weight, pos_weight",
            [](Gradient& g) { return logit_slopes(g); })
      .no_vmap(kVmapLater)
      .samples(
          {{"t(3, 4), t(3, 4).sigmoid()"}, {"t(3, 4), t(3, 4).sigmoid(), t(3, 4), 'sum', pos(4)"}});
}

}  // namespace

void register_loss(Registry& r) {
  register_difference_slopes(r);
  register_binary_slopes(r);
  register_regression(r);
  register_binary(r);
}

}  // namespace prong
