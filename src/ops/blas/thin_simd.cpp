// Thin products in vector registers. Called through ThinKernels.
#include "ops/blas/simd_float.h"
#include "ops/blas/thin_kernels.h"

namespace prong::PRONG_ISA {
namespace {

using blas::ThinProduct;

#if defined(__AVX512F__)
constexpr int kMostRows = 4;  // 4 x 4 sums, 4 of B, 1 of A
#else
constexpr int kMostRows = 2;  // 2 x 4 sums, 4 of B, 1 of A: 13 of 16 registers
#endif
constexpr int kMostColumns = 4;

int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// The first `count` numbers, zeros after them; nothing past them is read.
Vf load_some(const float* p, int64_t count) {
#if defined(__AVX512F__)
  __mmask16 mask = static_cast<__mmask16>(count >= kLanes ? 0xffff : (1 << count) - 1);
  return (Vf)_mm512_maskz_loadu_ps(mask, p);
#elif defined(__AVX2__)
  const Vi lanes = {0, 1, 2, 3, 4, 5, 6, 7};
  Vi mask = lanes < (Vi{} + static_cast<int32_t>(smaller(count, kLanes)));
  return (Vf)_mm256_maskload_ps(p, (__m256i)mask);
#else
  Vf x{};
  for (int64_t i = 0; i < count && i < kLanes; ++i) x[i] = p[i];
  return x;
#endif
}

// The lanes of a sum, added as a tree.
float add_lanes(Vf x) {
  float lanes[kLanes];
  store(lanes, x);
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

void put(const ThinProduct& x, int64_t i, int64_t j, float sum) {
  float* at = x.c + i * x.c_row + j * x.c_col;
  float value = x.alpha * sum;
  *at = x.beta == 0.0f ? value : value + x.beta * *at;
}

template <int kRows, int kColumns>
void dot_block(const ThinProduct& x, int64_t row, int64_t column) {
  Vf sums[kRows][kColumns] = {};
  const float* a = x.a + row * x.a_row;
  const float* b = x.b + column * x.b_col;
  int64_t whole = x.k / kLanes * kLanes;
  for (int64_t p = 0; p < whole; p += kLanes) {
    Vf right[kColumns];
    for (int j = 0; j < kColumns; ++j) right[j] = load(b + j * x.b_col + p);
    for (int i = 0; i < kRows; ++i) {
      Vf left = load(a + i * x.a_row + p);
      for (int j = 0; j < kColumns; ++j) sums[i][j] = fma(left, right[j], sums[i][j]);
    }
  }
  if (whole < x.k) {
    for (int i = 0; i < kRows; ++i) {
      Vf left = load_some(a + i * x.a_row + whole, x.k - whole);
      for (int j = 0; j < kColumns; ++j) {
        sums[i][j] = fma(left, load_some(b + j * x.b_col + whole, x.k - whole), sums[i][j]);
      }
    }
  }
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kColumns; ++j) put(x, row + i, column + j, add_lanes(sums[i][j]));
  }
}

template <int kColumns>
void dot_rows(const ThinProduct& x, int64_t column) {
  int64_t row = 0;
  for (; row + kMostRows <= x.m; row += kMostRows) dot_block<kMostRows, kColumns>(x, row, column);
  for (; row + 2 <= x.m; row += 2) dot_block<2, kColumns>(x, row, column);
  if (row < x.m) dot_block<1, kColumns>(x, row, column);
}

void dots(const ThinProduct& x) {
  int64_t column = 0;
  for (; column + kMostColumns <= x.n; column += kMostColumns) dot_rows<kMostColumns>(x, column);
  for (; column < x.n; ++column) dot_rows<1>(x, column);
}

// The `width` columns of kVectors vectors; only one vector alone may be cut.
template <int kRows, int kVectors>
void row_block(const ThinProduct& x, int64_t row, int64_t column, int64_t width) {
  Vf sums[kRows][kVectors] = {};
  const float* a = x.a + row * x.a_row;
  const float* b = x.b + column;
  for (int64_t p = 0; p < x.k; ++p) {
    Vf left[kRows];
    for (int i = 0; i < kRows; ++i) left[i] = splat(a[i * x.a_row + p * x.a_col]);
    for (int j = 0; j < kVectors; ++j) {
      const float* at = b + p * x.b_row + j * kLanes;
      Vf right = kVectors == 1 ? load_some(at, width) : load(at);
      for (int i = 0; i < kRows; ++i) sums[i][j] = fma(left[i], right, sums[i][j]);
    }
  }
  for (int i = 0; i < kRows; ++i) {
    float values[kVectors * kLanes];
    for (int j = 0; j < kVectors; ++j) store(values + j * kLanes, sums[i][j]);
    for (int64_t j = 0; j < width; ++j) put(x, row + i, column + j, values[j]);
  }
}

template <int kRows, int kVectors>
void row_column(const ThinProduct& x, int64_t first_row, int64_t count, int64_t column) {
  int64_t width = smaller(kVectors * kLanes, x.n - column);
  for (int64_t row = first_row; row < first_row + count; row += kRows) {
    row_block<kRows, kVectors>(x, row, column, width);
  }
}

// kRows rows at a time; the fewer, the longer the stretch of each row of B that is read at once.
template <int kRows>
void row_blocks(const ThinProduct& x, int64_t first_row, int64_t count) {
  constexpr int kVectors = kMostRows * kMostColumns / kRows;
  int64_t column = 0;
  for (; column + kVectors * kLanes <= x.n; column += kVectors * kLanes) {
    row_column<kRows, kVectors>(x, first_row, count, column);
  }
  for (; column < x.n; column += kLanes) row_column<kRows, 1>(x, first_row, count, column);
}

void rows(const ThinProduct& x) {
  int64_t whole = x.m / kMostRows * kMostRows, even = x.m / 2 * 2;
  if (whole > 0) row_blocks<kMostRows>(x, 0, whole);
  if (whole < even) row_blocks<2>(x, whole, even - whole);
  if (even < x.m) row_blocks<1>(x, even, 1);
}

}  // namespace

const blas::ThinKernels& thin_kernels() {
  static constexpr blas::ThinKernels kernels = {dots, rows};
  return kernels;
}

}  // namespace prong::PRONG_ISA
