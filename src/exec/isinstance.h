// Whether a run-time value has a static type. Used by the interpreter and by argument checks of api
// and bindings.
#pragma once

#include "ops/type.h"
#include "tensor/ivalue.h"

namespace prong::exec {

// Looks into containers; an empty list is of every list type.
bool is_instance(const IValue& value, const Type& type);

}  // namespace prong::exec
