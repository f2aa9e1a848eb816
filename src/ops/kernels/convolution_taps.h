// Convolutions of floats on the kernels of blas/tap_kernels.h, without unfolding. Used by
// convolution.cpp where may_use_taps().
#pragma once

#include <vector>

#include "ops/kernels/convolution_geometry.h"

namespace prong {

// This machine has the kernels, and the work pays for splitting the operands.
bool may_use_taps(const ConvGeometry& g, DType dtype);

// What the kernels could not do with full accuracy, because its numbers are too large, too small,
// infinite or NaN: the result holds nothing useful there.
struct TapOutcome {
  bool is_done = true;                  // false: nothing was computed at all
  std::vector<int64_t> samples_undone;  // results that must be computed otherwise
};

// All operands are contiguous. out [N, O, ...]; bias null or [O].
TapOutcome taps_forward(const ConvGeometry& g, const float* input, const float* weight,
                        const float* bias, float* out);
// out: the gradient to the input.
TapOutcome taps_to_input(const ConvGeometry& g, const float* grad, const float* weight, float* out);
// out: the gradient to the weight; either done or not at all.
bool taps_to_weight(const ConvGeometry& g, const float* grad, const float* input, float* out);

}  // namespace prong
