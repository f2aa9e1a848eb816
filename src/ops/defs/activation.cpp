// Activation functions of neural networks.
#include "ops/gradient.h"
#include "ops/kernels/pointwise.h"
#include "ops/scalar_math.h"

namespace prong {
namespace {

using namespace math;

constexpr const char* kVmapLater = "vmap is not built yet";

const Spelling kFunctional = {.function = false, .method = false, .nn_functional = true};
const Spelling kFunctionalInplace = {
    .function = false, .method = false, .nn_functional = true, .inplace = true};
// The constants that keep mean 0 and variance 1 from layer to layer.
constexpr double kSeluScale = 1.0507009873554804934193349852946,
                 kSeluAlpha = 1.6732632423543772848170429916717;
const Spelling kEverywhere = {.nn_functional = true, .inplace = true};

OpDef& add_op(Registry& r, std::string_view schema) {
  return r.add(schema).no_vmap(kVmapLater).samples({{"t(3, 4)"}, {"t(0, 5)"}, {"strided(4, 6)"}});
}

void refuse_bool(const OpDef&, std::span<const IValue>, DType common) {
  PRONG_CHECK(common != DType::kBool, kRuntime, "Boolean inputs not supported for relu");
}

template <class T>
PRONG_INLINE T bounded(const T& x, const T& low, const T& high) {
  const T y = select(x < low, low, x);
  return select(y > high, high, y);
}

void register_rectifiers(Registry& r) {
  add_op(r, "relu(input: Tensor) -> Tensor")
      .doc("max(input, 0).")
      .pointwise<Numbers>([](auto x) { return select(x < 0, lit(x, 0), x); },
                          {.check = refuse_bool})
      .grad("input", "result",
            [](Gradient& g) { return op<"relu_backward">(g.out(), g["result"]); })
      .where(kEverywhere)
      .reference("np.maximum(input, 0)");
  add_op(r, "relu6(input: Tensor) -> Tensor")
      .doc("min(max(input, 0), 6).")
      .pointwise<Numbers>([](auto x) { return bounded(x, lit(x, 0), lit(x, 6)); },
                          {.check = refuse_bool})
      .grad("input", "result",
            [](Gradient& g) { return op<"hardtanh_backward">(g.out(), g["result"], 0, 6); })
      .where(kFunctionalInplace)
      .reference("np.clip(input, 0, 6)");
  add_op(r, "hardtanh(input: Tensor, min_val: Scalar = -1, max_val: Scalar = 1) -> Tensor")
      .doc("input cut off to [min_val, max_val].")
      .pointwise<Numbers>([](auto x, auto low, auto high) { return bounded(x, low, high); },
                          {.check =
                               [](const OpDef&, std::span<const IValue> args, DType common) {
                                 PRONG_CHECK(common != DType::kBool, kRuntime,
                                             "Bool inputs not supported for hardtanh");
                                 PRONG_CHECK(args[1].to_double() <= args[2].to_double(), kValue,
                                             "min_val cannot be greater than max_val");
                               }})
      .grad("input", "result",
            [](Gradient& g) {
              return op<"hardtanh_backward">(g.out(), g["result"], g.value("min_val"),
                                             g.value("max_val"));
            })
      .where(kFunctionalInplace)
      .reference("np.clip(input, min_val, max_val)");
  add_op(r, "leaky_relu(input: Tensor, negative_slope: Scalar = 0.01) -> Tensor")
      .doc("input, times negative_slope where it is below 0.")
      .pointwise<Floats>([](auto x, auto slope) { return select(x > 0, x, x * slope); },
                         {.error_name = "leaky_relu_cpu"})
      .grad("input", "input",
            [](Gradient& g) {
              return op<"leaky_relu_backward">(g.out(), g["input"], g.value("negative_slope"));
            })
      .where(kFunctionalInplace)
      .reference("np.where(input > 0, input, input * negative_slope)");
  add_op(r, "threshold(input: Tensor, threshold: Scalar, value: Scalar) -> Tensor")
      .doc("input where it is above threshold, value elsewhere.")
      .pointwise<Numbers>(
          [](auto x, auto limit, auto value) { return select(x <= limit, value, x); },
          {.refuses_bool = true})
      .grad("input", "input",
            [](Gradient& g) {
              return op<"threshold_backward">(g.out(), g["input"], g.value("threshold"));
            })
      .where({.method = false, .nn_functional = true, .inplace = true})
      .samples({{"t(3, 4), 0.1, 20"}})
      .reference("np.where(input <= threshold, value, input)");
}

void register_exponential_units(Registry& r) {
  add_op(
      r,
      "elu(input: Tensor, alpha: Scalar = 1, scale: Scalar = 1, input_scale: Scalar = 1) -> Tensor")
      .doc("scale * input above 0, scale * alpha * (exp(input_scale * input) - 1) below.")
      .pointwise<Floats>(
          [](auto x, auto alpha, auto scale, auto input_scale) {
            return select(x < 0, expm1(x * input_scale) * (alpha * scale), x * scale);
          },
          {.error_name = "elu_cpu"})
      .grad("input", "input",
            [](Gradient& g) {
              return op<"elu_backward">(g.out(), g["input"], g.value("alpha"), g.value("scale"),
                                        g.value("input_scale"));
            })
      .where(kFunctionalInplace)
      .reference("np.where(input > 0, input, alpha * np.expm1(input))");
  add_op(r, "selu(input: Tensor) -> Tensor")
      .doc("elu with the constants that keep mean 0 and variance 1 from layer to layer.")
      .pointwise<Floats>([](auto x) {
        const auto scale = lit(x, kSeluScale);
        const auto below = lit(x, kSeluScale * kSeluAlpha);
        return select(x < 0, expm1(x) * below, x * scale);
      })
      .grad("input", "input",
            [](Gradient& g) {
              return op<"elu_backward">(g.out(), g["input"], kSeluAlpha, kSeluScale, 1.0);
            })
      .where({.method = false, .nn_functional = true, .inplace = true})
      .reference(
          "1.0507009873554805 * np.where(input > 0, input, 1.6732632423543772 * np.expm1(input))");
  add_op(r, "celu(input: Tensor, alpha: Scalar = 1.0) -> Tensor")
      .doc("max(input, 0) + min(alpha * (exp(input / alpha) - 1), 0).")
      .pointwise<Floats>(
          [](auto x, auto alpha) { return select(x < 0, expm1(x / alpha) * alpha, x); },
          {.check =
               [](const OpDef&, std::span<const IValue> args, DType) {
                 PRONG_CHECK(args[1].to_double() != 0, kRuntime,
                             "ZeroDivisionError: alpha cannot be 0 for CELU");
               }})
      .grad("input", "input",
            [](Gradient& g) {
              const double alpha = g.number("alpha");
              return op<"elu_backward">(g.out(), g["input"], alpha, 1.0, 1 / alpha);
            })
      .where({.method = false, .nn_functional = true, .inplace = true})
      .reference("np.maximum(input, 0) + np.minimum(alpha * np.expm1(input / alpha), 0)");
  add_op(r, "softplus(input: Tensor, beta: Scalar = 1, threshold: Scalar = 20) -> Tensor")
      .doc("log(1 + exp(beta * input)) / beta; input itself where beta * input is above threshold.")
      .pointwise<Floats>([](auto x, auto beta, auto threshold) {
        const auto z = x * beta;
        return select(z > threshold, x, log1p(exp(z)) / beta);
      })
      .grad("input", "input",
            [](Gradient& g) {
              return op<"softplus_backward">(g.out(), g["input"], g.value("beta"),
                                             g.value("threshold"));
            })
      .where(kFunctional)
      .reference("np.logaddexp(0, beta * input) / beta");
  add_op(r, "logsigmoid(input: Tensor) -> Tensor")
      .doc("log(1 / (1 + exp(-input))).")
      .pointwise<Floats>([](auto x) { return select(x < 0, x, lit(x, 0.0)) - log1p(exp(-abs(x))); },
                         {.error_name = "log_sigmoid_cpu"})
      .grad("input", "input",
            [](Gradient& g) { return op<"log_sigmoid_backward">(g.out(), g["input"]); })
      .where({.function = false, .method = false, .nn_functional = true})
      .reference("-np.logaddexp(0, -input)");
}

void register_gates(Registry& r) {
  add_op(r, "silu(input: Tensor) -> Tensor")
      .doc("input * sigmoid(input).")
      .pointwise<Floats>([](auto x) { return x / (1 + exp(-x)); })
      .complex([](auto x) { return x / (decltype(x)(1) + std::exp(-x)); })
      .grad("input", "input", [](Gradient& g) { return op<"silu_backward">(g.out(), g["input"]); })
      .where(kFunctionalInplace)
      .reference("input / (1 + np.exp(-input))");
  add_op(r, "mish(input: Tensor) -> Tensor")
      .doc("input * tanh(softplus(input)).")
      .pointwise<Floats>([](auto x) { return x * tanh(log1p_exp(x)); })
      .grad("input", "input", [](Gradient& g) { return op<"mish_backward">(g.out(), g["input"]); })
      .where(kFunctionalInplace)
      .reference("input * np.tanh(np.logaddexp(0, input))");
  add_op(r, "gelu(input: Tensor, *, approximate: str = \"none\") -> Tensor")
      .doc(
          "input times the normal distribution's probability of being below it; approximate='tanh' "
          "for the older form.")
      .pointwise<Floats>([](auto x) __attribute__((always_inline)) {
        return x * lit(x, 0.5) * one_plus_erf(x * lit(x, 0.70710678118654752));
      },
                         {.error_name = "GeluKernelImpl",
                          .choose =
                              [](std::span<const IValue> args, DType) {
                                const std::string& form = args[1].to_string();
                                PRONG_CHECK(form == "none" || form == "tanh", kRuntime,
                                            "approximate argument must be either none or tanh.");
                                return form == "none" ? 0 : 1;
                              }})
      .variant<Floats>(
          {0},
          [](auto x) {
            const auto inner = lit(x, 0.79788456080286536) * (x + lit(x, 0.044715) * x * x * x);
            return x /
                   (1 +
                    exp(-2 *
                        inner));  // 1 + tanh(y) = 2 / (1 + exp(-2 y)), without its loss of digits
          })
      .grad("input", "input",
            [](Gradient& g) {
              return op<"gelu_backward">(g.out(), g["input"], g.value("approximate"));
            })
      .where(kFunctional)
      .samples({{"t(3, 4)"}, {"t(3, 4), approximate='tanh'"}, {"t(0, 5)"}})
      .reference(
          "0.5 * input * (1 + np.vectorize(math.erf, otypes=[float])(input / np.sqrt(2))) if "
          "approximate == 'none' else 0.5 * input * (1 + "
          "np.tanh(np.sqrt(2 / np.pi) * (input + 0.044715 * input ** 3)))");
  add_op(r, "hardsigmoid(input: Tensor) -> Tensor")
      .doc("min(max(input + 3, 0), 6) / 6.")
      .pointwise<Floats>([](auto x) { return bounded(x + 3, lit(x, 0.0), lit(x, 6.0)) / 6; })
      .grad("input", "input",
            [](Gradient& g) { return op<"hardsigmoid_backward">(g.out(), g["input"]); })
      .where(kFunctionalInplace)
      .reference("np.clip(input + 3, 0, 6) / 6");
  add_op(r, "hardswish(input: Tensor) -> Tensor")
      .doc("input * hardsigmoid(input).")
      .pointwise<Floats>([](auto x) { return x * bounded(x + 3, lit(x, 0.0), lit(x, 6.0)) / 6; })
      .grad("input", "input",
            [](Gradient& g) { return op<"hardswish_backward">(g.out(), g["input"]); })
      .where(kFunctionalInplace)
      .reference("input * np.clip(input + 3, 0, 6) / 6");
  add_op(r, "softsign(input: Tensor) -> Tensor")
      .doc("input / (1 + |input|).")
      .pointwise<Floats>([](auto x) { return x / (1 + abs(x)); }, {.int_to_float = kEveryVariant})
      .complex([](auto x) { return x / (1 + std::abs(x)); })
      .grad("input", "input",
            [](Gradient& g) {
              const Expr x = g["input"];
              if (!is_complex(x.dtype())) return op<"softsign_backward">(g.out(), x);
              // The size in the denominator is a function of its own, to real numbers.
              const Expr d = op<"abs">(x) + 1.0, along = op<"real">(g.out() * conj(x));
              return g.out() / d - op<"sign">(x) * (along / (d * d));
            })
      .where(kFunctional)
      .reference("input / (1 + np.abs(input))");
  add_op(r, "tanhshrink(input: Tensor) -> Tensor")
      .doc("input - tanh(input).")
      .pointwise<Floats>([](auto x) { return x - tanh(x); }, {.int_to_float = kEveryVariant})
      .complex([](auto x) { return x - std::tanh(x); })
      .grad("input", "input",
            [](Gradient& g) { return g.out() * conj(op<"square">(op<"tanh">(g["input"]))); })
      .where(kFunctional)
      .reference("input - np.tanh(input)");
  add_op(r, "softshrink(input: Tensor, lambd: Scalar = 0.5) -> Tensor")
      .doc("input moved towards 0 by lambd; 0 within lambd of it.")
      .pointwise<Floats>([](auto x, auto l) {
        return select(x > l, x - l, select(x < -l, x + l, x * lit(x, 0.0)));
      })
      .grad(
          "input", "input",
          [](Gradient& g) { return op<"shrink_backward">(g.out(), g["input"], g.value("lambd")); })
      .where(kFunctional)
      .reference("np.sign(input) * np.maximum(np.abs(input) - lambd, 0)");
  add_op(r, "hardshrink(input: Tensor, lambd: Scalar = 0.5) -> Tensor")
      .doc("0 within lambd of 0, input elsewhere.")
      .pointwise<Floats>(
          [](auto x, auto l) { return select(truth((x >= -l) & (x <= l)), lit(x, 0.0), x); })
      .grad(
          "input", "input",
          [](Gradient& g) { return op<"shrink_backward">(g.out(), g["input"], g.value("lambd")); })
      .where({.nn_functional = true})
      .reference("np.where(np.abs(input) <= lambd, 0, input)");
}

}  // namespace

void register_activation(Registry& r) {
  register_rectifiers(r);
  register_exponential_units(r);
  register_gates(r);
}

}  // namespace prong
