// Makers of iterables, for the builtins range, enumerate, zip and reversed.
#pragma once

#include "script/emitter.h"

namespace prong::script {

struct RangeItems final : Iterable {
  Value *start, *stop, *step;
  std::optional<int64_t> start_known, stop_known, step_known;
  std::optional<int64_t> known_length() const override;
  Value* length(Emitter& e) const override;
  Term item(Emitter& e, Value* i) const override;
};

IterablePtr make_enumerate(IterablePtr inner, Value* start);
IterablePtr make_zip(std::vector<IterablePtr> inner);
IterablePtr make_reversed(IterablePtr inner);

}  // namespace prong::script
