// Pooling over 1 to 3 spatial dimensions: the windows of each output position, and the loops over
// them. Used by defs/pool.cpp.
#pragma once

#include <vector>

#include "ops/op_def.h"

namespace prong {

// The elements of one dimension that an output position sees: first, first + step, ... before end.
struct PoolWindow {
  int64_t first, end;
  int64_t divisor;  // how many an average counts, padding included where that is asked for
};

// One spatial dimension: its windows.
struct PoolAxis {
  int64_t size = 1, step = 1;
  std::vector<PoolWindow> windows;
};

// The last `axes.size()` dimensions of a tensor; everything before them is planes.
using PoolAxes = std::vector<PoolAxis>;

struct PoolParams {
  Dims kernel, stride, padding, dilation;  // one a spatial dimension
  bool ceil_mode = false;
  bool counts_padding = true;
};

void check_pooled(DType dtype);  // not bools, nor complex numbers
// Sizes of the result's spatial dimensions; PyTorch's errors.
Dims pool_sizes(const TensorMeta& input, const PoolParams& p);
PoolAxes pool_axes(const TensorMeta& input, const PoolParams& p);
// Windows that divide each dimension into as many parts as the result has elements.
PoolAxes adaptive_axes(const TensorMeta& input, const Dims& output);

// The largest of each window (a NaN wins) and its place in its plane.
std::tuple<Tensor, Tensor> max_pool(const Tensor& input, const PoolAxes& axes);
// The mean of each window; divisor 0: what the windows say.
Tensor average_pool(const Tensor& input, const PoolAxes& axes, int64_t divisor);
// Its transpose: each gradient spread over its window.
Tensor average_pool_backward(const Tensor& gradient, DimsView input_sizes, const PoolAxes& axes,
                             int64_t divisor);

}  // namespace prong
