// The bfloat16 matrix unit (AMX): its registers, and floats cut into three bfloat16 for it.
// Included by *_amx_simd.cpp only; panel_amx_simd.cpp says how the parts are multiplied.
#pragma once

#include <cstdint>

#include "ops/blas/panel_kernels.h"

#if defined(__AVX512BW__)
// GCC 12 warns about the deliberately undefined operands inside its own intrinsics.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

namespace prong::PRONG_ISA {

constexpr int64_t kTileRows = 16;                // a matrix register is 16 rows of 64 bytes
constexpr int64_t kTileBytes = 1024;             // so 16 x 32 bfloat16 or 16 x 16 float
constexpr int64_t kPartsBytes = 3 * kTileBytes;  // high, middle and low of one tile
constexpr int64_t kStepBytes = 2 * kPartsBytes;  // of B: two tiles stand side by side in a panel

inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// The three parts of 16 columns of two numbers, k and k + 1, in the form the unit wants of a row of
// its right operand. Parts are cut off, not rounded: those of the left operand are rounded, so the
// errors have both signs.
inline void store_parts(__m512i even, __m512i odd, char* at) {
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000));
  for (int part = 0; part < 3; ++part) {
    __m512i both = _mm512_mask_blend_epi16(0xaaaaaaaa, _mm512_srli_epi32(even, 16), odd);
    _mm512_store_si512(at + part * kTileBytes, both);
    even = _mm512_castps_si512(_mm512_sub_ps(_mm512_castsi512_ps(even),
                                             _mm512_castsi512_ps(_mm512_and_si512(even, upper))));
    odd = _mm512_castps_si512(
        _mm512_sub_ps(_mm512_castsi512_ps(odd), _mm512_castsi512_ps(_mm512_and_si512(odd, upper))));
  }
}
// The same for two rows of a panel.
inline void split_two_rows(const float* rows, char* out) {
  for (int half = 0; half < 2; ++half)
    store_parts(_mm512_load_si512(rows + half * 16),
                _mm512_load_si512(rows + blas::kPanelColumns + half * 16),
                out + half * kPartsBytes);
}

// The matrix registers hold: 0-3 sums of 2 x 2 tiles, 4 and 5 rows of A, 6 and 7 columns of B.
#define PRONG_TILE_LOAD(reg, at, stride) \
  asm volatile("tileloadd (%0,%1,1), %%tmm" #reg ::"r"(at), "r"(stride) : "memory")
#define PRONG_TILE_STORE(reg, at, stride) \
  asm volatile("tilestored %%tmm" #reg ", (%0,%1,1)" ::"r"(at), "r"(stride) : "memory")
#define PRONG_TILE_MULTIPLY(sum, left, right) \
  asm volatile("tdpbf16ps %%tmm" #right ", %%tmm" #left ", %%tmm" #sum ::)
// Four sums in turn, since a sum may be used again only after the time of three others.
#define PRONG_MULTIPLY_2X2      \
  PRONG_TILE_MULTIPLY(0, 4, 6); \
  PRONG_TILE_MULTIPLY(1, 4, 7); \
  PRONG_TILE_MULTIPLY(2, 5, 6); \
  PRONG_TILE_MULTIPLY(3, 5, 7)

inline void load_left(const char* upper, const char* lower, int part) {
  PRONG_TILE_LOAD(4, upper + part * kTileBytes, int64_t{64});
  PRONG_TILE_LOAD(5, lower + part * kTileBytes, int64_t{64});
}
inline void load_right(const char* b, int part) {
  PRONG_TILE_LOAD(6, b + part * kTileBytes, int64_t{64});
  PRONG_TILE_LOAD(7, b + kPartsBytes + part * kTileBytes, int64_t{64});
}

struct alignas(64) TileShapes {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

inline void load_sums(const float* from, int64_t stride) {
  int64_t bytes = stride * 4;
  PRONG_TILE_LOAD(0, from, bytes);
  PRONG_TILE_LOAD(1, from + 16, bytes);
  PRONG_TILE_LOAD(2, from + 16 * stride, bytes);
  PRONG_TILE_LOAD(3, from + 16 * stride + 16, bytes);
}
inline void store_sums(float* to, int64_t stride) {
  int64_t bytes = stride * 4;
  PRONG_TILE_STORE(0, to, bytes);
  PRONG_TILE_STORE(1, to + 16, bytes);
  PRONG_TILE_STORE(2, to + 16 * stride, bytes);
  PRONG_TILE_STORE(3, to + 16 * stride + 16, bytes);
}
inline void zero_sums() {
  asm volatile("tilezero %%tmm0\n tilezero %%tmm1\n tilezero %%tmm2\n tilezero %%tmm3" ::);
}

// Between these a thread may use the unit. They don't nest.
inline void begin_tiles() {
  const TileShapes shapes;
  asm volatile("ldtilecfg %0" ::"m"(shapes));
}
inline void end_tiles() { asm volatile("tilerelease"); }

}  // namespace prong::PRONG_ISA
#endif
