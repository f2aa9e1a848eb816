// Moves of operands into the form that the product kernels read. Called by packed.cpp; written in
// move_simd.cpp. No standard templates, as in panel_kernels.h.
#pragma once

#include <cstdint>

namespace prong::blas {

struct MoveKernels {
  // to[j * to_stride + i] = from[i * from_stride + j] for i < m, j < n.
  void (*transpose)(int64_t m, int64_t n, const float* from, int64_t from_stride, float* to,
                    int64_t to_stride);
  // Multiplies a panel of k rows by `scale` in place, and tells whether all its columns are
  // moderate.
  bool (*finish_panel)(int64_t k, float scale, float* panel);
};

const MoveKernels& move_kernels();  // of this machine

}  // namespace prong::blas

namespace prong::v3 {
const blas::MoveKernels& move_kernels();
}
namespace prong::v4 {
const blas::MoveKernels& move_kernels();
}
namespace prong::generic {
const blas::MoveKernels& move_kernels();
}
