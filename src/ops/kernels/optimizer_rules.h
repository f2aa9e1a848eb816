// The rules of the optimizers, element by element, in the order of operations of their textbooks'
// in-place form: each intermediate value is rounded to the parameter's dtype. Included by
// defs/optimizer.cpp.
#pragma once

#include <cmath>

#include "ops/kernels/optimizer.h"
#include "ops/kernels/simd.h"

namespace prong::optimizer {

template <class T>
using ComputeOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

// A value as it is after being stored.
template <class T>
PRONG_INLINE ComputeOf<T> stored(ComputeOf<T> x) {
  if constexpr (sizeof(T) == 2)
    return static_cast<float>(T(x));
  else
    return x;
}

template <class T>
PRONG_INLINE ComputeOf<T> lerp(ComputeOf<T> from, ComputeOf<T> to, ComputeOf<T> weight) {
  const ComputeOf<T> way = to - from;
  return stored<T>(weight < ComputeOf<T>(0.5) ? from + weight * way
                                              : to - way * (ComputeOf<T>(1) - weight));
}
// A running mean of squares.
template <class T>
PRONG_INLINE ComputeOf<T> mean_square(ComputeOf<T> mean, ComputeOf<T> x, ComputeOf<T> keep,
                                      ComputeOf<T> weight) {
  return stored<T>(stored<T>(mean * keep) + weight * x * x);
}
template <class C>
PRONG_INLINE C larger(C a, C b) {  // NaN if one is
  return a > b || a != a ? a : b;
}
template <class C>
PRONG_INLINE C sign(C x) {
  return x > C(0) ? C(1) : x < C(0) ? C(-1) : x == x ? C(0) : x;
}

// f(true_type or false_type): a flag that the loop does not look at again.
template <class F>
PRONG_INLINE void fixed(bool flag, F f) {
  if (flag)
    f(std::true_type{});
  else
    f(std::false_type{});
}

// The elements of one row as the rules see them.
template <class T>
struct Cells {
  using C = ComputeOf<T>;
  C param, grad, a, b, c;
};

// body(cells) for each element; kStates lists of state are read and written.
template <int kStates, class T, class F>
PRONG_INLINE void each_cell(const OptimizerRow& row, double grad_sign, F body) {
  using C = ComputeOf<T>;
  T* const p = static_cast<T*>(row.param);
  const T* const g = static_cast<const T*>(row.grad);
  T* const a = static_cast<T*>(row.states[0]);
  T* const b = static_cast<T*>(row.states[1]);
  T* const c = static_cast<T*>(row.states[2]);
  const C way = static_cast<C>(grad_sign);
  const int64_t n = row.size;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    Cells<T> x;
    x.param = static_cast<C>(p[i]);
    x.grad = static_cast<C>(g[i]) * way;
    if constexpr (kStates > 0) x.a = static_cast<C>(a[i]);
    if constexpr (kStates > 1) x.b = static_cast<C>(b[i]);
    if constexpr (kStates > 2) x.c = static_cast<C>(c[i]);
    body(x);
    p[i] = T(x.param);
    if constexpr (kStates > 0) a[i] = T(x.a);
    if constexpr (kStates > 1) b[i] = T(x.b);
    if constexpr (kStates > 2) c[i] = T(x.c);
  }
}

// What every rule has: the sign of the gradient (-1 to maximize) and decay of the weights, through
// the gradient or by themselves.
struct Common {
  double grad_sign = 1, weight_decay = 0;
  double keep = 1;  // of a parameter, where its decay is decoupled
};

// Calls body after the decay.
template <int kStates, class T, class F>
PRONG_INLINE void each_decayed(const OptimizerRow& row, const Common& s, F body) {
  using C = ComputeOf<T>;
  const C decay = static_cast<C>(s.weight_decay), keep = static_cast<C>(s.keep);
  if (s.keep != 1) {
    each_cell<kStates, T>(row, s.grad_sign, [&](Cells<T>& x) {
      x.param = stored<T>(x.param * keep);
      body(x);
    });
  } else {
    fixed(s.weight_decay != 0, [&](auto decays) {
      each_cell<kStates, T>(row, s.grad_sign, [&](Cells<T>& x) {
        if constexpr (decltype(decays)::value) x.grad = stored<T>(x.grad + decay * x.param);
        body(x);
      });
    });
  }
}

