// Convolutions tap by tap. See convolution_channels.h.
//
// A region of a group's planes (convolution_planes.h) is copied, with its zeros; then a stretch of
// results is a sum over taps, each a number times a stretch of the copy.
#include "ops/kernels/convolution_channels.h"
#include "base/rounding.h"

#include <atomic>

#include "ops/blas/aligned_buffer.h"
#include "ops/kernels/convolution_plan.h"
#include "ops/kernels/simd.h"
#include "runtime/parallel.h"

namespace prong {
namespace {

using blas::AlignedBuffer;

typedef float Vector __attribute__((vector_size(64)));
typedef float Unaligned __attribute__((vector_size(64), aligned(4), may_alias));
constexpr int64_t kLanes = 16, kVectors = 4, kStretch = kLanes * kVectors;

// A reference, since a function of the baseline cannot return such a vector.
PRONG_INLINE const Unaligned& at(const float* p) { return *reinterpret_cast<const Unaligned*>(p); }

// out[p] = start + the sum over taps of weights[t] * plane[offsets[t] + p], for p < count; reads
// and writes up to the next multiple of 64.
struct SumOverTaps {
  static PRONG_INLINE void run(const float* plane, const int64_t* offsets, const float* weights,
                               int64_t taps, float start, int64_t count, float* out) {
    for (int64_t p = 0; p < count; p += kStretch) {
      Vector sums[kVectors] = {};
      for (int64_t v = 0; v < kVectors; ++v) sums[v] += start;
      for (int64_t t = 0; t < taps; ++t) {
        const float *from = plane + offsets[t] + p, w = weights[t];
        for (int64_t v = 0; v < kVectors; ++v) sums[v] += w * at(from + v * kLanes);
      }
      for (int64_t v = 0; v < kVectors; ++v)
        *reinterpret_cast<Unaligned*>(out + p + v * kLanes) = sums[v];
    }
  }
};

// sums[t] = the sum over p < count of grad[p] * plane[offsets[t] + p]; count is a multiple of 16.
struct SumOverPlaces {
  template <int64_t kTaps>
  static PRONG_INLINE void some(const float* plane, const int64_t* offsets, const float* grad,
                                int64_t count, float* sums) {
    Vector lanes[kTaps] = {};
    for (int64_t p = 0; p < count; p += kLanes) {
      const Unaligned& g = at(grad + p);
      for (int64_t t = 0; t < kTaps; ++t) lanes[t] += g * at(plane + offsets[t] + p);
    }
    for (int64_t t = 0; t < kTaps; ++t) {
      for (int64_t width = kLanes / 2; width > 0; width /= 2)
        for (int64_t i = 0; i < width; ++i) lanes[t][i] += lanes[t][i + width];
      sums[t] = lanes[t][0];
    }
  }
  static PRONG_INLINE void run(const float* plane, const int64_t* offsets, int64_t taps,
                               const float* grad, int64_t count, float* sums) {
    int64_t t = 0;
    for (; t + 9 <= taps; t += 9) some<9>(plane, offsets + t, grad, count, sums + t);
    for (; t + 3 <= taps; t += 3) some<3>(plane, offsets + t, grad, count, sums + t);
    for (; t < taps; ++t) some<1>(plane, offsets + t, grad, count, sums + t);
  }
};

// A copied region of one group's channels.
class Copy {
 public:
  Copy(const GatherPlan& p, const ConvRegions& regions) : p_(p), width_(p.line_width()) {
    const int64_t lines = regions.most_lines() + p.planes.reach[1] - 1;
    pitch_ =
        regions.most_slices() * p.plane_count() * p.planes.reach[0] * lines * width_ + 2 * kStretch;
    buffer_ = AlignedBuffer(static_cast<size_t>(p.channels * pitch_) * sizeof(float));
  }
  void load(const ConvRegion& region, int64_t group, int64_t out_slices) {
    lines_ = region.lines + p_.planes.reach[1] - 1;
    for (int64_t c = 0; c < p_.channels; ++c) {
      float* out = buffer_.floats() + c * pitch_;
      float* const end = out + pitch_;
      for (int64_t i = region.first_slice; i < region.first_slice + region.slices; ++i) {
        const float* from = p_.source.channel(i / out_slices, group * p_.channels + c);
        for (const Triple& shift : p_.planes.shifts)
          for (int64_t d = 0; d < p_.planes.reach[0]; ++d, out += lines_ * width_)
            copy_plane_lines(p_.source, from, shift, i % out_slices + d, region.first_line, lines_,
                             width_, out);
      }
      std::fill(out, end, 0.0f);
    }
  }
  const float* slice(int64_t i) {
    return buffer_.floats() + i * p_.plane_count() * p_.planes.reach[0] * lines_ * width_;
  }
  int64_t offset(int64_t channel, const GatherTap& tap) const {
    return channel * pitch_ +
           ((tap.plane * p_.planes.reach[0] + tap.q[0]) * lines_ + tap.q[1]) * width_ + tap.q[2];
  }

