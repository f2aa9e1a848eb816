// cse: of equal nodes with equal inputs, one is enough.
#include <bit>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/host_op.h"
#include "passes/effects.h"
#include "passes/passes.h"

namespace prong {
namespace {

// What makes two nodes equal, beside their inputs.
bool is_same(const Node& a, const Node& b) {
  if (a.kind() != b.kind() || a.inputs().size() != b.inputs().size() ||
      a.outputs().size() != b.outputs().size())
    return false;
  for (size_t i = 0; i < a.inputs().size(); ++i)
    if (a.input(i) != b.input(i)) return false;
  for (size_t i = 0; i < a.outputs().size(); ++i)
    if (!same(a.output(i)->type(), b.output(i)->type())) return false;
  switch (a.kind()) {
  case NodeKind::kOp:
    return &a.op() == &b.op();
  case NodeKind::kHost:
    return &a.host() == &b.host();
  case NodeKind::kConstant: {
    const IValue &x = a.constant(), &y = b.constant();
    if (x.tag() != y.tag()) return false;
    if (x.is_float())
      return std::bit_cast<int64_t>(x.to_double()) == std::bit_cast<int64_t>(y.to_double());
    if (x.is_tensor() || x.is_object()) return x.identity() == y.identity();
    return x.is_tuple() ? x.identity() == y.identity() : equal(x, y);
  }
  case NodeKind::kGetAttr:
    return a.name() == b.name();
  case NodeKind::kTupleGet:
    return a.index() == b.index();
  case NodeKind::kIsInstance: {
    if (a.types().size() != b.types().size()) return false;
    for (size_t i = 0; i < a.types().size(); ++i)
      if (!same(a.types()[i], b.types()[i])) return false;
    return true;
  }
  default:
    return false;
  }
}

size_t key(const Node& n) {
  size_t h = static_cast<size_t>(n.kind());
  const auto mix = [&h](size_t x) { h = (h ^ x) * 0x9e3779b97f4a7c15u; };
  for (const Value* v : n.inputs()) mix(reinterpret_cast<size_t>(v));
  if (n.is(NodeKind::kOp)) mix(reinterpret_cast<size_t>(&n.op()));
  if (n.is(NodeKind::kHost)) mix(reinterpret_cast<size_t>(&n.host()));
  if (n.is(NodeKind::kConstant)) {
    const IValue& c = n.constant();
    mix(static_cast<size_t>(c.tag()));
    if (c.is_int()) mix(static_cast<size_t>(c.to_int()));
    if (c.is_float()) mix(std::bit_cast<size_t>(c.to_double()));
  }
  return h;
}

bool looks_at_memory(const Node& n) {
  if (n.is(NodeKind::kHost)) return n.host().effect == Effect::kReads;
  return n.is(NodeKind::kOp) || n.is(NodeKind::kGetAttr);
}

class Merger {
 public:
  // `memory` counts the writes met so far on the way here.
  void run(Block& b) {
    const size_t start = log_.size();
    for (Node* n : b) {
      if (may_write(*n)) ++writes_;
      if (is_repeatable(*n) && merge(*n)) continue;
      for (Block* inner : n->blocks()) {
        // What a fork's block sees is its inputs; what a loop's body reads may be written by its
        // last round.
        if (n->is(NodeKind::kFork)) {
          Merger().run(*inner);
          continue;
        }
        if (n->is(NodeKind::kLoop)) ++writes_;
        run(*inner);
      }
    }
    // What was defined in here isn't visible outside.
    while (log_.size() > start) {
      const auto [k, node] = log_.back();
      log_.pop_back();
      auto& bucket = seen_[k];
      std::erase_if(bucket, [node = node](const Seen& s) { return s.node == node; });
    }
  }

 private:
  struct Seen {
    Node* node;
    int64_t writes;  // when it was computed
  };

  bool merge(Node& n) {
    const size_t k = key(n) ^ (looks_at_memory(n) ? static_cast<size_t>(writes_) : 0);
    auto& bucket = seen_[k];
    for (const Seen& s : bucket) {
      if (!is_same(*s.node, n) || (looks_at_memory(n) && s.writes != writes_)) continue;
      if (!is_mergeable(*s.node) || !is_mergeable(n)) continue;
      for (size_t i = 0; i < n.outputs().size(); ++i)
        n.output(i)->replace_all_uses_with(s.node->output(i));
      n.erase();
      return true;
    }
    bucket.push_back({&n, writes_});
    log_.emplace_back(k, &n);
    return false;
  }
  // An attribute is the same object each time it is read; so is a constant.
  static bool is_mergeable(const Node& n) {
    if (n.is(NodeKind::kGetAttr) || n.is(NodeKind::kConstant) || n.is(NodeKind::kTupleGet))
      return true;
    for (const Value* v : n.outputs())
      if (!is_private(*v)) return false;
    return true;
  }

  int64_t writes_ = 0;
  std::unordered_map<size_t, std::vector<Seen>> seen_;
  std::vector<std::pair<size_t, Node*>> log_;
};

}  // namespace

void cse(Graph& graph) { Merger().run(*graph.top()); }

}  // namespace prong
