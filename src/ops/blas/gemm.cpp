// Float and double products. Called through gemm.h. Floats of some size go to our own kernels
// (packed.h, thin_kernels.h), everything else to OpenBLAS' single-threaded kernels, one call a tile
// of a fixed grid over C. Both cut C by its sizes only, so that results do not depend on the number
// of threads.
#include "ops/blas/gemm.h"

#include <cblas.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "base/error.h"
#include "ops/blas/move_kernels.h"
#include "ops/blas/packed.h"
#include "ops/blas/thin_kernels.h"
#include "runtime/parallel.h"

namespace prong::blas {
namespace {

// One thread takes about 20 us for this many multiply-adds; below it, waking a second one costs
// more than it saves (bench/gemm.cpp).
constexpr int64_t kParallelWork = int64_t{1} << 20;

void multiply(bool trans_a, bool trans_b, int m, int n, int k, float alpha, const float* a, int lda,
              const float* b, int ldb, float beta, float* c, int ldc) {
  scipy_cblas_sgemm(CblasRowMajor, trans_a ? CblasTrans : CblasNoTrans,
                    trans_b ? CblasTrans : CblasNoTrans, m, n, k, alpha, a, lda, b, ldb, beta, c,
                    ldc);
}

void multiply(bool trans_a, bool trans_b, int m, int n, int k, double alpha, const double* a,
              int lda, const double* b, int ldb, double beta, double* c, int ldc) {
  scipy_cblas_dgemm(CblasRowMajor, trans_a ? CblasTrans : CblasNoTrans,
                    trans_b ? CblasTrans : CblasNoTrans, m, n, k, alpha, a, lda, b, ldb, beta, c,
                    ldc);
}

// OpenBLAS must not start threads of its own under our pool.
void use_one_blas_thread() {
  static const bool done = (scipy_openblas_set_num_threads(1), true);
  (void)done;
}

// C = beta * C, the product of nothing.
template <class T>
void scale(int64_t m, int64_t n, T beta, T* c, int64_t ldc) {
  for (int64_t i = 0; i < m; ++i) {
    T* row = c + i * ldc;
    if (beta == T(0)) {
      std::fill(row, row + n, T(0));
    } else if (beta != T(1)) {
      for (int64_t j = 0; j < n; ++j) row[j] *= beta;
    }
  }
}

// BLAS wants a row stride of at least the row length, also where there is only one row.
int leading(int64_t rows, int64_t columns, int64_t ld) {
  PRONG_ASSERT(rows <= 1 || ld >= columns, "gemm: rows of ", columns, " elements, ", ld, " apart");
  int64_t value = std::max<int64_t>({ld, columns, 1});
  PRONG_CHECK(value <= std::numeric_limits<int>::max(), kRuntime, "matmul: a row stride of ", value,
              " elements is too large");
  return static_cast<int>(value);
}

// The tiles of a product: rows x columns of C each, a function of the sizes alone.
struct Grid {
  int64_t rows, columns, count_m, count_n;
  int64_t count() const { return count_m * count_n; }
};

int64_t pieces(int64_t size, int64_t largest) { return (size + largest - 1) / largest; }

Grid make_grid(int64_t m, int64_t n, int64_t k) {
  // BLAS takes sizes as int; k beyond that is refused below.
  constexpr int64_t kMost = int64_t{1} << 30;
  Grid grid{std::min(m, kMost), std::min(n, kMost), 1, 1};
  if (m * n * k > kParallelWork) {
    // Halve the longer side until a tile has at most 512 of each and 2^25 multiply-adds, but stay
    // above the size where a tile is worth a task.
    auto work = [&] { return grid.rows * grid.columns * k; };
    while (work() > kParallelWork &&
           (work() > (1 << 25) || std::max(grid.rows, grid.columns) > 512) &&
           std::max(grid.rows, grid.columns) > 64) {
      int64_t& side = grid.rows > grid.columns ? grid.rows : grid.columns;
      side = (side / 2 + 31) / 32 * 32;
    }
    if (grid.rows >= m && grid.columns >= n) {  // one tile would leave the other threads idle
      int64_t& side = m > n ? grid.rows : grid.columns;
      if (side > 32) side = (side / 2 + 31) / 32 * 32;
    }
  }
  grid.count_m = pieces(m, grid.rows);
  grid.count_n = pieces(n, grid.columns);
  return grid;
}

struct FloatGemm {
  bool trans_a, trans_b;
  int64_t m, n, k;
  float alpha;
  const float* a;
  int64_t lda;
  const float* b;
  int64_t ldb;
  float beta;
  float* c;
  int64_t ldc;
};

// Packing B for one product pays from about here on (bench/gemm.cpp): enough rows to use the packed
// panels, and enough columns to fill them.
bool pays_to_pack(int64_t m, int64_t n, int64_t k) {
  return m >= 24 && n >= 48 && k >= 32 && m * n * k >= (int64_t{1} << 19);
}

// Our own kernels on panels of B that are packed for this product, a stretch of columns at a time:
// few rows read a stretch from the second-level cache right after it was packed, many rows are
// worth one packing of up to 16 MB.
struct PanelGemm : FloatGemm {
  int64_t stretch() const {
    int64_t floats = m <= 2 * kRowBlock ? int64_t{1} << 19 : int64_t{1} << 22;
    return std::max<int64_t>(1, floats / (k * kPanelColumns)) * kPanelColumns;
  }

