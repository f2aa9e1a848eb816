// Memory laid out like another tensor's: what empty_like and the functions that draw numbers begin
// with.
#pragma once

#include <algorithm>

#include "tensor/tensor.h"

namespace prong {

// Dense strides in the order in which x lies in memory: a turned tensor stays turned. Random
// numbers are drawn in the order of memory, so the order is part of their value.
inline Dims strides_like(const Tensor& x) {
  const int64_t rank = x.rank();
  Dims order;  // of dims, the fastest first
  for (int64_t d = rank - 1; d >= 0; --d) order.push_back(d);
  const auto is_slower = [&](int64_t a, int64_t b) {
    const int64_t sa = x.strides()[static_cast<size_t>(a)],
                  sb = x.strides()[static_cast<size_t>(b)];
    if (sa == 0 || sb == 0) return 0;  // an expanded dimension has no place of its own
    if (sa != sb) return sa > sb ? 1 : -1;
    return x.sizes()[static_cast<size_t>(a)] > x.sizes()[static_cast<size_t>(b)] ? 1 : 0;
  };
  for (int64_t i = 1; i < rank; ++i) {
    int64_t at = i;
    for (int64_t before = i - 1; before >= 0; --before) {
      int64_t& a = order[static_cast<size_t>(before)];
      int64_t& b = order[static_cast<size_t>(at)];
      const int verdict = is_slower(a, b);
      if (verdict < 0) break;
      if (verdict == 0) continue;
      std::swap(a, b);
      at = before;
    }
  }
  Dims strides = x.sizes();
  int64_t step = 1;
  for (const int64_t d : order) {
    strides[static_cast<size_t>(d)] = step;
    step *= std::max<int64_t>(x.sizes()[static_cast<size_t>(d)], 1);
  }
  return strides;
}

inline Tensor empty_like(const Tensor& x, DType dtype) {
  Tensor made = Tensor::empty(x.sizes(), dtype);
  return x.is_contiguous() ? made : made.as_strided(x.sizes(), strides_like(x), 0);
}

}  // namespace prong
