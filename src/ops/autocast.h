// What autocast does with the arguments of an op. Asked by eager for each op while it is on.
#pragma once

#include <cstdint>

namespace prong {

class OpDef;

enum class AutocastRule : uint8_t {
  kNone,     // as they are
  kLower,    // to the low-precision dtype: products, which gain from it
  kFloat32,  // to float32: losses and what needs the precision
  kWidest,   // to the widest dtype among them: joins
};

// PyTorch's lists for the CPU; defs/autocast.cpp.
AutocastRule autocast_rule(const OpDef& op);

}  // namespace prong
