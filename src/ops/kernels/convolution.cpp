// Unfold-and-multiply convolution for 1 to 3 spatial dimensions, samples in parallel.
#include "ops/kernels/convolution.h"

#include <cstring>

#include "ops/kernels/product.h"
#include "runtime/parallel.h"

namespace prong {
namespace {

// Everything as three spatial dimensions; missing ones are of size 1 in front.
struct Geometry {
  int64_t batch, in_channels, out_channels, groups;
  int64_t in[3], kernel[3], out[3], stride[3], padding[3], dilation[3];
  int64_t group_in() const { return in_channels / groups; }
  int64_t group_out() const { return out_channels / groups; }
  int64_t kernel_volume() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t in_volume() const { return in[0] * in[1] * in[2]; }
  int64_t out_volume() const { return out[0] * out[1] * out[2]; }
  bool is_pointwise() const {  // 1×1, stride 1: the input is its own column matrix
    return kernel_volume() == 1 && in_volume() == out_volume() &&
           padding[0] + padding[1] + padding[2] == 0;
  }
};

Geometry geometry(const Dims& input, const Dims& weight, const Dims& result, const ConvParams& p) {
  Geometry g{input[0],  input[1],  weight[0], p.groups,  {1, 1, 1},
             {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}};
  const size_t spatial = input.size() - 2, shift = 3 - spatial;
  for (size_t i = 0; i < spatial; ++i) {
    g.in[i + shift] = input[i + 2];
    g.kernel[i + shift] = weight[i + 2];
    g.out[i + shift] = result[i + 2];
    g.stride[i + shift] = p.stride[i];
    g.padding[i + shift] = p.padding[i];
    g.dilation[i + shift] = p.dilation[i];
  }
  return g;
}

// One row of columns: for a fixed channel and kernel position, the value under it at each output
// position.
template <class T>
void unfold_row(const T* plane, T* row, const Geometry& g, int64_t kd, int64_t kh, int64_t kw) {
  for (int64_t od = 0; od < g.out[0]; ++od) {
    const int64_t d = od * g.stride[0] - g.padding[0] + kd * g.dilation[0];
    for (int64_t oh = 0; oh < g.out[1]; ++oh, row += g.out[2]) {
      const int64_t h = oh * g.stride[1] - g.padding[1] + kh * g.dilation[1];
      if (d < 0 || d >= g.in[0] || h < 0 || h >= g.in[1]) {
        std::memset(static_cast<void*>(row), 0, static_cast<size_t>(g.out[2]) * sizeof(T));
        continue;
      }
      const T* line = plane + (d * g.in[1] + h) * g.in[2];
      const int64_t first = kw * g.dilation[2] - g.padding[2];
      for (int64_t ow = 0; ow < g.out[2]; ++ow) {
        const int64_t w = ow * g.stride[2] + first;
        row[ow] = w >= 0 && w < g.in[2] ? line[w] : T{};
      }
    }
  }
}

template <class T>
void unfold(const T* image, T* columns, const Geometry& g) {
  for (int64_t c = 0; c < g.group_in(); ++c)
    for (int64_t kd = 0; kd < g.kernel[0]; ++kd)
      for (int64_t kh = 0; kh < g.kernel[1]; ++kh)
        for (int64_t kw = 0; kw < g.kernel[2]; ++kw, columns += g.out_volume())
          unfold_row(image + c * g.in_volume(), columns, g, kd, kh, kw);
}

}  // namespace

Dims conv_sizes(const TensorMeta& input, const TensorMeta& weight, const ConvParams& p) {
  const int64_t spatial = weight.rank() - 2;
  PRONG_CHECK(input.rank() == weight.rank(), kRuntime, "Expected ", spatial + 1,
              "D (unbatched) or ", spatial + 2, "D (batched) input to conv", spatial,
              "d, but got input of size: ", input.sizes);
  PRONG_CHECK(input.dtype == weight.dtype, kRuntime, "Input type (", input.dtype,
              ") and weight type (", weight.dtype, ") should be the same");
  PRONG_CHECK(p.groups > 0, kRuntime, "non-positive groups is not supported");
  PRONG_CHECK(input.sizes[1] == weight.sizes[1] * p.groups, kRuntime, "Given groups=", p.groups,
              ", weight of size ", weight.sizes, ", expected input", input.sizes, " to have ",
              weight.sizes[1] * p.groups, " channels, but got ", input.sizes[1],
              " channels instead");
  PRONG_CHECK(weight.sizes[0] % p.groups == 0, kRuntime, "Given groups=", p.groups,
              ", expected weight to be divisible by ", p.groups,
              " at dimension 0, but got weight of size ", weight.sizes, " instead");
  Dims out{input.sizes[0], weight.sizes[0]};
  for (size_t i = 0; i < static_cast<size_t>(spatial); ++i) {
    PRONG_CHECK(p.stride[i] > 0, kRuntime, "non-positive stride is not supported");
    PRONG_CHECK(p.dilation[i] > 0, kRuntime, "dilation should be greater than zero");
    PRONG_CHECK(p.padding[i] >= 0, kRuntime, "negative padding is not supported");
    const int64_t padded = input.sizes[i + 2] + 2 * p.padding[i],
                  reach = p.dilation[i] * (weight.sizes[i + 2] - 1) + 1;
    PRONG_CHECK(padded >= reach, kRuntime, "Calculated padded input size per channel: (", padded,
                "). Kernel size: (", reach,
                "). Kernel size can't be greater than actual input size");
    out.push_back((padded - reach) / p.stride[i] + 1);
  }
  return out;
}

Tensor convolve(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                const ConvParams& p) {
  const Dims sizes = conv_sizes(input.meta(), weight.meta(), p);
  PRONG_CHECK(!bias || (bias->rank() == 1 && bias->size(0) == weight.size(0)), kRuntime,
              "Given weight of size ", weight.sizes(), ", expected bias to be 1-dimensional with ",
              weight.size(0), " elements, but got bias of size ", bias ? bias->sizes() : Dims{},
              " instead");
  const Tensor out = Tensor::empty(sizes, input.dtype());
  if (out.numel() == 0) return out;
  const Geometry g = geometry(input.sizes(), weight.sizes(), sizes, p);
  const Tensor in = input.contiguous(),
               w = reshaped(weight,
                            Dims{g.groups, g.group_out(), g.group_in() * g.kernel_volume()});
  const int64_t k = g.group_in() * g.kernel_volume(), n = g.out_volume();
  if (bias)
    copy_into(reshaped(out, Dims{g.batch, g.out_channels, n}),
              bias->as_strided(Dims{g.batch, g.out_channels, n}, Dims{0, bias->stride(0), 0},
                               bias->offset()));
  const auto multiply = [&](const Tensor& columns, int64_t sample, int64_t group) {
    const Tensor w_g =
        w.as_strided(Dims{g.group_out(), k}, Dims{k, 1}, w.offset() + group * g.group_out() * k);
    const Tensor out_g = out.as_strided(Dims{g.group_out(), n}, Dims{n, 1},
                                        (sample * g.out_channels + group * g.group_out()) * n);
    product_into("conv", w_g, columns, out_g, 1, bias ? 1 : 0);
  };
  parallel_for(0, g.batch * g.groups, 1, [&](int64_t begin, int64_t end) {
    Tensor columns;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t sample = i / g.groups, group = i % g.groups;
      const int64_t start =
          in.offset() + (sample * g.in_channels + group * g.group_in()) * g.in_volume();
      if (g.is_pointwise()) {
        multiply(in.as_strided(Dims{k, n}, Dims{n, 1}, start), sample, group);
        continue;
      }
      if (!columns) columns = Tensor::empty(Dims{k, n}, input.dtype());
      visit_width(input.dtype(), [&]<class U>(TypeTag<U>) {
        unfold(static_cast<const U*>(in.storage()->data()) + start, static_cast<U*>(columns.raw()),
               g);
      });
      multiply(columns, sample, group);
    }
  });
  return out;
}

}  // namespace prong
