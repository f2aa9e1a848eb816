// The transposes of convolutions: conv_transpose1d, 2d, 3d. They are what a convolution's gradient
// to its input is.
#include "ops/kernels/convolution.h"
#include "ops/op_def.h"
#include "ops/shape_of.h"

namespace prong {
namespace {

constexpr const char* kVmapLater = "vmap is not built yet";

Cost product_cost(const OpDef&, std::span<const IValue> args) {
  const TensorMeta x = meta_from(args[0]), w = meta_from(args[1]);
  return {2 * static_cast<double>(x.numel()) * static_cast<double>(w.numel()) /
              static_cast<double>(std::max<int64_t>(1, w.rank() ? w.sizes[0] : 1)),
          4.0 * static_cast<double>(x.numel() + w.numel())};
}

struct Transposed {
  Dims stride, padding, output_padding, dilation;
  int64_t groups;
};

template <int kSpatial>
Transposed settings(const Dims& s, const Dims& p, const Dims& extra, int64_t groups,
                    const Dims& d) {
  return {spread(s, kSpatial, "stride"), spread(p, kSpatial, "padding"),
          spread(extra, kSpatial, "output_padding"), spread(d, kSpatial, "dilation"), groups};
}

void check_channels(const TensorMeta& x, const TensorMeta& w, int64_t spatial, int64_t groups) {
  PRONG_CHECK(w.rank() == spatial + 2, kRuntime, "conv_transpose", spatial, "d: expected a ",
              spatial + 2, "D weight, but got shape ", w.sizes);
  PRONG_CHECK(x.rank() == spatial + 2 || x.rank() == spatial + 1, kRuntime, "Expected ",
              spatial + 1, "D (unbatched) or ", spatial + 2, "D (batched) input to conv_transpose",
              spatial, "d, but got input of size: ", x.sizes);
  PRONG_CHECK(x.dtype == w.dtype, kRuntime, "Input type (", x.dtype, ") and weight type (", w.dtype,
              ") should be the same");
  PRONG_CHECK(groups > 0, kRuntime, "non-positive groups is not supported");
  const int64_t channels = x.sizes[static_cast<size_t>(x.rank() - spatial - 1)];
  PRONG_CHECK(channels == w.sizes[0], kRuntime, "Given transposed=1, weight of size ", w.sizes,
              ", expected input", x.sizes, " to have ", w.sizes[0], " channels, but got ", channels,
              " channels instead");
  PRONG_CHECK(w.sizes[0] % groups == 0, kRuntime, "Given groups=", groups,
              ", expected weight to be divisible by ", groups,
              " at dimension 0, but got weight of size ", w.sizes, " instead");
}

void check_bias(const TensorMeta& w, const TensorMeta& bias, int64_t channels) {
  PRONG_CHECK(bias.rank() == 1 && bias.sizes[0] == channels, kRuntime,
              "Given transposed=1, weight of size ", w.sizes,
              ", expected bias to be 1-dimensional with ", channels,
              " elements, but got bias of size ", bias.sizes, " instead");
}

// The result's sizes, with a batch of one where the input has none.
Dims batched_sizes(const TensorMeta& x, const TensorMeta& w, int64_t spatial, const Transposed& t) {
  check_channels(x, w, spatial, t.groups);
  Dims out{x.rank() == spatial + 1 ? 1 : x.sizes[0], w.sizes[1] * t.groups};
  for (size_t i = 0; i < static_cast<size_t>(spatial); ++i) {
    PRONG_CHECK(t.stride[i] > 0, kRuntime, "non-positive stride is not supported");
    PRONG_CHECK(t.dilation[i] > 0, kRuntime, "dilation should be greater than zero");
    PRONG_CHECK(t.padding[i] >= 0, kRuntime, "negative padding is not supported");
    PRONG_CHECK(t.output_padding[i] >= 0, kRuntime, "negative output_padding is not supported");
    PRONG_CHECK(
        t.output_padding[i] < t.stride[i] || t.output_padding[i] < t.dilation[i], kRuntime,
        "output padding must be smaller than either stride or dilation, but got output_padding: ",
        t.output_padding, " stride: ", t.stride, " dilation: ", t.dilation);
    const int64_t in = x.sizes[static_cast<size_t>(x.rank() - spatial) + i];
    const int64_t size = (in - 1) * t.stride[i] - 2 * t.padding[i] +
                         t.dilation[i] * (w.sizes[i + 2] - 1) + 1 + t.output_padding[i];
    PRONG_CHECK(size > 0, kRuntime, "Given input size per channel: (", in,
                "). Calculated output size per channel: (", size, "). Output size is too small");
    out.push_back(size);
  }
  return out;
}

// An output padding of a stride or more is room that the convolution of the result would see: zeros
// after x stand for what it would find there.
Tensor as_convolved(const Tensor& x, const Tensor& w, const Dims& sizes, const Transposed& t) {
  Dims pad;
  bool is_padded = false;
  for (size_t i = t.stride.size(); i-- > 0;) {
    const int64_t reach = t.dilation[i] * (w.sizes()[i + 2] - 1) + 1;
    const int64_t seen = (sizes[i + 2] + 2 * t.padding[i] - reach) / t.stride[i] + 1;
    pad.push_back(0);
    pad.push_back(seen - x.sizes()[i + 2]);
    is_padded |= pad.back() > 0;
  }
  return is_padded ? call_tensor("constant_pad_nd", x, pad) : x;
}

Tensor transposed(const Tensor& given, const Tensor& w, const std::optional<Tensor>& bias,
                  int64_t spatial, const Transposed& t) {
  const Dims sizes = batched_sizes(given.meta(), w.meta(), spatial, t);
  if (bias) check_bias(w.meta(), bias->meta(), sizes[1]);
  const bool lacks_batch = given.rank() == spatial + 1;
  const Tensor x =
      as_convolved(lacks_batch ? call_tensor("unsqueeze", given, int64_t(0)) : given, w, sizes, t);
  Tensor out = call_tensor("conv_to_input", x, w, sizes, t.stride, t.padding, t.dilation, t.groups);
  if (bias) {
    Dims shape(static_cast<size_t>(spatial) + 1, 1);
    shape[0] = sizes[1];
    out = call_tensor("add", out, call_tensor("reshape", *bias, shape));
  }
  return lacks_batch ? call_tensor("squeeze.dim", out, int64_t(0)) : out;
}

template <int kSpatial>
void register_one(Registry& r, std::vector<Sample> samples) {
  const std::string n = std::to_string(kSpatial);
  r.add(cat("conv_transpose", n,
            "d(input: Tensor, weight: Tensor, bias: Tensor? = None, stride: int[", n,
            "] = 1, padding: int[", n, "] = 0, output_padding: int[", n,
            "] = 0, groups: int = 1, dilation: int[", n, "] = 1) -> Tensor"))
      .doc("The transpose of a convolution, with weight [C, O / groups, ...].")
      .where({.method = false, .nn_functional = true})
      .family(Family::kMatmul)
      .takes_complex()
      .cost(product_cost)
      .shape([](const TensorMeta& x, const TensorMeta& w, std::optional<TensorMeta> bias,
                const Dims& s, const Dims& p, const Dims& extra, int64_t groups, const Dims& d) {
        Dims sizes = batched_sizes(x, w, kSpatial, settings<kSpatial>(s, p, extra, groups, d));
        if (bias) check_bias(w, *bias, sizes[1]);
        if (x.rank() == kSpatial + 1) sizes.erase(0);
        const DType dtype =
            bias ? shape_of("add", TensorMeta{{1}, x.dtype}, TensorMeta{{1}, bias->dtype}).dtype
                 : x.dtype;
        return TensorMeta{sizes, dtype};
      })
      .kernel([](const Tensor& x, const Tensor& w, std::optional<Tensor> bias, const Dims& s,
                 const Dims& p, const Dims& extra, int64_t groups, const Dims& d) {
        return transposed(x, w, bias, kSpatial, settings<kSpatial>(s, p, extra, groups, d));
      })
      .composite()
      .no_vmap(kVmapLater)
      .samples(std::move(samples));
}

}  // namespace

void register_conv_transpose(Registry& r) {
  register_one<1>(r, {{"t(2, 3, 5), t(3, 4, 3), t(4)"},
                      {"t(3, 5), t(3, 4, 3)"},
                      {"t(2, 4, 5), t(4, 2, 3), None, 2, 1, 1, 2, 2"}});
  register_one<2>(r, {{"t(2, 3, 4, 5), t(3, 4, 3, 3), t(4)"},
                      {"t(2, 4, 4, 3), t(4, 3, 3, 2), t(6), [2, 1], [1, 0], [1, 0], 2"}});
  register_one<3>(r, {{"t(1, 2, 3, 4, 3), t(2, 3, 2, 3, 2), t(3)"}});
}

}  // namespace prong
