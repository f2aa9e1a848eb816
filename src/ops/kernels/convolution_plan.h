// The plan of a convolution, or of its gradient to the input, as sums over taps of planes. Used by
// convolution_taps.cpp and convolution_channels.cpp.
#pragma once

#include <vector>

#include "ops/blas/tap_kernels.h"
#include "ops/kernels/convolution_planes.h"

namespace prong {

// A tap of the kernel: where it lies in the weight, and the step it takes on a plane.
struct GatherTap {
  int64_t weight, plane;
  Triple q;
};
// Taps that one step of the sum covers: `q` is that of the first in the window.
struct GatherStep {
  int64_t plane;
  Triple q;
  int64_t weights[blas::kTapDepth];  // of each place in the window; -1 where there is none
};
// Results of one kind: at start + q * step of the output for q < count.
struct GatherGrid {
  Triple count, start, step;
  std::vector<GatherTap> taps;
  std::vector<GatherStep> steps;
  int64_t panels = 0;  // where its weights begin, in steps of a column block
};

struct GatherPlan {
  ConvSource source;
  int64_t batch, groups, channels, columns;  // of a group
  Triple out;                                // extent of the output
  ConvPlanes planes;
  std::vector<GatherGrid> grids;
  int64_t row_step = 1;  // positions between neighbours in a line of the result
  int64_t width = 32;    // channels of a block

  int64_t window() const { return blas::kTapDepth / width; }
  int64_t blocks() const { return (channels + width - 1) / width; }
  int64_t column_blocks() const { return (columns + blas::kTapColumns - 1) / blas::kTapColumns; }
  Triple most() const {
    Triple m{0, 0, 0};
    for (const GatherGrid& grid : grids)
      for (size_t i = 0; i < 3; ++i) m[i] = std::max(m[i], grid.count[i]);
    return m;
  }
  int64_t plane_count() const { return static_cast<int64_t>(planes.shifts.size()); }
  int64_t line_width() const { return (most()[2] - 1) * row_step + planes.reach[2]; }
  int64_t steps() const {
    int64_t n = 0;
    for (const GatherGrid& grid : grids) n += static_cast<int64_t>(grid.steps.size());
    return n * blocks();
  }

  void pick_width();  // few channels: the narrowest block that holds them
  void make_steps();
};

// With windows, where channels are few: steps of a sum that cover neighbouring taps.
GatherPlan forward_plan(const ConvGeometry& g, const float* input, bool has_windows);
// Inputs at q * stride + r have the same taps, whatever q: a grid for each r.
GatherPlan to_input_plan(const ConvGeometry& g, const float* grad, bool has_windows);

}  // namespace prong
