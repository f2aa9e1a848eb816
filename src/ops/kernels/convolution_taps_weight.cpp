// The gradient of a convolution to its weight as products over positions. See convolution_taps.h.
//
// For each tap, [channels, positions] of the input's planes (convolution_planes.h), stepped to the
// side, times [positions, columns] of the result's gradient, laid out at the same positions with
// zeros where no result is. With few channels the taps of the last dimensions become rows of their
// own, so that the matrix unit's rows are filled.
#include <atomic>
#include <cstring>

#include "base/rounding.h"
#include "ops/blas/aligned_buffer.h"
#include "ops/blas/panel_kernels.h"
#include "ops/blas/tap_kernels.h"
#include "ops/kernels/convolution_planes.h"
#include "ops/kernels/convolution_taps.h"
#include "ops/kernels/simd.h"
#include "runtime/parallel.h"

namespace prong {
namespace {

using blas::AlignedBuffer;
using blas::kTapColumns;
using blas::kTapDepth;
using blas::kTapStepBytes;

constexpr int64_t kColumns = kTapColumns;
constexpr int64_t kRows = 32;  // of the input that are multiplied in one go
constexpr int64_t kSums = kRows * kColumns;

bool is_moderate(uint32_t bits) {
  float max_abs;
  std::memcpy(&max_abs, &bits, sizeof(max_abs));
  return blas::is_moderate(max_abs);
}

// A tap that is a step on a plane, for all rows.
struct Tap {
  int64_t plane;
  Triple q;
};

struct Plan {
  const ConvGeometry& g;
  ConvSource source;
  const float* grad;
  ConvPlanes planes;
  std::vector<Tap> taps;       // of the first dimensions
  bool is_seamless;            // results lie next to each other, over slices too
  std::vector<Triple> inside;  // what the taps of the others, which are rows, add to a shift

  Plan(const ConvGeometry& geometry, const float* input, const float* grad_)
      : g(geometry), source{input, g.in_channels, g.in, g.stride}, grad(grad_) {
    size_t outer = 3;
    int64_t inner = 1;
    while (outer > 0 && g.group_in() * inner < 16) inner *= g.kernel[--outer];
    Triple first = g.kernel, rest{1, 1, 1};
    for (size_t i = outer; i < 3; ++i) std::swap(first[i], rest[i]);
    for (int64_t i = 0; i < product(first); ++i) {
      const Triple k = place(i, first);
      Tap tap{0, {}};
      Triple shift;
      for (size_t d = 0; d < 3; ++d) {
        tap.q[d] = k[d] * g.dilation[d] / g.stride[d];
        shift[d] = k[d] * g.dilation[d] % g.stride[d] - g.padding[d];
      }
      tap.plane = planes.plane(shift);
      planes.reach_to(tap.q);
      taps.push_back(tap);
    }
    for (int64_t i = 0; i < product(rest); ++i) {
      Triple shift = place(i, rest);
      for (size_t d = 0; d < 3; ++d) shift[d] *= g.dilation[d];
      inside.push_back(shift);
    }
    is_seamless = plane_count() == 1 && planes.reach == Triple{1, 1, 1};
  }

