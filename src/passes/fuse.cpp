// fuse: gathers pointwise ops of a straight line, producers into consumers, into `fused` nodes.
#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "graph/builder.h"
#include "graph/region_limits.h"
#include "passes/effects.h"
#include "passes/passes.h"

namespace prong {
namespace {

bool is_number(const Type& t) {
  return t.is(TypeKind::kInt) || t.is(TypeKind::kFloat) || t.is(TypeKind::kBool) ||
         t.is(TypeKind::kNumber);
}

// An op of which a kernel could be made: the body is there, and all that varies is tensors and
// numbers.
bool is_fusible(const Node& n) {
  if (!n.is(NodeKind::kOp)) return false;
  const OpDef& op = n.op();
  if (!op.pointwise() || op.family() != Family::kPointwise || op.mutated_argument() >= 0 ||
      op.is_random())
    return false;
  if (!n.output()->type()->is(TypeKind::kTensor)) return false;
  return std::all_of(n.inputs().begin(), n.inputs().end(), [](const Value* v) {
    return v->constant() ? !v->constant()->is_tensor() || v->type()->is(TypeKind::kTensor)
                         : v->type()->is(TypeKind::kTensor) || is_number(*v->type());
  });
}

// Pure ops do not move across what writes, ends the function early, or holds such things.
bool is_barrier(const Node& n) {
  return may_write(n) || n.is(NodeKind::kRaise) || n.is(NodeKind::kAssert) || !n.blocks().empty();
}

// A group of nodes, run where its last one stands.
struct Group {
  std::vector<Node*> nodes;
  std::unordered_set<const Node*> members;
  std::unordered_set<const Value*> inputs;  // that are no numbers of the program
  size_t num_results = 0;
  Node* last = nullptr;

  bool is_read_outside(const Node& n) const {
    const auto& uses = n.output()->uses();
    return std::any_of(uses.begin(), uses.end(),
                       [&](const Use& use) { return !members.contains(use.user); });
  }
  void add(Node* n) {
    nodes.push_back(n);
    members.insert(n);
    num_results += is_read_outside(*n);
    inputs.erase(n->output());
    for (const Value* v : n->inputs())
      if (is_input(*v)) inputs.insert(v);
  }
  // Is there room for a node that the group reads?
  bool has_room(const Node& n) const {
    size_t more = 0;
    for (const Value* v : n.inputs()) more += is_input(*v) && !inputs.contains(v);
    return nodes.size() < kMaxRegionOps && inputs.size() - 1 + more <= kMaxRegionInputs &&
           num_results + is_read_outside(n) <= kMaxRegionResults;
  }

 private:
  static bool is_input(const Value& v) { return !v.constant() || v.constant()->is_tensor(); }
};

// The node of `b` in or at which n stands.
const Node* ancestor_in(const Block& b, const Node* n) {
  while (n->block() != &b) n = n->block()->owner();
  return n;
}

class Fuser {
 public:
  explicit Fuser(Block& b) : block_(b) {}

  void run() {
    note_places();
    // From the end: each consumer takes in what it can.
    for (Node* n = block_.yield()->prev(); n;) {
      Node* before = n->prev();
      if (is_fusible(*n) && !taken_.contains(n)) before = gather(n);
      n = before;
    }
    for (Node* n : block_)
      for (Block* inner : n->blocks()) Fuser(*inner).run();
  }

 private:
  // Where a node stands in the block. Barriers cut the line into stretches.
  struct Place {
    size_t index, stretch;
  };
  void note_places() {
    size_t index = 0, stretch = 0;
    for (const Node* n : block_) {
      stretch += is_barrier(*n);
      places_[n] = {index++, stretch};
    }
  }

  // Grows a group that ends in `last`; gives the node to go on at.
  Node* gather(Node* last) {
    Group g;
    g.last = last;
    g.add(last);
    const size_t stretch = places_.at(last).stretch;
    // Who feeds the group, the last one first: those that read it have been looked at before.
    std::set<std::pair<size_t, Node*>> feeders;
    const auto note_feeders = [&](const Node& n) {
      for (Value* v : n.inputs())
        if (Node* maker = v->producer(); maker && maker->block() == &block_ && is_fusible(*maker))
          if (const Place at = places_.at(maker); at.stretch == stretch)
            feeders.emplace(at.index, maker);
    };
    note_feeders(*last);
    while (!feeders.empty()) {
      Node* n = std::prev(feeders.end())->second;
      feeders.erase(std::prev(feeders.end()));
      if (taken_.contains(n) || !can_move_down(g, *n) || !g.has_room(*n)) continue;
      g.add(n);
      note_feeders(*n);
    }
    for (const Node* n : g.nodes) taken_.insert(n);
    Node* before = last->prev();
    if (g.nodes.size() < 2) return before;
    std::reverse(g.nodes.begin(), g.nodes.end());
    return make_node(g);
  }

  // Its other readers must stand after the group's end.
  bool can_move_down(const Group& g, const Node& n) const {
    return std::all_of(n.output()->uses().begin(), n.output()->uses().end(), [&](const Use& use) {
      if (g.members.contains(use.user)) return true;
      return g.last->is_before(ancestor_in(block_, use.user));
    });
  }

  Node* make_node(const Group& g) {
    auto inner = std::make_shared<Graph>();
    GraphBuilder b(*inner);
    std::unordered_map<const Value*, Value*> map;
    std::vector<Value*> inputs;
    const auto inside = [&](Value* v) {
      const auto [it, is_new] = map.try_emplace(v);
      if (!is_new) return it->second;
      if (v->constant() && !v->constant()->is_tensor())
        return it->second = b.constant(*v->constant(), v->type());
      inputs.push_back(v);
      return it->second = inner->add_input(v->type(), v->name());
    };
    std::vector<Value*> results, outputs;
    for (const Node* n : g.nodes) {
      b.set_range(n->range());
      std::vector<Value*> args;
      for (Value* v : n->inputs()) args.push_back(inside(v));
      Value* result = b.op(n->op(), args);
      result->set_name(n->output()->name());
      map[n->output()] = result;
      if (g.is_read_outside(*n)) {
        results.push_back(result);
        outputs.push_back(n->output());
      }
    }
    b.yield(results);
    GraphBuilder at = GraphBuilder::before(g.last);
    Node* fused = at.create(NodeKind::kFused, inputs)->set_subgraph(std::move(inner));
    for (Value* v : outputs) v->replace_all_uses_with(fused->add_output(v->type(), v->name()));
    for (auto it = g.nodes.rbegin(); it != g.nodes.rend(); ++it) (*it)->erase();
    return fused->prev();
  }

  Block& block_;
  std::unordered_map<const Node*, Place> places_;  // of the nodes that the block had at first
  std::unordered_set<const Node*> taken_;
};

}  // namespace

void fuse(Graph& graph) { Fuser(*graph.top()).run(); }

}  // namespace prong
