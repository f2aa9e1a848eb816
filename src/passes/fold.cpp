// fold: what is known before the program runs.
#include <algorithm>

#include "graph/builder.h"
#include "passes/passes.h"

namespace prong {
namespace {

bool is_plain(const IValue& v) {
  return v.is_none() || v.is_number() || v.is_string() || v.is_dtype() ||
         (v.is_tuple() && std::all_of(v.items().begin(), v.items().end(), is_plain));
}

bool all_constant(const Node& n) {
  return std::all_of(n.inputs().begin(), n.inputs().end(),
                     [](const Value* v) { return v->constant() && is_plain(*v->constant()); });
}

void replace(Node& n, IValue value) {
  GraphBuilder b = GraphBuilder::before(&n);
  Value* v = b.constant(std::move(value), n.output()->type());
  v->set_name(n.output()->name());
  n.output()->replace_all_uses_with(v);
  n.erase();
}

// Runs a host op; one that raises stays, to raise when the program comes there.
bool fold_host(Node& n) {
  const Effect effect = n.host().effect;
  if ((effect != Effect::kPure && effect != Effect::kMayRaise) || !all_constant(n)) return false;
  std::vector<IValue> args;
  for (const Value* v : n.inputs()) args.push_back(*v->constant());
  try {
    IValue result = n.host().fn(args);
    if (!is_plain(result)) return false;
    replace(n, std::move(result));
    return true;
  } catch (const Error&) {
    return false;
  }
}

// A list of constants that only ops read need not be built anew each time: ops never change their
// lists.
bool fold_list(Node& n) {
  if (n.inputs().empty() || !all_constant(n)) return false;
  for (const Use& use : n.output()->uses())
    if (!use.user->is(NodeKind::kOp)) return false;
  std::vector<IValue> items;
  for (const Value* v : n.inputs()) items.push_back(*v->constant());
  replace(n, IValue::list(std::move(items)));
  return true;
}

// if True: only the one branch.
bool fold_if(Node& n) {
  const IValue* condition = n.input(0)->constant();
  if (!condition || !condition->is_bool()) return false;
  Block& taken = *n.body(condition->to_bool() ? 0 : 1);
  for (Node* m : taken) m->move_before(&n);
  for (size_t i = 0; i < n.outputs().size(); ++i)
    n.output(i)->replace_all_uses_with(taken.results()[i]);
  n.erase();
  return true;
}

bool fold_tuple(Node& n) {
  const Node* made = n.input(0)->producer();
  if (made && made->is(NodeKind::kTupleConstruct)) {
    if (n.is(NodeKind::kTupleGet)) {
      n.output()->replace_all_uses_with(made->input(static_cast<size_t>(n.index())));
    } else {
      for (size_t i = 0; i < n.outputs().size(); ++i)
        n.output(i)->replace_all_uses_with(made->input(i));
    }
    n.erase();
    return true;
  }
  const IValue* constant = n.input(0)->constant();
  if (!constant || !n.is(NodeKind::kTupleGet)) return false;
  const IValue item = constant->items()[static_cast<size_t>(n.index())];
  if (!is_plain(item)) return false;
  replace(n, item);
  return true;
}

bool fold_node(Node& n) {
  switch (n.kind()) {
  case NodeKind::kHost:
    return fold_host(n);
  case NodeKind::kListConstruct:
    return fold_list(n);
  case NodeKind::kIf:
    return fold_if(n);
  case NodeKind::kTupleGet:
  case NodeKind::kTupleUnpack:
    return fold_tuple(n);
  default:
    return false;
  }
}

void run(Block& b) {
  for (Node* n = b.front(); n && n != b.yield();) {
    Node* before = n->prev();
    for (Block* inner : n->blocks()) run(*inner);
    // What takes its place is looked at again: a branch's nodes may fold further.
    if (fold_node(*n))
      n = before ? before->next() : b.front();
    else
      n = n->next();
  }
}

}  // namespace

void fold(Graph& graph) { run(*graph.top()); }

}  // namespace prong
