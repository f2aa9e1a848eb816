// What is known of an op's results without running it: its shape rule, or its kernel on tensors
// that have a geometry but no memory. Called by recorder.cpp and rehearsal.cpp.
#pragma once

#include <span>
#include <vector>

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
// Is the tensor in the memory of an argument, or of an item of its list?
bool is_same_view(const TensorImpl& a, const TensorImpl& b);  // of the same memory
bool shares_memory(const IValue& tensor, const IValue& arg);
// May the op give a view or its argument itself?
bool may_alias(const OpDef& op);
// The call with other tensors; f gives the one for a tensor.
template <class F>
std::vector<IValue> with_tensors(std::span<const IValue> args, F f) {
  std::vector<IValue> others;
  for (const IValue& a : args) {
    if (a.is_tensor()) {
      others.push_back(f(a));
    } else if (a.is_list()) {
      std::vector<IValue> items;
      for (const IValue& item : a.items()) items.push_back(item.is_tensor() ? f(item) : item);
      others.push_back(IValue::list(std::move(items)));
    } else {
      others.push_back(a);
    }
  }
  return others;
}

// What the op gives for these arguments, without data; none where it refuses them.
IValue result_metas(const OpDef& op, std::span<const IValue> args);

}  // namespace prong::capture