 private:
  const GatherPlan& p_;
  int64_t width_, lines_ = 0, pitch_;
  AlignedBuffer buffer_;
};

ConvRegions regions_of(const GatherPlan& p) {
  constexpr int64_t kFloats = 6144;  // beside the results in the first-level cache
  const int64_t planes = p.plane_count() * p.planes.reach[0], width = p.line_width();
  return {p.batch * p.most()[0], p.most()[1], planes * width,
          planes * (p.planes.reach[1] - 1) * width, std::max<int64_t>(64, kFloats / p.channels)};
}

class ChannelSums {
 public:
  // The weight lies as [groups * columns, channels, volume] forward, else as
  // [groups * channels, columns, volume].
  ChannelSums(const GatherPlan& p, const float* weight, bool is_forward, int64_t volume,
              const float* bias, float* out)
      : p_(p), weight_(weight), is_forward_(is_forward), volume_(volume), bias_(bias), out_(out),
        slices_(p.most()[0]), regions_(regions_of(p)) {}

  void run() const {
    const int64_t tasks = regions_.count() * p_.groups;
    const int64_t work = regions_.most_slices() * regions_.most_lines() * p_.line_width() *
                         p_.columns * p_.channels * volume_;
    const int64_t grain = std::max<int64_t>(1, (1 << 18) / std::max<int64_t>(1, work));
    parallel_for(0, tasks, grain, [&](int64_t begin, int64_t end) {
      Copy copy(p_, regions_);
      AlignedBuffer sums(static_cast<size_t>(regions_.most_lines() * p_.line_width() + kStretch) *
                         sizeof(float));
      for (int64_t i = begin; i < end; ++i) {
        const ConvRegion region = regions_[i / p_.groups];
        copy.load(region, i % p_.groups, slices_);
        for (const GatherGrid& grid : p_.grids)
          for (int64_t c = 0; c < p_.columns; ++c)
            add_up(copy, region, grid, i % p_.groups, c, sums.floats());
      }
    });
  }

 private:
  float weight(int64_t group, int64_t channel, int64_t column, int64_t tap) const {
    const int64_t at = is_forward_ ? (group * p_.columns + column) * p_.channels + channel
                                   : (group * p_.channels + channel) * p_.columns + column;
    return weight_[at * volume_ + tap];
  }

  void add_up(Copy& copy, const ConvRegion& region, const GatherGrid& grid, int64_t group,
              int64_t column, float* sums) const {
    const int64_t lines = std::min(region.lines, grid.count[1] - region.first_line);
    if (lines <= 0) return;
    std::vector<int64_t> offsets;
    std::vector<float> weights;
    for (int64_t c = 0; c < p_.channels; ++c)
      for (const GatherTap& tap : grid.taps) {
        offsets.push_back(copy.offset(c, tap));
        weights.push_back(weight(group, c, column, tap.weight));
      }
    const int64_t count = (lines - 1) * p_.line_width() + grid.count[2],
                  channel = group * p_.columns + column;
    const float start = bias_ ? bias_[channel] : 0.0f;
    for (int64_t i = 0; i < region.slices; ++i) {
      const int64_t slice = region.first_slice + i;
      if (slice % slices_ >= grid.count[0]) continue;
      run_simd<SumOverTaps>(copy.slice(i), static_cast<const int64_t*>(offsets.data()),
                            static_cast<const float*>(weights.data()),
                            static_cast<int64_t>(offsets.size()), start, count, sums);
      const int64_t d = slice % slices_ * grid.step[0] + grid.start[0],
                    h = region.first_line * grid.step[1] + grid.start[1];
      float* to = out_ + (slice / slices_ * p_.groups * p_.columns + channel) * product(p_.out) +
                  (d * p_.out[1] + h) * p_.out[2] + grid.start[2];
      for (int64_t line = 0; line < lines; ++line, to += grid.step[1] * p_.out[2]) {
        const float* from = sums + line * p_.line_width();
        if (grid.step[2] == 1)
          std::copy_n(from, grid.count[2], to);
        else
          for (int64_t q = 0; q < grid.count[2]; ++q) to[q * grid.step[2]] = from[q];
      }
    }
  }

