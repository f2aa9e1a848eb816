// Folds that several kernels use: a number that changes nothing, and how two become one. Included
// by kernels that reduce rows.
#pragma once

#include "ops/kernels/simd.h"

namespace prong {

template <class T>
struct SumFold {
  using Acc = T;
  PRONG_INLINE T identity() const { return 0; }
  PRONG_INLINE T lift(T x) const { return x; }
  PRONG_INLINE T combine(T a, T b) const { return a + b; }
};

}  // namespace prong
