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

class InterceptorScope {
 public:
  explicit InterceptorScope(Interceptor* interceptor);

 private:
  ContextGuard saved_;
};

// "MulBackward0", or empty for a leaf.
std::string grad_fn_name(const Tensor& t);

}  // namespace prong::eager
