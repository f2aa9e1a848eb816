// dce: drops what nobody reads.
#include <unordered_set>

#include "passes/effects.h"
#include "passes/passes.h"

namespace prong {
namespace {

bool is_read(const Node& n) {
  for (const Value* v : n.outputs())
    if (v->has_uses()) return true;
  return false;
}

// Outputs of branches that nobody reads go, with what computed them.
void drop_outputs(Node& n) {
  if (!n.is(NodeKind::kIf) && !n.is(NodeKind::kWith)) return;
  for (size_t i = n.outputs().size(); i-- > 0;) {
    if (n.output(i)->has_uses()) continue;
    n.remove_output(i);
    for (Block* b : n.blocks()) b->yield()->remove_input(i);
  }
}

// A carried value that is read only to compute itself.
void drop_carried(Node& n) {
  if (!n.is(NodeKind::kLoop)) return;
  Block& body = *n.body();
  for (size_t i = n.outputs().size(); i-- > 0;) {
    Value* parameter = body.parameter(i + 1);
    bool is_only_passed_on = !n.output(i)->has_uses();
    for (const Use& use : parameter->uses())
      is_only_passed_on &= use.user == body.yield() && use.index == static_cast<int>(i) + 1;
    if (!is_only_passed_on) continue;
    body.yield()->remove_input(i + 1);
    body.remove_parameter(i + 1);
    n.remove_output(i);
    n.remove_input(i + 2);
  }
}

void run(Block& b) {
  for (Node* n = b.yield()->prev(); n;) {
    Node* before = n->prev();
    drop_outputs(*n);
    drop_carried(*n);
    if (!is_read(*n) && is_droppable(*n))
      n->erase();
    else
      for (Block* inner : n->blocks()) run(*inner);
    n = before;
  }
}

}  // namespace

void dce(Graph& graph) { run(*graph.top()); }

}  // namespace prong
