// Work along one dim that gives more than a fold: softmax, the place of the largest, running sums.
// Called by defs/reduce.cpp, defs/softmax.cpp and others that need a row's probabilities.
#pragma once

#include <tuple>

#include "ops/kernels/reduce.h"

namespace prong {

// x as [outer, length, inner] around dim, contiguous and of `dtype`; a zero-dim tensor is one row
// of one element.
ReduceView view_along(const Tensor& x, int64_t dim, DType dtype);

// softmax, or its logarithm, along dim; computed in float for 16-bit dtypes.
Tensor softmax_along(const Tensor& x, int64_t dim, bool is_log);
// What it sends back, from its result.
Tensor softmax_slope_along(const Tensor& grad, const Tensor& result, int64_t dim, bool is_log);

// The largest (or smallest) along dim and where it first is; a NaN wins. Both have the sizes of x
// without dim.
std::tuple<Tensor, Tensor> extreme_along(const ReduceView& v, DimsView sizes, DType dtype,
                                         bool is_largest);

}  // namespace prong