  static Triple place(int64_t i, const Triple& sizes) {
    return {i / sizes[2] / sizes[1], i / sizes[2] % sizes[1], i % sizes[2]};
  }
  int64_t inner() const { return static_cast<int64_t>(inside.size()); }
  int64_t outer() const { return static_cast<int64_t>(taps.size()); }
  int64_t rows() const { return g.group_in() * inner(); }
  int64_t row_blocks() const { return ceil_div(rows(), kRows); }
  int64_t column_blocks() const { return ceil_div(g.group_out(), kColumns); }
  int64_t plane_count() const { return static_cast<int64_t>(planes.shifts.size()); }
  int64_t line_width() const { return g.out[2] + planes.reach[2] - 1; }
  int64_t depth_planes() const { return plane_count() * planes.reach[0]; }
  ConvRegions regions() const {
    constexpr int64_t kBytes = 1 << 20;
    const int64_t positions =
        std::clamp<int64_t>(kBytes / (6 * (rows() + g.group_out())), 192, 1024);
    return {g.batch * g.out[0], g.out[1], depth_planes() * line_width(),
            depth_planes() * (planes.reach[1] - 1) * line_width(), positions};
  }
};

// The work of one task: a group, a share of the regions (whose sum is kept by itself) and of the
// row blocks.
struct Share {
  int64_t group, first_region, last_region, first_row_block, last_row_block;
};

class WeightSum {
 public:
  WeightSum(const Plan& p, const ConvRegions& regions, int64_t most_row_blocks)
      : p_(p), g_(p.g), regions_(regions), width_(p.line_width()) {
    const int64_t lines = regions.most_lines() + p.planes.reach[1] - 1;
    row_pitch_ = pitch_of(regions.most_slices() * p.depth_planes() * lines * width_);
    left_ = AlignedBuffer(static_cast<size_t>(3 * most_row_blocks * kRows * row_pitch_));
    const int64_t most = regions.most_slices() * round_up(regions.most_lines() * width_, kTapDepth);
    right_ =
        AlignedBuffer(static_cast<size_t>(p.column_blocks() * most / kTapDepth * kTapStepBytes));
    panel_ = AlignedBuffer(static_cast<size_t>(most * kColumns) * sizeof(float));
    line_ = AlignedBuffer(static_cast<size_t>(lines * width_) * sizeof(float));
  }

  // sums: [column block][row block][tap][32][32]. False where numbers are not moderate.
  bool run(const Share& share, float* sums) {
    for (int64_t i = share.first_region; i < share.last_region; ++i) {
      const ConvRegion region = regions_[i];
      if (!is_moderate(load_input(share, region)) || !is_moderate(load_grad(share, region)))
        return false;
      multiply(share, region, i == share.first_region, sums);
    }
    return true;
  }

 private:
  int64_t lines(const ConvRegion& r) const { return r.lines + p_.planes.reach[1] - 1; }
  int64_t slice_positions(const ConvRegion& r) const {
    return p_.depth_planes() * lines(r) * width_;
  }
  // Positions that are summed in one go, and how often.
  int64_t runs(const ConvRegion& r) const { return p_.is_seamless ? 1 : r.slices; }
  int64_t positions(const ConvRegion& r) const {
    return p_.is_seamless ? r.slices * r.lines * width_ : (r.lines - 1) * width_ + g_.out[2];
  }
  int64_t steps(const ConvRegion& r) const { return ceil_div(positions(r), kTapDepth); }

  // Of a row of bfloat16, with zeros behind it that the last step reads; an odd number of lines, so
  // that rows do not fight for the same lines of the cache.
  static int64_t pitch_of(int64_t positions) {
    return (round_up((positions + 2 * kTapDepth) * 2, 64) / 64 | 1) * 64;
  }

  uint32_t load_input(const Share& share, const ConvRegion& region) {
    const int64_t positions = lines(region) * width_, out_slices = g_.out[0];
    const int64_t first = share.first_row_block * kRows,
                  last = std::min(share.last_row_block * kRows, p_.rows());
    const int64_t all = region.slices * slice_positions(region);
    uint32_t largest = 0;
    for (int64_t row = first; row < last; ++row) {
      const int64_t channel = share.group * g_.group_in() + row / p_.inner();
      const Triple& more = p_.inside[static_cast<size_t>(row % p_.inner())];
      char* begin = left() + (row - first) * row_pitch_;
      char* out = begin;
      for (int64_t slice = region.first_slice; slice < region.first_slice + region.slices; ++slice)
        for (Triple shift : p_.planes.shifts) {
          for (size_t d = 0; d < 3; ++d) shift[d] += more[d];
          const float* from = p_.source.channel(slice / out_slices, channel);
          for (int64_t d = 0; d < p_.planes.reach[0]; ++d, out += positions * 2) {
            const int64_t q0 = slice % out_slices + d, q1 = region.first_line;
            largest = std::max(largest, load_lines(from, shift, q0, q1, lines(region), out));
          }
        }
      for (int part = 0; part < 3; ++part)
        std::memset(begin + part * part_bytes() + all * 2, 0,
                    static_cast<size_t>(row_pitch_ - all * 2));
    }
    return largest;
  }

