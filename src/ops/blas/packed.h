// Products with a matrix that is packed once and used often: weights. Called by lstm.cpp and by ops
// that hold constant weights.
#pragma once

#include <cstdint>

#include "ops/blas/aligned_buffer.h"
#include "ops/blas/panel_kernels.h"

namespace prong::blas {

// B[k,n] as panels of 32 columns (panel_kernels.h). Immutable, so it may be used by many threads.
class PackedMatrix {
 public:
  PackedMatrix() = default;  // 0 x 0
  // scale * op(B) with B as stored: [k,n], or [n,k] if `transposed` (a Linear layer's weight).
  PackedMatrix(bool transposed, int64_t k, int64_t n, const float* b, int64_t ldb,
               float scale = 1.0f);
  // `groups` matrices below each other, b[groups * n, k], transposed: the weights of a recurrent
  // layer's gates. Columns are regrouped so that panel groups * i + g holds columns 32i .. 32i+31
  // of matrix g; each matrix is filled up with zero columns to a multiple of 32.
  static PackedMatrix interleaved(int64_t groups, int64_t k, int64_t n, const float* b,
                                  int64_t ldb);

  int64_t k() const { return k_; }
  int64_t n() const { return n_; }  // with the columns of interleaved() that were filled up
  const float* panel(int64_t index) const { return buffer_.floats() + index * panel_floats(); }
  int64_t panel_floats() const;
  // Every column is moderate, so the split kernels may be used.
  bool is_moderate() const { return is_moderate_; }
  size_t bytes() const { return buffer_.bytes(); }

 private:
  float* clear_panel(int64_t index, int64_t columns);
  void finish_panel(int64_t index, float scale);
  void pack_columns(int64_t index, int64_t columns, const float* b, int64_t ldb, float scale);
  void pack_rows(int64_t begin, int64_t end, const float* b, int64_t ldb, float scale);
  void allocate(int64_t k, int64_t n);

  int64_t k_ = 0, n_ = 0;
  bool is_moderate_ = true;
  AlignedBuffer buffer_;
};

// What the sums begin with: zero, a bias of n numbers for every row, or what C holds.
struct GemmStart {
  const float* bias = nullptr;
  bool accumulate = false;  // not together with a bias
};

// C[m,n] = start + A[m,k] * B, spread over the pool. Bits as in gemm.h: the same for any number of
// threads. C is not read unless start.accumulate.
void gemm_packed(int64_t m, const float* a, int64_t lda, const PackedMatrix& b, GemmStart start,
                 float* c, int64_t ldc);
// The same with rows of A that do not lie at one distance.
void gemm_packed(int64_t m, const RowSource& a, const PackedMatrix& b, GemmStart start, float* c,
                 int64_t ldc);

// The same with A as stored: [k,m], rows lda apart.
void gemm_packed_transposed(int64_t m, const float* a, int64_t lda, const PackedMatrix& b,
                            GemmStart start, float* c, int64_t ldc);

// The kernel for a block of `m` rows with `b`: the split one if it may and pays.
const PanelKernels& kernels_for(int64_t m, const PackedMatrix& b);
// Room for m rows packed by any kernel of this machine, a multiple of 64.
int64_t packed_rows_bytes(int64_t m, int64_t k);

}  // namespace prong::blas
