// A vector of floats as wide as the machine level that a *_simd.cpp file is compiled for, with a
// fused multiply-add. Included by the *_simd.cpp files of this folder only.
#pragma once

#include <cstdint>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace prong::PRONG_ISA {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX2__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif
typedef float Vf __attribute__((vector_size(kLanes * 4)));
typedef int32_t Vi __attribute__((vector_size(kLanes * 4)));
typedef float VfUnaligned __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));

inline Vf load(const float* p) { return *reinterpret_cast<const VfUnaligned*>(p); }
inline void store(float* p, Vf x) { *reinterpret_cast<VfUnaligned*>(p) = x; }
inline Vf splat(float x) { return x - Vf{}; }

// a * b + c with one rounding.
inline Vf fma(Vf a, Vf b, Vf c) {
#if defined(__AVX512F__)
  return (Vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
  return (Vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
  for (int i = 0; i < kLanes; ++i) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return c;
#endif
}

}  // namespace prong::PRONG_ISA
