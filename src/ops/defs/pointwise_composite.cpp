// Element-wise ops that are put together from others: nan_to_num, prelu, glu, diff, ldexp,
// float_power.
#include <limits>

#include "ops/op_def.h"
#include "ops/shape_of.h"

namespace prong {
namespace {

constexpr const char* kVmapLater = "vmap is not built yet";

Cost linear_cost(const OpDef&, std::span<const IValue> args) {
  const TensorMeta x = meta_from(args[0]);
  const auto n = static_cast<double>(x.numel());
  return {4 * n, 2 * n * static_cast<double>(size_of(x.dtype))};
}

OpDef& add_op(Registry& r, std::string_view schema) {
  return r.add(schema).cost(linear_cost).composite().no_vmap(kVmapLater);
}

double largest_of(DType dtype) {
  switch (dtype) {
  case DType::kFloat16:
    return 65504.0;
  case DType::kBFloat16:
    return 3.3895313892515355e38;
  case DType::kFloat32:
    return std::numeric_limits<float>::max();
  default:
    return std::numeric_limits<double>::max();
  }
}

Tensor nan_to_num(const Tensor& x, std::optional<double> nan, std::optional<double> above,
                  std::optional<double> below) {
  if (!is_floating(x.dtype())) return call_tensor("clone", x);
  const double infinity = std::numeric_limits<double>::infinity(), largest = largest_of(x.dtype());
  Tensor y = call_tensor("where", call_tensor("isnan", x), nan.value_or(0.0), x);
  y = call_tensor("where", call_tensor("eq", x, infinity), above.value_or(largest), y);
  y = call_tensor("where", call_tensor("eq", x, -infinity), below.value_or(-largest), y);
  return call_tensor("to", y, x.dtype());
}

// Of the weight, so that it broadcasts along the channels of x.
Dims prelu_sizes(const TensorMeta& x, const TensorMeta& weight) {
  if (weight.numel() == 1) return {};
  PRONG_CHECK(x.rank() > 0, kRuntime, "Not allow zero-dim input tensor.");
  const int64_t channels = x.rank() > 1 ? x.sizes[1] : 1;
  PRONG_CHECK(channels == weight.numel(), kRuntime,
              "Mismatch of parameter numbers and input channel size. Found parameter numbers = ",
              weight.numel(), " and channel size = ", channels, ".");
  Dims sizes(static_cast<size_t>(x.rank()), 1);
  sizes[1] = channels;
  return sizes;
}

Tensor prelu(const Tensor& x, const Tensor& weight) {
  const Tensor w = call_tensor("reshape", weight, prelu_sizes(x.meta(), weight.meta()));
  return call_tensor("where", call_tensor("gt", x, 0), x, call_tensor("mul", w, x));
}

int64_t glu_half(const TensorMeta& x, int64_t dim) {
  PRONG_CHECK(x.rank() > 0, kRuntime, "glu does not support 0-dimensional tensors");
  const int64_t size = x.sizes[static_cast<size_t>(wrap_dim(dim, x.rank()))];
  PRONG_CHECK(size % 2 == 0, kRuntime, "Halving dimension must be even, but dimension ",
              wrap_dim(dim, x.rank()), " is size ", size);
  return size / 2;
}

Tensor narrowed(const Tensor& x, int64_t dim, int64_t start, int64_t length) {
  return call_tensor("narrow", x, dim, start, length);
}

Tensor diff(const Tensor& given, int64_t n, int64_t dim) {
  PRONG_CHECK(given.rank() > 0, kRuntime, "diff expects input to be at least one-dimensional");
  PRONG_CHECK(n >= 0, kRuntime, "order must be non-negative but got ", n);
  const int64_t d = wrap_dim(dim, given.rank());
  Tensor x = given;
  for (; n > 0; --n) {
    const int64_t size = x.sizes()[static_cast<size_t>(d)];
    if (size <= 1) return narrowed(x, d, 0, 0);
    x = call_tensor(x.dtype() == DType::kBool ? "logical_xor" : "sub", narrowed(x, d, 1, size - 1),
                    narrowed(x, d, 0, size - 1));
  }
  return x;
}

DType widest(DType a, DType b) {
  return is_complex(a) || is_complex(b) ? DType::kComplex128 : DType::kFloat64;
}

// As of all pairs of operands, where one is no integer.
DType ldexp_dtype(const TensorMeta& x, const TensorMeta& y) {
  if (!is_inexact(x.dtype) && !is_inexact(y.dtype)) return default_dtype();
  ResultType type;
  type.add(x);
  type.add(y);
  return type.get();
}

}  // namespace

void register_pointwise_composite(Registry& r) {
  add_op(r,
         "nan_to_num(input: Tensor, nan: float? = None, posinf: float? = None, neginf: float? = "
         "None) -> Tensor")
      .doc(
          "NaN as nan (0), infinities as posinf and neginf (the largest finite numbers where not "
          "given).")
      .where({.inplace = true})
      .shape([](const TensorMeta& x, std::optional<double>, std::optional<double>,
                std::optional<double>) {
        return TensorMeta{x.sizes, x.dtype};
      })
      .kernel([](const Tensor& x, std::optional<double> nan, std::optional<double> above,
                 std::optional<double> below) { return nan_to_num(x, nan, above, below); })
      .samples({{"t(3, 4)"}, {"t(3, 4), 1.0, 2.0"}, {"t(3, dtype=int64)"}})
      .reference("np.nan_to_num(input, nan=nan or 0.0, posinf=posinf, neginf=neginf)");
  add_op(r, "prelu(input: Tensor, weight: Tensor) -> Tensor")
      .doc("input, times weight where it is below 0; one weight, or one a channel (dim 1).")
      .where({.nn_functional = true})
      .shape([](const TensorMeta& x, const TensorMeta& weight) {
        const TensorMeta w{prelu_sizes(x, weight), weight.dtype};
        return shape_of("where", shape_of("gt", x, 0), x, shape_of("mul", w, x));
      })
      .kernel([](const Tensor& x, const Tensor& weight) { return prelu(x, weight); })
      .samples({{"t(2, 3, 4), t(3)"}, {"t(5), t(1)"}})
      .reference(
          "np.where(input > 0, input, input * (weight.reshape(-1, *[1] * (input.ndim - 2)) if "
          "weight.size > 1 else weight))");
  add_op(r, "glu(input: Tensor, dim: int = -1) -> Tensor")
      .doc("The first half along dim times the sigmoid of the second.")
      .where({.function = false, .method = false, .nn_functional = true})
      .shape([](const TensorMeta& x, int64_t dim) {
        Dims sizes = x.sizes;
        sizes[static_cast<size_t>(wrap_dim(dim, x.rank()))] = glu_half(x, dim);
        return TensorMeta{sizes, shape_of("sigmoid", x).dtype};
      })
      .kernel([](const Tensor& x, int64_t dim) {
        const int64_t half = glu_half(x.meta(), dim), d = wrap_dim(dim, x.rank());
        return call_tensor("mul", narrowed(x, d, 0, half),
                           call_tensor("sigmoid", narrowed(x, d, half, half)));
      })
      .samples({{"t(3, 4)"}, {"t(4, 3), 0"}})
      .reference("(lambda a, b: a / (1 + np.exp(-b)))(*np.split(input, 2, axis=dim))");
  add_op(r, "diff(input: Tensor, n: int = 1, dim: int = -1) -> Tensor")
      .takes_complex()
      .doc("The differences of neighbours along dim, n times over.")
      .shape([](const TensorMeta& x, int64_t n, int64_t dim) {
        PRONG_CHECK(x.rank() > 0, kRuntime, "diff expects input to be at least one-dimensional");
        Dims sizes = x.sizes;
        int64_t& size = sizes[static_cast<size_t>(wrap_dim(dim, x.rank()))];
        size = std::max<int64_t>(0, size - n);
        return TensorMeta{sizes, x.dtype};
      })
      .kernel([](const Tensor& x, int64_t n, int64_t dim) { return diff(x, n, dim); })
      .samples({{"t(3, 5)"}, {"t(5, 3), 2, 0"}, {"t(3), 5"}})
      .reference("np.diff(input, n, axis=dim)");
  add_op(r, "ldexp(input: Tensor, other: Tensor) -> Tensor")
      .doc("input * 2^other.")
      .takes_complex()
      .where({.inplace = true})
      .shape([](const TensorMeta& x, const TensorMeta& y) {
        return TensorMeta{broadcast_shapes(x.sizes, y.sizes), ldexp_dtype(x, y)};
      })
      .kernel([](const Tensor& x, const Tensor& y) {
        const DType dtype = ldexp_dtype(x.meta(), y.meta());
        const Tensor z = call_tensor("mul", x, call_tensor("exp2", y));
        return z.dtype() == dtype ? z : call_tensor("to", z, dtype);
      })
      .samples({{"t(3, 4), t(4, dtype=int64)"}})
      .reference("np.ldexp(input, other)");
  add_op(r, "float_power(input: Tensor, exponent: Tensor) -> Tensor")
      .doc("pow in float64, or complex128.")
      .shape([](const TensorMeta& x, const TensorMeta& y) {
        return TensorMeta{broadcast_shapes(x.sizes, y.sizes), widest(x.dtype, y.dtype)};
      })
      .kernel([](const Tensor& x, const Tensor& y) {
        const DType wide = widest(x.dtype(), y.dtype());
        return call_tensor("pow", call_tensor("to", x, wide), call_tensor("to", y, wide));
      })
      .samples({{"pos(3, 4), t(4)"}, {"t(3, dtype=int64), 2"}})
      .reference("np.float_power(input, exponent)");
}

}  // namespace prong
