// Products whose left operand is read in place, at an offset for each step of the sum: what a
// convolution is without unfolding its input. Called by kernels/convolution_taps.cpp and
// convolution_taps_weight.cpp; written in tap_amx_simd.cpp for the bfloat16 matrix unit, with the
// accuracy of float (docs/decisions/0004). No standard templates, as in panel_kernels.h.
//
// A float is three bfloat16: its parts high, middle and low. A step of a sum is 32 numbers. The
// left operand holds rows of 32 numbers, a part after the other; the right one holds for each step
// 32 columns, in kTapStepBytes.
#pragma once

#include <cstdint>

namespace prong::blas {

constexpr int64_t kTapColumns = 32;
constexpr int64_t kTapDepth = 32;  // numbers a step
constexpr int64_t kTapStepBytes = 6144;

// init[rows, 32] + the sum over steps of left(step) * right(step).
struct TapProduct {
  const char* left;        // the high parts of row 0 of a step at offset 0
  int64_t row_bytes;       // from row to row
  int64_t part_bytes;      // from part to part
  const int64_t* offsets;  // of each step, in bytes
  int64_t steps;
  const char* right;
  int64_t rows;     // the next multiple of 16 is read
  int64_t columns;  // 1 to 32
  const float* init;
  int64_t init_stride;  // from row to row; 0 gives all rows the same start
};

// Where the rows go: column after column, each in lines of `width` rows, of which `count` are kept.
struct TapLines {
  float* out;
  int64_t column_stride;
  int64_t width, count;
  int64_t line_stride;  // from line to line in `out`
};

// Numbers at from[p] for p < count, read where low <= p < high only: zero elsewhere.
struct TapSpan {
  const float* from;
  int64_t count, low, high;
};

struct TapKernels {
  // A thread multiplies between these two.
  void (*begin)();
  void (*end)();
  // To sums[rows, 32], which has room for the next multiple of 16 rows; columns past the next
  // multiple of 16 are not written.
  void (*multiply)(const TapProduct& product, float* sums);
  void (*multiply_to_lines)(const TapProduct& product, const TapLines& lines);

  // Each of these returns the bits of the largest |x|, NaN on top.

  // The left operand, numbers of a position together: position p of channel c < channels, at
  // from[c * channel_stride + p], goes to out + (p * width + c) * 2; width is a power of two up to
  // 32, and channels up to it are zero, as are positions outside [low, high). Writes up to 15
  // positions of zeros past the last.
  uint32_t (*split_positions)(int64_t channels, int64_t width, const TapSpan& span,
                              int64_t channel_stride, char* out, int64_t part_bytes);
  // The same with the numbers of a row together: to out + p * 2, and up to 31 zeros.
  uint32_t (*split_row)(const TapSpan& span, char* out, int64_t part_bytes);
  // The right operand from two rows of 32 columns, number 2 * pair and the next of a step.
  uint32_t (*split_pair)(const float* even, const float* odd, int64_t pair, char* step);

  // to[j * to_stride + i] = from[i * from_stride + j] for i < rows, j < columns.
  void (*turn)(int64_t rows, int64_t columns, const float* from, int64_t from_stride, float* to,
               int64_t to_stride);
};

// Of this machine, or null.
const TapKernels* tap_kernels();

}  // namespace prong::blas

namespace prong::v4 {
const blas::TapKernels& tap_kernels();
}
