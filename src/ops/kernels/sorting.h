// Ordering along a dim: every element becomes an unsigned key in whose order NaN is the largest,
// paired with its place. Called by defs/sort.cpp.
#pragma once

#include <algorithm>
#include <bit>
#include <type_traits>
#include <vector>

#include "tensor/dtype.h"

namespace prong {

template <class T>
using SortKey = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

// Order of keys = order of values; -0 and 0 are equal, all NaN are equal and largest.
template <class T>
SortKey<T> sort_key(T x) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return sort_key(static_cast<float>(x));
  } else if constexpr (std::is_floating_point_v<T>) {
    using K = SortKey<T>;
    constexpr K kSign = K(1) << (sizeof(K) * 8 - 1);
    const K bits = std::bit_cast<K>(x + T(0));  // -0 + 0 is 0
    const K turned = bits ^ ((K(0) - (bits >> (sizeof(K) * 8 - 1))) | kSign);
    return x != x ? ~K(0) : turned;
  } else if constexpr (std::is_signed_v<T> && sizeof(T) == 8) {
    return static_cast<uint64_t>(x) ^ (uint64_t{1} << 63);
  } else {
    return static_cast<uint32_t>(static_cast<int32_t>(x)) ^ (uint32_t{1} << 31);
  }
}

// A key with its place; ordered by both, so any sort of them is stable.
template <class T>
struct Placed {
  SortKey<T> key;
  int64_t place;
  friend bool operator<(const Placed& a, const Placed& b) {
    return a.key != b.key ? a.key < b.key : a.place < b.place;
  }
};
template <class T>
requires(sizeof(T) <= 4) struct Placed<T> {
  uint64_t packed;
  Placed() = default;
  Placed(uint32_t key, int64_t place)
      : packed(uint64_t{key} << 32 | static_cast<uint64_t>(place)) {}
  friend bool operator<(const Placed& a, const Placed& b) { return a.packed < b.packed; }
};
template <class T>
int64_t place_of(const Placed<T>& p) {
  if constexpr (sizeof(T) <= 4)
    return static_cast<int64_t>(p.packed & 0xffffffffu);
  else
    return p.place;
}
template <class T>
SortKey<T> key_of(const Placed<T>& p) {
  if constexpr (sizeof(T) <= 4)
    return static_cast<uint32_t>(p.packed >> 32);
  else
    return p.key;
}

// The elements of a row (n, `stride` apart) with their places; `is_reversed` turns the order round.
template <class T>
void place_row(const T* x, int64_t n, int64_t stride, bool is_reversed,
               std::vector<Placed<T>>& out) {
  out.resize(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    const SortKey<T> key = sort_key(x[i * stride]);
    out[static_cast<size_t>(i)] = Placed<T>{is_reversed ? static_cast<SortKey<T>>(~key) : key, i};
  }
}

// Sorts by key, equal ones by place. Long rows of short keys by their bytes, from the lowest.
template <class T>
void sort_placed(std::vector<Placed<T>>& row, std::vector<Placed<T>>& spare) {
  constexpr size_t kRadixFrom = 512;
  if constexpr (sizeof(T) <= 4) {
    if (row.size() >= kRadixFrom) {
      spare.resize(row.size());
      for (int shift = 32; shift < 64; shift += 8) {
        size_t counts[257] = {};
        for (const Placed<T>& p : row) ++counts[(p.packed >> shift & 255) + 1];
        if (std::any_of(counts + 1, counts + 257, [&](size_t c) { return c == row.size(); }))
          continue;
        for (int i = 0; i < 256; ++i) counts[i + 1] += counts[i];
        for (const Placed<T>& p : row) spare[counts[p.packed >> shift & 255]++] = p;
        row.swap(spare);
      }
      return;
    }
  }
  (void)spare;
  std::sort(row.begin(), row.end());
}

}  // namespace prong
