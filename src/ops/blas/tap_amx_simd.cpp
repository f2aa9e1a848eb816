// Products over the taps of a convolution on the bfloat16 matrix unit (AMX). Called through
// TapKernels on machines that have the unit.
//
// Both operands are split before: each number of the left one is used by many taps and columns.
// The left parts are rounded and the right ones cut off, as in panel_amx_simd.cpp.
#include "ops/blas/tap_kernels.h"

#include "ops/blas/amx_tiles.h"

#if defined(__AVX512BW__)

namespace prong::PRONG_ISA {
namespace {

using blas::kTapColumns;
using blas::kTapDepth;
using blas::TapProduct;
using blas::TapSpan;

static_assert(blas::kTapStepBytes == kStepBytes);

template <int kRowTiles>
inline void load_rows(const char* at, const TapProduct& x) {
  PRONG_TILE_LOAD(4, at, x.row_bytes);
  if constexpr (kRowTiles == 2) PRONG_TILE_LOAD(5, at + kTileRows * x.row_bytes, x.row_bytes);
}
template <int kColumnTiles>
inline void load_columns(const char* step, int part) {
  PRONG_TILE_LOAD(6, step + part * kTileBytes, int64_t{64});
  if constexpr (kColumnTiles == 2)
    PRONG_TILE_LOAD(7, step + kPartsBytes + part * kTileBytes, int64_t{64});
}
template <int kRowTiles, int kColumnTiles>
inline void multiply_parts() {
  PRONG_TILE_MULTIPLY(0, 4, 6);
  if constexpr (kColumnTiles == 2) PRONG_TILE_MULTIPLY(1, 4, 7);
  if constexpr (kRowTiles == 2) PRONG_TILE_MULTIPLY(2, 5, 6);
  if constexpr (kRowTiles == 2 && kColumnTiles == 2) PRONG_TILE_MULTIPLY(3, 5, 7);
}

template <int kRowTiles, int kColumnTiles>
inline void start_sums(const float* init, int64_t stride) {
  if (!init) return zero_sums();
  const int64_t bytes = stride * 4;
  PRONG_TILE_LOAD(0, init, bytes);
  if constexpr (kColumnTiles == 2) PRONG_TILE_LOAD(1, init + 16, bytes);
  if constexpr (kRowTiles == 2) PRONG_TILE_LOAD(2, init + 16 * stride, bytes);
  if constexpr (kRowTiles == 2 && kColumnTiles == 2)
    PRONG_TILE_LOAD(3, init + 16 * stride + 16, bytes);
}
template <int kRowTiles, int kColumnTiles>
inline void keep_sums(float* to) {
  constexpr int64_t kBytes = kTapColumns * 4;
  PRONG_TILE_STORE(0, to, kBytes);
  if constexpr (kColumnTiles == 2) PRONG_TILE_STORE(1, to + 16, kBytes);
  if constexpr (kRowTiles == 2) PRONG_TILE_STORE(2, to + 16 * kTapColumns, kBytes);
  if constexpr (kRowTiles == 2 && kColumnTiles == 2)
    PRONG_TILE_STORE(3, to + 16 * kTapColumns + 16, kBytes);
}

// 16 or 32 rows from `row` on. The order of the products is that of the packed ones.
template <int kRowTiles, int kColumnTiles>
void multiply_rows(const TapProduct& x, int64_t row, float* sums) {
  start_sums<kRowTiles, kColumnTiles>(x.init ? x.init + row * x.init_stride : nullptr,
                                      x.init_stride);
  const char* rows = x.left + row * x.row_bytes;
  const char* step = x.right;
  const auto multiply = [] { multiply_parts<kRowTiles, kColumnTiles>(); };
  for (int64_t s = 0; s < x.steps; ++s, step += kStepBytes) {
    const char* at = rows + x.offsets[s];
    load_rows<kRowTiles>(at, x);
    load_columns<kColumnTiles>(step, 0);
    multiply();  // high x high
    load_columns<kColumnTiles>(step, 2);
    multiply();  // high x low
    load_columns<kColumnTiles>(step, 1);
    multiply();  // high x middle
    load_rows<kRowTiles>(at + x.part_bytes, x);
    multiply();  // middle x middle
    load_columns<kColumnTiles>(step, 0);
    multiply();  // middle x high
    load_rows<kRowTiles>(at + 2 * x.part_bytes, x);
    multiply();  // low x high
  }
  keep_sums<kRowTiles, kColumnTiles>(sums);
}

// f(row) after the sums of 32 rows from `row` on, or of the last 16, are at place(row).
template <int kColumnTiles, class P, class F>
inline void multiply_all(const TapProduct& x, P&& place, F&& f) {
  int64_t row = 0;
  for (; row + kTileRows < x.rows; row += 2 * kTileRows) {
    multiply_rows<2, kColumnTiles>(x, row, place(row));
    f(row);
  }
  if (row < x.rows) {
    multiply_rows<1, kColumnTiles>(x, row, place(row));
    f(row);
  }
}

void multiply(const TapProduct& x, float* sums) {
  const auto place = [&](int64_t row) { return sums + row * kTapColumns; };
  const auto nothing = [](int64_t) {};
  x.columns > kTapColumns / 2 ? multiply_all<2>(x, place, nothing)
                              : multiply_all<1>(x, place, nothing);
}

inline __mmask16 first_lanes(int64_t count) {
  return count >= 16 ? 0xffff : count <= 0 ? 0 : static_cast<__mmask16>((1u << count) - 1);
}

template <int kDistance>
inline void exchange(__m512 (&rows)[16]) {
  alignas(64) int32_t first[16], second[16];
  for (int i = 0; i < 16; ++i) {
    first[i] = i & kDistance ? 16 + i - kDistance : i;
    second[i] = i & kDistance ? 16 + i : i + kDistance;
  }
  const __m512i a = _mm512_load_si512(first), b = _mm512_load_si512(second);
  for (int i = 0; i < 16; ++i) {
    if (i & kDistance) continue;
    const __m512 x = rows[i], y = rows[i + kDistance];
    rows[i] = _mm512_permutex2var_ps(x, a, y);
    rows[i + kDistance] = _mm512_permutex2var_ps(x, b, y);
  }
  if constexpr (kDistance > 1) exchange<kDistance / 2>(rows);
}

// Rows in lines: which of 16 rows are kept, and where the first of these goes.
struct LinePiece {
  __mmask16 lanes;
  int64_t offset;
};
// The pieces of rows [row, row + 16) below `rows`; returns how many. Lines that follow each other
// in memory make one piece.
inline int line_pieces(const blas::TapLines& lines, int64_t row, int64_t rows, LinePiece* pieces) {
  int count = 0;
  const int64_t end = smaller(row + 16, rows);
  for (int64_t at = row; at < end;) {
    const int64_t line = at / lines.width, q = at - line * lines.width;
    const int64_t kept = smaller(lines.count - q, end - at);
    if (kept > 0) {
      const auto lanes = static_cast<__mmask16>(first_lanes(kept) << (at - row));
      if (count && lines.line_stride == lines.count)
        pieces[0].lanes = static_cast<__mmask16>(pieces[0].lanes | lanes);
      else
        pieces[count++] = {lanes, line * lines.line_stride + q};
    }
    at += lines.width - q;
  }
  return count;
}

// 16 rows of sums, turned, to their places.
inline void store_lines(const blas::TapLines& lines, const LinePiece* pieces, int count,
                        int64_t columns, const float* sums) {
  for (int64_t j = 0; j < columns; j += 16) {
    __m512 square[16];
    for (int r = 0; r < 16; ++r) square[r] = _mm512_loadu_ps(sums + r * kTapColumns + j);
    exchange<8>(square);
    const int64_t wide = smaller(16, columns - j);
    float* out = lines.out + j * lines.column_stride;
    for (int piece = 0; piece < count; ++piece) {
      const __mmask16 lanes = pieces[piece].lanes;
      float* to = out + pieces[piece].offset;
      if (lanes == 0xffff && wide == 16) {
        for (int r = 0; r < 16; ++r) _mm512_storeu_ps(to + r * lines.column_stride, square[r]);
        continue;
      }
      const __mmask16 kept = first_lanes(__builtin_popcount(lanes));
      for (int r = 0; r < 16; ++r)
        _mm512_mask_storeu_ps(to + r * lines.column_stride, r < wide ? kept : 0,
                              _mm512_maskz_compress_ps(lanes, square[r]));
    }
  }
}

void multiply_to_lines(const TapProduct& x, const blas::TapLines& lines) {
  alignas(64) float sums[2 * kTileRows * kTapColumns];
  const auto place = [&](int64_t) { return sums; };
  const auto store = [&](int64_t row) {
    for (int64_t part = 0; part < 2 && row + part * 16 < x.rows; ++part) {
      LinePiece pieces[16];
      const int count = line_pieces(lines, row + part * 16, x.rows, pieces);
      store_lines(lines, pieces, count, x.columns, sums + part * 16 * kTapColumns);
    }
  };
  x.columns > kTapColumns / 2 ? multiply_all<2>(x, place, store) : multiply_all<1>(x, place, store);
}

// ── splitting ──

inline __m512i size_of(__m512 x) {
  return _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
}

// The bfloat16 nearest to each float, as the upper half of 32 bits; halfway away from zero.
inline __m512i nearest_bfloat16(__m512 x) {
  const __m512i bits = _mm512_add_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x8000));
  return _mm512_and_si512(bits, _mm512_set1_epi32(static_cast<int>(0xffff0000)));
}

