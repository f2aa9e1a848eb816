// The shape rule of another op, called by name: for the shape rules of composite ops.
#pragma once

#include "ops/op_def.h"

namespace prong {

// shape_of("sub", a, b): what that op gives for them; it refuses what that op refuses. Trailing
// arguments may be left out where the schema has defaults.
template <class... A>
TensorMeta shape_of(std::string_view name, const A&... args) {
  const OpDef& op = registry().get(name);
  const IValue given[] = {to_ivalue(args)...};
  const std::span<const IValue> all(given);
  const IValue result = all.size() == op.schema().arguments.size()
                            ? op.shape()(op, all)
                            : op.shape()(op, op.schema().with_defaults(all));
  return meta_from(result);
}

}  // namespace prong
