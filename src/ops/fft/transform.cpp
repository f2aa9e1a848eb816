// Lines through Eigen's FFT, or through Bluestein's convolution; see transform.h.
#include "ops/fft/transform.h"

#include <Eigen/Core>
#include <unsupported/Eigen/FFT>

#include <cmath>
#include <unordered_map>
#include <vector>

namespace prong::fft {
namespace {

// A butterfly of a prime factor p costs p^2; beyond this Bluestein is cheaper.
constexpr int64_t kLargestFactor = 41;

bool has_large_factor(int64_t n) {
  for (int64_t p = 2; p <= kLargestFactor && n > 1; ++p)
    while (n % p == 0) n /= p;
  return n > 1;
}

// Eigen keeps its tables in the object, which only one thread may use.
template <class T>
Eigen::FFT<T>& engine() {
  static thread_local Eigen::FFT<T> instance(
      typename Eigen::FFT<T>::impl_type(),
      static_cast<typename Eigen::FFT<T>::Flag>(Eigen::FFT<T>::Unscaled |
                                                Eigen::FFT<T>::HalfSpectrum));
  return instance;
}

template <class T>
void direct(bool forward, int64_t n, const std::complex<T>* in, std::complex<T>* out) {
  if (forward)
    engine<T>().fwd(out, in, static_cast<Eigen::Index>(n));
  else
    engine<T>().inv(out, in, static_cast<Eigen::Index>(n));
}

// What Bluestein needs for one length: the chirp, and the transform of its conjugate, laid out
// around 0.
template <class T>
struct Chirp {
  int64_t length = 0;  // of the convolution
  std::vector<std::complex<T>> factors, spectrum;

  explicit Chirp(int64_t n) {
    for (length = 1; length < 2 * n - 1;) length *= 2;
    factors.resize(static_cast<size_t>(n));
    for (int64_t k = 0; k < n; ++k) {
      // k^2 mod 2n keeps the angle exact.
      const double angle =
          3.14159265358979323846 * static_cast<double>(k * k % (2 * n)) / static_cast<double>(n);
      factors[static_cast<size_t>(k)] =
          std::complex<T>(static_cast<T>(std::cos(angle)), static_cast<T>(-std::sin(angle)));
    }
    std::vector<std::complex<T>> around(static_cast<size_t>(length));
    for (int64_t k = 0; k < n; ++k) {
      const std::complex<T> c = std::conj(factors[static_cast<size_t>(k)]);
      around[static_cast<size_t>(k)] = c;
      if (k > 0) around[static_cast<size_t>(length - k)] = c;
    }
    spectrum.resize(around.size());
    direct(true, length, around.data(), spectrum.data());
  }
};

// j k = (j^2 + k^2 - (j - k)^2) / 2 makes a convolution of the transform.
template <class T>
void bluestein(bool forward, int64_t n, const std::complex<T>* in, std::complex<T>* out) {
  static thread_local std::unordered_map<int64_t, Chirp<T>> known;
  const Chirp<T>& chirp = known.try_emplace(n, n).first->second;
  std::vector<std::complex<T>> line(static_cast<size_t>(chirp.length)), spectrum(line.size());
  for (int64_t k = 0; k < n;
       ++k)  // backwards: the conjugate of the forward transform of the conjugate
    line[static_cast<size_t>(k)] =
        (forward ? in[k] : std::conj(in[k])) * chirp.factors[static_cast<size_t>(k)];
  direct(true, chirp.length, line.data(), spectrum.data());
  for (size_t k = 0; k < spectrum.size(); ++k) spectrum[k] *= chirp.spectrum[k];
  direct(false, chirp.length, spectrum.data(), line.data());
  const T scale = T(1) / static_cast<T>(chirp.length);
  for (int64_t k = 0; k < n; ++k) {
    const std::complex<T> y =
        line[static_cast<size_t>(k)] * scale * chirp.factors[static_cast<size_t>(k)];
    out[k] = forward ? y : std::conj(y);
  }
}

}  // namespace

template <class T>
void transform(bool forward, int64_t n, const std::complex<T>* in, std::complex<T>* out) {
  if (n == 1)
    out[0] = in[0];
  else if (has_large_factor(n))
    bluestein(forward, n, in, out);
  else
    direct(forward, n, in, out);
}

template <class T>
void transform_real(int64_t n, const T* in, std::complex<T>* out) {
  if (n % 2 == 0 && n > 2 && !has_large_factor(n)) {
    engine<T>().fwd(out, in, static_cast<Eigen::Index>(n));
    return;
  }
  std::vector<std::complex<T>> line(in, in + n), all(static_cast<size_t>(n));
  transform(true, n, line.data(), all.data());
  std::copy(all.begin(), all.begin() + n / 2 + 1, out);
}

template <class T>
void transform_to_real(int64_t n, const std::complex<T>* in, T* out) {
  std::vector<std::complex<T>> line(in, in + n / 2 + 1), all(static_cast<size_t>(n));
  line[0] = line[0].real();
  if (n % 2 == 0) line[static_cast<size_t>(n / 2)] = line[static_cast<size_t>(n / 2)].real();
  line.resize(static_cast<size_t>(n));
  for (int64_t k = n / 2 + 1; k < n; ++k)
    line[static_cast<size_t>(k)] = std::conj(line[static_cast<size_t>(n - k)]);
  transform(false, n, line.data(), all.data());
  for (int64_t k = 0; k < n; ++k) out[k] = all[static_cast<size_t>(k)].real();
}

template void transform<float>(bool, int64_t, const std::complex<float>*, std::complex<float>*);
template void transform<double>(bool, int64_t, const std::complex<double>*, std::complex<double>*);
template void transform_real<float>(int64_t, const float*, std::complex<float>*);
template void transform_real<double>(int64_t, const double*, std::complex<double>*);
template void transform_to_real<float>(int64_t, const std::complex<float>*, float*);
template void transform_to_real<double>(int64_t, const std::complex<double>*, double*);

}  // namespace prong::fft
