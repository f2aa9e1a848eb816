// Convolution and its gradient to the input as products over taps. See convolution_taps.h.
//
// Both gather: each result is a sum over taps of a plane (convolution_planes.h) of their source.
// A region of the source is split into the matrix unit's left operand, [block of channels][part]
// [position][channel of the block], which then serves all taps and all columns. With few channels a
// block is narrow and a step of 32 numbers covers neighbouring positions too: a window of taps.
#include "ops/kernels/convolution_taps.h"
#include "base/rounding.h"

#include <atomic>
#include <cstring>

#include "ops/blas/aligned_buffer.h"
#include "ops/blas/panel_kernels.h"
#include "ops/blas/tap_kernels.h"
#include "ops/kernels/convolution_plan.h"
#include "runtime/parallel.h"

namespace prong {
namespace {

using blas::AlignedBuffer;
using blas::kTapColumns;
using blas::kTapDepth;
using blas::kTapStepBytes;

constexpr int64_t kColumns = kTapColumns;

bool is_moderate(uint32_t bits) {
  float max_abs;
  std::memcpy(&max_abs, &bits, sizeof(max_abs));
  return blas::is_moderate(max_abs);
}

// ── the right operand ──

// The weights of all groups and column blocks, [group][column block][grid][block][step].
struct Panels {
  AlignedBuffer buffer;
  bool are_moderate = true;
  int64_t steps;  // of a column block
  const char* at(const GatherPlan& p, int64_t group, int64_t column_block) const {
    return static_cast<const char*>(buffer.data()) +
           (group * p.column_blocks() + column_block) * steps * kTapStepBytes;
  }
};

// Rows of 32 columns of a block's channels: row (c, tap) of the weights, c * volume + tap. Forward,
// columns are the O of a weight [O, C, volume], and channels its C; backward the other way round.
struct WeightRows {
  const float* weight;
  bool is_forward;
  int64_t volume;

  void copy(const GatherPlan& p, int64_t group, int64_t first_channel, int64_t channels,
            int64_t first_column, int64_t columns, float* rows) const {
    const blas::TapKernels& kernels = *blas::tap_kernels();
    if (columns < kColumns) std::fill(rows, rows + channels * volume * kColumns, 0.0f);
    if (is_forward) {
      const int64_t stride = p.channels * volume;
      kernels.turn(columns, channels * volume,
                   weight + (group * p.columns + first_column) * stride + first_channel * volume,
                   stride, rows, kColumns);
      return;
    }
    for (int64_t c = 0; c < channels; ++c) {
      const float* from =
          weight + ((group * p.channels + first_channel + c) * p.columns + first_column) * volume;
      float* to = rows + c * volume * kColumns;
      if (volume == 1)
        std::copy_n(from, columns, to);
      else
        kernels.turn(columns, volume, from, volume, to, kColumns);
    }
  }
};

uint32_t split_step(const GatherPlan& p, const GatherStep& step, int64_t channels, int64_t volume,
                    const float* rows, char* out) {
  static constexpr float kZeros[kColumns] = {};
  uint32_t largest = 0;
  const auto row = [&](int64_t slot) {
    const int64_t tap = step.weights[slot / p.width], c = slot % p.width;
    return tap < 0 || c >= channels ? kZeros : rows + (c * volume + tap) * kColumns;
  };
  for (int64_t pair = 0; pair < kTapDepth / 2; ++pair)
    largest = std::max(
        largest, blas::tap_kernels()->split_pair(row(2 * pair), row(2 * pair + 1), pair, out));
  return largest;
}

Panels split_weights(const GatherPlan& p, const WeightRows& source) {
  Panels panels;
  panels.steps = p.steps();
  const int64_t parts = p.groups * p.column_blocks(), blocks = p.blocks();
  panels.buffer = AlignedBuffer(static_cast<size_t>(parts * panels.steps * kTapStepBytes));
  std::atomic<bool> are_moderate{true};
  parallel_for(0, parts * blocks, 1, [&](int64_t begin, int64_t end) {
    AlignedBuffer rows(static_cast<size_t>(p.width * source.volume * kColumns) * sizeof(float));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t part = i / blocks, block = i % blocks;
      const int64_t group = part / p.column_blocks(), column = part % p.column_blocks() * kColumns;
      const int64_t first = block * p.width, channels = std::min(p.width, p.channels - first);
      source.copy(p, group, first, channels, column, std::min(kColumns, p.columns - column),
                  rows.floats());
      uint32_t largest = 0;
      for (const GatherGrid& grid : p.grids) {
        char* out =
            static_cast<char*>(panels.buffer.data()) +
            (part * panels.steps + grid.panels + block * static_cast<int64_t>(grid.steps.size())) *
                kTapStepBytes;
        for (const GatherStep& step : grid.steps) {
          largest =
              std::max(largest, split_step(p, step, channels, source.volume, rows.floats(), out));
          out += kTapStepBytes;
        }
      }
      if (!is_moderate(largest)) are_moderate.store(false, std::memory_order_relaxed);
    }
  });
  panels.are_moderate = are_moderate;
  return panels;
}

// ── the left operand ──

// A region of one group's source, split.
class Image {
 public:
  Image(const GatherPlan& p, const ConvRegions& regions) : p_(p), width_(p.line_width()) {
    const int64_t lines = regions.most_lines() + p.planes.reach[1] - 1;
    const int64_t most =
        regions.most_slices() * p.plane_count() * p.planes.reach[0] * lines * width_;
    buffer_ = AlignedBuffer(static_cast<size_t>(p.blocks() * 3 * bytes_of_part(most)));
    const int64_t chunk = std::max(kChunk, width_);
    pitch_ = round_up(chunk, 16) + 16;
    scratch_ = AlignedBuffer(static_cast<size_t>(p.width * pitch_) * sizeof(float));
  }

