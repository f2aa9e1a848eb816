// The products of types that have no tuned kernel (integers, half, bfloat16). Included by gemm.h.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/parallel.h"

namespace prong::blas {

template <class T, class Acc>
void gemm_generic(int64_t m, int64_t n, int64_t k, Acc alpha, const T* a, int64_t a_row,
                  int64_t a_col, const T* b, int64_t b_row, int64_t b_col, Acc beta, T* c,
                  int64_t c_row, int64_t c_col) {
  constexpr int64_t kColumns = 256;  // sums kept on the stack, and a stretch of B's rows in cache
  int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(1, n * k));
  parallel_for(0, m, grain, [&](int64_t begin, int64_t end) {
    Acc sums[kColumns];
    for (int64_t j0 = 0; j0 < n; j0 += kColumns) {
      int64_t width = std::min(kColumns, n - j0);
      for (int64_t i = begin; i < end; ++i) {
        std::fill(sums, sums + width, Acc(0));
        for (int64_t p = 0; p < k; ++p) {
          Acc x = static_cast<Acc>(a[i * a_row + p * a_col]);
          const T* row = b + p * b_row + j0 * b_col;
          if (b_col == 1) {
            for (int64_t j = 0; j < width; ++j) sums[j] += x * static_cast<Acc>(row[j]);
          } else {
            for (int64_t j = 0; j < width; ++j) sums[j] += x * static_cast<Acc>(row[j * b_col]);
          }
        }
        T* out = c + i * c_row + j0 * c_col;
        for (int64_t j = 0; j < width; ++j) {
          Acc value = alpha * sums[j];
          if (beta != Acc(0)) value += beta * static_cast<Acc>(out[j * c_col]);
          out[j * c_col] = static_cast<T>(value);
        }
      }
    }
  });
}

}  // namespace prong::blas
