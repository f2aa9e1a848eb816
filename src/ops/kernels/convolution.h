// Convolution over N spatial dimensions by unfolding into columns and a matrix product a sample and
// group. Used by defs/conv.
#pragma once

#include "tensor/tensor.h"

namespace prong {

struct ConvParams {
  Dims stride, padding, dilation;  // one a spatial dimension
  int64_t groups = 1;
};

// input [N, C, *in], weight [O, C / groups, *kernel] → sizes of the result [N, O, *out]; PyTorch's
// errors on a mismatch.
Dims conv_sizes(const TensorMeta& input, const TensorMeta& weight, const ConvParams& p);
Tensor convolve(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                const ConvParams& p);

}  // namespace prong