  const GatherPlan& p_;
  const float* weight_;
  bool is_forward_;
  int64_t volume_;
  const float* bias_;
  float* out_;
  int64_t slices_;
  ConvRegions regions_;
};

// The gradient to the weights of one group: regions in order, their sums in double. False where it
// has a NaN, which an infinite number times a zero between the results may have made.
bool sum_group(const GatherPlan& p, const ConvRegions& regions, int64_t group, const float* grad,
               Copy& copy, float* places, float* out) {
  const GatherGrid& grid = p.grids[0];
  const int64_t width = p.line_width(), slices = p.most()[0];
  const auto taps = static_cast<int64_t>(grid.taps.size());
  std::vector<double> totals(static_cast<size_t>(p.columns * p.channels * taps), 0.0);
  std::vector<int64_t> offsets;
  std::vector<float> sums(static_cast<size_t>(p.channels * taps));
  for (int64_t r = 0; r < regions.count(); ++r) {
    const ConvRegion region = regions[r];
    copy.load(region, group, slices);
    offsets.clear();
    for (int64_t c = 0; c < p.channels; ++c)
      for (const GatherTap& tap : grid.taps) offsets.push_back(copy.offset(c, tap));
    const int64_t count = round_up(region.lines * width, kLanes);
    for (int64_t i = 0; i < region.slices; ++i)
      for (int64_t column = 0; column < p.columns; ++column) {
        const int64_t slice = region.first_slice + i;
        const ConvSource of_grad{grad, p.groups * p.columns, grid.count, {1, 1, 1}};
        std::fill(places + region.lines * width, places + count, 0.0f);
        copy_plane_lines(of_grad, of_grad.channel(slice / slices, group * p.columns + column),
                         {0, 0, 0}, slice % slices, region.first_line, region.lines, width, places);
        run_simd<SumOverPlaces>(copy.slice(i), static_cast<const int64_t*>(offsets.data()),
                                p.channels * taps, static_cast<const float*>(places), count,
                                sums.data());
        for (int64_t t = 0; t < p.channels * taps; ++t)
          totals[static_cast<size_t>(column * p.channels * taps + t)] +=
              sums[static_cast<size_t>(t)];
      }
  }
  bool is_number = true;
  for (const double total : totals) is_number &= total == total;
  for (int64_t i = 0; i < p.columns * p.channels; ++i)
    for (int64_t t = 0; t < taps; ++t)
      out[(group * p.columns * p.channels + i) * taps + grid.taps[static_cast<size_t>(t)].weight] =
          static_cast<float>(totals[static_cast<size_t>(i * taps + t)]);
  return is_number;
}

}  // namespace

bool may_go_by_channels(const ConvGeometry& g, DType dtype) {
  constexpr double kWork = 1 << 12;
  return dtype == DType::kFloat32 && g.groups > 1 && g.group_in() * g.group_out() < 16 &&
         g.products() >= kWork;
}

void channels_forward(const ConvGeometry& g, const float* input, const float* weight,
                      const float* bias, float* out) {
  const GatherPlan p = forward_plan(g, input, false);
  ChannelSums(p, weight, true, g.kernel_volume(), bias, out).run();
}

void channels_to_input(const ConvGeometry& g, const float* grad, const float* weight, float* out) {
  const GatherPlan p = to_input_plan(g, grad, false);
  ChannelSums(p, weight, false, g.kernel_volume(), nullptr, out).run();
}

bool channels_to_weight(const ConvGeometry& g, const float* grad, const float* input, float* out) {
  const GatherPlan p = forward_plan(g, input, false);
  const ConvRegions regions = regions_of(p);
  std::atomic<bool> is_number{true};
  parallel_for(0, g.groups, 1, [&](int64_t begin, int64_t end) {
    Copy copy(p, regions);
    AlignedBuffer places(static_cast<size_t>(regions.most_lines() * p.line_width() + kLanes) *
                         sizeof(float));
    for (int64_t group = begin; group < end; ++group)
      if (!sum_group(p, regions, group, grad, copy, places.floats(), out))
        is_number.store(false, std::memory_order_relaxed);
  });
  return is_number;
}

}  // namespace prong
