// What activation functions send back: one pass each, applied by the gradient rules in
// activation.cpp, with gradients of their own.
#include "ops/gradient.h"
#include "ops/kernels/pointwise.h"
#include "ops/scalar_math.h"

namespace prong {
namespace {

using namespace math;

// Bodies with two exponentials in them are always_inline: the compiler would call them otherwise,
// an element at a time.
constexpr const char* kVmapLater = "vmap is not built yet";

OpDef& backward_op(Registry& r, std::string_view schema) {
  return r.add(schema)
      .where({.function = false, .method = false})
      .no_vmap(kVmapLater)
      .samples({{"t(3, 4), t(3, 4)"}, {"t(0, 5), t(0, 5)"}});
}

// Rules shared by ops of (grad, input): the way of grad is the op itself, as it is linear in it;
// the way of input is grad times the slope's slope.
Expr flow(Gradient& g) { return g.out() * conj(g["grad"]); }
Expr logistic(const Expr& x) { return op<"sigmoid">(x); }

void register_rectifier_slopes(Registry& r) {
  backward_op(r, "relu_backward(grad: Tensor, result: Tensor) -> Tensor")
      .doc("grad where result is above 0 (or a NaN), 0 elsewhere.")
      .pointwise<Floats>([](auto g, auto y) { return select(y <= 0, lit(g, 0), g); })
      .grad("grad", "result",
            [](Gradient& g) { return op<"relu_backward">(g.out(), g["result"]); });
  backward_op(r, "threshold_backward(grad: Tensor, input: Tensor, threshold: Scalar) -> Tensor")
      .doc("grad where input is above threshold (or a NaN), 0 elsewhere.")
      .pointwise<Floats>(
          [](auto g, auto x, auto limit) { return select(x <= limit, lit(g, 0), g); })
      .grad("grad", "input",
            [](Gradient& g) {
              return op<"threshold_backward">(g.out(), g["input"], g.value("threshold"));
            })
      .samples({{"t(3, 4), t(3, 4), 0.1"}});
  backward_op(r,
              "hardtanh_backward(grad: Tensor, input: Tensor, min_val: Scalar, max_val: Scalar) -> "
              "Tensor")
      .doc("grad where input lies between the bounds, 0 on them and outside.")
      .pointwise<Floats>([](auto g, auto x, auto low, auto high) {
        return select(truth((x <= low) | (x >= high)), lit(g, 0), g);
      })
      .grad("grad", "input",
            [](Gradient& g) {
              return op<"hardtanh_backward">(g.out(), g["input"], g.value("min_val"),
                                             g.value("max_val"));
            })
      .samples({{"t(3, 4), t(3, 4), -1, 1"}});
  backward_op(r,
              "leaky_relu_backward(grad: Tensor, input: Tensor, negative_slope: Scalar) -> Tensor")
      .doc("grad, times negative_slope where input is not above 0.")
      .pointwise<Floats>([](auto g, auto x, auto slope) { return select(x > 0, g, g * slope); })
      .grad("grad", "input",
            [](Gradient& g) {
              return op<"leaky_relu_backward">(g.out(), g["input"], g.value("negative_slope"));
            })
      .samples({{"t(3, 4), t(3, 4), 0.01"}});
  backward_op(r, "shrink_backward(grad: Tensor, input: Tensor, lambd: Scalar) -> Tensor")
      .doc("0 where input is within lambd of 0, grad elsewhere.")
      .pointwise<Floats>(
          [](auto g, auto x, auto l) { return select(truth((x >= -l) & (x <= l)), lit(g, 0), g); })
      .grad(
          "grad", "input",
          [](Gradient& g) { return op<"shrink_backward">(g.out(), g["input"], g.value("lambd")); })
      .samples({{"t(3, 4), t(3, 4), 0.5"}});
  backward_op(r, "hardsigmoid_backward(grad: Tensor, input: Tensor) -> Tensor")
      .doc("grad / 6 where input is between -3 and 3, 0 elsewhere.")
      .pointwise<Floats>(
          [](auto g, auto x) { return select(truth((x > -3) & (x < 3)), g / 6, lit(g, 0)); })
      .grad("grad", "input",
            [](Gradient& g) { return op<"hardsigmoid_backward">(g.out(), g["input"]); });
  backward_op(r, "hardswish_backward(grad: Tensor, input: Tensor) -> Tensor")
      .doc("grad * (input / 3 + 1/2) where input is between -3 and 3, 0 below, grad above.")
      .pointwise<Floats>([](auto g, auto x) {
        return select(x <= -3, lit(g, 0), select(x < 3, g * (x / 3 + lit(x, 0.5)), g));
      })
      .grad("grad", "input",
            [](Gradient& g) { return op<"hardswish_backward">(g.out(), g["input"]); })
      .grad("input", "grad, input",
            [](Gradient& g) { return op<"hardsigmoid_backward">(flow(g) * 2.0, g["input"]); });
}

// With s, the logistic function of input, s' = s (1 - s).
void register_exponential_slopes(Registry& r) {
  backward_op(r,
              "elu_backward(grad: Tensor, input: Tensor, alpha: Scalar, scale: Scalar, "
              "input_scale: Scalar) -> Tensor")
      .doc("grad times the slope of elu.")
      .pointwise<Floats>([](auto g, auto x, auto alpha, auto scale, auto input_scale) {
        return select(x <= 0, g * (exp(x * input_scale) * (alpha * scale * input_scale)),
                      g * scale);
      })
      .grad("grad", "input",
            [](Gradient& g) {
              return op<"elu_backward">(g.out(), g["input"], g.value("alpha"), g.value("scale"),
                                        g.value("input_scale"));
            })
      .grad("input", "grad, input",
            [](Gradient& g) {
              const double rate = g.number("input_scale");
              const Expr x = g["input"];
              const Expr below = flow(g) * op<"exp">(x * rate) *
                                 (g.number("alpha") * g.number("scale") * rate * rate);
              return op<"where">(op<"lt">(x, 0), below, 0.0);
            })
      .samples({{"t(3, 4), t(3, 4), 1.5, 0.5, 0.75"}});
  backward_op(r,
              "softplus_backward(grad: Tensor, input: Tensor, beta: Scalar, threshold: Scalar) -> "
              "Tensor")
      .doc("grad * sigmoid(beta * input); grad where beta * input is above threshold.")
      .pointwise<Floats>([](auto g, auto x, auto beta, auto threshold) {
        const auto z = x * beta;
        return select(z > threshold, g, g * sigmoid(z));
      })
      .grad("grad", "input",
            [](Gradient& g) {
              return op<"softplus_backward">(g.out(), g["input"], g.value("beta"),
                                             g.value("threshold"));
            })
      .grad("input", "grad, input",
            [](Gradient& g) {
              const double beta = g.number("beta");
              const Expr z = g["input"] * beta, s = logistic(z);
              const Expr slope = flow(g) * (s * (1.0 - s)) * beta;
              return op<"where">(op<"gt">(z, g.value("threshold")), 0.0, slope);
            })
      .samples({{"t(3, 4), t(3, 4), 2.0, 20"}});
  backward_op(r, "log_sigmoid_backward(grad: Tensor, input: Tensor) -> Tensor")
      .doc("grad * sigmoid(-input).")
      .pointwise<Floats>([](auto g, auto x) { return g / (1 + exp(x)); })
      .grad("grad", "input",
            [](Gradient& g) { return op<"log_sigmoid_backward">(g.out(), g["input"]); })
      .grad("input", "grad, input",
            [](Gradient& g) { return -op<"sigmoid_backward">(flow(g), logistic(g["input"])); });
}

void register_gate_slopes(Registry& r) {
  backward_op(r, "silu_backward(grad: Tensor, input: Tensor) -> Tensor")
      .doc("grad * s * (1 + input * (1 - s)), s the sigmoid of input.")
      .pointwise<Floats>([](auto g, auto x) {
        const auto s = sigmoid(x);
        return g * (s * (1 + x * (1 - s)));
      })
      .complex([](auto g, auto x) {
        const decltype(x) one(1), s = one / (one + std::exp(-x));
        return g * std::conj(s * (one + x * (one - s)));
      })
      .grad("grad", "input", [](Gradient& g) { return op<"silu_backward">(g.out(), g["input"]); })
      .grad("input", "grad, input", [](Gradient& g) {
        const Expr x = g["input"], s = logistic(x);
        return op<"sigmoid_backward">(flow(g), s) * conj(x * (1.0 - s * 2.0) + 2.0);
      });
  backward_op(r, "mish_backward(grad: Tensor, input: Tensor) -> Tensor")
      .doc("grad times the slope of mish.")
      .pointwise<Floats>([](auto g, auto x) __attribute__((always_inline)) {
        const auto t = tanh(log1p_exp(x));
        return g * (t + x * sigmoid(x) * (1 - t * t));
      })
      .grad("grad", "input", [](Gradient& g) { return op<"mish_backward">(g.out(), g["input"]); })
      .grad("input", "grad, input", [](Gradient& g) {
        // t = tanh(softplus(x)), t' = (1 - t^2) s.
        const Expr x = g["input"], s = logistic(x), t = op<"tanh">(op<"softplus">(x));
        const Expr slope = (1.0 - t * t) * s;
        return flow(g) * slope * ((1.0 - s) * x - x * t * s * 2.0 + 2.0);
      });
  backward_op(r, "softsign_backward(grad: Tensor, input: Tensor) -> Tensor")
      .doc("grad / (1 + |input|)^2.")
      .pointwise<Floats>([](auto g, auto x) {
        const auto d = 1 + abs(x);
        return g / (d * d);
      })
      .grad("grad", "input",
            [](Gradient& g) { return op<"softsign_backward">(g.out(), g["input"]); })
      .grad("input", "grad, input", [](Gradient& g) {
        const Expr x = g["input"], d = op<"abs">(x) + 1.0;
        return flow(g) * op<"sign">(x) * -2.0 / (d * d * d);
      });
}

constexpr double kGeluRate = 0.79788456080286536, kGeluCube = 0.044715;

// The slope of the older form's slope: with u the argument of its tanh t,
// (1 - t^2) (u' + x u'' / 2 - x t u'^2).
Expr gelu_tanh_curve(const Expr& x) {
  const Expr square = x * x;
  const Expr t = op<"tanh">((square * kGeluCube + 1.0) * x * kGeluRate);
  const Expr u1 = (square * (3 * kGeluCube) + 1.0) * kGeluRate;
  const Expr half_u2 = x * (3 * kGeluCube * kGeluRate);
  return (1.0 - t * t) * (u1 + x * half_u2 - x * t * u1 * u1);
}

void register_gelu_slope(Registry& r) {
  backward_op(r,
              "gelu_backward(grad: Tensor, input: Tensor, approximate: str = \"none\") -> Tensor")
      .doc("grad times the slope of gelu.")
      .pointwise<Floats>([](auto g, auto x) __attribute__((always_inline)) {
        const auto below = lit(x, 0.5) * one_plus_erf(x * lit(x, 0.70710678118654752));
        const auto density = lit(x, 0.39894228040143268) * exp(x * x * lit(x, -0.5));
        return g * (below + x * density);
      },
                         {.choose = [](std::span<const IValue> args,
                                       DType) { return args[2].to_string() == "none" ? 0 : 1; }})
      .variant<Floats>({0, 1},
                       [](auto g, auto x) {
                         const auto square = x * x;
                         const auto u = lit(x, kGeluRate) * x * (1 + lit(x, kGeluCube) * square);
                         const auto rate = lit(x, kGeluRate) * (1 + lit(x, 3 * kGeluCube) * square);
                         const auto p = sigmoid(2 * u);  // (1 + tanh(u)) / 2
                         return g * (p + 2 * x * p * (1 - p) * rate);
                       })
      .grad("grad", "input",
            [](Gradient& g) {
              return op<"gelu_backward">(g.out(), g["input"], g.value("approximate"));
            })
      .grad("input", "grad, input",
            [](Gradient& g) {
              const Expr x = g["input"];
              if (g.value("approximate").to_string() != "none") return flow(g) * gelu_tanh_curve(x);
              const Expr square = x * x;
              const Expr density = op<"exp">(square * -0.5) * 0.39894228040143268;
              return flow(g) * density * (2.0 - square);
            })
      .samples({{"t(3, 4), t(3, 4)"}, {"t(3, 4), t(3, 4), 'tanh'"}, {"t(0, 5), t(0, 5)"}});
}

}  // namespace

void register_activation_backward(Registry& r) {
  register_rectifier_slopes(r);
  register_exponential_slopes(r);
  register_gate_slopes(r);
  register_gelu_slope(r);
}

}  // namespace prong
