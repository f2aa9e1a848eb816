// The transposes of convolutions: conv_transpose1d, 2d, 3d, and the gradient of a convolution to
// its weight. Kernels: kernels/convolution.h.
#include "ops/gradient.h"
#include "ops/kernels/convolution.h"

namespace prong {
namespace {

constexpr const char* kVmapLater = "vmap is not built yet";

Dims spread(const Dims& d, size_t n, const char* what) {
  if (d.size() == 1) return Dims(n, d[0]);
  PRONG_CHECK(d.size() == n, kRuntime, "expected ", what,
              " to be a single integer value or a list of ", n,
              " values to match the convolution dimensions, but got ", what, "=", d);
  return d;
}

ConvParams params(size_t n, const Dims& stride, const Dims& padding, const Dims& dilation,
                  int64_t groups) {
  return {spread(stride, n, "stride"), spread(padding, n, "padding"),
          spread(dilation, n, "dilation"), groups};
}

Cost product_cost(const OpDef&, std::span<const IValue> args) {
  const TensorMeta x = meta_from(args[0]), w = meta_from(args[1]);
  return {2 * static_cast<double>(x.numel()) * static_cast<double>(w.numel()) /
              static_cast<double>(std::max<int64_t>(1, w.rank() ? w.sizes[0] : 1)),
          4.0 * static_cast<double>(x.numel() + w.numel())};
}

// An unbatched input gets a batch of one for the time of the call.
template <class T>
bool lacks_batch(const T& x, int64_t spatial) {
  return x.rank() == spatial + 1;
}

TensorMeta with_batch(TensorMeta x, int64_t spatial) {
  if (lacks_batch(x, spatial)) x.sizes.insert(0, 1);
  return x;
}

template <int kSpatial>
TensorMeta transposed_meta(const TensorMeta& x, const TensorMeta& w, const ConvParams& p,
                           const Dims& extra) {
  PRONG_CHECK(w.rank() == kSpatial + 2, kRuntime, "conv_transpose", kSpatial, "d: expected a ",
              kSpatial + 2, "D weight, but got shape ", w.sizes);
  Dims sizes = conv_transpose_sizes(with_batch(x, kSpatial), w, p, extra);
  if (lacks_batch(x, kSpatial)) sizes.erase(0);
  return {sizes, x.dtype};
}

template <int kSpatial>
Tensor transposed(const Tensor& x, const Tensor& w, const std::optional<Tensor>& bias,
                  const ConvParams& p, const Dims& extra) {
  const TensorMeta result = transposed_meta<kSpatial>(x.meta(), w.meta(), p, extra);
  const Tensor batch = lacks_batch(x, kSpatial) ? call_tensor("unsqueeze", x, int64_t(0)) : x;
  const Tensor out = convolve_transposed(batch, w, bias, p, extra).contiguous();
  return out.as_strided(result.sizes, contiguous_strides(result.sizes), out.offset());
}

template <int kSpatial>
struct Names;
template <>
struct Names<1> {
  static constexpr detail::OpName conv{"conv1d"};
};
template <>
struct Names<2> {
  static constexpr detail::OpName conv{"conv2d"};
};
template <>
struct Names<3> {
  static constexpr detail::OpName conv{"conv3d"};
};

// Sums over everything but the channel dimension.
Expr bias_gradient(const Expr& gradient, int64_t spatial) {
  Dims dims;
  const int64_t channel = gradient.rank() - spatial - 1;
  for (int64_t d = 0; d < gradient.rank(); ++d)
    if (d != channel) dims.push_back(d);
  return op<"sum">(gradient, dims);
}

template <int kSpatial>
void register_transposed(Registry& r, std::vector<Sample> samples) {
  const std::string n = std::to_string(kSpatial);
  r.add(cat("conv_transpose", n,
            "d(input: Tensor, weight: Tensor, bias: Tensor? = None, stride: int[", n,
            "] = 1, padding: int[", n, "] = 0, output_padding: int[", n,
            "] = 0, groups: int = 1, dilation: int[", n, "] = 1) -> Tensor"))
      .doc("The transpose of a convolution, with weight [C, O / groups, ...].")
      .where({.method = false, .nn_functional = true})
      .family(Family::kMatmul)
      .cost(product_cost)
      .shape([](const TensorMeta& x, const TensorMeta& w, std::optional<TensorMeta>, const Dims& s,
                const Dims& p, const Dims& extra, int64_t groups, const Dims& d) {
        return transposed_meta<kSpatial>(x, w, params(kSpatial, s, p, d, groups),
                                         spread(extra, kSpatial, "output_padding"));
      })
      .kernel([](const Tensor& x, const Tensor& w, std::optional<Tensor> bias, const Dims& s,
                 const Dims& p, const Dims& extra, int64_t groups, const Dims& d) {
        return transposed<kSpatial>(x, w, bias, params(kSpatial, s, p, d, groups),
                                    spread(extra, kSpatial, "output_padding"));
      })
      .grad("input", "weight",
            [](Gradient& g) {
              return op<Names<kSpatial>::conv.text>(g.out(), g["weight"], IValue(),
                                                    g.value("stride"), g.value("padding"),
                                                    g.value("dilation"), g.value("groups"));
            })
      .grad("weight", "input",
            [](Gradient& g) {
              return op<"_conv_weight_grad">(g.out(), g["input"], g.sizes("weight"),
                                             g.value("stride"), g.value("padding"),
                                             g.value("dilation"), g.value("groups"));
            })
      .grad("bias", "", [](Gradient& g) { return bias_gradient(g.out(), kSpatial); })
      .no_vmap(kVmapLater)
      .samples(std::move(samples));
}

// The gradient of a convolution to its weight; a convolution itself, whose gradients are
// convolutions again.
void register_weight_gradient(Registry& r) {
  r.add(
       "_conv_weight_grad(input: Tensor, gradient: Tensor, weight_sizes: int[], stride: int[], "
       "padding: int[], "
       "dilation: int[], groups: int) -> Tensor")
      .doc("The gradient of a convolution of input to a weight of the given sizes.")
      .where({.function = false, .method = false})
      .family(Family::kMatmul)
      .cost(product_cost)
      .shape([](const TensorMeta& x, const TensorMeta&, const Dims& sizes, const Dims&, const Dims&,
                const Dims&, int64_t) {
        return TensorMeta{sizes, x.dtype};
      })
      .kernel([](const Tensor& x, const Tensor& dy, const Dims& sizes, const Dims& s, const Dims& p,
                 const Dims& d, int64_t groups) {
        const size_t n = sizes.size() - 2;
        const ConvParams all = params(n, s, p, d, groups);
        if (!lacks_batch(x, static_cast<int64_t>(n)))
          return convolution_weight_gradient(x, dy, sizes, all);
        return convolution_weight_gradient(call_tensor("unsqueeze", x, int64_t(0)),
                                           call_tensor("unsqueeze", dy, int64_t(0)), sizes, all);
      })
      .grad("input", "gradient",
            [](Gradient& g) {
              const Dims sizes = g.sizes("input"), out = g.sizes("gradient"),
                         weight = g.dims("weight_sizes");
              return op<"_conv_input_grad">(g["gradient"], g.out(), sizes, g.value("stride"),
                                            g.value("padding"), g.value("dilation"),
                                            g.value("groups"));
            })
      .grad("gradient", "input",
            [](Gradient& g) {
              const auto conv = [&](auto name) {
                return op<decltype(name)::conv.text>(g["input"], g.out(), IValue(),
                                                     g.value("stride"), g.value("padding"),
                                                     g.value("dilation"), g.value("groups"));
              };
              const size_t n = g.dims("weight_sizes").size() - 2;
              return n == 1 ? conv(Names<1>{}) : n == 2 ? conv(Names<2>{}) : conv(Names<3>{});
            })
      .no_vmap(kVmapLater)
      .samples({{"t(2, 3, 6, 5), t(2, 4, 4, 3), [4, 3, 3, 3], [1], [0], [1], 1"},
                {"t(2, 4, 7), t(2, 6, 3), [6, 2, 3], [2], [1], [2], 2"}});
}

// The transposed convolution that gives just the input's sizes.
Tensor input_gradient(const Tensor& dy, const Tensor& w, const Dims& sizes, const Dims& stride,
                      const Dims& padding, const Dims& dilation, int64_t groups) {
  const size_t n = w.sizes().size() - 2;
  const ConvParams p = params(n, stride, padding, dilation, groups);
  Dims extra;
  for (size_t i = 0; i < n; ++i) {
    const int64_t out = dy.sizes()[dy.sizes().size() - n + i];
    extra.push_back(sizes[sizes.size() - n + i] - ((out - 1) * p.stride[i] - 2 * p.padding[i] +
                                                   p.dilation[i] * (w.sizes()[i + 2] - 1) + 1));
  }
  const std::string op = cat("conv_transpose", n, "d");
  return call_tensor(op, dy, w, std::nullopt, p.stride, p.padding, extra, groups, p.dilation);
}

void register_input_gradient(Registry& r) {
  r.add(
       "_conv_input_grad(input: Tensor, weight: Tensor, input_sizes: int[], stride: int[], "
       "padding: int[], "
       "dilation: int[], groups: int) -> Tensor")
      .doc("The gradient of a convolution to its input, of the given sizes.")
      .where({.function = false, .method = false})
      .family(Family::kMatmul)
      .cost(product_cost)
      .shape([](const TensorMeta& dy, const TensorMeta&, const Dims& sizes, const Dims&,
                const Dims&, const Dims&, int64_t) {
        return TensorMeta{sizes, dy.dtype};
      })
      .kernel([](const Tensor& dy, const Tensor& w, const Dims& sizes, const Dims& s, const Dims& p,
                 const Dims& d,
                 int64_t groups) { return input_gradient(dy, w, sizes, s, p, d, groups); })
      .composite()
      .no_vmap(kVmapLater)
      .samples({{"t(2, 4, 4, 3), t(4, 3, 3, 3), [2, 3, 6, 5], [1], [0], [1], 1"},
                {"t(2, 6, 3), t(6, 2, 3), [2, 4, 8], [2], [1], [2], 2"}});
}

}  // namespace

void register_conv_transpose(Registry& r) {
  register_transposed<1>(r, {{"t(2, 3, 5), t(3, 4, 3), t(4)"},
                             {"t(3, 5), t(3, 4, 3)"},
                             {"t(2, 4, 5), t(4, 2, 3), None, 2, 1, 1, 2, 2"}});
  register_transposed<2>(r, {{"t(2, 3, 4, 5), t(3, 4, 3, 3), t(4)"},
                             {"t(2, 4, 4, 3), t(4, 3, 3, 2), t(6), [2, 1], [1, 0], [1, 0], 2"}});
  register_transposed<3>(r, {{"t(1, 2, 3, 4, 3), t(2, 3, 2, 3, 2), t(3)"}});
  register_weight_gradient(r);
  register_input_gradient(r);
}

}  // namespace prong
