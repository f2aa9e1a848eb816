// Packed products with fused multiply-adds in vector registers. Called through PanelKernels.
//
// A tile of kTileRows x one panel (or half of one, with 16 registers) of sums stays in registers
// while k runs. A is packed in strips of at most kTileRows rows, k-major within a strip, so that
// one step of k reads one line of A and one row of the panel.
#include "ops/blas/panel_kernels.h"
#include "ops/blas/simd_float.h"

namespace prong::PRONG_ISA {
namespace {

using blas::kPanelColumns;
using blas::kPanelDepth;
using blas::PanelKernels;
using blas::PanelProduct;
using blas::RowSource;

#if defined(__AVX512F__)
constexpr int kTileRows = 14, kTileVectors = 2;  // 28 sums, 2 of B, 1 of A: 31 of 32 registers
#elif defined(__AVX2__)
constexpr int kTileRows = 6, kTileVectors = 2;  // 12 sums, 2 of B, 1 of A: 15 of 16 registers
#else
constexpr int kTileRows = 4, kTileVectors = 4;
#endif
constexpr int kTileColumns = kTileVectors * kLanes;
// 512 rows of a panel are 64 KB: the strips of a block share them from the second-level cache.
constexpr int64_t kDepth = 512;

int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// Strips as equal as can be: 50 rows are 13 + 13 + 12 + 12.
struct Strips {
  int64_t m, count;
  explicit Strips(int64_t m) : m(m), count((m + kTileRows - 1) / kTileRows) {}
  int64_t begin(int64_t i) const { return m / count * i + smaller(i, m % count); }
  int64_t rows(int64_t i) const { return m / count + (i < m % count ? 1 : 0); }
};

int64_t rows_bytes(int64_t m, int64_t k) { return m * k * int64_t{sizeof(float)}; }

bool pack_rows(int64_t m, int64_t k, const RowSource& source, int64_t first, void* out) {
  float* strip = static_cast<float*>(out);
  Strips strips(m);
  for (int64_t s = 0; s < strips.count; ++s) {
    int64_t height = strips.rows(s);
    for (int64_t i = 0; i < height; ++i) {
      const float* row = source.row(first + strips.begin(s) + i);
      for (int64_t p = 0; p < k; ++p) strip[p * height + i] = row[p];
    }
    strip += height * k;
  }
  return true;
}

// What one call of a tile kernel needs. `ahead` is fetched meanwhile, one line every other step.
struct Tile {
  int64_t depth;
  const float* a;  // depth x rows
  const float* b;  // depth x 32, at the tile's first column
  const float* init;
  int64_t init_stride;
  float* out;
  int64_t out_stride;
  const char* ahead;
  int64_t ahead_step;  // bytes a step of k; 0 fetches nothing
};

template <int kRows>
void tile_kernel(const Tile& tile) {
  Vf sums[kRows][kTileVectors];
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kTileVectors; ++j) {
      sums[i][j] = tile.init ? load(tile.init + i * tile.init_stride + j * kLanes) : Vf{};
    }
  }
  const float* a = tile.a;
  const float* b = tile.b;
  const char* ahead = tile.ahead;
  for (int64_t p = 0; p < tile.depth; ++p) {
    Vf right[kTileVectors];
    for (int j = 0; j < kTileVectors; ++j) right[j] = load(b + j * kLanes);
    if (tile.ahead_step) __builtin_prefetch(ahead, 0, 2);
    ahead += tile.ahead_step;
    for (int i = 0; i < kRows; ++i) {
      Vf left = splat(a[i]);
      for (int j = 0; j < kTileVectors; ++j) sums[i][j] = fma(left, right[j], sums[i][j]);
    }
    a += kRows;
    b += kPanelColumns;
  }
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kTileVectors; ++j) {
      store(tile.out + i * tile.out_stride + j * kLanes, sums[i][j]);
    }
  }
}

using TileKernel = void (*)(const Tile&);

// tile_kernel<1> .. tile_kernel<kTileRows> by the number of rows.
struct TileTable {
  TileKernel kernels[kTileRows + 1] = {};
  constexpr TileTable() { fill<kTileRows>(); }

  template <int kRows>
  constexpr void fill() {
    kernels[kRows] = tile_kernel<kRows>;
    if constexpr (kRows > 1) fill<kRows - 1>();
  }
};
constexpr TileTable kTiles;

// The last panel, cut to `valid` columns: through a full tile aside.
void run_cut(TileKernel kernel, Tile tile, int64_t rows, int64_t valid) {
  float aside[kTileRows * kTileColumns] = {};
  for (int64_t i = 0; tile.init && i < rows; ++i) {
    for (int64_t j = 0; j < valid; ++j) {
      aside[i * kTileColumns + j] = tile.init[i * tile.init_stride + j];
    }
  }
  float* out = tile.out;
  int64_t out_stride = tile.out_stride;
  tile.init = tile.out = aside;
  tile.init_stride = tile.out_stride = kTileColumns;
  kernel(tile);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < valid; ++j) out[i * out_stride + j] = aside[i * kTileColumns + j];
  }
}

void multiply(const PanelProduct& x) {
  Strips strips(x.m);
  for (int64_t column = 0; column < x.columns; column += kPanelColumns) {
    const float* panel = x.panels + column / kPanelColumns * x.panel_stride;
    for (int64_t p = 0; p < x.k || p == 0; p += kDepth) {
      int64_t depth = smaller(kDepth, x.k - p);
      const float* strip = static_cast<const float*>(x.rows);
      for (int64_t s = 0; s < strips.count; ++s) {
        int64_t height = strips.rows(s), row = strips.begin(s);
        for (int64_t part = 0; part < kPanelColumns; part += kTileColumns) {
          int64_t valid = smaller(kTileColumns, x.columns - column - part);
          if (valid <= 0) break;
          Tile tile;
          tile.depth = depth;
          tile.a = strip + p * height;
          tile.b = panel + p * kPanelColumns + part;
          tile.out = x.out + row * x.out_stride + column + part;
          tile.out_stride = x.out_stride;
          tile.init = x.init ? x.init + row * x.init_stride + column + part : nullptr;
          tile.init_stride = x.init_stride;
          if (p > 0) {
            tile.init = tile.out;
            tile.init_stride = x.out_stride;
          }
          // Each strip fetches its share of the stretch of B that comes next. Past the last panel
          // this asks for a little that nobody needs, which does no harm.
          int64_t share = depth * kPanelColumns * int64_t{sizeof(float)} / strips.count;
          tile.ahead =
              reinterpret_cast<const char*>(panel + (p + depth) * kPanelColumns) + s * share;
          tile.ahead_step = part == 0 && depth ? share / depth : 0;
          TileKernel kernel = kTiles.kernels[height];
          if (valid == kTileColumns) {
            kernel(tile);
          } else {
            run_cut(kernel, tile, height, valid);
          }
        }
        strip += height * x.k;
      }
    }
  }
}

}  // namespace

const PanelKernels& fma_kernels() {
  static constexpr PanelKernels kernels = {
#if defined(__AVX512F__)
    "fma512",
#elif defined(__AVX2__)
    "fma256",
#else
    "fma",
#endif
    rows_bytes,
    pack_rows,
    multiply,
    false
  };
  return kernels;
}

}  // namespace prong::PRONG_ISA