  // Returns the bits of the largest number.
  uint32_t load(const ConvRegion& region, int64_t group) {
    lines_ = region.lines + p_.planes.reach[1] - 1;
    positions_ = region.slices * slice_positions();
    part_bytes_ = bytes_of_part(positions_);
    uint32_t largest = 0;
    for (int64_t block = 0; block < p_.blocks(); ++block) {
      char* out = data() + block * 3 * part_bytes_;
      for (int64_t i = 0; i < region.slices; ++i)
        for (const Triple& shift : p_.planes.shifts)
          for (int64_t d = 0; d < p_.planes.reach[0]; ++d) {
            const int64_t slice = region.first_slice + i, slices = p_.most()[0];
            largest = std::max(largest, load_plane(block, group, slice / slices, slice % slices + d,
                                                   region.first_line, shift, out));
            out += lines_ * width_ * p_.width * 2;
          }
      for (int part = 0; part < 3; ++part)
        std::memset(out + part * part_bytes_, 0,
                    static_cast<size_t>(part_bytes_ - positions_ * p_.width * 2));
    }
    return largest;
  }

  char* data() { return static_cast<char*>(buffer_.data()); }
  int64_t part_bytes() const { return part_bytes_; }
  int64_t slice_positions() const {
    return p_.plane_count() * p_.planes.reach[0] * lines_ * width_;
  }
  int64_t line_width() const { return width_; }
  int64_t offset(int64_t block, const GatherStep& step) const {
    const Triple& q = step.q;
    const int64_t position =
        ((step.plane * p_.planes.reach[0] + q[0]) * lines_ + q[1]) * width_ + q[2];
    return block * 3 * part_bytes_ + position * p_.width * 2;
  }

 private:
  static constexpr int64_t kChunk = 256;  // positions copied at a time

  // Past the last position: what the last rows of tiles and windows see.
  int64_t bytes_of_part(int64_t positions) const {
    const int64_t bytes = round_up((positions + 32 * p_.row_step + 64) * p_.width * 2, 64);
    return bytes % 4096 == 0 ? bytes + 64 : bytes;  // parts shall not share lines of a cache
  }

  uint32_t load_plane(int64_t block, int64_t group, int64_t sample, int64_t q0, int64_t q1,
                      const Triple& shift, char* out) {
    const blas::TapKernels& kernels = *blas::tap_kernels();
    const int64_t first = block * p_.width, channels = std::min(p_.width, p_.channels - first);
    const float* from = p_.source.channel(sample, group * p_.channels + first);
    const int64_t volume = product(p_.source.extent);
    const auto split = [&](const blas::TapSpan& span, int64_t stride, char* to) {
      return kernels.split_positions(channels, p_.width, span, stride, to, part_bytes_);
    };
    if (const float* lines = plane_lines_in_place(p_.source, from, shift, q0, q1, lines_, width_))
      return split({lines, lines_ * width_, 0, lines_ * width_}, volume, out);
    uint32_t largest = 0;
    const int64_t line_bytes = width_ * p_.width * 2;
    if (p_.source.step[2] == 1) {
      for (int64_t line = 0; line < lines_; ++line, out += line_bytes) {
        const ConvSpan span = line_span(p_.source, from, shift, q0, q1 + line, width_);
        largest = std::max(largest, split({span.from, width_, span.low, span.high}, volume, out));
      }
      return largest;
    }
    const int64_t most = std::max<int64_t>(1, kChunk / width_);
    for (int64_t line = 0; line < lines_; line += most) {
      const int64_t lines = std::min(most, lines_ - line), count = lines * width_;
      for (int64_t c = 0; c < channels; ++c)
        copy_plane_lines(p_.source, from + c * volume, shift, q0, q1 + line, lines, width_,
                         scratch_.floats() + c * pitch_);
      largest = std::max(largest, split({scratch_.floats(), count, 0, count}, pitch_, out));
      out += lines * line_bytes;
    }
    return largest;
  }

