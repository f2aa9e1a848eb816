// Packed products of floats on the bfloat16 matrix unit (AMX), with the accuracy of float. Called
// through PanelKernels on machines that have the unit.
//
// A float has 24 bits, a bfloat16 has 8: x = high + middle + low exactly, each a bfloat16. Of the
// nine products of parts the six largest are summed in float by the unit; the three left out are
// below 2^-23 of the product, about float's own rounding. The unit takes denormals for zero, and
// infinity has no parts, so rows of A and columns of B must be moderate (is_moderate); what isn't
// is left to the fused multiply-adds. docs/decisions has the measurements.
//
// B stays as floats in its panels, and a stretch of rows is split into a buffer while the
// matrix unit works on the one before: weights are read once a step of a recurrent net, and reading
// 4 bytes a weight beats reading 6.
#include "ops/blas/amx_tiles.h"
#include "ops/blas/panel_kernels.h"

#if defined(__AVX512BW__)

namespace prong::PRONG_ISA {
namespace {

using blas::kPanelColumns;
using blas::kPanelDepth;
using blas::PanelKernels;
using blas::PanelProduct;
using blas::RowSource;

// Steps of k in a stretch of B that is split at once: 48 KB, twice, for rows that use it several
// times. One pair of tiles only passes through, and does so within the first-level cache.
constexpr int64_t kSteps = 8;
constexpr int64_t kStepsInPassing = 2;

int64_t steps_of(int64_t k) { return (k + kPanelDepth - 1) / kPanelDepth; }
int64_t row_pairs_of(int64_t m) { return (m + 2 * kTileRows - 1) / (2 * kTileRows); }

// A: for each 16 rows, for each 32 of k: three tiles (high, middle, low), a row of 32 numbers each.
int64_t rows_bytes(int64_t m, int64_t k) { return row_pairs_of(m) * 2 * steps_of(k) * kPartsBytes; }

// The bfloat16 nearest to each float, as the upper half of 32 bits.
__m512i round_to_bfloat16(__m512 x) {
  __m512i bits = _mm512_castps_si512(x);
  __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  bits = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  return _mm512_and_si512(bits, _mm512_set1_epi32(static_cast<int>(0xffff0000)));
}

bool pack_rows(int64_t m, int64_t k, const RowSource& source, int64_t first, void* out) {
  int64_t steps = steps_of(k), padded = row_pairs_of(m) * 2 * kTileRows;
  for (int64_t r = 0; r < padded; ++r) {
    char* tile = static_cast<char*>(out) + r / kTileRows * steps * kPartsBytes + r % kTileRows * 64;
    const float* row = r < m ? source.row(first + r) : nullptr;
    __m512i largest = _mm512_setzero_si512();
    for (int64_t p = 0; p < steps * kPanelDepth; p += kTileRows) {
      int64_t valid = r < m ? smaller(kTileRows, k - p) : 0;
      __mmask16 mask = valid <= 0 ? 0 : static_cast<__mmask16>(0xffffu >> (16 - valid));
      __m512 x = mask ? _mm512_maskz_loadu_ps(mask, row + p) : _mm512_setzero_ps();
      largest = _mm512_max_epu32(
          largest, _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff)));
      char* at = tile + p / kPanelDepth * kPartsBytes + p % kPanelDepth * 2;
      for (int part = 0; part < 3; ++part) {
        __m512i rounded = round_to_bfloat16(x);
        _mm256_store_si256(reinterpret_cast<__m256i*>(at + part * kTileBytes),
                           _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16)));
        x = _mm512_sub_ps(x, _mm512_castsi512_ps(rounded));
      }
    }
    uint32_t bits = _mm512_reduce_max_epu32(largest);
    float max_abs;
    __builtin_memcpy(&max_abs, &bits, 4);
    if (!blas::is_moderate(max_abs)) return false;
  }
  return true;
}

// The splitting of one stretch of B, some pairs of rows at a time between the unit's instructions.
struct Splitter {
  const float* from = nullptr;
  char* to = nullptr;
  int64_t done = 0, total = 0;  // pairs of rows

