// Sizes of a convolution as three spatial dimensions. Used by the convolution*.cpp files here.
#pragma once

#include <array>

#include "ops/kernels/convolution.h"

namespace prong {

using Triple = std::array<int64_t, 3>;
inline int64_t product(const Triple& t) { return t[0] * t[1] * t[2]; }

// Missing dimensions are of size 1 in front.
struct ConvGeometry {
  int64_t batch, in_channels, out_channels, groups;
  Triple in{1, 1, 1}, kernel{1, 1, 1}, out{1, 1, 1}, stride{1, 1, 1}, padding{0, 0, 0},
      dilation{1, 1, 1};

  ConvGeometry(const Dims& input, const Dims& weight, const Dims& result, const ConvParams& p)
      : batch(input[0]), in_channels(input[1]), out_channels(weight[0]), groups(p.groups) {
    const size_t spatial = input.size() - 2, shift = 3 - spatial;
    for (size_t i = 0; i < spatial; ++i) {
      in[i + shift] = input[i + 2];
      kernel[i + shift] = weight[i + 2];
      out[i + shift] = result[i + 2];
      stride[i + shift] = p.stride[i];
      padding[i + shift] = p.padding[i];
      dilation[i + shift] = p.dilation[i];
    }
  }

  int64_t group_in() const { return in_channels / groups; }
  int64_t group_out() const { return out_channels / groups; }
  int64_t kernel_volume() const { return product(kernel); }
  int64_t in_volume() const { return product(in); }
  int64_t out_volume() const { return product(out); }
  double products() const {
    return static_cast<double>(batch * out_channels * out_volume()) *
           static_cast<double>(group_in() * kernel_volume());
  }
  bool is_pointwise() const {  // 1×1, stride 1: the input is its own column matrix
    return kernel_volume() == 1 && in_volume() == out_volume() &&
           padding[0] + padding[1] + padding[2] == 0;
  }
};

}  // namespace prong
