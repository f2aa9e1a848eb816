// Dispatch: trace event, interceptor, the tape around a kernel.
#include "eager/dispatch.h"

#include "eager/autocast.h"
#include "eager/batched.h"
#include "eager/record.h"
#include "profile/profile.h"

namespace prong::eager {
namespace {

void mark_inference(const IValue& result) {
  if (result.is_tensor()) {
    result.tensor_impl()->is_inference = true;
  } else if (result.is_list() || result.is_tuple()) {
    for (const IValue& item : result.items()) mark_inference(item);
  }
}

bool shares_memory(const IValue& result, const IValue& source) {
  const IValue* first = &result;
  if (result.is_list() || result.is_tuple()) {
    if (result.items().empty()) return true;
    first = &result.items()[0];
  }
  return !first->is_tensor() || first->tensor_impl()->storage == source.tensor_impl()->storage;
}

void check_inference_write() {
  if (is_inference_mode()) return;
  throw_error(ErrorKind::kRuntime,
              "Inplace update to inference tensor outside InferenceMode is not allowed. Write to a "
              "clone() of it, which is a normal tensor, or do the update in inference mode.");
}

// Ops inside a composite op come here again; what their kernels apply is theirs alone.
struct PlainKernel {
  PlainKernel() : saved(composing) { composing = nullptr; }
  ~PlainKernel() { composing = saved; }
  KernelFn saved;
};

}  // namespace

IValue run_kernel_or_batch(const OpDef& op, std::span<const IValue> args) {
  if (may_be_batched() && level_of(args) > 0) [[unlikely]]
    return run_batched_kernel(op, args);
  return run_kernel(op, args);
}

IValue run_unrecorded(const OpDef& op, std::span<const IValue> args) {
  if (op.mutated_argument() >= 0) {
    const IValue& target = args[static_cast<size_t>(op.mutated_argument())];
    if (target.is_tensor() && target.tensor_impl()->is_inference) check_inference_write();
    if (target.is_tensor() && is_grad_enabled() && is_view(target.tensor_impl()))
      check_inplace_view(target.to_tensor());
  }
  IValue result = run_kernel_or_batch(op, args);
  if (op.viewed_argument() >= 0) [[unlikely]] {
    const IValue& source = args[static_cast<size_t>(op.viewed_argument())];
    const bool is_inference =
        source.is_tensor() && (source.tensor_impl()->is_inference ||
                               (is_inference_mode() && !shares_memory(result, source)));
    if (is_inference) [[unlikely]]
      mark_inference(result);
    else if (op.is_differentiable())
      note_views(op, args, result);
  } else if (is_inference_mode() && op.mutated_argument() < 0) [[unlikely]] {
    mark_inference(result);
  }
  return result;
}

IValue run_plain(const OpDef& op, std::span<const IValue> args) {
  profile::Scope scope(op.trace_name(), profile::Category::kOp);
  PlainKernel plain;
  check_complex(op, args);
  if (may_be_batched() && level_of(args) > 0) [[unlikely]]
    return run_batched(op, args);
  if (is_grad_enabled() && op.is_differentiable())
    for (const IValue& arg : args)
      if (needs_grad(arg)) return run_recorded(op, args);
  return run_unrecorded(op, args);
}

IValue run(const OpDef& op, std::span<const IValue> args) {
  if (is_autocast_enabled()) [[unlikely]]
    return run_autocast(op, args);
  if (const uint64_t word = context()[ContextWord::kInterceptor]) [[unlikely]]
    return reinterpret_cast<Interceptor*>(word)->run(op, args);
  return run_plain(op, args);
}

InterceptorScope::InterceptorScope(Interceptor* interceptor) {
  context()[ContextWord::kInterceptor] = reinterpret_cast<uint64_t>(interceptor);
}

std::string grad_fn_name(const Tensor& t) {
  Node* node = requires_grad(t.impl()) ? grad_fn(t) : nullptr;
  return node ? node->name() : std::string();
}

}  // namespace prong::eager
