// How a pointwise loop walks its operands: blocks of elements that fit the first cache, taken
// straight from memory where an operand lies as the result does, else gathered and converted into
// scratch. Called by pointwise.cpp.
#pragma once

#include "ops/kernels/pointwise.h"
#include "tensor/convert.h"

namespace prong {

// One operand of a loop, or its result.
struct WalkOperand {
  char* data = nullptr;
  DType stored = DType::kFloat32;  // in memory
  DType middle = DType::kFloat32;  // rounded to this on the way, where it differs from both
  DType loop = DType::kFloat32;    // in the loop
  const Dims* sizes = nullptr;     // null: a single value
  const Dims* strides = nullptr;
};

// out[...] = loop(in[...]...) over out's shape, to which the inputs broadcast; in parallel from
// `grain` elements on.
void walk(BlockFn loop, const WalkOperand& out, std::span<const WalkOperand> in, int64_t grain);

}  // namespace prong
