// What is known of the numbers in tensors before the work that is put off has run: a call that its
// data cannot make fail need not end the segment. Called by recorder.cpp.
#pragma once

#include <optional>

#include "capture/recorder.h"
#include "ops/data_check.h"

namespace prong::capture {

// Why a call cannot raise because of the data that it reads.
struct Proof {
  bool holds = true;       // false where that isn't known
  bool is_for_all = true;  // with any data that passes `checks`; otherwise with this data alone
  std::vector<IndexCheck> checks{};
};
Proof prove_safe(const Segment& segment, const OpDef& op, std::span<const IValue> args);

// Do the numbers of the tensor, without the ignored one, lie between the bounds?
bool lies_between(const Tensor& indices, int64_t low, int64_t high, std::optional<int64_t> ignored);

}  // namespace prong::capture
