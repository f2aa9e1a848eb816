// General matrix products on raw row-major memory. Called by the ops matmul, mm, bmm, addmm,
// linear, conv and by gradients.
//
// All functions: C[m,n] = alpha * op(A)[m,k] * op(B)[k,n] + beta * C, with op(X) = X or its
// transpose. `ld*` is the distance in elements between rows as stored, at least a row's length;
// trans_a says that A is stored as [k,m], trans_b that B is stored as [n,k]. With beta == 0 what C
// held is not read (NaN in uninitialised memory does not spread). C must not overlap A or B. Sizes
// may be zero; k == 0 gives beta * C. Big products are spread over the thread pool; the bits of the
// result do not depend on the number of threads. A vector with a stride is a matrix of one column:
// dot(x, y) is gemm(true, false, 1, 1, n, 1, x, incx, y, incy, 0, &sum, 1).
#pragma once

#include <cstdint>

namespace prong::blas {

void gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
          int64_t lda, const float* b, int64_t ldb, float beta, float* c, int64_t ldc);
void gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, double alpha,
          const double* a, int64_t lda, const double* b, int64_t ldb, double beta, double* c,
          int64_t ldc);

// `batch` products, matrix i of A at a + offsets_a[i] and so on (offsets in elements). A null
// offset array means the same matrix for all: offsets 0.
void gemm_batched(bool trans_a, bool trans_b, int64_t batch, int64_t m, int64_t n, int64_t k,
                  float alpha, const float* a, const int64_t* offsets_a, int64_t lda,
                  const float* b, const int64_t* offsets_b, int64_t ldb, float beta, float* c,
                  const int64_t* offsets_c, int64_t ldc);
void gemm_batched(bool trans_a, bool trans_b, int64_t batch, int64_t m, int64_t n, int64_t k,
                  double alpha, const double* a, const int64_t* offsets_a, int64_t lda,
                  const double* b, const int64_t* offsets_b, int64_t ldb, double beta, double* c,
                  const int64_t* offsets_c, int64_t ldc);

// Any type T with + and * on Acc: T is read as Acc(x), summed in Acc in the order of k, and stored
// as T(sum). For integers T == Acc (wraps like PyTorch: use an unsigned Acc); for half and bfloat16
// Acc is float. Strides of rows and columns are free (elements). Spread over the pool by rows.
template <class T, class Acc>
void gemm_generic(int64_t m, int64_t n, int64_t k, Acc alpha, const T* a, int64_t a_row,
                  int64_t a_col, const T* b, int64_t b_row, int64_t b_col, Acc beta, T* c,
                  int64_t c_row, int64_t c_col);

}  // namespace prong::blas

#include "ops/blas/gemm_generic.h"
