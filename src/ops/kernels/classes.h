// Losses against classes: the entry of a row at its target, as it is (nll) or as a logarithm of a
// softmax (cross entropy), and what they send back. Used by defs/loss_classes.cpp.
#pragma once

#include <optional>
#include <string>

#include "tensor/tensor.h"

namespace prong {

enum class Reduction : uint8_t { kNone, kSum, kMean };

// How much each target counts: its class's weight (1 without), 0 where it is `ignored`; divided by
// their sum for a mean. Raises IndexError for a class that isn't there. A float64 tensor in the
// shape of target.
Tensor class_scale(const Tensor& target, const Tensor& weight, int64_t classes, int64_t ignored,
                   Reduction reduction);

// log_p [n, classes, inner...] or [classes], target without the dim of classes.
Tensor nll(const Tensor& log_p, const Tensor& target, const Tensor& weight, int64_t ignored,
           Reduction reduction);
Tensor nll_slope(const Tensor& grad, DimsView sizes, const Tensor& target, const Tensor& weight,
                 int64_t ignored, Reduction reduction);

// x [n, classes] or [classes].
Tensor cross_entropy_rows(const Tensor& x, const Tensor& target, const Tensor& weight,
                          int64_t ignored, Reduction reduction);
Tensor cross_entropy_slope(const Tensor& grad, const Tensor& x, const Tensor& target,
                           const Tensor& weight, int64_t ignored, Reduction reduction);

}  // namespace prong
