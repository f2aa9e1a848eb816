// What is known of an op's results without running it: its shape rule, or its kernel on tensors
// that have a geometry but no memory. Called by recorder.cpp and rehearsal.cpp.
#pragma once

#include <span>

#include "ops/op_def.h"
#include "tensor/tensor.h"

namespace prong::capture {

// Thrown where a kernel that runs on a stand-in without memory wants to read it.
struct DataNeeded {};
const Ref<DeferredWork>& no_data();
// With the same geometry.
Tensor stand_in_for(const TensorImpl& t);
// Of other sizes, without gaps.
Ref<TensorImpl> blank_like(const TensorImpl& t, const Dims& sizes);
// May the op give a view or its argument itself?
bool may_alias(const OpDef& op);
// What the op gives for these arguments, without data; none where it refuses them.
IValue result_metas(const OpDef& op, std::span<const IValue> args);

}  // namespace prong::capture
