// TrialRuns: may an op be put off? Its shape rule may know less than its kernel, whose error would
// come when the work is done and not where the program calls the op. So a call of a kind that was
// not seen before is tried first, on zeros or on tensors without memory. Used by recorder.cpp.
#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "ops/op_def.h"

namespace prong::capture {

// All that a kernel can go by without reading memory; empty: it depends on more than that (a Python
// number held as a tensor).
inline constexpr size_t kMaxFacts = 4096;  // that a table keeps before it starts anew
std::string facts_of(const OpDef& op, std::span<const IValue> args);

class TrialRuns {
 public:
  // Does the kernel refuse the call, or give another shape or dtype than the shape rule says?
  bool refuse(const OpDef& op, std::span<const IValue> args);
  // A refused call with the real tensors had no error: it was the zeros that the kernel refused.
  void went_well(const OpDef& op, std::span<const IValue> args);

 private:
  enum class Outcome : uint8_t { kFine, kRefused, kOther };  // kOther: than the shape rule says
  std::unordered_map<std::string, Outcome> known_;           // by facts
};

}  // namespace prong::capture
