// Dispatch: trace event, interceptor, grad-mode rules around a kernel.
#include "eager/dispatch.h"

#include <cctype>

#include "eager/autocast.h"
#include "profile/profile.h"

namespace prong::eager {
namespace {

bool wants_grad(const IValue& v) {
  if (v.is_tensor()) return v.tensor_impl()->requires_grad;
  if (v.is_list() || v.is_tuple()) {
    for (const IValue& item : v.items())
      if (item.is_tensor() && item.tensor_impl()->requires_grad) return true;
  }
  return false;
}

void remember(IValue& result, const OpDef& op) {
  if (result.is_tensor()) {
    TensorImpl* t = result.tensor_impl();
    if (!is_inexact(t->dtype)) return;
    t->requires_grad = true;
    t->autograd = make_ref<History>(op);
  } else if (result.is_tuple() || result.is_list()) {
    for (const IValue& item : result.items()) {
      IValue each = item;
      remember(each, op);
    }
  }
}

// An op that had nothing to do (contiguous, to) gives its argument back, which keeps its own
// history.
bool is_argument(const IValue& result, std::span<const IValue> args) {
  if (!result.is_tensor()) return false;
  for (const IValue& arg : args)
    if (arg.is_tensor() && arg.tensor_impl() == result.tensor_impl()) return true;
  return false;
}

void check_inplace(const OpDef& op, std::span<const IValue> args) {
  const IValue& target = args[static_cast<size_t>(op.mutated_argument())];
  if (!target.is_tensor() || !target.tensor_impl()->requires_grad) return;
  PRONG_CHECK(target.tensor_impl()->autograd, kRuntime,
              "a leaf Variable that requires grad is being used in an in-place operation (",
              op.base_name(), "); do it under torch.no_grad() or on a detached tensor");
}

}  // namespace

IValue run_plain(const OpDef& op, std::span<const IValue> args) {
  profile::Scope scope(op.trace_name(), profile::Category::kOp);
  bool tracked = false;
  if (is_grad_enabled() && op.is_differentiable())
    for (const IValue& arg : args) tracked |= wants_grad(arg);
  if (tracked && op.mutated_argument() >= 0) check_inplace(op, args);
  check_complex(op, args);
  IValue result = op.kernel()(op, args);
  if (tracked && (op.mutated_argument() >= 0 || !is_argument(result, args))) [[unlikely]]
    remember(result, op);
  return result;
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
  if (is_leaf(t)) return {};
  std::string name = static_cast<const History*>(t.impl()->autograd.get())->op->base_name();
  std::string out;
  bool upper = true;
  for (const char c : name) {
    if (c == '_') {
      upper = true;
      continue;
    }
    out += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = false;
  }
  return out + "Backward0";
}

}  // namespace prong::eager
