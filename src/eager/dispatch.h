// The one way to run an op: eager calls, the interpreter and compiled programs all come through
// here.
#pragma once

#include <span>

#include "eager/modes.h"
#include "ops/op_def.h"

namespace prong::eager {

// Checks nothing about types (the caller matched the schema), fills in nothing (defaults are
// there). Adds the trace event, the rules of grad mode, and an interceptor's view. Throws what the
// kernel throws.
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

// What a tensor remembers of the op that made it while gradients were on. Until the tape exists it
// gives is_leaf and the name of grad_fn; backward() says that it is missing.
struct History final : RefCounted {
  explicit History(const OpDef& made_by) : op(&made_by) {}
  const OpDef* op;
};
inline bool is_leaf(const Tensor& t) { return !t.impl()->autograd; }
// "MulBackward0", or empty for a leaf.
std::string grad_fn_name(const Tensor& t);

}  // namespace prong::eager
