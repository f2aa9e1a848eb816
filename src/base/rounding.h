// Division and multiples of integers, rounded up. Used by kernels that cut work into blocks.
#pragma once

#include <cstdint>

namespace prong {

// n >= 0, the other > 0.
constexpr int64_t ceil_div(int64_t n, int64_t size) { return (n + size - 1) / size; }
constexpr int64_t round_up(int64_t n, int64_t multiple) { return ceil_div(n, multiple) * multiple; }

}  // namespace prong
