// The kernels behind packed products, one table per kind of machine. Called by packed.cpp and
// lstm.cpp; written in panel_fma_simd.cpp and panel_amx_simd.cpp. No standard templates may be used
// here or there: a copy compiled for one machine must not serve another.
//
// B[k,n] lies in panels of 32 columns: panel p holds rows 0 .. k_padded-1 (k rounded up to 32, the
// rest zeros) of columns 32p .. 32p+31 (columns past n zeros), 32 floats a row. A is packed by
// pack_rows in whatever form the kernel likes. Every element of the result is one chain of
// operations over k in order, so it does not depend on how rows and columns are cut.
#pragma once

#include <cstdint>

namespace prong::blas {

constexpr int64_t kPanelColumns = 32;
constexpr int64_t kPanelDepth = 32;  // k is padded to a multiple of this
constexpr int64_t kRowBlock = 128;   // the most rows a packed block of A may have

// Rows of A as they lie: row r begins at (r / inner) * outer_stride + (r % inner) * stride.
struct RowSource {
  const float* data;
  int64_t stride;
  int64_t inner = INT64_MAX;
  int64_t outer_stride = 0;

  const float* row(int64_t r) const {
    return inner == INT64_MAX ? data + r * stride
                              : data + r / inner * outer_stride + r % inner * stride;
  }
};

// out[m, columns] = init + A * (some panels of B).
struct PanelProduct {
  int64_t m, k;
  const void* rows;  // A, as pack_rows(m, k) left it
  const float* panels;
  int64_t panel_stride;  // floats from one panel to the next
  int64_t columns;       // of the result; the last panel may be cut
  const float* init;     // what the sums begin with; null is zeros; may be `out` itself
  int64_t init_stride;   // from row to row; 0 gives all rows the same start
  float* out;
  int64_t out_stride;
};

struct PanelKernels {
  const char* name;
  int64_t (*rows_bytes)(int64_t m, int64_t k);
  // False where this kernel cannot do these numbers with full accuracy (see panel_amx_simd.cpp).
  bool (*pack_rows)(int64_t m, int64_t k, const RowSource& source, int64_t first, void* out);
  void (*multiply)(const PanelProduct& product);
  bool needs_moderate_values;  // pack_rows may refuse, and so must the caller for B
};

}  // namespace prong::blas

// The kernels live in the namespace of the machine level that they are compiled for.
namespace prong::v3 {
const blas::PanelKernels& fma_kernels();
}
namespace prong::v4 {
const blas::PanelKernels& fma_kernels();
const blas::PanelKernels& amx_kernels();
}  // namespace prong::v4
namespace prong::generic {
const blas::PanelKernels& fma_kernels();
}

namespace prong::blas {

// The best for any numbers, and a faster one for moderate numbers or null. Chosen once.
const PanelKernels& exact_kernels();
const PanelKernels* split_kernels();
// True if |x| of the row or column maximum is 0 or within 2^-60 .. 2^60: what the split kernels ask
// of each row of A and column of B.
inline bool is_moderate(float max_abs) {
  return max_abs == 0.0f || (max_abs >= 0x1p-60f && max_abs <= 0x1p60f);
}

}  // namespace prong::blas