// The three parts of two channels, a pair of bfloat16 in each 32 bits.
struct PairParts {
  __m512i parts[3];
};
inline PairParts split_channels(__m512 even, __m512 odd) {
  PairParts out;
  for (int part = 0; part < 3; ++part) {
    const __m512i e = nearest_bfloat16(even), o = nearest_bfloat16(odd);
    out.parts[part] = _mm512_or_si512(_mm512_srli_epi32(e, 16), o);
    even = _mm512_sub_ps(even, _mm512_castsi512_ps(e));
    odd = _mm512_sub_ps(odd, _mm512_castsi512_ps(o));
  }
  return out;
}

// rows[i] holds 16 positions of the i-th of kRows pairs; afterwards the vectors, one after the
// other, hold kRows pairs of each position.
template <int kRows>
inline void interleave(__m512i (&rows)[kRows]) {
  if constexpr (kRows > 1) {
    const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i high =
        _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    // A perfect shuffle of the whole, once for each halving.
    for (int width = 1; width < kRows; width *= 2) {
      __m512i next[kRows];
      for (int i = 0; i < kRows / 2; ++i) {
        next[2 * i] = _mm512_permutex2var_epi32(rows[i], low, rows[i + kRows / 2]);
        next[2 * i + 1] = _mm512_permutex2var_epi32(rows[i], high, rows[i + kRows / 2]);
      }
      for (int i = 0; i < kRows; ++i) rows[i] = next[i];
    }
  }
}

