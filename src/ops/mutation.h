// Ops that write the tensors of list arguments: the steps of optimizers. OpDef::mutates names the
// first such argument; this says which there are. Asked by bindings, and by what records programs.
#pragma once

#include <initializer_list>

#include "ops/op_def.h"

namespace prong {

// Bit i: the tensors of argument i are written.
uint64_t mutated_lists(const OpDef& op);
// At registration.
OpDef& set_mutated_lists(OpDef& op, std::initializer_list<int> arguments);

}  // namespace prong
