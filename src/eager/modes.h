// Grad mode and inference mode of the running task. Used by dispatch, bindings and exec
// (with-regions).
#pragma once

#include "runtime/context.h"

namespace prong::eager {

// Bits of ContextWord::kModes; zero is the state of a new thread.
enum ModeBit : uint64_t { kNoGrad = 1, kInference = 2 };

inline bool is_grad_enabled() { return (context()[ContextWord::kModes] & kNoGrad) == 0; }
inline bool is_inference_mode() { return (context()[ContextWord::kModes] & kInference) != 0; }

inline void set_grad_enabled(bool on) {
  uint64_t& modes = context()[ContextWord::kModes];
  modes = on ? modes & ~uint64_t{kNoGrad} : modes | kNoGrad;
}
// Inference mode implies no grad; leaving it is the caller's restoring of the old word
// (ContextGuard).
inline void enter_inference_mode() { context()[ContextWord::kModes] |= kInference | kNoGrad; }

}  // namespace prong::eager