  uint32_t load_lines(const float* from, const Triple& shift, int64_t q0, int64_t q1, int64_t lines,
                      char* out) {
    const blas::TapKernels& kernels = *blas::tap_kernels();
    const int64_t count = lines * width_;
    const float* at = plane_lines_in_place(p_.source, from, shift, q0, q1, lines, width_);
    if (!at && p_.source.step[2] == 1) {
      uint32_t largest = 0;
      for (int64_t line = 0; line < lines; ++line, out += width_ * 2) {
        const ConvSpan span = line_span(p_.source, from, shift, q0, q1 + line, width_);
        largest = std::max(largest, kernels.split_row({span.from, width_, span.low, span.high}, out,
                                                      part_bytes()));
      }
      return largest;
    }
    if (!at) {
      copy_plane_lines(p_.source, from, shift, q0, q1, lines, width_, line_.floats());
      at = line_.floats();
    }
    return kernels.split_row({at, count, 0, count}, out, part_bytes());
  }

  uint32_t load_grad(const Share& share, const ConvRegion& region) {
    uint32_t largest = 0;
    for (int64_t block = 0; block < p_.column_blocks(); ++block)
      for (int64_t run = 0; run < runs(region); ++run)
        largest = std::max(largest, load_columns(share, region, block, run));
    return largest;
  }

  uint32_t load_columns(const Share& share, const ConvRegion& region, int64_t block, int64_t run) {
    const blas::TapKernels& kernels = *blas::tap_kernels();
    const int64_t columns = std::min(kColumns, g_.group_out() - block * kColumns);
    const int64_t count = positions(region), padded = steps(region) * kTapDepth;
    float* panel = panel_.floats();
    if (columns < kColumns || width_ != g_.out[2])
      std::fill(panel, panel + padded * kColumns, 0.0f);
    else
      std::fill(panel + count * kColumns, panel + padded * kColumns, 0.0f);
    const int64_t slices = p_.is_seamless ? region.slices : 1;
    float* to = panel;
    for (int64_t i = 0; i < slices; ++i) {
      const int64_t slice = region.first_slice + run + i;
      const float* from =
          p_.grad +
          (slice / g_.out[0] * g_.out_channels + share.group * g_.group_out() + block * kColumns) *
              g_.out_volume() +
          (slice % g_.out[0] * g_.out[1] + region.first_line) * g_.out[2];
      const bool is_whole = width_ == g_.out[2];
      const int64_t turns = is_whole ? 1 : region.lines,
                    length = is_whole ? region.lines * width_ : g_.out[2];
      for (int64_t line = 0; line < turns; ++line, from += g_.out[2])
        kernels.turn(columns, length, from, g_.out_volume(), to + line * width_ * kColumns,
                     kColumns);
      to += region.lines * width_ * kColumns;
    }
    uint32_t largest = 0;
    char* out = right(region, block, run);
    for (int64_t k = 0; k < padded; k += 2)
      largest = std::max(largest, kernels.split_pair(panel + k * kColumns,
                                                     panel + (k + 1) * kColumns, k % kTapDepth / 2,
                                                     out + k / kTapDepth * kTapStepBytes));
    return largest;
  }

  void multiply(const Share& share, const ConvRegion& region, bool is_first, float* sums) {
    const blas::TapKernels& kernels = *blas::tap_kernels();
    blas::TapProduct x;
    x.row_bytes = row_pitch_;
    x.part_bytes = part_bytes();
    offsets_.clear();
    for (int64_t run = 0; run < runs(region); ++run)
      for (int64_t s = 0; s < steps(region); ++s)
        offsets_.push_back((run * slice_positions(region) + s * kTapDepth) * 2);
    x.init_stride = kColumns;
    x.offsets = offsets_.data();
    x.steps = static_cast<int64_t>(offsets_.size());
    kernels.begin();
    for (int64_t column = 0; column < p_.column_blocks(); ++column)
      for (int64_t row = share.first_row_block; row < share.last_row_block; ++row)
        for (int64_t t = 0; t < p_.outer(); ++t) {
          const Tap& tap = p_.taps[static_cast<size_t>(t)];
          x.columns = std::min(kColumns, g_.group_out() - column * kColumns);
          x.rows = std::min(kRows, p_.rows() - row * kRows);
          const int64_t position =
              ((tap.plane * p_.planes.reach[0] + tap.q[0]) * lines(region) + tap.q[1]) * width_ +
              tap.q[2];
          x.left = left() + (row - share.first_row_block) * kRows * row_pitch_ + position * 2;
          x.right = right(region, column, 0);
          float* own = sums + ((column * p_.row_blocks() + row) * p_.outer() + t) * kSums;
          x.init = is_first ? nullptr : own;
          kernels.multiply(x, own);
        }
    kernels.end();
  }