  void begin(const float* rows, int64_t steps, char* buffer) {
    from = rows;
    to = buffer;
    done = 0;
    total = steps * kPanelDepth / 2;
  }
  // The next pair; kPairs of them in a row never cross a step of 16 if kPairs divides 16.
  void split(int64_t ahead) const {
    const float* rows = from + (done + ahead) * 2 * kPanelColumns;
    // One line of four, not far ahead, keeps the machine's own prefetching awake across pages; more
    // would take the line buffers that loads of tiles need.
    __builtin_prefetch(rows + kAhead, 0, 2);
    split_two_rows(rows, to + done / 16 * kStepBytes + (done % 16 + ahead) * 64);
  }
  static constexpr int64_t kAhead = 256;
  void finish() {
    for (; done < total; ++done) split(0);
  }
};

// Splits its share of kPairs pairs at the kChance-th of six chances in a step.
template <int kPairs, int kChance>
inline void split_share(const Splitter& splitter) {
  for (int i = kPairs * kChance / 6; i < kPairs * (kChance + 1) / 6; ++i) splitter.split(i);
}

// 32 of k: all products of parts but the three smallest, in an order with few loads. Meanwhile
// kPairs pairs of rows of what comes next are split.
template <int kPairs>
inline void multiply_step(const char* upper, const char* lower, const char* b, Splitter& splitter) {
  load_left(upper, lower, 0);
  load_right(b, 0);
  PRONG_MULTIPLY_2X2;  // high x high
  split_share<kPairs, 0>(splitter);
  load_right(b, 2);
  PRONG_MULTIPLY_2X2;  // high x low
  split_share<kPairs, 1>(splitter);
  load_right(b, 1);
  PRONG_MULTIPLY_2X2;  // high x middle
  split_share<kPairs, 2>(splitter);
  load_left(upper, lower, 1);
  PRONG_MULTIPLY_2X2;  // middle x middle
  split_share<kPairs, 3>(splitter);
  load_right(b, 0);
  PRONG_MULTIPLY_2X2;  // middle x high
  split_share<kPairs, 4>(splitter);
  load_left(upper, lower, 2);
  PRONG_MULTIPLY_2X2;  // low x high
  split_share<kPairs, 5>(splitter);
  splitter.done += kPairs;
}

// The steps of one stretch for two tiles of rows.
template <int kPairs>
void multiply_steps(const char* upper, const char* lower, const char* b, int64_t steps,
                    Splitter& splitter) {
  Splitter here = splitter;  // in registers
  for (int64_t s = 0; s < steps; ++s) {
    if (kPairs > 0 && here.done < here.total) {
      multiply_step<kPairs>(upper, lower, b, here);
    } else {
      multiply_step<0>(upper, lower, b, here);
    }
    upper += kPartsBytes;
    lower += kPartsBytes;
    b += kStepBytes;
  }
  splitter = here;
}

using MultiplySteps = void (*)(const char*, const char*, const char*, int64_t, Splitter&);
// The one that splits `pairs` pairs in `steps` steps, or a little faster.
MultiplySteps pick_share(int64_t pairs, int64_t steps) {
  if (pairs == 0) return multiply_steps<0>;
  if (pairs <= steps) return multiply_steps<1>;
  if (pairs <= 2 * steps) return multiply_steps<2>;
  if (pairs <= 4 * steps) return multiply_steps<4>;
  if (pairs <= 8 * steps) return multiply_steps<8>;
  return multiply_steps<16>;
}

void copy_rows(int64_t rows, int64_t columns, const float* from, int64_t from_stride, float* to,
               int64_t to_stride) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) to[i * to_stride + j] = from[i * from_stride + j];
  }
}

// A 32 x 32 piece of the result. Between stretches its sums lie in `aside`, since rows of the
// result are often a power of two apart and would fight for the same few lines of the cache.
struct Piece {
  const PanelProduct& x;
  float* aside;  // 32 x 32
  int64_t row, column;

