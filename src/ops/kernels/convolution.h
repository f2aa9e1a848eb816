// Convolution over N spatial dimensions, and its two gradients. Used by defs/conv.
#pragma once

#include "tensor/tensor.h"

namespace prong {

struct ConvParams {
  Dims stride, padding, dilation;  // one a spatial dimension
  int64_t groups = 1;
};

// input [N, C, *in], weight [O, C / groups, *kernel] → sizes of the result [N, O, *out]; PyTorch's
// errors on a mismatch.
// One value of `d` stands for all n spatial dimensions.
Dims spread(const Dims& d, size_t n, const char* what);
Dims conv_sizes(const TensorMeta& input, const TensorMeta& weight, const ConvParams& p);
void check_bias(const TensorMeta& weight, const TensorMeta& bias);
Tensor convolve(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                const ConvParams& p);
// The gradient to an input of these sizes, from the gradient of the result [N, O, *out].
Tensor convolve_to_input(const Tensor& grad, const Tensor& weight, const Dims& input_sizes,
                         const ConvParams& p);
// The gradient to a weight of these sizes. Sums over samples in an order that depends on sizes
// alone.
Tensor convolve_to_weight(const Tensor& grad, const Tensor& input, const Dims& weight_sizes,
                          const ConvParams& p);

}  // namespace prong
