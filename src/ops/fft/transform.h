// Fourier transforms of one line of numbers, not normalised. Called by the kernels of fft; any
// thread.
#pragma once

#include <complex>
#include <cstdint>

namespace prong::fft {

// out[k] = sum of in[j] exp(-+2 pi i j k / n): minus where forward. Both [n], apart.
template <class T>
void transform(bool forward, int64_t n, const std::complex<T>* in, std::complex<T>* out);

// The first n / 2 + 1 results for real numbers.
template <class T>
void transform_real(int64_t n, const T* in, std::complex<T>* out);

// The n real numbers whose forward transform begins with these n / 2 + 1, times n.
template <class T>
void transform_to_real(int64_t n, const std::complex<T>* in, T* out);

}  // namespace prong::fft
