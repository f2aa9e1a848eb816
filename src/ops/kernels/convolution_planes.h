// How a convolution reads its source without unfolding it: planes of positions, on which every tap
// of the kernel is a step to the side. Used by convolution_taps.cpp and
// convolution_taps_weight.cpp.
//
// Position q of a plane holds the source at q * step + shift, zero outside of it. A stride of 2
// gives a plane each to even and odd places, so that neighbours in the result are neighbours in
// every plane. Planes are read as if they had one dimension: a line's end runs on into the next
// line, and what is computed there is left out of the result.
#pragma once

#include <algorithm>
#include <vector>

#include "base/rounding.h"
#include "ops/kernels/convolution_geometry.h"

namespace prong {

// [batch, channels, ...] in memory.
struct ConvSource {
  const float* data;
  int64_t channels;
  Triple extent;
  Triple step;
  const float* channel(int64_t sample, int64_t c) const {
    return data + (sample * channels + c) * product(extent);
  }
};

struct ConvPlanes {
  std::vector<Triple> shifts;  // of each plane
  Triple reach{1, 1, 1};       // how far taps step, plus one

  // The plane with this shift, which is added if it is new.
  int64_t plane(const Triple& shift) {
    const auto at = std::find(shifts.begin(), shifts.end(), shift);
    if (at != shifts.end()) return at - shifts.begin();
    shifts.push_back(shift);
    return static_cast<int64_t>(shifts.size()) - 1;
  }
  void reach_to(const Triple& q) {
    for (size_t i = 0; i < 3; ++i) reach[i] = std::max(reach[i], q[i] + 1);
  }
};

// Some of the positions: slices (a sample and a q[0]), and lines (q[1]) of each.
struct ConvRegion {
  int64_t first_slice, slices, first_line, lines;
};

// The cut of `slices` times `lines` into regions of about `positions` each, by sizes alone.
class ConvRegions {
 public:
  ConvRegions(int64_t slices, int64_t lines, int64_t line_positions, int64_t slice_extra,
              int64_t positions)
      : slices_(slices), lines_(lines) {
    const int64_t slice = lines * line_positions + slice_extra;
    if (slice <= positions) {
      region_slices_ =
          even_part(slices, std::max<int64_t>(1, positions / std::max<int64_t>(1, slice)));
      region_lines_ = std::max<int64_t>(1, lines);
    } else {
      region_slices_ = 1;
      region_lines_ = even_part(lines, std::max<int64_t>(1, positions / line_positions));
    }
  }
  int64_t count() const { return ceil_div(slices_, region_slices_) * line_parts(); }
  int64_t most_slices() const { return region_slices_; }
  int64_t most_lines() const { return region_lines_; }
  ConvRegion operator[](int64_t i) const {
    const int64_t slice = i / line_parts() * region_slices_,
                  line = i % line_parts() * region_lines_;
    return {slice, std::min(region_slices_, slices_ - slice), line,
            std::min(region_lines_, lines_ - line)};
  }

 private:
  static int64_t even_part(int64_t n, int64_t most) {
    return std::max<int64_t>(1, ceil_div(n, std::max<int64_t>(1, ceil_div(n, most))));
  }
  int64_t line_parts() const { return ceil_div(lines_, region_lines_); }
  int64_t slices_, lines_, region_slices_, region_lines_;
};

// Positions [0, width) of lines q1 .. q1 + lines of slice q0, one line after the other.
void copy_plane_lines(const ConvSource& source, const float* channel, const Triple& shift,
                      int64_t q0, int64_t q1, int64_t lines, int64_t width, float* out);

// Positions as they lie in the source, p at from[p] where low <= p < high; the others are zero.
struct ConvSpan {
  const float* from;
  int64_t low, high;
};
// Line q1 of slice q0; the source's last step must be 1.
ConvSpan line_span(const ConvSource& source, const float* channel, const Triple& shift, int64_t q0,
                   int64_t q1, int64_t width);
// Such lines where they lie in the source as on the plane; else null.
const float* plane_lines_in_place(const ConvSource& source, const float* channel,
                                  const Triple& shift, int64_t q0, int64_t q1, int64_t lines,
                                  int64_t width);

}  // namespace prong