  const GatherPlan& p_;
  int64_t width_, lines_ = 0, positions_ = 0, part_bytes_ = 0, pitch_;
  AlignedBuffer buffer_, scratch_;
};

// ── products ──

// Positions that are multiplied in one go: lines of a slice, or all of a region's.
struct Run {
  int64_t slice, slices, line, lines;  // in the region
  int64_t rows;
};

class Gather {
 public:
  Gather(const GatherPlan& p, const Panels& panels, const float* bias, float* out)
      : p_(p), panels_(panels), bias_(bias), out_(out), most_(p.most()),
        regions_(p.batch * most_[0], most_[1], p.plane_count() * p.planes.reach[0] * p.line_width(),
                 p.plane_count() * p.planes.reach[0] * (p.planes.reach[1] - 1) * p.line_width(),
                 region_positions(p)) {}

  TapOutcome run() {
    const int64_t tasks = regions_.count() * p_.groups;
    // Column blocks are shared out where regions alone are too few; no result depends on it.
    const int64_t cuts =
        std::clamp<int64_t>((2 * num_threads() + tasks - 1) / tasks, 1, p_.column_blocks());
    std::vector<uint8_t> undone(static_cast<size_t>(p_.batch), 0);
    parallel_for(0, tasks * cuts, 1, [&](int64_t begin, int64_t end) {
      Image image(p_, regions_);
      AlignedBuffer sums(static_cast<size_t>(most_rows() * kColumns) * sizeof(float));
      std::vector<int64_t> offsets;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t task = i / cuts, cut = i % cuts, group = task % p_.groups;
        const ConvRegion region = regions_[task / p_.groups];
        if (!is_moderate(image.load(region, group))) {
          for (int64_t s = region.first_slice; s < region.first_slice + region.slices; ++s)
            std::atomic_ref<uint8_t>(undone[static_cast<size_t>(s / most_[0])])
                .store(1, std::memory_order_relaxed);
          continue;
        }
        const int64_t blocks = p_.column_blocks();
        multiply(image, region, group, blocks * cut / cuts, blocks * (cut + 1) / cuts,
                 sums.floats(), offsets);
      }
    });
    TapOutcome outcome;
    for (int64_t n = 0; n < p_.batch; ++n)
      if (undone[static_cast<size_t>(n)]) outcome.samples_undone.push_back(n);
    return outcome;
  }

 private:
  // The split region stays in the second-level cache, beside the weights of a column block.
  static int64_t region_positions(const GatherPlan& p) {
    constexpr int64_t kBytes = 768 << 10;
    return std::clamp<int64_t>(kBytes / (p.blocks() * p.width * 6), 128, 768 * p.row_step);
  }
  int64_t most_rows() const {
    return round_up(regions_.most_slices() * regions_.most_lines() * p_.line_width(), 16) + 32;
  }

  bool is_seamless(const GatherGrid& grid) const {  // no position is between results
    return p_.plane_count() == 1 && p_.planes.reach == Triple{1, 1, 1} && p_.row_step == 1 &&
           p_.grids.size() == 1 && p_.line_width() == grid.count[2] && most_[0] == 1;
  }

  template <class F>
  void for_runs(const GatherGrid& grid, const ConvRegion& region, F&& f) const {
    const int64_t width = p_.line_width(), count = grid.count[2];
    if (is_seamless(grid))
      return f(Run{0, region.slices, 0, region.lines, region.slices * region.lines * count});
    const int64_t lines = std::min(region.lines, grid.count[1] - region.first_line);
    const int64_t together = (lines - 1) * width + count;
    const bool by_lines = p_.row_step > 1 || lines * round_up(count, 16) < round_up(together, 16);
    for (int64_t slice = 0; slice < region.slices; ++slice) {
      if ((region.first_slice + slice) % most_[0] >= grid.count[0]) continue;
      if (!by_lines && lines > 0) f(Run{slice, 1, 0, lines, together});
      for (int64_t line = 0; by_lines && line < lines; ++line) f(Run{slice, 1, line, 1, count});
    }
  }

