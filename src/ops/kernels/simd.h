// run_simd<Body>(arguments...): Body::run compiled for both machine levels, and the one of this CPU
// called. Used by kernels whose loops the compiler makes SIMD of. Both levels give the same bits.
#pragma once

#include "ops/kernels/pointwise.h"

namespace prong {

namespace detail {

template <class Body, class... A>
struct SimdLevels {
  __attribute__((optimize("O3"), flatten)) static void baseline(A... a) { Body::run(a...); }
#if defined(__x86_64__)
  __attribute__((target("arch=x86-64-v4,prefer-vector-width=512"), optimize("O3"),
                 flatten)) static void
  wide(A... a) {
    Body::run(a...);
  }
#else
  static void wide(A... a) { Body::run(a...); }
#endif
};

}  // namespace detail

template <class Body, class... A>
void run_simd(A... a) {
  using Levels = detail::SimdLevels<Body, A...>;
  if (simd_level() == 1)
    Levels::wide(a...);
  else
    Levels::baseline(a...);
}

}  // namespace prong
