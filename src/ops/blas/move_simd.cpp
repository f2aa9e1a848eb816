// Transposition in vector registers, and the last look at a packed panel. Called through
// MoveKernels.
#include "ops/blas/move_kernels.h"
#include "ops/blas/panel_kernels.h"
#include "ops/blas/simd_float.h"

namespace prong::PRONG_ISA {
namespace {

using blas::kPanelColumns;

// Which lanes of (a, b) make the first and the second result when blocks of kDistance lanes of a
// and b are exchanged across the diagonal.
template <int kDistance>
Vi first_lanes() {
  Vi lanes{};
  for (int i = 0; i < kLanes; ++i) lanes[i] = i & kDistance ? kLanes + i - kDistance : i;
  return lanes;
}
template <int kDistance>
Vi second_lanes() {
  Vi lanes{};
  for (int i = 0; i < kLanes; ++i) lanes[i] = i & kDistance ? kLanes + i : i + kDistance;
  return lanes;
}

template <int kDistance>
inline void exchange(Vf (&rows)[kLanes]) {
  const Vi first = first_lanes<kDistance>(), second = second_lanes<kDistance>();
  for (int i = 0; i < kLanes; ++i) {
    if (i & kDistance) continue;
    Vf a = rows[i], b = rows[i + kDistance];
    rows[i] = __builtin_shuffle(a, b, first);
    rows[i + kDistance] = __builtin_shuffle(a, b, second);
  }
  if constexpr (kDistance > 1) exchange<kDistance / 2>(rows);
}

void transpose_square(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  Vf rows[kLanes];
  for (int i = 0; i < kLanes; ++i) rows[i] = load(from + i * from_stride);
  exchange<kLanes / 2>(rows);
  for (int i = 0; i < kLanes; ++i) store(to + i * to_stride, rows[i]);
}

void transpose(int64_t m, int64_t n, const float* from, int64_t from_stride, float* to,
               int64_t to_stride) {
  int64_t whole_m = m / kLanes * kLanes, whole_n = n / kLanes * kLanes;
  for (int64_t j = 0; j < whole_n; j += kLanes) {
    for (int64_t i = 0; i < whole_m; i += kLanes) {
      transpose_square(from + i * from_stride + j, from_stride, to + j * to_stride + i, to_stride);
    }
  }
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = i < whole_m ? whole_n : 0; j < n; ++j) {
      to[j * to_stride + i] = from[i * from_stride + j];
    }
  }
}

bool finish_panel(int64_t k, float scale, float* panel) {
  constexpr int kVectors = kPanelColumns / kLanes;
  Vi largest[kVectors] = {};  // bits of |x|, ordered as the numbers are, NaN on top
  const Vi size = (Vi)splat(-0.0f) ^ -1;
  for (int64_t p = 0; p < k; ++p) {
    for (int v = 0; v < kVectors; ++v) {
      float* at = panel + p * kPanelColumns + v * kLanes;
      Vf x = load(at);
      if (scale != 1.0f) {
        x *= splat(scale);
        store(at, x);
      }
      Vi bits = (Vi)x & size;
      largest[v] = bits > largest[v] ? bits : largest[v];
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    Vf max_abs = (Vf)largest[v];
    for (int i = 0; i < kLanes; ++i) {
      if (!blas::is_moderate(max_abs[i])) return false;
    }
  }
  return true;
}

}  // namespace

const blas::MoveKernels& move_kernels() {
  static constexpr blas::MoveKernels kernels = {transpose, finish_panel};
  return kernels;
}

}  // namespace prong::PRONG_ISA