struct Sgd {
  Common common;
  double lr, momentum, dampening;
  bool nesterov, is_first;

  template <class T>
  PRONG_INLINE void row(const OptimizerRow& r) const {
    using C = ComputeOf<T>;
    const C rate = static_cast<C>(-lr), mu = static_cast<C>(momentum),
            fresh = static_cast<C>(1 - dampening);
    if (momentum == 0) {
      each_decayed<0, T>(r, common, [&](Cells<T>& x) { x.param = x.param + rate * x.grad; });
    } else if (is_first) {  // the buffer starts as the gradient
      fixed(nesterov, [&](auto looks_ahead) {
        each_decayed<1, T>(r, common, [&](Cells<T>& x) {
          x.a = x.grad;
          const C g = decltype(looks_ahead)::value ? stored<T>(x.grad + mu * x.a) : x.a;
          x.param = x.param + rate * g;
        });
      });
    } else {
      fixed(nesterov, [&](auto looks_ahead) {
        each_decayed<1, T>(r, common, [&](Cells<T>& x) {
          x.a = stored<T>(stored<T>(x.a * mu) + fresh * x.grad);
          const C g = decltype(looks_ahead)::value ? stored<T>(x.grad + mu * x.a) : x.a;
          x.param = x.param + rate * g;
        });
      });
    }
  }
};

struct Adam {  // states: mean, mean of squares, its maximum
  Common common;
  double beta1, beta2, eps, step_size, correction;  // correction: sqrt(1 - beta2 ** step)
  bool amsgrad;

  template <class T>
  PRONG_INLINE void row(const OptimizerRow& r) const {
    using C = ComputeOf<T>;
    const C weight = static_cast<C>(1 - beta1), keep = static_cast<C>(beta2),
            fresh = static_cast<C>(1 - beta2), tiny = static_cast<C>(eps),
            rate = static_cast<C>(-step_size), root = static_cast<C>(correction);
    const auto finish = [&](Cells<T>& x, C square) {
      const C denom = stored<T>(stored<T>(stored<T>(std::sqrt(square)) / root) + tiny);
      x.param = x.param + rate * x.a / denom;
    };
    const auto means = [&](Cells<T>& x) {
      x.a = lerp<T>(x.a, x.grad, weight);
      x.b = mean_square<T>(x.b, x.grad, keep, fresh);
    };
    if (amsgrad) {
      each_decayed<3, T>(r, common, [&](Cells<T>& x) {
        means(x);
        x.c = larger(x.c, x.b);
        finish(x, x.c);
      });
    } else {
      each_decayed<2, T>(r, common, [&](Cells<T>& x) {
        means(x);
        finish(x, x.b);
      });
    }
  }
};

struct NAdam {  // states: mean, mean of squares
  Common common;
  double beta1, beta2, eps, correction2, of_grad, of_mean;

  template <class T>
  PRONG_INLINE void row(const OptimizerRow& r) const {
    using C = ComputeOf<T>;
    const C weight = static_cast<C>(1 - beta1), keep = static_cast<C>(beta2),
            fresh = static_cast<C>(1 - beta2), tiny = static_cast<C>(eps),
            square = static_cast<C>(correction2), grad_rate = static_cast<C>(of_grad),
            mean_rate = static_cast<C>(of_mean);
    each_decayed<2, T>(r, common, [&](Cells<T>& x) {
      x.a = lerp<T>(x.a, x.grad, weight);
      x.b = mean_square<T>(x.b, x.grad, keep, fresh);
      const C denom = stored<T>(stored<T>(std::sqrt(stored<T>(x.b / square))) + tiny);
      x.param = stored<T>(x.param + grad_rate * x.grad / denom);
      x.param = x.param + mean_rate * x.a / denom;
    });
  }
};