  void run_stretch(int64_t column) const {
    PackedMatrix panels(trans_b, k, std::min(stretch(), n - column),
                        b + (trans_b ? column * ldb : column), ldb, alpha);
    GemmStart start;
    start.accumulate = beta != 0.0f;
    if (trans_a) {
      gemm_packed_transposed(m, a, lda, panels, start, c + column, ldc);
    } else {
      gemm_packed(m, a, lda, panels, start, c + column, ldc);
    }
  }

  void run() const {
    if (beta != 0.0f && beta != 1.0f) {
      parallel_for(0, m, std::max<int64_t>(1, 65536 / n), [&](int64_t begin, int64_t end) {
        scale(end - begin, n, beta, c + begin * ldc, ldc);
      });
    }
    parallel_for(0, pieces(n, stretch()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) run_stretch(i * stretch());
    });
  }
};

// A product that reads one big matrix once: up to kThin rows, or up to kThin columns, of the
// result.
constexpr int64_t kThin = 24;

// Rows of a [rows, columns] matrix turned into columns, where the kernel wants them contiguous.
AlignedBuffer turned(int64_t rows, int64_t columns, const float* from, int64_t stride) {
  AlignedBuffer to(static_cast<size_t>(rows * columns) * sizeof(float));
  move_kernels().transpose(rows, columns, from, stride, to.floats(), rows);
  return to;
}

// Splits a thin product over the pool along n, a multiple of 256 columns a piece.
void run_thin(void (*kernel)(const ThinProduct&), const ThinProduct& x) {
  constexpr int64_t kPiece = 256, kPieceWork = int64_t{1} << 17;
  int64_t grain = std::max<int64_t>(1, kPieceWork / (kPiece * x.m * x.k));
  parallel_for(0, pieces(x.n, kPiece), grain, [&](int64_t begin, int64_t end) {
    ThinProduct part = x;
    part.b += begin * kPiece * x.b_col;
    part.c += begin * kPiece * x.c_col;
    part.n = std::min(end * kPiece, x.n) - begin * kPiece;
    kernel(part);
  });
}

bool is_thin(bool trans_a, int64_t m, int64_t n, int64_t k) {
  if (m * n * k < (int64_t{1} << 13)) return false;  // OpenBLAS starts faster on very small ones
  return (m <= kThin && m <= n) || (n <= kThin && !trans_a);
}

void gemm_thin(const FloatGemm& g) {
  ThinProduct x{g.m,
                g.n,
                g.k,
                g.alpha,
                g.a,
                g.trans_a ? 1 : g.lda,
                g.trans_a ? g.lda : 1,
                g.b,
                g.trans_b ? 1 : g.ldb,
                g.trans_b ? g.ldb : 1,
                g.beta,
                g.c,
                g.ldc,
                1};
  AlignedBuffer aside;
  if (g.m <= kThin && g.m <= g.n) {
    if (!g.trans_b) return run_thin(thin_kernels().rows, x);
    if (x.a_col != 1) {
      aside = turned(g.k, g.m, g.a, g.lda);
      x.a = aside.floats();
      x.a_row = g.k;
      x.a_col = 1;
    }
    return run_thin(thin_kernels().dots, x);
  }
  // Few columns: the transpose of the product, with A in the part of the matrix that is read once.
  if (x.b_row != 1) {
    aside = turned(g.k, g.n, g.b, g.ldb);
    x.b = aside.floats();
    x.b_col = g.k;
  }
  run_thin(thin_kernels().dots,
           {g.n, g.m, g.k, g.alpha, x.b, x.b_col, 1, g.a, 1, g.lda, g.beta, g.c, 1, g.ldc});
}

template <class T>
void gemm_impl(bool trans_a, bool trans_b, int64_t batch, int64_t m, int64_t n, int64_t k, T alpha,
               const T* a, const int64_t* offsets_a, int64_t lda, const T* b,
               const int64_t* offsets_b, int64_t ldb, T beta, T* c, const int64_t* offsets_c,
               int64_t ldc) {
  if (batch <= 0 || m <= 0 || n <= 0) return;
  auto at = [](const int64_t* offsets, int64_t i) { return offsets ? offsets[i] : 0; };
  if (k <= 0 || alpha == T(0)) {
    for (int64_t i = 0; i < batch; ++i) scale(m, n, beta, c + at(offsets_c, i), ldc);
    return;
  }
  if constexpr (std::is_same_v<T, float>) {
    bool thin = is_thin(trans_a, m, n, k);
    if (thin || pays_to_pack(m, n, k)) {
      parallel_for(0, batch, std::max<int64_t>(1, kParallelWork / (m * n * k)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) {
                       FloatGemm g{trans_a,
                                   trans_b,
                                   m,
                                   n,
                                   k,
                                   alpha,
                                   a + at(offsets_a, i),
                                   lda,
                                   b + at(offsets_b, i),
                                   ldb,
                                   beta,
                                   c + at(offsets_c, i),
                                   ldc};
                       thin ? gemm_thin(g) : PanelGemm{g}.run();
                     }
                   });
      return;
    }
  }
  use_one_blas_thread();
  PRONG_CHECK(k <= std::numeric_limits<int>::max(), kRuntime, "matmul: the inner size ", k,
              " is too large");
  int lda_int = trans_a ? leading(k, m, lda) : leading(m, k, lda);
  int ldb_int = trans_b ? leading(n, k, ldb) : leading(k, n, ldb);
  int ldc_int = leading(m, n, ldc);
  Grid grid = make_grid(m, n, k);
  int64_t tile_work = std::max<int64_t>(1, grid.rows * grid.columns * k);
  int64_t grain = std::max<int64_t>(1, kParallelWork / tile_work);
  parallel_for(0, batch * grid.count(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      int64_t item = index / grid.count(), tile = index % grid.count();
      int64_t i0 = tile / grid.count_n * grid.rows, j0 = tile % grid.count_n * grid.columns;
      int rows = static_cast<int>(std::min(grid.rows, m - i0));
      int columns = static_cast<int>(std::min(grid.columns, n - j0));
      const T* a_tile = a + at(offsets_a, item) + (trans_a ? i0 : i0 * lda);
      const T* b_tile = b + at(offsets_b, item) + (trans_b ? j0 * ldb : j0);
      T* c_tile = c + at(offsets_c, item) + i0 * ldc + j0;
      multiply(trans_a, trans_b, rows, columns, static_cast<int>(k), alpha, a_tile, lda_int, b_tile,
               ldb_int, beta, c_tile, ldc_int);
    }
  });
}

}  // namespace

void gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
          int64_t lda, const float* b, int64_t ldb, float beta, float* c, int64_t ldc) {
  gemm_impl<float>(trans_a, trans_b, 1, m, n, k, alpha, a, nullptr, lda, b, nullptr, ldb, beta, c,
                   nullptr, ldc);
}

void gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, double alpha,
          const double* a, int64_t lda, const double* b, int64_t ldb, double beta, double* c,
          int64_t ldc) {
  gemm_impl<double>(trans_a, trans_b, 1, m, n, k, alpha, a, nullptr, lda, b, nullptr, ldb, beta, c,
                    nullptr, ldc);
}

void gemm_batched(bool trans_a, bool trans_b, int64_t batch, int64_t m, int64_t n, int64_t k,
                  float alpha, const float* a, const int64_t* offsets_a, int64_t lda,
                  const float* b, const int64_t* offsets_b, int64_t ldb, float beta, float* c,
                  const int64_t* offsets_c, int64_t ldc) {
  gemm_impl<float>(trans_a, trans_b, batch, m, n, k, alpha, a, offsets_a, lda, b, offsets_b, ldb,
                   beta, c, offsets_c, ldc);
}

void gemm_batched(bool trans_a, bool trans_b, int64_t batch, int64_t m, int64_t n, int64_t k,
                  double alpha, const double* a, const int64_t* offsets_a, int64_t lda,
                  const double* b, const int64_t* offsets_b, int64_t ldb, double beta, double* c,
                  const int64_t* offsets_c, int64_t ldc) {
  gemm_impl<double>(trans_a, trans_b, batch, m, n, k, alpha, a, offsets_a, lda, b, offsets_b, ldb,
                    beta, c, offsets_c, ldc);
}

}  // namespace prong::blas