  void multiply(Image& image, const ConvRegion& region, int64_t group, int64_t first_block,
                int64_t last_block, float* sums, std::vector<int64_t>& offsets) const {
    const blas::TapKernels& kernels = *blas::tap_kernels();
    kernels.begin();
    for (const GatherGrid& grid : p_.grids) {
      offsets.clear();
      for (int64_t block = 0; block < p_.blocks(); ++block)
        for (const GatherStep& step : grid.steps) offsets.push_back(image.offset(block, step));
      for (int64_t block = first_block; block < last_block; ++block) {
        const int64_t column = block * kColumns;
        float start[kColumns] = {};
        blas::TapProduct x;
        x.columns = std::min(kColumns, p_.columns - column);
        if (bias_) std::copy_n(bias_ + group * p_.columns + column, x.columns, start);
        x.init = bias_ ? start : nullptr;
        x.init_stride = 0;
        x.row_bytes = p_.width * 2 * p_.row_step;
        x.part_bytes = image.part_bytes();
        x.offsets = offsets.data();
        x.steps = static_cast<int64_t>(offsets.size());
        x.right = panels_.at(p_, group, block) + grid.panels * kTapStepBytes;
        for_runs(grid, region, [&](const Run& run) {
          const int64_t position =
              run.slice * image.slice_positions() + run.line * image.line_width();
          x.left = image.data() + position * p_.width * 2;
          x.rows = run.rows;
          float* to = place(grid, region, run, group * p_.columns + column);
          if (grid.step[2] == 1) return kernels.multiply_to_lines(x, lines_of(grid, run, to));
          kernels.multiply(x, sums);
          spread(grid, run, sums, x.columns, to);
        });
      }
    }
    kernels.end();
  }

  // Where the first result of a run goes, of this channel.
  float* place(const GatherGrid& grid, const ConvRegion& region, const Run& run,
               int64_t channel) const {
    const int64_t slice = region.first_slice + run.slice;
    const int64_t d = slice % most_[0] * grid.step[0] + grid.start[0],
                  h = (region.first_line + run.line) * grid.step[1] + grid.start[1];
    return out_ + (slice / most_[0] * p_.groups * p_.columns + channel) * product(p_.out) +
           (d * p_.out[1] + h) * p_.out[2] + grid.start[2];
  }
  blas::TapLines lines_of(const GatherGrid& grid, const Run& run, float* to) const {
    const int64_t volume = product(p_.out), count = grid.count[2];
    if (run.slices > 1) {  // a line is a sample
      const int64_t together = run.lines * count;
      return {to, volume, together, together, p_.groups * p_.columns * volume};
    }
    return {to, volume, run.lines > 1 ? p_.line_width() : count, count, grid.step[1] * p_.out[2]};
  }
  // Results that are not neighbours in the output, from [position][column].
  void spread(const GatherGrid& grid, const Run& run, const float* sums, int64_t columns,
              float* to) const {
    const int64_t volume = product(p_.out);
    for (int64_t line = 0; line < run.lines; ++line, to += grid.step[1] * p_.out[2]) {
      const float* from = sums + line * p_.line_width() * kColumns;
      for (int64_t c = 0; c < columns; ++c)
        for (int64_t q = 0; q < grid.count[2]; ++q)
          to[c * volume + q * grid.step[2]] = from[q * kColumns + c];
    }
  }

  const GatherPlan& p_;
  const Panels& panels_;
  const float* bias_;
  float* out_;
  Triple most_;
  ConvRegions regions_;
};

TapOutcome gather(const GatherPlan& p, const WeightRows& weights, const float* bias, float* out) {
  const Panels panels = split_weights(p, weights);
  if (!panels.are_moderate) return {false, {}};
  return Gather(p, panels, bias, out).run();
}

}  // namespace

bool may_use_taps(const ConvGeometry& g, DType dtype) {
  constexpr double kWork = 1 << 16;
  return dtype == DType::kFloat32 && blas::tap_kernels() && g.products() >= kWork &&
         g.group_in() >= 1 && (g.groups == 1 || g.group_in() * g.group_out() >= 16);
}

TapOutcome taps_forward(const ConvGeometry& g, const float* input, const float* weight,
                        const float* bias, float* out) {
  return gather(forward_plan(g, input, true), {weight, true, g.kernel_volume()}, bias, out);
}

TapOutcome taps_to_input(const ConvGeometry& g, const float* grad, const float* weight,
                         float* out) {
  return gather(to_input_plan(g, grad, true), {weight, false, g.kernel_volume()}, nullptr, out);
}

}  // namespace prong