struct RAdam {  // states: mean, mean of squares
  Common common;
  double lr, beta1, beta2, eps, correction1, root2, rectify;  // rectify < 0: too early

  template <class T>
  PRONG_INLINE void row(const OptimizerRow& r) const {
    using C = ComputeOf<T>;
    const C weight = static_cast<C>(1 - beta1), keep = static_cast<C>(beta2),
            fresh = static_cast<C>(1 - beta2), tiny = static_cast<C>(eps),
            mean = static_cast<C>(correction1), rate = static_cast<C>(lr),
            root = static_cast<C>(root2), rect = static_cast<C>(rectify);
    fixed(rectify >= 0, [&](auto is_rectified) {
      each_decayed<2, T>(r, common, [&](Cells<T>& x) {
        x.a = lerp<T>(x.a, x.grad, weight);
        x.b = mean_square<T>(x.b, x.grad, keep, fresh);
        C move = stored<T>(stored<T>(x.a / mean) * rate);
        if constexpr (decltype(is_rectified)::value) {
          const C denom = stored<T>(stored<T>(std::sqrt(x.b)) + tiny);
          move = stored<T>(move * stored<T>(stored<T>(C(1) / denom) * root));
          move = stored<T>(move * rect);
        }
        x.param = x.param - move;
      });
    });
  }
};

struct Adamax {  // states: mean, running maximum
  Common common;
  double beta1, beta2, eps, rate;

  template <class T>
  PRONG_INLINE void row(const OptimizerRow& r) const {
    using C = ComputeOf<T>;
    const C weight = static_cast<C>(1 - beta1), keep = static_cast<C>(beta2),
            tiny = static_cast<C>(eps), back = static_cast<C>(-rate);
    each_decayed<2, T>(r, common, [&](Cells<T>& x) {
      x.a = lerp<T>(x.a, x.grad, weight);
      x.b = larger(stored<T>(x.b * keep), stored<T>(std::abs(x.grad) + tiny));
      x.param = x.param + back * x.a / x.b;
    });
  }
};

struct RmsProp {  // states: mean of squares, momentum, mean
  Common common;
  double lr, alpha, eps, momentum;
  bool centered;

  template <class T>
  PRONG_INLINE void row(const OptimizerRow& r) const {
    fixed(centered, [&](auto is_centered) {
      fixed(momentum > 0, [&](auto has_momentum) {
        loop<T, decltype(is_centered)::value, decltype(has_momentum)::value>(r);
      });
    });
  }
  template <class T, bool kCentered, bool kMomentum>
  PRONG_INLINE void loop(const OptimizerRow& r) const {
    using C = ComputeOf<T>;
    const C keep = static_cast<C>(alpha), fresh = static_cast<C>(1 - alpha),
            tiny = static_cast<C>(eps), mu = static_cast<C>(momentum), rate = static_cast<C>(-lr);
    // Only the state that is there: momentum in b, the mean in b or c.
    constexpr int kStates = 1 + kCentered + kMomentum;
    each_decayed<kStates, T>(r, common, [&](Cells<T>& x) {
      C& mean = kMomentum ? x.c : x.b;
      x.a = mean_square<T>(x.a, x.grad, keep, fresh);
      C square = x.a;
      if constexpr (kCentered) {
        mean = lerp<T>(mean, x.grad, fresh);
        square = stored<T>(x.a - mean * mean);
      }
      const C average = stored<T>(stored<T>(std::sqrt(square)) + tiny);
      if constexpr (kMomentum) {
        x.b = stored<T>(stored<T>(x.b * mu) + x.grad / average);
        x.param = x.param + rate * x.b;
      } else {
        x.param = x.param + rate * x.grad / average;
      }
    });
  }
};

struct Adagrad {  // state: sum of squares
  Common common;
  double rate, eps;

