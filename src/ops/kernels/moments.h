// Sums that normalisations are made of, over rows and over channels, in a fixed order: the bits do
// not depend on the number of threads. Used by defs/norm.cpp and defs/norm_backward.cpp.
#pragma once

#include <cmath>

#include "ops/kernels/reduce.h"

namespace prong {

inline constexpr int64_t kLanes = 64;

template <int kSums, class T>
struct Sums {
  T values[kSums];
};

// kSums sums over i < n of what add(lane j, i) adds to lanes: dealt out to lanes, which are joined
// pairwise.
template <int kSums, class T, class F>
PRONG_INLINE Sums<kSums, T> lane_sums(int64_t n, F&& terms) {
  T lanes[kSums][kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int64_t j = 0; j < kLanes; ++j) {
      const Sums<kSums, T> t = terms(i + j);
      for (int s = 0; s < kSums; ++s) lanes[s][j] += t.values[s];
    }
  for (int64_t j = 0; i < n; ++i, ++j) {
    const Sums<kSums, T> t = terms(i);
    for (int s = 0; s < kSums; ++s) lanes[s][j] += t.values[s];
  }
  for (int64_t width = kLanes / 2; width > 0; width /= 2)
    for (int s = 0; s < kSums; ++s)
      for (int64_t j = 0; j < width; ++j) lanes[s][j] += lanes[s][j + width];
  Sums<kSums, T> out;
  for (int s = 0; s < kSums; ++s) out.values[s] = lanes[s][0];
  return out;
}
template <class T, class F>
PRONG_INLINE T lane_sum(int64_t n, F&& term) {
  return lane_sums<1, T>(n, [&](int64_t i) { return Sums<1, T>{{term(i)}}; }).values[0];
}

// Mean and 1 / sqrt(variance + eps) of a row; without centring, mean 0 and the mean square.
template <class T>
struct RowScale {
  T mean, rstd;

  PRONG_INLINE RowScale(const T* x, int64_t n, double eps, bool is_centred) {
    mean = is_centred ? lane_sum<T>(n, [&](int64_t i) { return x[i]; }) / static_cast<T>(n) : T(0);
    const T m = mean;
    const T square = lane_sum<T>(n, [&](int64_t i) { return (x[i] - m) * (x[i] - m); });
    rstd = 1 / std::sqrt(square / static_cast<T>(n) + static_cast<T>(eps));
  }
};

// A tensor [batch, channels, inner] in memory, and the strips of channels that one task works on: a
// single channel, or where `inner` is 1 many side by side.
struct ChannelShape {
  int64_t batch = 0, channels = 0, inner = 0;

  explicit ChannelShape(const Dims& sizes) : batch(sizes[0]), channels(sizes[1]) {
    inner = 1;
    for (size_t i = 2; i < sizes.size(); ++i) inner *= sizes[i];
  }
  int64_t count() const { return batch * inner; }
  int64_t strip() const { return inner == 1 ? 64 : 1; }

  // f(first channel, number of channels <= 64).
  template <class F>
  void each_strip(F&& f) const {
    const int64_t width = strip(), strips = (channels + width - 1) / width;
    const int64_t work = std::max<int64_t>(1, count() * width);
    parallel_for(0, strips, std::max<int64_t>(1, 16384 / work), [&](int64_t b, int64_t e) {
      for (int64_t s = b; s < e; ++s) f(s * width, std::min(width, channels - s * width));
    });
  }
  // kSums sums over batch and inner, for each channel of a strip: terms(place, channel - first).
  template <int kSums, class T, class F>
  PRONG_INLINE void sums(int64_t first, int64_t width, double (*out)[64], F&& terms) const {
    for (int s = 0; s < kSums; ++s)
      for (int64_t c = 0; c < width; ++c) out[s][c] = 0;
    for (int64_t b = 0; b < batch; ++b) {
      const int64_t at = (b * channels + first) * inner;
      if (inner == 1) {
        for (int64_t c = 0; c < width; ++c) {
          const Sums<kSums, T> t = terms(at + c, c);
          for (int s = 0; s < kSums; ++s) out[s][c] += t.values[s];
        }
      } else {
        const Sums<kSums, T> t =
            lane_sums<kSums, T>(inner, [&](int64_t i) { return terms(at + i, 0); });
        for (int s = 0; s < kSums; ++s) out[s][0] += t.values[s];
      }
    }
  }
};

}  // namespace prong
