// The plans of convolutions. See convolution_plan.h.
#include "ops/kernels/convolution_plan.h"

#include <tuple>

namespace prong {
void GatherPlan::pick_width() {
  if (channels > 16) return;
  for (width = 1; width < channels;) width *= 2;
}

void GatherPlan::make_steps() {
  int64_t panels = 0;
  for (GatherGrid& grid : grids) {
    grid.panels = panels;
    std::stable_sort(grid.taps.begin(), grid.taps.end(),
                     [](const GatherTap& a, const GatherTap& b) {
                       return std::tie(a.plane, a.q) < std::tie(b.plane, b.q);
                     });
    for (const GatherTap& tap : grid.taps) {
      GatherStep* last = grid.steps.empty() ? nullptr : &grid.steps.back();
      const bool fits = last && last->plane == tap.plane && last->q[0] == tap.q[0] &&
                        last->q[1] == tap.q[1] && tap.q[2] - last->q[2] < window();
      if (!fits) {
        grid.steps.push_back({tap.plane, tap.q, {}});
        last = &grid.steps.back();
        std::fill(std::begin(last->weights), std::end(last->weights), -1);
      }
      last->weights[tap.q[2] - last->q[2]] = tap.weight;
      planes.reach_to(tap.q);
    }
    panels += static_cast<int64_t>(grid.steps.size()) * blocks();
  }
}

namespace {

template <class F>
void for_kernel(const ConvGeometry& g, F&& f) {
  int64_t weight = 0;
  for (int64_t a = 0; a < g.kernel[0]; ++a)
    for (int64_t b = 0; b < g.kernel[1]; ++b)
      for (int64_t c = 0; c < g.kernel[2]; ++c) f(weight++, Triple{a, b, c});
}

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

}  // namespace

GatherPlan forward_plan(const ConvGeometry& g, const float* input, bool has_windows) {
  GatherPlan p{{input, g.in_channels, g.in, g.stride},
               g.batch,
               g.groups,
               g.group_in(),
               g.group_out(),
               g.out,
               {},
               {}};
  if (has_windows) p.pick_width();
  if (p.window() > 1) {  // positions of a window are neighbours in the source
    p.row_step = g.stride[2];
    p.source.step[2] = 1;
  }
  GatherGrid grid{g.out, {0, 0, 0}, {1, 1, 1}, {}, {}};
  for_kernel(g, [&](int64_t weight, const Triple& k) {
    Triple q, shift;
    for (size_t i = 0; i < 3; ++i) {
      q[i] = k[i] * g.dilation[i] / p.source.step[i];
      shift[i] = k[i] * g.dilation[i] % p.source.step[i] - g.padding[i];
    }
    grid.taps.push_back({weight, p.planes.plane(shift), q});
  });
  p.grids.push_back(std::move(grid));
  p.make_steps();
  return p;
}

GatherPlan to_input_plan(const ConvGeometry& g, const float* grad, bool has_windows) {
  GatherPlan p{{grad, g.out_channels, g.out, {1, 1, 1}},
               g.batch,
               g.groups,
               g.group_out(),
               g.group_in(),
               g.in,
               {},
               {}};
  if (has_windows) p.pick_width();
  Triple first{};  // the lowest step of any tap, which becomes the plane's shift
  for (size_t i = 0; i < 3; ++i)
    first[i] = floor_div(g.padding[i] - (g.kernel[i] - 1) * g.dilation[i], g.stride[i]);
  p.planes.plane(first);
  Triple r;
  for (r[0] = 0; r[0] < std::min(g.stride[0], g.in[0]); ++r[0])
    for (r[1] = 0; r[1] < std::min(g.stride[1], g.in[1]); ++r[1])
      for (r[2] = 0; r[2] < std::min(g.stride[2], g.in[2]); ++r[2]) {
        GatherGrid grid{{}, r, g.stride, {}, {}};
        for (size_t i = 0; i < 3; ++i)
          grid.count[i] = (g.in[i] - r[i] + g.stride[i] - 1) / g.stride[i];
        for_kernel(g, [&](int64_t weight, const Triple& k) {
          Triple q;
          for (size_t i = 0; i < 3; ++i) {
            const int64_t at = r[i] + g.padding[i] - k[i] * g.dilation[i];
            if (at % g.stride[i] != 0) return;
            q[i] = at / g.stride[i] - first[i];
          }
          grid.taps.push_back({weight, 0, q});
        });
        p.grids.push_back(std::move(grid));
      }
  p.make_steps();
  return p;
}

}  // namespace prong
