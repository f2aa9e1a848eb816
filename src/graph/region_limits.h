// How much one fused region may hold. passes/fuse keeps to it, codegen/ relies on it.
#pragma once

#include <cstddef>

namespace prong {

// Each input and each result is a pointer that the kernel's loop carries; registers are few, and
// what compiling costs grows with the square.
inline constexpr size_t kMaxRegionInputs = 24;
inline constexpr size_t kMaxRegionResults = 16;
// So many ops on an element keep a core busy while memory brings the next ones; longer loops only
// take longer to compile.
inline constexpr size_t kMaxRegionOps = 64;

}  // namespace prong
