// Losses of scores against classes: nll_loss, cross_entropy. Kernels in kernels/classes.h.
#include <algorithm>

#include "ops/data_check.h"
#include "ops/gradient.h"
#include "ops/kernels/classes.h"
#include "ops/shape_of.h"

namespace prong {
namespace {

constexpr const char* kVmapLater = "vmap is not built yet";
constexpr Spelling kFunctional = {.function = false, .method = false, .nn_functional = true};
constexpr Spelling kInternal = {.function = false, .method = false};

Reduction reduction_of(const std::string& text) {
  PRONG_CHECK(text == "mean" || text == "sum" || text == "none", kValue, text,
              " is not a valid value for reduction");
  return text == "mean" ? Reduction::kMean : text == "sum" ? Reduction::kSum : Reduction::kNone;
}

Cost loss_cost(const OpDef&, std::span<const IValue> args) {
  const double n = static_cast<double>(meta_from(args[0]).numel());
  return {4 * n, 12 * n};
}

void check_classes(const TensorMeta& x, const TensorMeta& t) {
  PRONG_CHECK(x.rank() >= 1, kValue, "Expected 1 or more dimensions (got 0)");
  PRONG_CHECK(t.dtype == DType::kInt64 || t.dtype == DType::kUInt8, kRuntime,
              "expected scalar type Long but found ",
              t.dtype == DType::kInt32     ? "Int"
              : t.dtype == DType::kFloat32 ? "Float"
                                           : std::string(name_of(t.dtype)));
  Dims expected = x.sizes;
  expected.erase(x.rank() == 1 ? 0 : 1);
  PRONG_CHECK(t.sizes == expected, kValue, "Expected target size ", expected, ", got torch.Size(",
              t.sizes, ")");
}

void check_class_weight(const std::optional<TensorMeta>& weight, int64_t classes) {
  PRONG_CHECK(!weight || (weight->rank() == 1 && weight->numel() == classes), kRuntime,
              "weight tensor should be defined either for all ", classes,
              " classes or no classes but got weight tensor of shape: ", weight->sizes);
}

int64_t class_dim(int64_t rank) { return rank == 1 ? 0 : 1; }

TensorMeta classes_meta(const TensorMeta& x, const TensorMeta& t,
                        const std::optional<TensorMeta>& weight, const std::string& reduction) {
  check_classes(x, t);
  check_class_weight(weight, x.sizes[static_cast<size_t>(class_dim(x.rank()))]);
  return {reduction_of(reduction) == Reduction::kNone ? t.sizes : Dims(), x.dtype};
}

// Targets are classes of the input, if they are no probabilities.
void check_targets(DataCheck& c) {
  const IValue& input = c["input"];
  const auto rank = static_cast<int64_t>(input.tensor_impl()->sizes.size());
  if (is_floating(c["target"].tensor_impl()->dtype)) return;
  c.within(c["target"], {0, c.size(input, class_dim(rank)) - 1}, c["ignore_index"].to_int());
}

// ── gradients ──

Expr scale_like(Gradient& g, const Expr& x, const IValue& weight, const char* reduction) {
  const Expr scale =
      op<"class_scale">(g["target"], weight, x.sizes()[static_cast<size_t>(class_dim(x.rank()))],
                        g.integer("ignore_index"), reduction);
  return op<"to">(scale, x.dtype());
}

// To the weights of classes, from the losses of all targets without them: a target's class gets
// its loss, for a mean its excess over the mean loss.
Expr class_weight_slope(Gradient& g, const Expr& losses) {
  const bool is_mean = g.value("reduction").to_string() == "mean";
  const Expr is_counted = op<"ne">(g["target"], g.integer("ignore_index"));
  Expr each = is_mean ? losses - g["result"] : losses;
  if (is_mean) {
    const Expr all = op<"sum">(scale_like(g, g["input"], g.value("weight"), "sum"));
    each = each / all;
  }
  each = op<"where">(is_counted, g.out() * each, 0.0);
  const Expr classes = op<"where">(is_counted, g["target"], 0);
  const Expr zeros = g.zeros(TensorMeta{g.sizes("weight"), each.dtype()});
  return op<"index_add">(zeros, int64_t{0}, op<"reshape">(classes, Dims{-1}),
                         op<"reshape">(each, Dims{-1}));
}

Expr no_second_slope(Gradient&) {
  throw_error(ErrorKind::kNotImplemented,
              "class weights have no second derivative in nll_loss and cross_entropy");
}

void register_nll(Registry& r) {
  r.add(
       "nll_loss(input: Tensor, target: Tensor, weight: Tensor? = None, ignore_index: int = -100, "
       "reduction: str = \"mean\") -> Tensor")
      .doc(
          "Negative log likelihood: minus the entry of input [N, C, ...] at the target class, "
          "weighted by class.")
      .where(kFunctional)
      .checks(&check_targets)
      .shape([](const TensorMeta& x, const TensorMeta& t, std::optional<TensorMeta> w, int64_t,
                const std::string& reduction) { return classes_meta(x, t, w, reduction); })
      .kernel([](const Tensor& x, const Tensor& t, std::optional<Tensor> w, int64_t ignored,
                 const std::string& reduction) {
        check_classes(x.meta(), t.meta());
        return nll(x, t, w.value_or(Tensor()), ignored, reduction_of(reduction));
      })
      .grad("input", "target, weight",
            [](Gradient& g) {
              return op<"nll_loss_backward">(g.out(), g.sizes("input"), g["target"],
                                             g.value("weight"), g.integer("ignore_index"),
                                             g.value("reduction"));
            })
      .grad("weight", "input, target, weight, result",
            [](Gradient& g) {
              return class_weight_slope(g, op<"nll_loss">(g["input"], g["target"], IValue(),
                                                          g.integer("ignore_index"), "none"));
            })
      .cost(loss_cost)
      .no_vmap(kVmapLater)
      .samples({{"t(3, 5), index(3, high=5)"},
                {"t(3, 5), index(3, high=5), pos(5), 1, 'sum'"},
                {"t(2, 5, 3), index(2, 3, high=5), pos(5), 1"},
                {"t(2, 5, 3), index(2, 3, high=5), reduction='none'"},
                {"t(5), index(high=5)"}});
  r.add(
       "nll_loss_backward(grad: Tensor, size: int[], target: Tensor, weight: Tensor? = None, "
       "ignore_index: int = -100, reduction: str = \"mean\") -> Tensor")
      .doc("What nll_loss sends back to an input of that size.")
      .where(kInternal)
      .checks([](DataCheck& c) {
        const Dims size = c["size"].to_dims();
        if (size.empty()) return;
        const auto classes =
            size[static_cast<size_t>(class_dim(static_cast<int64_t>(size.size())))];
        c.within(c["target"], {0, classes - 1}, c["ignore_index"].to_int());
      })
      .shape([](const TensorMeta& grad, const Dims& size, const TensorMeta&,
                std::optional<TensorMeta>, int64_t, const std::string&) {
        return TensorMeta{size, grad.dtype};
      })
      .kernel([](const Tensor& grad, const Dims& size, const Tensor& t, std::optional<Tensor> w,
                 int64_t ignored, const std::string& reduction) {
        return nll_slope(grad, size, t, w.value_or(Tensor()), ignored, reduction_of(reduction));
      })
      .grad("grad", "target, weight",
            [](Gradient& g) {
              return op<"nll_loss">(g.out(), g["target"], g.value("weight"),
                                    g.integer("ignore_index"), g.value("reduction"));
            })
      .grad("weight", "", [](Gradient& g) { return no_second_slope(g); })
      .cost(loss_cost)
      .no_vmap(kVmapLater)
      .samples({{"t(), [3, 5], index(3, high=5)"},
                {"t(2, 3), [2, 5, 3], index(2, 3, high=5), None, 1, 'none'"}});
  r.add(
       "class_scale(target: Tensor, weight: Tensor?, classes: int, ignore_index: int, reduction: "
       "str) -> Tensor")
      .doc("How much each target counts in a loss, in float64.")
      .where(kInternal)
      .checks([](DataCheck& c) {
        c.within(c["target"], {0, c["classes"].to_int() - 1}, c["ignore_index"].to_int());
      })
      .shape(
          [](const TensorMeta& t, std::optional<TensorMeta>, int64_t, int64_t, const std::string&) {
            return TensorMeta{t.sizes, DType::kFloat64};
          })
      .kernel([](const Tensor& t, std::optional<Tensor> w, int64_t classes, int64_t ignored,
                 const std::string& reduction) {
        return class_scale(t, w.value_or(Tensor()), classes, ignored, reduction_of(reduction));
      })
      .not_differentiable("second derivatives hold the weights of classes fixed")
      .cost(loss_cost)
      .no_vmap(kVmapLater)
      .samples({{"index(3, high=5), pos(5), 5, 1, 'mean'"}});
}

// ── cross entropy ──

void register_entropy_rows(Registry& r) {
  r.add(
       "cross_entropy_rows(input: Tensor, target: Tensor, weight: Tensor? = None, ignore_index: "
       "int = -100, reduction: str = \"mean\") -> Tensor")
      .doc("cross_entropy of [N, C] or [C] against classes, in one pass.")
      .where(kInternal)
      .checks(&check_targets)
      .shape([](const TensorMeta& x, const TensorMeta& t, std::optional<TensorMeta> w, int64_t,
                const std::string& reduction) { return classes_meta(x, t, w, reduction); })
      .kernel([](const Tensor& x, const Tensor& t, std::optional<Tensor> w, int64_t ignored,
                 const std::string& reduction) {
        check_classes(x.meta(), t.meta());
        return cross_entropy_rows(x, t, w.value_or(Tensor()), ignored, reduction_of(reduction));
      })
      .grad("input", "input, target, weight",
            [](Gradient& g) {
              return op<"cross_entropy_rows_backward">(g.out(), g["input"], g["target"],
                                                       g.value("weight"), g.integer("ignore_index"),
                                                       g.value("reduction"));
            })
      .grad("weight", "input, target, weight, result",
            [](Gradient& g) {
              return class_weight_slope(
                  g, op<"cross_entropy_rows">(g["input"], g["target"], IValue(),
                                              g.integer("ignore_index"), "none"));
            })
      .cost(loss_cost)
      .no_vmap(kVmapLater)
      .samples({{"t(3, 5), index(3, high=5)"}, {"t(3, 5), index(3, high=5), pos(5), 1, 'none'"}});
  r.add(
       "cross_entropy_rows_backward(grad: Tensor, input: Tensor, target: Tensor, weight: Tensor? "
       "= None, ignore_index: int = -100, reduction: str = \"mean\") -> Tensor")
      .doc("What cross_entropy_rows sends back: softmax(input) less one at the target, scaled.")
      .where(kInternal)
      .checks(&check_targets)
      .shape([](const TensorMeta&, const TensorMeta& x, const TensorMeta&,
                std::optional<TensorMeta>, int64_t, const std::string&) {
        return TensorMeta{x.sizes, x.dtype};
      })
      .kernel([](const Tensor& grad, const Tensor& x, const Tensor& t, std::optional<Tensor> w,
                 int64_t ignored, const std::string& reduction) {
        return cross_entropy_slope(grad, x, t, w.value_or(Tensor()), ignored,
                                   reduction_of(reduction));
      })
      .grad("grad", "grad, input, target, weight",
            [](Gradient& g) {
              const Expr of_one = op<"cross_entropy_rows_backward">(
                  op<"ones_like">(g["grad"]), g["input"], g["target"], g.value("weight"),
                  g.integer("ignore_index"), g.value("reduction"));
              const bool is_each = g.value("reduction").to_string() == "none";
              const Expr product = g.out() * of_one;
              return is_each ? op<"sum">(product, Dims{-1}) : op<"sum">(product);
            })
      .grad("input", "grad, input, target, weight",
            [](Gradient& g) {
              const Expr x = g["input"];
              const std::string reduction = g.value("reduction").to_string();
              const Expr scale = g["grad"] * scale_like(g, x, g.value("weight"), reduction.c_str());
              return op<"softmax_backward">(g.out() * op<"unsqueeze">(scale, int64_t{-1}),
                                            op<"softmax">(x, int64_t{-1}), int64_t{-1});
            })
      .grad("weight", "", [](Gradient& g) { return no_second_slope(g); })
      .cost(loss_cost)
      .no_vmap(kVmapLater)
      .samples({{"t(), t(3, 5), index(3, high=5)"},
                {"t(3), t(3, 5), index(3, high=5), pos(5), 1, 'none'"}});
}

Tensor reduce(const Tensor& values, const std::string& reduction) {
  if (reduction == "none") return values;
  return call_tensor(reduction == "mean" ? "mean" : "sum", values);
}

void check_soft(const TensorMeta& x, const TensorMeta& target) {
  PRONG_CHECK(x.sizes == target.sizes, kRuntime,
              "Expected floating point type for target with class probabilities to have the "
              "input's shape ",
              x.sizes, ", got ", target.sizes);
}

// The weight with its classes where those of the values are.
TensorMeta by_class(const TensorMeta& values, const TensorMeta& weight) {
  Dims shape(static_cast<size_t>(values.rank()), 1);
  shape[static_cast<size_t>(class_dim(values.rank()))] = weight.numel();
  return {shape, weight.dtype};
}

Tensor by_class(const Tensor& values, const std::optional<Tensor>& weight, int64_t dim) {
  if (!weight) return values;
  Dims shape(static_cast<size_t>(values.rank()), 1);
  shape[static_cast<size_t>(dim)] = weight->numel();
  return call_tensor("mul", values, call_tensor("reshape", *weight, shape));
}

// Targets given as probabilities.
Tensor soft_cross_entropy(const Tensor& log_p, const Tensor& target,
                          const std::optional<Tensor>& weight, const std::string& reduction,
                          double smoothing, int64_t dim) {
  Tensor y = target;
  if (smoothing > 0)
    y = call_tensor("add", call_tensor("mul", y, 1 - smoothing),
                    smoothing / static_cast<double>(log_p.size(dim)));
  const Tensor v = by_class(call_tensor("mul", log_p, y), weight, dim);
  const Tensor losses = call_tensor("neg", call_tensor("sum", v, Dims{dim}));
  if (reduction != "mean") return reduce(losses, reduction);
  return call_tensor("div", call_tensor("sum", losses), std::max<int64_t>(1, losses.numel()));
}

// s / C * sum_c -w_c log_p_c, averaged with the same weights as the losses themselves.
Tensor smoothing_loss(const Tensor& log_p, const Tensor& target,
                      const std::optional<Tensor>& weight, int64_t ignored,
                      const std::string& reduction, int64_t dim) {
  const Tensor kept = call_tensor("to", call_tensor("ne", target, ignored), log_p.dtype());
  const Tensor sums = call_tensor("sum", by_class(log_p, weight, dim), Dims{dim});
  const Tensor losses = call_tensor("mul", call_tensor("neg", sums), kept);
  if (reduction != "mean") return reduce(losses, reduction);
  Tensor count = call_tensor("sum", kept);
  if (weight) {
    const Tensor safe = call_tensor("where", call_tensor("ne", target, ignored), target, 0);
    const Tensor of_target =
        call_tensor("index_select", *weight, int64_t{0}, call_tensor("reshape", safe, Dims{-1}));
    count = call_tensor(
        "sum", call_tensor("mul", call_tensor("reshape", of_target, target.sizes()), kept));
  }
  return call_tensor("div", call_tensor("sum", losses), count);
}

Tensor cross_entropy(const Tensor& x, const Tensor& target, const std::optional<Tensor>& weight,
                     int64_t ignored, const std::string& reduction, double smoothing) {
  reduction_of(reduction);
  const int64_t dim = class_dim(x.rank());
  const bool is_soft = is_floating(target.dtype());
  if (!is_soft) check_classes(x.meta(), target.meta());
  if (!is_soft && smoothing == 0 && x.rank() <= 2)
    return call_tensor("cross_entropy_rows", x, target, weight, ignored, reduction);
  if (is_soft) check_soft(x.meta(), target.meta());
  const Tensor log_p = call_tensor("log_softmax", x, dim);
  if (is_soft) return soft_cross_entropy(log_p, target, weight, reduction, smoothing, dim);
  const Tensor hard = call_tensor("nll_loss", log_p, target, weight, ignored, reduction);
  if (smoothing == 0) return hard;
  const Tensor smooth = smoothing_loss(log_p, target, weight, ignored, reduction, dim);
  const double share = smoothing / static_cast<double>(x.size(dim));
  return call_tensor("add", call_tensor("mul", hard, 1 - smoothing),
                     call_tensor("mul", smooth, share));
}

void register_cross_entropy(Registry& r) {
  r.add(
       "cross_entropy(input: Tensor, target: Tensor, weight: Tensor? = None, ignore_index: int = "
       "-100, reduction: str = \"mean\", label_smoothing: float = 0.0) -> Tensor")
      .doc("nll_loss(log_softmax(input, 1), target); the target holds classes or probabilities.")
      .where(kFunctional)
      .checks(&check_targets)
      .shape([](const TensorMeta& x, const TensorMeta& t, std::optional<TensorMeta> w, int64_t,
                const std::string& reduction, double smoothing) {
        const TensorMeta log_p = shape_of("log_softmax", x, class_dim(x.rank()));
        if (!is_floating(t.dtype)) {
          TensorMeta losses = classes_meta(log_p, t, w, reduction);
          if (w && smoothing > 0) losses.dtype = shape_of("mul", log_p, by_class(log_p, *w)).dtype;
          return losses;
        }
        check_soft(x, t);
        TensorMeta losses = shape_of("mul", log_p, t);
        if (w) losses = shape_of("mul", losses, by_class(losses, *w));
        losses.sizes.erase(static_cast<size_t>(class_dim(x.rank())));
        return TensorMeta{reduction_of(reduction) == Reduction::kNone ? losses.sizes : Dims(),
                          losses.dtype};
      })
      .kernel([](const Tensor& x, const Tensor& t, std::optional<Tensor> w, int64_t ignored,
                 const std::string& reduction, double smoothing) {
        return cross_entropy(x, t, w, ignored, reduction, smoothing);
      })
      .composite()
      .cost(loss_cost)
      .no_vmap(kVmapLater)
      .samples({{"t(3, 5), index(3, high=5)"},
                {"t(3, 5), index(3, high=5), pos(5), 1, 'mean', 0.1"},
                {"t(3, 5), t(3, 5).softmax(1)"},
                {"t(3, 5), t(3, 5).softmax(1), pos(5), label_smoothing=0.2"},
                {"t(2, 5, 3), index(2, 3, high=5), reduction='none'"}});
}

}  // namespace

void register_loss_classes(Registry& r) {
  register_nll(r);
  register_entropy_rows(r);
  register_cross_entropy(r);
}

}  // namespace prong
