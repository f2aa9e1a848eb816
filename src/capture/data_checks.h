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

// Can this call not raise because of the data it reads? False where that isn't known.
bool is_proved_safe(const Segment& segment, const OpDef& op, std::span<const IValue> args);

}  // namespace prong::capture