  char* left() { return static_cast<char*>(left_.data()); }
  int64_t part_bytes() const { return static_cast<int64_t>(left_.bytes()) / 3; }
  char* right(const ConvRegion& r, int64_t block, int64_t run) {
    return static_cast<char*>(right_.data()) + (block * runs(r) + run) * steps(r) * kTapStepBytes;
  }

  const Plan& p_;
  const ConvGeometry& g_;
  const ConvRegions& regions_;
  int64_t width_, row_pitch_;
  AlignedBuffer left_, right_, panel_, line_;
  std::vector<int64_t> offsets_;
};

// A row of each partial sum, added up in order.
struct AddRows {
  static PRONG_INLINE void run(const float* from, int64_t sums, int64_t stride, float* to) {
    float total[kColumns];
    for (int64_t j = 0; j < kColumns; ++j) total[j] = from[j];
    for (int64_t s = 1; s < sums; ++s)
      for (int64_t j = 0; j < kColumns; ++j) total[j] += from[s * stride + j];
    for (int64_t j = 0; j < kColumns; ++j) to[j] = total[j];
  }
};

// Adds the partial sums in order and lays them out as the weight: [O, C, kernel].
void write_weight(const Plan& p, int64_t group, int64_t column_block, int64_t sums,
                  const float* partial, int64_t sum_floats, float* out) {
  const int64_t volume = p.g.kernel_volume(), length = p.rows() * p.outer();
  const int64_t columns = std::min(kColumns, p.g.group_out() - column_block * kColumns);
  AlignedBuffer turned(static_cast<size_t>(length * kColumns) * sizeof(float));
  for (int64_t row = 0; row < p.rows(); ++row)
    for (int64_t t = 0; t < p.outer(); ++t) {
      const float* from = partial +
                          ((column_block * p.row_blocks() + row / kRows) * p.outer() + t) * kSums +
                          row % kRows * kColumns;
      float* to =
          turned.floats() + (row / p.inner() * volume + t * p.inner() + row % p.inner()) * kColumns;
      run_simd<AddRows>(from, sums, sum_floats, to);
    }
  blas::tap_kernels()->turn(length, columns, turned.floats(), kColumns,
                            out + (group * p.g.group_out() + column_block * kColumns) * length,
                            length);
}

}  // namespace

bool taps_to_weight(const ConvGeometry& g, const float* grad, const float* input, float* out) {
  const Plan p(g, input, grad);
  const ConvRegions regions = p.regions();
  const int64_t sum_floats = p.column_blocks() * p.row_blocks() * p.outer() * kSums;
  // Regions are dealt out to a few sums by sizes alone; rows are cut further as threads need work.
  const int64_t sums = std::clamp<int64_t>((int64_t{1} << 21) / sum_floats / g.groups, 1,
                                           std::clamp<int64_t>(regions.count(), 1, 8));
  const int64_t cuts =
      std::clamp<int64_t>(ceil_div(2 * num_threads(), sums * g.groups), 1, p.row_blocks());
  AlignedBuffer partial(static_cast<size_t>(g.groups * sums * sum_floats) * sizeof(float));
  std::atomic<bool> is_done{true};
  parallel_for(0, g.groups * sums * cuts, 1, [&](int64_t begin, int64_t end) {
    WeightSum work(p, regions, ceil_div(p.row_blocks(), cuts));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t cut = i % cuts, sum = i / cuts % sums, group = i / cuts / sums;
      const Share share{group, regions.count() * sum / sums, regions.count() * (sum + 1) / sums,
                        p.row_blocks() * cut / cuts, p.row_blocks() * (cut + 1) / cuts};
      if (!work.run(share, partial.floats() + (group * sums + sum) * sum_floats))
        is_done.store(false, std::memory_order_relaxed);
    }
  });
  if (!is_done) return false;
  parallel_for(0, g.groups * p.column_blocks(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t group = i / p.column_blocks();
      write_weight(p, group, i % p.column_blocks(), sums,
                   partial.floats() + group * sums * sum_floats, sum_floats, out);
    }
  });
  return true;
}

}  // namespace prong
