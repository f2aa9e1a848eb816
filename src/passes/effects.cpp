// Effects of nodes, from the facets of ops and host ops.
#include "passes/effects.h"

#include <algorithm>

#include "graph/host_op.h"

namespace prong {

namespace {

template <class F>
bool any_inside(const Node& n, F f) {
  for (const Block* b : n.blocks())
    for (const Node* m : *b)
      if (f(*m)) return true;
  return false;
}

// Does the op of this node write a tensor that it is given?
bool writes(const Node& n) {
  const OpDef& op = n.op();
  if (op.mutated_argument() >= 0) return true;
  if (op.written_arguments() == 0) return false;
  if (op.writes_only_if() < 0) return true;
  const IValue* flag = n.input(static_cast<size_t>(op.writes_only_if()))->constant();
  return !flag || flag->to_bool();
}

bool is_immutable(const Type& t) {
  switch (t.kind()) {
  case TypeKind::kNone:
  case TypeKind::kInt:
  case TypeKind::kFloat:
  case TypeKind::kBool:
  case TypeKind::kStr:
  case TypeKind::kNumber:
  case TypeKind::kDType:
  case TypeKind::kDevice:
  case TypeKind::kLayout:
    return true;
  case TypeKind::kTuple:
  case TypeKind::kOptional:
    return std::all_of(t.elements().begin(), t.elements().end(),
                       [](const TypePtr& e) { return is_immutable(*e); });
  default:
    return false;
  }
}

}  // namespace

bool is_droppable(const Node& n) {
  switch (n.kind()) {
  case NodeKind::kOp:
    return !writes(n) && !n.op().is_random();
  case NodeKind::kHost:
    return n.host().effect == Effect::kPure;
  case NodeKind::kConstant:
  case NodeKind::kUninitialized:
  case NodeKind::kGetAttr:
  case NodeKind::kNewObject:
  case NodeKind::kTupleConstruct:
  case NodeKind::kListConstruct:
  case NodeKind::kTupleGet:
  case NodeKind::kTupleUnpack:
  case NodeKind::kIsInstance:
  case NodeKind::kUncheckedCast:
  case NodeKind::kFused:
    return true;
  case NodeKind::kIf:
    return !any_inside(n, [](const Node& m) { return !is_droppable(m); });
  // A loop without a count may never end, which is an effect.
  case NodeKind::kLoop:
    return !n.input(0)->type()->is(TypeKind::kNone) &&
           !any_inside(n, [](const Node& m) { return !is_droppable(m); });
  default:
    return false;
  }
}

bool may_write(const Node& n) {
  switch (n.kind()) {
  case NodeKind::kOp:
    return writes(n);
  case NodeKind::kHost:
    return n.host().effect == Effect::kMutates || n.host().effect == Effect::kEffect;
  case NodeKind::kIf:
  case NodeKind::kLoop:
    return any_inside(n, may_write);
  case NodeKind::kCall:
  case NodeKind::kCallMethod:
  case NodeKind::kCallPython:
  case NodeKind::kFork:
  case NodeKind::kWait:  // the task may have written to whatever it reached
  case NodeKind::kWith:
  case NodeKind::kSetAttr:
    return true;
  default:
    return false;
  }
}

bool is_repeatable(const Node& n) {
  switch (n.kind()) {
  case NodeKind::kOp:
    return !writes(n) && !n.op().is_random() && n.op().family() != Family::kFactory;
  case NodeKind::kHost:
    return n.host().effect == Effect::kPure || n.host().effect == Effect::kMayRaise ||
           n.host().effect == Effect::kReads;
  case NodeKind::kConstant:
    return !n.constant().is_list();
  case NodeKind::kGetAttr:
  case NodeKind::kTupleGet:
  case NodeKind::kIsInstance:
    return true;
  default:
    return false;
  }
}

bool is_private(const Value& v) {
  if (is_immutable(*v.type())) return true;
  if (!v.type()->is(TypeKind::kTensor)) return false;
  return std::all_of(v.uses().begin(), v.uses().end(), [](const Use& use) {
    const Node& n = *use.user;
    if (!n.is(NodeKind::kOp) || writes(n)) return false;
    return n.op().viewed_argument() != use.index || is_private(*n.output());
  });
}

}  // namespace prong
