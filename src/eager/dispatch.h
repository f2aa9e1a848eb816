// The one way to run an op: eager calls, the interpreter and compiled programs all come through
// here.
#pragma once

#include <span>

#include "eager/modes.h"
#include "eager/node.h"
#include "ops/op_def.h"

namespace prong::eager {

// Checks nothing about types (the caller matched the schema), fills in nothing (defaults are
// there). Adds the trace event, the tape, and an interceptor's view. Throws what the kernel throws.
IValue run(const OpDef& op, std::span<const IValue> args);

// Sees each op of its task before it runs: tracing, later recording. Installed in
// ContextWord::kInterceptor by InterceptorScope.
class Interceptor {
 public:
  virtual ~Interceptor() = default;
  // Runs the op (call run_plain) and notes what it needs.
  virtual IValue run(const OpDef& op, std::span<const IValue> args) = 0;
};
// The op without the interceptor.
IValue run_plain(const OpDef& op, std::span<const IValue> args);

// Stands in for the kernels of its task, under all that run() adds (the tape included): capture/.
// In ContextWord::kKernels; zero there runs kernels.
class KernelStandIn {
 public:
  virtual ~KernelStandIn() = default;
  virtual IValue run_kernel(const OpDef& op, std::span<const IValue> args) = 0;
  // Around a composite op whose parts come here one by one: `run` has them do so.
  virtual IValue run_composite(const OpDef& op, std::span<const IValue> args, KernelFn run) {
    return run(op, args);
  }
  // A backward pass is about to sum over what was spread, or need not for these sizes: shall it?
  virtual bool sums_spread(bool is_needed) { return is_needed; }
};
// The op's kernel, or who stands in for it. The way in which eager/ runs the kernel of an op that a
// program calls.
inline IValue run_kernel(const OpDef& op, std::span<const IValue> args) {
  if (const uint64_t word = context()[ContextWord::kKernels]) [[unlikely]]
    return reinterpret_cast<KernelStandIn*>(word)->run_kernel(op, args);
  return op.kernel()(op, args);
}

class InterceptorScope {
 public:
  explicit InterceptorScope(Interceptor* interceptor);

 private:
  ContextGuard saved_;
};

// "MulBackward0", or empty for a leaf.
std::string grad_fn_name(const Tensor& t);

}  // namespace prong::eager
