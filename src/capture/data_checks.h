// What is known of the numbers in index tensors before the work that is put off has run: a call
// whose indices fit cannot fail by its data, and need not end the segment. Called by recorder.cpp.
#pragma once

#include <optional>

#include "capture/recorder.h"

namespace prong::capture {

// All elements lie in [low, high].
struct IntRange {
  int64_t low, high;
};

// Why a call cannot raise because of the data that it reads.
struct Proof {
  bool holds = false;      // false where that isn't known
  bool is_for_all = true;  // with any data that passes `checks`; otherwise with this data alone
  std::vector<IndexCheck> checks{};
};
Proof prove_safe(const Segment& segment, const OpDef& op, std::span<const IValue> args);

// Do the numbers of the tensor, without the ignored one, lie between the bounds?
bool lies_between(const Tensor& indices, int64_t low, int64_t high, std::optional<int64_t> ignored);

}  // namespace prong::capture