  int64_t rows() const { return smaller(2 * kTileRows, x.m - row); }
  int64_t columns() const { return smaller(kPanelColumns, x.columns - column); }
  bool is_whole() const { return rows() == 2 * kTileRows && columns() == kPanelColumns; }

  void begin(bool is_first) const {
    const float* init = x.init ? x.init + row * x.init_stride + column : nullptr;
    if (!is_first) {
      load_sums(aside, kPanelColumns);
    } else if (!init) {
      zero_sums();
    } else if (is_whole()) {
      load_sums(init, x.init_stride);
    } else {
      copy_rows(rows(), columns(), init, x.init_stride, aside, kPanelColumns);
      load_sums(aside, kPanelColumns);
    }
  }

  void end(bool is_last) const {
    float* out = x.out + row * x.out_stride + column;
    if (is_last && is_whole()) {
      store_sums(out, x.out_stride);
      return;
    }
    store_sums(aside, kPanelColumns);
    if (is_last) copy_rows(rows(), columns(), aside, kPanelColumns, out, x.out_stride);
  }
};

// A walk over B: all stretches of the first panel, then of the next.
struct Stretches {
  const PanelProduct& x;
  int64_t column = 0, step = 0;

  int64_t longest;
  explicit Stretches(const PanelProduct& x)
      : x(x), longest(row_pairs_of(x.m) > 1 ? kSteps : kStepsInPassing) {}
  bool at_end() const { return column >= x.columns; }
  int64_t steps() const { return smaller(longest, steps_of(x.k) - step); }
  const float* rows() const {
    return x.panels + column / kPanelColumns * x.panel_stride + step * kPanelDepth * kPanelColumns;
  }
  void next() {
    step += longest;
    if (step < steps_of(x.k)) return;
    step = 0;
    column += kPanelColumns;
  }
};

void copy_init(const PanelProduct& x) {
  for (int64_t i = 0; i < x.m; ++i) {
    for (int64_t j = 0; j < x.columns; ++j) {
      x.out[i * x.out_stride + j] = x.init ? x.init[i * x.init_stride + j] : 0.0f;
    }
  }
}

void multiply(const PanelProduct& x) {
  if (x.k == 0) return copy_init(x);
  alignas(64) char split[2][kSteps * kStepBytes];
  alignas(64) float aside[blas::kRowBlock * kPanelColumns] = {};  // a piece each 32 rows
  char *current = split[0], *next = split[1];
  begin_tiles();

  int64_t row_pairs = row_pairs_of(x.m), row_bytes = steps_of(x.k) * kPartsBytes;
  Splitter splitter;
  Stretches here(x), ahead(x);
  splitter.begin(ahead.rows(), ahead.steps(), current);
  splitter.finish();
  for (; !here.at_end(); here.next()) {
    int64_t steps = here.steps();
    ahead.next();
    splitter.total = splitter.done = 0;
    if (!ahead.at_end()) splitter.begin(ahead.rows(), ahead.steps(), next);
    MultiplySteps multiply_steps = pick_share(splitter.total, row_pairs * steps);
    for (int64_t r = 0; r < row_pairs; ++r) {
      int64_t row = r * 2 * kTileRows;
      Piece piece{x, aside + row * kPanelColumns, row, here.column};
      piece.begin(here.step == 0);
      const char* upper =
          static_cast<const char*>(x.rows) + 2 * r * row_bytes + here.step * kPartsBytes;
      multiply_steps(upper, upper + row_bytes, current, steps, splitter);
      piece.end(here.step + steps == steps_of(x.k));
    }
    splitter.finish();
    char* free = current;
    current = next;
    next = free;
  }
  end_tiles();
}

}  // namespace

const PanelKernels& amx_kernels() {
  static constexpr PanelKernels kernels = {"amx", rows_bytes, pack_rows, multiply, true};
  return kernels;
}

}  // namespace prong::PRONG_ISA
#endif
