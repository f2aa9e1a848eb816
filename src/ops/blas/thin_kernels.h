// Products with few rows or few columns, which read one big matrix once and are bound by that;
// nothing is packed. Called by gemm.cpp; written in thin_simd.cpp. No standard templates, as in
// panel_kernels.h. Each element is one chain over k, whatever the rows and columns of a call.
#pragma once

#include <cstdint>

namespace prong::blas {

// C[i,j] = alpha * sum_p A[i,p] B[p,j] + beta * C[i,j]; every matrix by two strides, in elements.
struct ThinProduct {
  int64_t m, n, k;
  float alpha;
  const float* a;
  int64_t a_row, a_col;
  const float* b;
  int64_t b_row, b_col;
  float beta;  // 0: C is not read
  float* c;
  int64_t c_row, c_col;
};

struct ThinKernels {
  // Both operands contiguous along k: a_col == 1 and b_row == 1.
  void (*dots)(const ThinProduct& x);
  // B and C contiguous along n: b_col == 1 and c_col == 1.
  void (*rows)(const ThinProduct& x);
};

const ThinKernels& thin_kernels();  // of this machine

}  // namespace prong::blas

namespace prong::v3 {
const blas::ThinKernels& thin_kernels();
}
namespace prong::v4 {
const blas::ThinKernels& thin_kernels();
}
namespace prong::generic {
const blas::ThinKernels& thin_kernels();
}