// Lanes p .. p + 15 that are read.
inline __mmask16 lanes_inside(const TapSpan& span, int64_t p) {
  return static_cast<__mmask16>(first_lanes(span.high - p) & ~first_lanes(span.low - p));
}

template <int kPairs>
uint32_t split_pairs(int64_t channels, const TapSpan& span, int64_t channel_stride, char* out,
                     int64_t part_bytes) {
  __m512i largest = _mm512_setzero_si512();
  for (int64_t p = 0; p < span.count; p += 16) {
    const __mmask16 mask = lanes_inside(span, p);
    alignas(64) __m512i parts[3][kPairs];
    for (int i = 0; i < kPairs; ++i) {
      const float* even = span.from + 2 * i * channel_stride + p;
      const __m512 a = _mm512_maskz_loadu_ps(2 * i < channels ? mask : 0, even);
      const __m512 b =
          _mm512_maskz_loadu_ps(2 * i + 1 < channels ? mask : 0, even + channel_stride);
      largest = _mm512_max_epu32(largest, _mm512_max_epu32(size_of(a), size_of(b)));
      const PairParts pair = split_channels(a, b);
      for (int part = 0; part < 3; ++part) parts[part][i] = pair.parts[part];
    }
    for (int part = 0; part < 3; ++part) {
      __m512i rows[kPairs];
      for (int i = 0; i < kPairs; ++i) rows[i] = parts[part][i];
      interleave<kPairs>(rows);
      char* to = out + part * part_bytes + p * kPairs * 4;
      for (int i = 0; i < kPairs; ++i) _mm512_storeu_si512(to + i * 64, rows[i]);
    }
  }
  return _mm512_reduce_max_epu32(largest);
}

