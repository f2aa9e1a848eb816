// Convolutions of floats whose groups are too small for matrix products, as the groups of one
// channel of mobile networks: tap by tap over whole lines. Used by convolution.cpp where
// may_go_by_channels().
#pragma once

#include "ops/kernels/convolution_geometry.h"

namespace prong {

bool may_go_by_channels(const ConvGeometry& g, DType dtype);

// As the functions of convolution_taps.h, for all numbers.
void channels_forward(const ConvGeometry& g, const float* input, const float* weight,
                      const float* bias, float* out);
void channels_to_input(const ConvGeometry& g, const float* grad, const float* weight, float* out);
// False where it must be computed otherwise, because of infinite numbers or NaN.
bool channels_to_weight(const ConvGeometry& g, const float* grad, const float* input, float* out);

}  // namespace prong
