// Losses: mse, l1, smooth_l1, huber, nll, cross_entropy, binary cross entropies, kl_div. Composites
// of other ops, save nll.
#include <algorithm>
#include <vector>

#include "ops/op_def.h"

namespace prong {
namespace {

constexpr const char* kGradLater = "the tape is not built yet";
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

// Losses of (input, target, reduction) that are a pointwise formula and a reduction.
template <class F>
void pair_loss(Registry& r, const char* name, const char* doc, const char* reference, F f) {
  r.add(cat(name, "(input: Tensor, target: Tensor, reduction: str = \"mean\") -> Tensor"))
      .doc(doc)
      .where(kFunctional)
      .shape([](const TensorMeta& a, const TensorMeta& b, const std::string& reduction) {
        return reduced_meta(pair_meta(a, b), reduction);
      })
      .kernel(f)
      .cost(loss_cost)
      .no_grad(kGradLater)
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
            });
  pair_loss(r, "l1_loss", "Mean absolute error.", "np.abs(input - target)",
            [](const Tensor& a, const Tensor& b, const std::string& reduction) {
              return reduce(call_tensor("abs", call_tensor("sub", a, b)), reduction);
            });
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
        const Tensor d = call_tensor("abs", call_tensor("sub", a, b));
        if (beta == 0) return reduce(d, reduction);
        const Tensor inner = call_tensor("mul", call_tensor("mul", d, d), 0.5 / beta);
        return reduce(call_tensor("where", call_tensor("lt", d, beta), inner,
                                  call_tensor("sub", d, 0.5 * beta)),
                      reduction);
      })
      .cost(loss_cost)
      .no_grad(kGradLater)
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
        const Tensor d = call_tensor("abs", call_tensor("sub", a, b));
        const Tensor inner = call_tensor("mul", call_tensor("mul", d, d), 0.5);
        const Tensor outer = call_tensor("mul", call_tensor("sub", d, 0.5 * delta), delta);
        return reduce(call_tensor("where", call_tensor("lt", d, delta), inner, outer), reduction);
      })
      .cost(loss_cost)
      .no_grad(kGradLater)
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
      .no_grad(kGradLater)
      .no_vmap(kVmapLater)
      .samples({{"t(3, 4), pos(3, 4)"}, {"t(3, 4), t(3, 4), 'batchmean', log_target=True"}});
}