uint32_t split_row(const TapSpan& span, char* out, int64_t part_bytes) {
  __m512i largest = _mm512_setzero_si512();
  // Lanes of two vectors as 16-bit halves: the upper half of each.
  __m512i upper_halves;
  {
    alignas(64) uint16_t lanes[32];
    for (int i = 0; i < 32; ++i) lanes[i] = static_cast<uint16_t>(2 * i + 1);
    upper_halves = _mm512_load_si512(lanes);
  }
  for (int64_t p = 0; p < span.count; p += 32) {
    __m512 a = _mm512_maskz_loadu_ps(lanes_inside(span, p), span.from + p);
    __m512 b = _mm512_maskz_loadu_ps(lanes_inside(span, p + 16), span.from + p + 16);
    largest = _mm512_max_epu32(largest, _mm512_max_epu32(size_of(a), size_of(b)));
    for (int part = 0; part < 3; ++part) {
      const __m512i x = nearest_bfloat16(a), y = nearest_bfloat16(b);
      _mm512_storeu_si512(out + part * part_bytes + p * 2,
                          _mm512_permutex2var_epi16(x, upper_halves, y));
      a = _mm512_sub_ps(a, _mm512_castsi512_ps(x));
      b = _mm512_sub_ps(b, _mm512_castsi512_ps(y));
    }
  }
  return _mm512_reduce_max_epu32(largest);
}

// One channel: its numbers lie as those of a row do.
uint32_t split_single(int64_t, const TapSpan& span, int64_t, char* out, int64_t part_bytes) {
  __m512i largest = _mm512_setzero_si512();
  for (int64_t p = 0; p < span.count; p += 16) {
    __m512 a = _mm512_maskz_loadu_ps(lanes_inside(span, p), span.from + p);
    largest = _mm512_max_epu32(largest, size_of(a));
    for (int part = 0; part < 3; ++part) {
      const __m512i x = nearest_bfloat16(a);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + part * part_bytes + p * 2),
                          _mm512_cvtepi32_epi16(_mm512_srli_epi32(x, 16)));
      a = _mm512_sub_ps(a, _mm512_castsi512_ps(x));
    }
  }
  return _mm512_reduce_max_epu32(largest);
}

uint32_t split_positions(int64_t channels, int64_t width, const TapSpan& span,
                         int64_t channel_stride, char* out, int64_t part_bytes) {
  const auto kernel = width == 32   ? split_pairs<16>
                      : width == 16 ? split_pairs<8>
                      : width == 8  ? split_pairs<4>
                      : width == 4  ? split_pairs<2>
                      : width == 2  ? split_pairs<1>
                                    : split_single;
  return kernel(channels, span, channel_stride, out, part_bytes);
}

uint32_t split_pair(const float* even, const float* odd, int64_t pair, char* step) {
  __m512i largest = _mm512_setzero_si512();
  for (int half = 0; half < 2; ++half) {
    const __m512 a = _mm512_loadu_ps(even + half * 16), b = _mm512_loadu_ps(odd + half * 16);
    largest = _mm512_max_epu32(largest, _mm512_max_epu32(size_of(a), size_of(b)));
    store_parts(_mm512_castps_si512(a), _mm512_castps_si512(b),
                step + half * kPartsBytes + pair * 64);
  }
  return _mm512_reduce_max_epu32(largest);
}

// ── transposition, with lanes left out at the edges ──

void turn(int64_t rows, int64_t columns, const float* from, int64_t from_stride, float* to,
          int64_t to_stride) {
  for (int64_t j = 0; j < columns; j += 16) {
    const int64_t wide = smaller(16, columns - j);
    const __mmask16 from_mask = first_lanes(wide);
    for (int64_t i = 0; i < rows; i += 16) {
      const int64_t high = smaller(16, rows - i);
      const float* at = from + i * from_stride + j;
      __m512 square[16];
      for (int r = 0; r < 16; ++r)
        square[r] = _mm512_maskz_loadu_ps(r < high ? from_mask : 0, at + r * from_stride);
      exchange<8>(square);
      float* out = to + j * to_stride + i;
      const __mmask16 to_mask = first_lanes(high);
      if (wide == 16 && high == 16) {
        for (int r = 0; r < 16; ++r) _mm512_storeu_ps(out + r * to_stride, square[r]);
        continue;
      }
      for (int r = 0; r < 16; ++r)
        _mm512_mask_storeu_ps(out + r * to_stride, r < wide ? to_mask : 0, square[r]);
    }
  }
}

}  // namespace

const blas::TapKernels& tap_kernels() {
  static constexpr blas::TapKernels kernels = {
      begin_tiles,     end_tiles, multiply,   multiply_to_lines,
      split_positions, split_row, split_pair, turn};
  return kernels;
}

}  // namespace prong::PRONG_ISA
#endif
