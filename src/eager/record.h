// Writing the tape: what dispatch does around an op whose arguments need gradients. Called by
// dispatch.cpp alone, save for the few functions that node.cpp and engine.cpp share.
#pragma once

#include <span>

#include "eager/node.h"
#include "ops/builder.h"

namespace prong::eager {

// The kernel, or what stands for it where a tensor is batched (batched.h).
IValue run_kernel_or_batch(const OpDef& op, std::span<const IValue> args);
// Without the tape; notes views.
IValue run_unrecorded(const OpDef& op, std::span<const IValue> args);
// The ops that the kernel of a composite op applies, each through dispatch.
IValue run_composite(const OpDef& op, std::span<const IValue> args);
// Runs the op and puts a node on the tape. Grad mode is on and an argument requires grad.
IValue run_recorded(const OpDef& op, std::span<const IValue> args);
// Notes that the results of a view op share the argument's memory, so that an in-place op on the
// one changes the history of the other.
void note_views(const OpDef& op, std::span<const IValue> args, const IValue& result);
bool needs_grad(const IValue& v);  // a tensor, or a list with one, that requires grad

// Makes grad_fn of a view right again after an in-place op on another view of the same memory.
void refresh_view(const Tensor& view);
// target was written by the op of `node`: its history, or that of the tensor it is a view of,
// becomes the node's. `edge` is the one of the node's edges that leads to the old value.
void rebase_history(const Tensor& target, Ref<Node> node, size_t edge);
inline constexpr const char* kWritesViewOfLeaf =
    "a view of a leaf Variable that requires grad is being used in an in-place operation.";
// Raises where an in-place op on this tensor would spoil gradients.
void check_inplace(const Tensor& target);
// The same where nothing that the op reads needs gradients.
void check_inplace_view(const Tensor& target);

Tensor shallow_copy(const Tensor& t);  // the same memory, without any history
// Nobody else sees the tensor or its memory: it may be written, or handed on as it is.
bool is_unshared(const Tensor& t);
void accumulate_grad(const Tensor& leaf, Tensor gradient);
// Called before a pass adds to the .grad of a leaf, where ops are recorded; set by capture/.
extern std::atomic<void (*)(const Tensor& leaf)> before_accumulate;
void accumulate_retained(const Tensor& t, const Tensor& gradient);

// Ops applied by running them: what gradient rules run through.
class EagerBuilder final : public Builder {
 public:
  IValue apply(const OpDef& op, std::span<const IValue> args) override;
  TensorMeta meta(const IValue& tensor) override { return meta_from(tensor); }
};
EagerBuilder& eager_builder();

// Text that says where the running Python code stands, for anomaly mode; null: it is off. Set by
// bindings.
extern std::atomic<std::string (*)()> anomaly_where;
inline bool is_anomaly_enabled() {
  return anomaly_where.load(std::memory_order_relaxed) != nullptr;
}

}  // namespace prong::eager