void register_binary(Registry& r) {
  r.add(
       "binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor? = None, reduction: str "
       "= \"mean\") -> Tensor")
      .doc("-(target log(input) + (1 - target) log(1 - input)), logs cut off at -100.")
      .where(kFunctional)
      .shape([](const TensorMeta& a, const TensorMeta&, std::optional<TensorMeta>,
                const std::string& reduction) {
        return reduced_meta({a.sizes, a.dtype}, reduction);
      })
      .kernel([](const Tensor& x, const Tensor& y, std::optional<Tensor> w,
                 const std::string& reduction) {
        PRONG_CHECK(x.sizes() == y.sizes(), kValue, "Using a target size (torch.Size(", y.sizes(),
                    ")) that is different to the input size (torch.Size(", x.sizes(),
                    ")) is deprecated. Please ensure they have the same size.");
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
      .no_grad(kGradLater)
      .no_vmap(kVmapLater)
      .samples({{"t(3, 4).sigmoid(), t(3, 4).sigmoid()"},
                {"t(3, 4).sigmoid(), t(3, 4).sigmoid(), t(3, 4), 'none'"}});
  r.add(
       "binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor? = None, "
       "reduction: str = \"mean\", pos_weight: Tensor? = None) -> Tensor")
      .doc("Binary cross entropy of sigmoid(input), stable for large inputs.")
      .where({.method = false, .nn_functional = true})
      .shape([](const TensorMeta& a, const TensorMeta& b, std::optional<TensorMeta>,
                const std::string& reduction,
                std::optional<TensorMeta>) { return reduced_meta(pair_meta(a, b), reduction); })
      .kernel([](const Tensor& x, const Tensor& y, std::optional<Tensor> w,
                 const std::string& reduction, std::optional<Tensor> pos_weight) {
        PRONG_CHECK(x.sizes() == y.sizes(), kValue, "Target size (torch.Size(", y.sizes(),
                    ")) must be the same as input size (torch.Size(", x.sizes(), "))");
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
      .no_grad(kGradLater)
      .no_vmap(kVmapLater)
      .samples(
          {{"t(3, 4), t(3, 4).sigmoid()"}, {"t(3, 4), t(3, 4).sigmoid(), t(3, 4), 'sum', pos(4)"}});
}

// ── classes ──

Tensor nll_values(const Tensor& log_p, const Tensor& target, const std::optional<Tensor>& weight,
                  int64_t ignore, Tensor* weights) {
  const int64_t n = log_p.size(0), classes = log_p.size(1);
  const Tensor lp = log_p.to(DType::kFloat64).contiguous(), t = target.contiguous();
  const Tensor w = weight ? weight->to(DType::kFloat64).contiguous() : Tensor();
  const Tensor out = Tensor::empty(t.sizes(), DType::kFloat64);
  *weights = Tensor::empty(t.sizes(), DType::kFloat64);
  const int64_t inner = n ? t.numel() / std::max<int64_t>(1, n) : 0;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < inner; ++j) {
      const int64_t at = i * inner + j, c = t.data<int64_t>()[at];
      const bool ignored = c == ignore;
      PRONG_CHECK(ignored || (c >= 0 && c < classes), kIndex, "Target ", c, " is out of bounds.");
      const double scale = ignored ? 0 : w ? w.data<double>()[c] : 1;
      weights->data<double>()[at] = scale;
      out.data<double>()[at] =
          ignored ? 0 : -scale * lp.data<double>()[(i * classes + c) * inner + j];
    }
  return out;
}

void check_nll(const TensorMeta& x, const TensorMeta& t) {
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

Tensor nll(const Tensor& x, const Tensor& target, const std::optional<Tensor>& weight,
           int64_t ignore, const std::string& reduction) {
  check_nll(x.meta(), target.meta());
  check_reduction(reduction);
  const bool single = x.rank() == 1;
  const Tensor log_p =
      single ? x.as_strided(Dims{1, x.size(0)}, Dims{0, x.stride(0)}, x.offset()) : x;
  const Tensor t64 = target.to(DType::kInt64),
               t = single ? t64.as_strided(Dims{1}, Dims{0}, t64.offset()) : t64;
  Tensor weights;
  const Tensor values = nll_values(log_p, t, weight, ignore, &weights);
  if (reduction == "none") {
    const Tensor v = values.to(x.dtype());
    return single ? v.as_strided({}, {}, 0) : v;
  }
  double sum = 0, total = 0;
  for (int64_t i = 0; i < values.numel(); ++i) {
    sum += values.data<double>()[i];
    total += weights.data<double>()[i];
  }
  const Tensor out = Tensor::empty({}, x.dtype());
  fill(out, reduction == "mean" ? sum / total : sum);
  return out;
}

TensorMeta nll_meta(const TensorMeta& x, const TensorMeta& t, const std::string& reduction) {
  check_nll(x, t);
  return reduced_meta({t.sizes, x.dtype}, reduction);
}

// Targets given as probabilities, and label smoothing.
Tensor soft_cross_entropy(const Tensor& log_p, const Tensor& target,
                          const std::optional<Tensor>& weight, const std::string& reduction,
                          double smoothing, int64_t class_dim) {
  Tensor y = target;
  if (smoothing > 0)
    y = call_tensor("add", call_tensor("mul", y, 1 - smoothing),
                    smoothing / static_cast<double>(log_p.size(class_dim)));
  Tensor v = call_tensor("mul", log_p, y);
  if (weight) {
    Dims shape(static_cast<size_t>(log_p.rank()), 1);
    shape[static_cast<size_t>(class_dim)] = weight->numel();
    v = call_tensor("mul", v, call_tensor("reshape", *weight, shape));
  }
  v = call_tensor("neg", call_tensor("sum", v, Dims{class_dim}));
  if (reduction != "mean") return reduce(v, reduction);
  return call_tensor("div", call_tensor("sum", v), std::max<int64_t>(1, v.numel()));
}

Tensor cross_entropy(const Tensor& x, const Tensor& target, const std::optional<Tensor>& weight,
                     int64_t ignore, const std::string& reduction, double smoothing) {
  check_reduction(reduction);
  const int64_t class_dim = x.rank() == 1 ? 0 : 1;
  const Tensor log_p = call_tensor("log_softmax", x, class_dim);
  if (is_floating(target.dtype())) {
    PRONG_CHECK(x.sizes() == target.sizes(), kRuntime,
                "Expected floating point type for target with class probabilities to have the "
                "input's shape ",
                x.sizes(), ", got ", target.sizes());
    return soft_cross_entropy(log_p, target, weight, reduction, smoothing, class_dim);
  }
  const Tensor hard =
      nll(log_p, target, weight, ignore, smoothing > 0 && reduction == "mean" ? "mean" : reduction);
  if (smoothing == 0) return hard;
  // (1 - s) * nll + s / C * sum_c -w_c log_p_c, the second part averaged with the same weights as
  // the first.
  check_nll(x.meta(), target.meta());
  Tensor w_log_p = log_p;
  if (weight) {
    Dims shape(static_cast<size_t>(log_p.rank()), 1);
    shape[static_cast<size_t>(class_dim)] = weight->numel();
    w_log_p = call_tensor("mul", log_p, call_tensor("reshape", *weight, shape));
  }
  const Tensor kept = call_tensor("ne", target, ignore);
  const Tensor smooth = call_tensor(
      "mul", call_tensor("neg", call_tensor("sum", w_log_p, Dims{class_dim})), kept.to(x.dtype()));
  Tensor smooth_reduced;
  if (reduction == "mean") {
    Tensor denominator = call_tensor("sum", kept.to(x.dtype()));
    if (weight) {
      const Tensor safe =
          call_tensor("where", kept, target, Tensor::wrapped(int64_t{0}).to(target.dtype()));
      denominator = call_tensor(
          "sum", call_tensor("mul",
                             call_tensor("reshape",
                                         call_tensor("index_select", *weight, int64_t{0},
                                                     call_tensor("reshape", safe, Dims{-1})),
                                         target.sizes()),
                             kept.to(x.dtype())));
    }
    smooth_reduced = call_tensor("div", call_tensor("sum", smooth), denominator);
  } else {
    smooth_reduced = reduce(smooth, reduction);
  }
  const double share = smoothing / static_cast<double>(x.size(class_dim));
  return call_tensor("add", call_tensor("mul", hard, 1 - smoothing),
                     call_tensor("mul", smooth_reduced, share));
}

void register_classes(Registry& r) {
  r.add(
       "nll_loss(input: Tensor, target: Tensor, weight: Tensor? = None, ignore_index: int = -100, "
       "reduction: str = \"mean\") -> Tensor")
      .doc(
          "Negative log likelihood: minus the entry of input [N, C, ...] at the target class, "
          "weighted by class.")
      .where(kFunctional)
      .shape([](const TensorMeta& x, const TensorMeta& t, std::optional<TensorMeta>, int64_t,
                const std::string& reduction) { return nll_meta(x, t, reduction); })
      .kernel([](const Tensor& x, const Tensor& t, std::optional<Tensor> w, int64_t ignore,
                 const std::string& reduction) { return nll(x, t, w, ignore, reduction); })
      .cost(loss_cost)
      .no_grad(kGradLater)
      .no_vmap(kVmapLater)
      .samples({{"t(3, 5), index(3, high=5)"},
                {"t(3, 5), index(3, high=5), pos(5), 1, 'sum'"},
                {"t(2, 5, 3), index(2, 3, high=5), reduction='none'"},
                {"t(5), index(high=5)"}});
  r.add(
       "cross_entropy(input: Tensor, target: Tensor, weight: Tensor? = None, ignore_index: int = "
       "-100, reduction: str = \"mean\", label_smoothing: float = 0.0) -> Tensor")
      .doc("nll_loss(log_softmax(input, 1), target); the target holds classes or probabilities.")
      .where(kFunctional)
      .shape([](const TensorMeta& x, const TensorMeta& t, std::optional<TensorMeta>, int64_t,
                const std::string& reduction, double) {
        if (!is_floating(t.dtype)) return nll_meta(x, t, reduction);
        Dims sizes = x.sizes;
        sizes.erase(x.rank() == 1 ? 0 : 1);
        return reduced_meta({sizes, x.dtype}, reduction);
      })
      .kernel([](const Tensor& x, const Tensor& t, std::optional<Tensor> w, int64_t ignore,
                 const std::string& reduction,
                 double smoothing) { return cross_entropy(x, t, w, ignore, reduction, smoothing); })
      .cost(loss_cost)
      .no_grad(kGradLater)
      .no_vmap(kVmapLater)
      .samples({{"t(3, 5), index(3, high=5)"},
                {"t(3, 5), index(3, high=5), pos(5), 1, 'mean', 0.1"},
                {"t(3, 5), t(3, 5).softmax(1)"},
                {"t(2, 5, 3), index(2, 3, high=5), reduction='none'"}});
}

}  // namespace

void register_loss(Registry& r) {
  register_regression(r);
  register_binary(r);
  register_classes(r);
}

}  // namespace prong