  template <class T>
  PRONG_INLINE void row(const OptimizerRow& r) const {
    using C = ComputeOf<T>;
    const C back = static_cast<C>(-rate), tiny = static_cast<C>(eps);
    each_decayed<1, T>(r, common, [&](Cells<T>& x) {
      x.a = stored<T>(x.a + x.grad * x.grad);
      x.param = x.param + back * x.grad / stored<T>(stored<T>(std::sqrt(x.a)) + tiny);
    });
  }
};

struct Adadelta {  // states: mean of squares, mean of squared moves
  Common common;
  double lr, rho, eps;

  template <class T>
  PRONG_INLINE void row(const OptimizerRow& r) const {
    using C = ComputeOf<T>;
    const C rate = static_cast<C>(-lr), keep = static_cast<C>(rho), fresh = static_cast<C>(1 - rho),
            tiny = static_cast<C>(eps);
    each_decayed<2, T>(r, common, [&](Cells<T>& x) {
      x.a = mean_square<T>(x.a, x.grad, keep, fresh);
      const C deviation = stored<T>(std::sqrt(stored<T>(x.a + tiny)));
      C move = stored<T>(std::sqrt(stored<T>(x.b + tiny)));
      move = stored<T>(stored<T>(move / deviation) * x.grad);
      x.b = mean_square<T>(x.b, move, keep, fresh);
      x.param = x.param + rate * move;
    });
  }
};

struct Asgd {  // state: the average
  Common common;
  double shrink, eta, mu;

  template <class T>
  PRONG_INLINE void row(const OptimizerRow& r) const {
    using C = ComputeOf<T>;
    const C smaller = static_cast<C>(shrink), rate = static_cast<C>(-eta),
            part = static_cast<C>(mu);
    fixed(mu != 1, [&](auto averages) {
      each_decayed<1, T>(r, common, [&](Cells<T>& x) {
        x.param = stored<T>(stored<T>(x.param * smaller) + rate * x.grad);
        if constexpr (decltype(averages)::value)
          x.a = x.a + stored<T>(stored<T>(x.param - x.a) * part);
        else
          x.a = x.param;
      });
    });
  }
};

struct Rprop {  // states: the gradient before, the size of the step
  Common common;
  double smaller, larger_, least, most;

  template <class T>
  PRONG_INLINE void row(const OptimizerRow& r) const {
    using C = ComputeOf<T>;
    const C down = stored<T>(static_cast<C>(smaller)), up = stored<T>(static_cast<C>(larger_)),
            low = static_cast<C>(least), high = static_cast<C>(most);
    each_decayed<2, T>(r, common, [&](Cells<T>& x) {
      const C agreement = stored<T>(x.grad * x.a);
      const C factor = agreement > C(0) ? up : agreement < C(0) ? down : C(1);
      const C size = stored<T>(x.b * factor);
      x.b = size < low ? low : size > high ? high : size;
      x.a = agreement < C(0) ? C(0) : x.grad;
      x.param = x.param - sign(x.a) * x.b;
    });
  }
};

template <class Rule, class T>
struct Row {
  static PRONG_INLINE void run(const OptimizerRow* row, const Rule* rule) {
    rule->template row<T>(*row);
  }
};

template <class Rule>
void run_row(const OptimizerRow& row, const void* settings) {
  const Rule* rule = static_cast<const Rule*>(settings);
  switch (row.dtype) {
  case DType::kFloat32:
    return run_simd<Row<Rule, float>>(&row, rule);
  case DType::kFloat64:
    return run_simd<Row<Rule, double>>(&row, rule);
  case DType::kFloat16:
    return run_simd<Row<Rule, Half>>(&row, rule);
  default:
    return run_simd<Row<Rule, BFloat16>>(&row, rule);
  }
}

template <class Rule>
void update(const OptimizerLists& lists, const std::vector<Rule>& rules) {
  update_all(lists, &run_row<Rule>, rules.data(), sizeof(Rule));
}

}  // namespace prong::optimizer
