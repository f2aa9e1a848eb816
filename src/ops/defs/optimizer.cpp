// Steps of optimizers over lists of parameters, in place, and what clipping does to gradients.
// Called by python/prong/optim and nn/utils/clip_grad.py; not for users.
#include <cmath>
#include <limits>

#include "ops/kernels/optimizer_rules.h"

namespace prong {

namespace {

using Tensors = std::vector<Tensor>;
using optimizer::Common;

constexpr const char* kInPlace = "it changes parameters behind the tape's back, as no_grad does";

OpDef& step_op(Registry& r, std::string_view schema, std::string doc,
               std::initializer_list<int> written) {
  return r.add(schema)
      .mutates(*written.begin())
      .writes(written)
      .boxed_shape([](const OpDef&, std::span<const IValue>) { return IValue(); })
      .doc(std::move(doc))
      .family(Family::kOpaque)
      .where({.method = false})
      .not_differentiable(kInPlace)
      .no_vmap("parameters are not batched");
}

Common common(bool maximize, double weight_decay, bool is_decoupled = false, double lr = 0) {
  Common c;
  c.grad_sign = maximize ? -1 : 1;
  if (is_decoupled)
    c.keep = 1 - lr * weight_decay;
  else
    c.weight_decay = weight_decay;
  return c;
}

// One rule for each parameter, from the count of its steps.
template <class Rule, class F>
std::vector<Rule> rules(const std::vector<double>& steps, F rule_at) {
  std::vector<Rule> out;
  out.reserve(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    if (i > 0 && steps[i] == steps[i - 1])
      out.push_back(out.back());
    else
      out.push_back(rule_at(steps[i]));
  }
  return out;
}
template <class Rule>
std::vector<Rule> same_rule(const Tensors& params, const Rule& rule) {
  return std::vector<Rule>(params.size(), rule);
}

// ── the steps ──

void register_sgd(Registry& r) {
  step_op(r,
          "_sgd_step_(params: Tensor[], grads: Tensor[], momentum_buffers: Tensor[], lr: float, "
          "momentum: float, dampening: float, weight_decay: float, nesterov: bool, maximize: bool, "
          "is_first: bool) -> None",
          "A step of stochastic gradient descent. is_first: the buffers start as the gradients.",
          {0, 2})
      .kernel([](const Tensors& params, const Tensors& grads, const Tensors& buffers, double lr,
                 double momentum, double dampening, double weight_decay, bool nesterov,
                 bool maximize, bool is_first) {
        const OptimizerLists lists{
            "_sgd_step_", params, grads, {momentum == 0 ? nullptr : &buffers}};
        check_lists(lists);
        optimizer::update(
            lists, same_rule(params, optimizer::Sgd{common(maximize, weight_decay), lr, momentum,
                                                    dampening, nesterov, is_first}));
      })
      .samples({{"[t(2, 3), t(4)], [t(2, 3), t(4)], [], 0.1, 0.0, 0.0, 0.01, False, False, False"},
                {"[t(3)], [t(3)], [t(3)], 0.1, 0.9, 0.0, 0.0, True, True, False"}});
}

void register_adam(Registry& r) {
  step_op(r,
          "_adam_step_(params: Tensor[], grads: Tensor[], exp_avgs: Tensor[], exp_avg_sqs: "
          "Tensor[], max_exp_avg_sqs: Tensor[], steps: Tensor[], lr: float, beta1: float, beta2: "
          "float, eps: float, weight_decay: float, amsgrad: bool, maximize: bool, "
          "decoupled_weight_decay: bool) -> None",
          "A step of Adam, or of AdamW where the decay of weights is decoupled.", {0, 2, 3, 4, 5})
      .kernel([](const Tensors& params, const Tensors& grads, const Tensors& means,
                 const Tensors& squares, const Tensors& largest, const Tensors& steps, double lr,
                 double beta1, double beta2, double eps, double weight_decay, bool amsgrad,
                 bool maximize, bool is_decoupled) {
        const OptimizerLists lists{
            "_adam_step_", params, grads, {&means, &squares, amsgrad ? &largest : nullptr}};
        check_lists(lists);
        const auto rule_at = [&](double step) {
          return optimizer::Adam{common(maximize, weight_decay, is_decoupled, lr),
                                 beta1,
                                 beta2,
                                 eps,
                                 lr / (1 - std::pow(beta1, step)),
                                 std::sqrt(1 - std::pow(beta2, step)),
                                 amsgrad};
        };
        optimizer::update(lists, rules<optimizer::Adam>(count_steps(lists, steps), rule_at));
      })
      .samples({{"[t(2, 3), t(4)], [t(2, 3), t(4)], [t(2, 3), t(4)], [pos(2, 3), pos(4)], [], "
                 "[pos(), pos()], 0.1, 0.9, 0.99, 1e-8, 0.0, False, False, False"},
                {"[t(3)], [t(3)], [t(3)], [pos(3)], [pos(3)], [pos()], 0.1, 0.9, 0.99, 1e-8, 0.1, "
                 "True, True, True"}});
}

void register_nadam(Registry& r) {
  step_op(r,
          "_nadam_step_(params: Tensor[], grads: Tensor[], exp_avgs: Tensor[], exp_avg_sqs: "
          "Tensor[], mu_products: Tensor[], steps: Tensor[], lr: float, beta1: float, beta2: "
          "float, eps: float, weight_decay: float, momentum_decay: float, maximize: bool, "
          "decoupled_weight_decay: bool) -> None",
          "A step of Adam with Nesterov's momentum.", {0, 2, 3, 4, 5})
      .kernel([](const Tensors& params, const Tensors& grads, const Tensors& means,
                 const Tensors& squares, const Tensors& products, const Tensors& steps, double lr,
                 double beta1, double beta2, double eps, double weight_decay, double momentum_decay,
                 bool maximize, bool is_decoupled) {
        const OptimizerLists lists{"_nadam_step_", params, grads, {&means, &squares}};
        check_lists(lists);
        check_numbers(lists, products);
        const auto momentum_at = [&](double step) {
          return beta1 * (1 - 0.5 * std::pow(0.96, step * momentum_decay));
        };
        const std::vector<double> counts = count_steps(lists, steps);
        std::vector<optimizer::NAdam> each;
        for (size_t i = 0; i < counts.size(); ++i) {
          const double now = momentum_at(counts[i]), next = momentum_at(counts[i] + 1);
          multiply_number(products[i], now);
          const double product = read_number(products[i]);
          each.push_back({common(maximize, weight_decay, is_decoupled, lr), beta1, beta2, eps,
                          1 - std::pow(beta2, counts[i]), -lr * (1 - now) / (1 - product),
                          -lr * next / (1 - product * next)});
        }
        optimizer::update(lists, each);
      })
      .samples({{"[t(2, 3)], [t(2, 3)], [t(2, 3)], [pos(2, 3)], [pos()], [pos()], 0.1, 0.9, 0.99, "
                 "1e-8, 0.0, 0.004, False, False"}});
}

void register_radam(Registry& r) {
  step_op(r,
          "_radam_step_(params: Tensor[], grads: Tensor[], exp_avgs: Tensor[], exp_avg_sqs: "
          "Tensor[], steps: Tensor[], lr: float, beta1: float, beta2: float, eps: float, "
          "weight_decay: float, maximize: bool, decoupled_weight_decay: bool) -> None",
          "A step of Adam whose adaptive rate is rectified.", {0, 2, 3, 4})
      .kernel([](const Tensors& params, const Tensors& grads, const Tensors& means,
                 const Tensors& squares, const Tensors& steps, double lr, double beta1,
                 double beta2, double eps, double weight_decay, bool maximize, bool is_decoupled) {
        const OptimizerLists lists{"_radam_step_", params, grads, {&means, &squares}};
        check_lists(lists);
        const auto rule_at = [&](double step) {
          const double correction2 = 1 - std::pow(beta2, step), most = 2 / (1 - beta2) - 1;
          const double rho = most - 2 * step * std::pow(beta2, step) / correction2;
          const double rectify =
              rho > 5 ? std::sqrt((rho - 4) * (rho - 2) * most / ((most - 4) * (most - 2) * rho))
                      : -1;
          return optimizer::RAdam{common(maximize, weight_decay, is_decoupled, lr),
                                  lr,
                                  beta1,
                                  beta2,
                                  eps,
                                  1 - std::pow(beta1, step),
                                  std::sqrt(correction2),
                                  rectify};
        };
        optimizer::update(lists, rules<optimizer::RAdam>(count_steps(lists, steps), rule_at));
      })
      .samples({{"[t(2, 3)], [t(2, 3)], [t(2, 3)], [pos(2, 3)], [pos()], 0.1, 0.9, 0.99, 1e-8, "
                 "0.0, False, False"}});
}

void register_adamax(Registry& r) {
  step_op(r,
          "_adamax_step_(params: Tensor[], grads: Tensor[], exp_avgs: Tensor[], exp_infs: "
          "Tensor[], steps: Tensor[], lr: float, beta1: float, beta2: float, eps: float, "
          "weight_decay: float, maximize: bool) -> None",
          "A step of Adam with the largest gradient in place of the mean of squares.", {0, 2, 3, 4})
      .kernel([](const Tensors& params, const Tensors& grads, const Tensors& means,
                 const Tensors& largest, const Tensors& steps, double lr, double beta1,
                 double beta2, double eps, double weight_decay, bool maximize) {
        const OptimizerLists lists{"_adamax_step_", params, grads, {&means, &largest}};
        check_lists(lists);
        const auto rule_at = [&](double step) {
          return optimizer::Adamax{common(maximize, weight_decay), beta1, beta2, eps,
                                   lr / (1 - std::pow(beta1, step))};
        };
        optimizer::update(lists, rules<optimizer::Adamax>(count_steps(lists, steps), rule_at));
      })
      .samples({{"[t(2, 3)], [t(2, 3)], [t(2, 3)], [pos(2, 3)], [pos()], 0.1, 0.9, 0.99, 1e-8, "
                 "0.0, False"}});
}

void register_rmsprop(Registry& r) {
  step_op(r,
          "_rmsprop_step_(params: Tensor[], grads: Tensor[], square_avgs: Tensor[], "
          "momentum_buffers: Tensor[], grad_avgs: Tensor[], steps: Tensor[], lr: float, alpha: "
          "float, eps: float, weight_decay: float, momentum: float, centered: bool, maximize: "
          "bool) -> None",
          "A step of RMSprop.", {0, 2, 3, 4, 5})
      .kernel([](const Tensors& params, const Tensors& grads, const Tensors& squares,
                 const Tensors& buffers, const Tensors& means, const Tensors& steps, double lr,
                 double alpha, double eps, double weight_decay, double momentum, bool centered,
                 bool maximize) {
        OptimizerLists lists{"_rmsprop_step_", params, grads, {&squares}};
        size_t used = 1;
        if (momentum > 0) lists.states[used++] = &buffers;
        if (centered) lists.states[used++] = &means;
        check_lists(lists);
        count_steps(lists, steps);
        optimizer::update(lists,
                          same_rule(params, optimizer::RmsProp{common(maximize, weight_decay), lr,
                                                               alpha, eps, momentum, centered}));
      })
      .samples({{"[t(2, 3)], [t(2, 3)], [pos(2, 3)], [], [], [pos()], 0.1, 0.9, 1e-8, 0.0, 0.0, "
                 "False, False"},
                {"[t(3)], [t(3)], [pos(3)], [t(3)], [t(3)], [pos()], 0.1, 0.9, 1e-8, 0.1, 0.9, "
                 "True, False"}});
}

void register_adagrad(Registry& r) {
  step_op(r,
          "_adagrad_step_(params: Tensor[], grads: Tensor[], sums: Tensor[], steps: Tensor[], lr: "
          "float, lr_decay: float, eps: float, weight_decay: float, maximize: bool) -> None",
          "A step of Adagrad.", {0, 2, 3})
      .kernel([](const Tensors& params, const Tensors& grads, const Tensors& sums,
                 const Tensors& steps, double lr, double lr_decay, double eps, double weight_decay,
                 bool maximize) {
        const OptimizerLists lists{"_adagrad_step_", params, grads, {&sums}};
        check_lists(lists);
        const auto rule_at = [&](double step) {
          return optimizer::Adagrad{common(maximize, weight_decay),
                                    lr / (1 + (step - 1) * lr_decay), eps};
        };
        optimizer::update(lists, rules<optimizer::Adagrad>(count_steps(lists, steps), rule_at));
      })
      .samples({{"[t(2, 3)], [t(2, 3)], [pos(2, 3)], [pos()], 0.1, 0.0, 1e-8, 0.0, False"}});
}

void register_adadelta(Registry& r) {
  step_op(r,
          "_adadelta_step_(params: Tensor[], grads: Tensor[], square_avgs: Tensor[], acc_deltas: "
          "Tensor[], steps: Tensor[], lr: float, rho: float, eps: float, weight_decay: float, "
          "maximize: bool) -> None",
          "A step of Adadelta.", {0, 2, 3, 4})
      .kernel([](const Tensors& params, const Tensors& grads, const Tensors& squares,
                 const Tensors& moves, const Tensors& steps, double lr, double rho, double eps,
                 double weight_decay, bool maximize) {
        const OptimizerLists lists{"_adadelta_step_", params, grads, {&squares, &moves}};
        check_lists(lists);
        count_steps(lists, steps);
        optimizer::update(
            lists,
            same_rule(params, optimizer::Adadelta{common(maximize, weight_decay), lr, rho, eps}));
      })
      .samples({{"[t(2, 3)], [t(2, 3)], [pos(2, 3)], [pos(2, 3)], [pos()], 1.0, 0.9, 1e-6, 0.0, "
                 "False"}});
}

void register_asgd(Registry& r) {
  step_op(r,
          "_asgd_step_(params: Tensor[], grads: Tensor[], averages: Tensor[], mus: Tensor[], etas: "
          "Tensor[], steps: Tensor[], lr: float, lambd: float, alpha: float, t0: float, "
          "weight_decay: float, maximize: bool) -> None",
          "A step of averaged stochastic gradient descent.", {0, 2, 3, 4, 5})
      .kernel([](const Tensors& params, const Tensors& grads, const Tensors& averages,
                 const Tensors& mus, const Tensors& etas, const Tensors& steps, double lr,
                 double lambd, double alpha, double t0, double weight_decay, bool maximize) {
        const OptimizerLists lists{"_asgd_step_", params, grads, {&averages}};
        check_lists(lists);
        check_numbers(lists, mus);
        check_numbers(lists, etas);
        const std::vector<double> counts = count_steps(lists, steps);
        std::vector<optimizer::Asgd> each;
        for (size_t i = 0; i < counts.size(); ++i) {
          const double eta = read_number(etas[i]), mu = read_number(mus[i]);
          each.push_back({common(maximize, weight_decay), 1 - lambd * eta, eta, mu});
          write_number(etas[i], lr / std::pow(1 + lambd * lr * counts[i], alpha));
          write_number(mus[i], 1 / std::max(1.0, counts[i] - t0));
        }
        optimizer::update(lists, each);
      })
      .samples({{"[t(2, 3)], [t(2, 3)], [t(2, 3)], [pos()], [pos()], [pos()], 0.01, 1e-4, 0.75, "
                 "1e6, 0.0, False"}});
}

void register_rprop(Registry& r) {
  step_op(r,
          "_rprop_step_(params: Tensor[], grads: Tensor[], prevs: Tensor[], step_sizes: Tensor[], "
          "steps: Tensor[], etaminus: float, etaplus: float, step_size_min: float, step_size_max: "
          "float, maximize: bool) -> None",
          "A step of resilient backpropagation.", {0, 2, 3, 4})
      .kernel([](const Tensors& params, const Tensors& grads, const Tensors& before,
                 const Tensors& sizes, const Tensors& steps, double smaller, double larger,
                 double least, double most, bool maximize) {
        const OptimizerLists lists{"_rprop_step_", params, grads, {&before, &sizes}};
        check_lists(lists);
        count_steps(lists, steps);
        optimizer::update(lists, same_rule(params, optimizer::Rprop{common(maximize, 0), smaller,
                                                                    larger, least, most}));
      })
      .samples({{"[t(2, 3)], [t(2, 3)], [t(2, 3)], [pos(2, 3)], [pos()], 0.5, 1.2, 1e-6, 50.0, "
                 "False"}});
}

}  // namespace

void register_optimizer(Registry& r) {
  register_sgd(r);
  register_adam(r);
  register_nadam(r);
  register_radam(r);
  register_adamax(r);
  register_rmsprop(r);
  register_adagrad(r);
  register_adadelta(r);
  register_asgd(r);
  register_rprop(r);
}

}  // namespace prong
