// Autocast of the running task: the dtypes in which an op gets its tensors. Used by dispatch and
// bindings.
#pragma once

#include <span>

#include "ops/op_def.h"
#include "runtime/context.h"

namespace prong::eager {

struct Autocast {
  bool enabled = false;
  DType dtype = DType::kBFloat16;  // the low-precision one
  bool keeps_casts = true;         // PyTorch's cache_enabled; kept for who asks
};

Autocast autocast();
void set_autocast(const Autocast& state);

// Bit 0 of the word says whether it is on.
inline bool is_autocast_enabled() { return (context()[ContextWord::kAutocast] & 1) != 0; }

// The op with its tensors converted by its rule. The op itself runs with autocast off.
IValue run_autocast(const OpDef& op, std::span<const IValue> args);

}  // namespace prong::eager
