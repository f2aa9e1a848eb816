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

// The transpose: input [N, C, *in], weight [C, O / groups, *kernel] → [N, O, *out].
Dims conv_transpose_sizes(const TensorMeta& input, const TensorMeta& weight, const ConvParams& p,
                          const Dims& output_padding);
Tensor convolve_transposed(const Tensor& input, const Tensor& weight,
                           const std::optional<Tensor>& bias, const ConvParams& p,
                           const Dims& output_padding);
// The gradient of convolve to its weight, of sizes `weight`.
Tensor convolution_weight_gradient(const Tensor& input, const Tensor& gradient, const Dims& weight,
                                   const ConvParams& p);

}  // namespace prong
