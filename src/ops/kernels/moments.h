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
  int64_t lane = 0;
  for (; i + 16 <= n; i += 16, lane += 16)
    for (int64_t j = 0; j < 16; ++j) {
      const Sums<kSums, T> t = terms(i + j);
      for (int s = 0; s < kSums; ++s) lanes[s][lane + j] += t.values[s];
    }
  for (; i < n; ++i, ++lane) {
    const Sums<kSums, T> t = terms(i);
    for (int s = 0; s < kSums; ++s) lanes[s][lane] += t.values[s];
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
    if (inner == 1) {
      if (width == 64) return column_sums<kSums, T>(first, int64_t{64}, out, terms);
      return column_sums<kSums, T>(first, width, out, terms);
    }
    if (inner < kShort) return short_sums<kSums, T>(first, out, terms);
    for (int64_t b = 0; b < batch; ++b) {
      const int64_t at = (b * channels + first) * inner;
      const Sums<kSums, T> t =
          lane_sums<kSums, T>(inner, [&](int64_t i) { return terms(at + i, 0); });
      for (int s = 0; s < kSums; ++s) out[s][0] += t.values[s];
    }
  }

 private:
  // Numbers of a channel one by one in rows; every so many rows the sums go on in double.
  template <int kSums, class T, class F>
  PRONG_INLINE void column_sums(int64_t first, int64_t width, double (*out)[64], F&& terms) const {
    constexpr int64_t kRows = 32;
    for (int64_t begin = 0; begin < batch; begin += kRows) {
      const int64_t end = begin + kRows < batch ? begin + kRows : batch;
      T sums[kSums][64] = {};
      for (int64_t b = begin; b < end; ++b)
        for (int64_t c = 0; c < width; ++c) {
          const Sums<kSums, T> t = terms(b * channels + first + c, c);
          for (int s = 0; s < kSums; ++s) sums[s][c] += t.values[s];
        }
      for (int s = 0; s < kSums; ++s)
        for (int64_t c = 0; c < width; ++c) out[s][c] += sums[s][c];
    }
  }

  // Rows too short for all lanes: fewer lanes, which are joined after some rows.
  static constexpr int64_t kShort = kLanes, kFew = 16, kTogether = 1024;
  template <int kSums, class T, class F>
  PRONG_INLINE void short_sums(int64_t first, double (*out)[64], F&& terms) const {
    const int64_t rows = kTogether / inner + 1;
    for (int64_t begin = 0; begin < batch; begin += rows) {
      const int64_t end = begin + rows < batch ? begin + rows : batch;
      T lanes[kSums][kFew] = {};
      for (int64_t b = begin; b < end; ++b) {
        const int64_t at = (b * channels + first) * inner;
        int64_t i = 0;
        for (; i + kFew <= inner; i += kFew)
          for (int64_t j = 0; j < kFew; ++j) {
            const Sums<kSums, T> t = terms(at + i + j, 0);
            for (int s = 0; s < kSums; ++s) lanes[s][j] += t.values[s];
          }
        for (int64_t j = 0; i < inner; ++i, ++j) {
          const Sums<kSums, T> t = terms(at + i, 0);
          for (int s = 0; s < kSums; ++s) lanes[s][j] += t.values[s];
        }
      }
      for (int s = 0; s < kSums; ++s)
        for (int64_t j = 0; j < kFew; ++j) out[s][0] += lanes[s][j];
    }
  }
};

}  // namespace prong
