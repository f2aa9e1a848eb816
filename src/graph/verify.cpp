// The checks of README.md's invariants.
#include "graph/verify.h"

#include <algorithm>
#include <unordered_set>

#include "graph/function.h"
#include "graph/host_op.h"

namespace prong {
namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph) {}

  void run() {
    PRONG_CHECK(!graph_.top()->owner(), kInternal, "the top block has an owner");
    block(*graph_.top());
    expect(graph_.outputs().size() == 1 || is_subgraph_, graph_.top()->yield(),
           "the top block yields ", graph_.outputs().size(), " values, expected 1");
  }
  void run_subgraph() {
    is_subgraph_ = true;
    run();
  }

 private:
  template <class... A>
  void expect(bool ok, const Node* n, const A&... what) {
    if (ok) return;
    throw_error(ErrorKind::kInternal,
                cat("bad graph: ", spelling(n->kind()), " node",
                    n->range() ? cat(" of ", n->range().str()) : std::string(), ": ", what...));
  }

  void define(Value* v, const Node* n) {
    expect(static_cast<bool>(v->type()), n, "a value without a type");
    expect(defined_.insert(v).second, n, "a value is defined twice");
    for (const Use& use : v->uses())
      expect(use.index < static_cast<int>(use.user->inputs().size()) &&
                 use.user->input(static_cast<size_t>(use.index)) == v,
             n, "a listed use does not use the value");
  }

  void block(const Block& b) {
    std::vector<Value*> mine;
    for (Value* p : b.parameters()) {
      define(p, b.yield());
      mine.push_back(p);
    }
    const Node* before = nullptr;
    for (const Node* n = b.front(); n; before = n, n = n->next()) {
      expect(n->block() == &b && n->prev() == before, n, "links are broken");
      expect(n->is(NodeKind::kYield) == (n->next() == nullptr), n,
             "a block ends in exactly one yield");
      node(*n);
      for (Value* v : n->outputs()) {
        expect(v->producer() == n, n, "an output has another producer");
        define(v, n);
        mine.push_back(v);
      }
    }
    for (Value* v : mine) defined_.erase(v);  // not visible outside
  }

  void node(const Node& n) {
    for (size_t i = 0; i < n.inputs().size(); ++i) {
      Value* v = n.input(i);
      expect(defined_.contains(v), &n, "input ", i, " ('", v->name(),
             "') is not defined before it");
      expect(std::count(v->uses().begin(), v->uses().end(),
                        Use{const_cast<Node*>(&n), static_cast<int>(i)}) == 1,
             &n, "input ", i, " does not list this use once");
    }
    kind(n);
    for (const Block* b : n.blocks()) block(*b);
  }

  void counts(const Node& n, size_t inputs, size_t outputs, size_t blocks = 0) {
    expect(n.inputs().size() == inputs, &n, n.inputs().size(), " inputs, expected ", inputs);
    shape(n, outputs, blocks);
  }
  void shape(const Node& n, size_t outputs, size_t blocks = 0) {
    expect(n.outputs().size() == outputs, &n, n.outputs().size(), " outputs, expected ", outputs);
    expect(n.blocks().size() == blocks, &n, n.blocks().size(), " blocks, expected ", blocks);
  }
  void yields(const Node& n, const Block& b, size_t count) {
    expect(b.results().size() == count, &n, "a block yields ", b.results().size(),
           " values, expected ", count);
    if (n.is(NodeKind::kLoop)) return;
    for (size_t i = 0; i < count; ++i)
      fits(n, b.results()[i], n.output(i)->type(), "a yielded value");
  }
  void fits(const Node& n, const Value* v, const TypePtr& type, std::string_view what) {
    expect(is_subtype(v->type(), type), &n, what, " is ", v->type(), ", expected ", type);
  }

  void kind(const Node& n) {
    switch (n.kind()) {
    case NodeKind::kOp:
      return counts(n, n.op().schema().arguments.size(), 1);
    case NodeKind::kHost:
      return counts(n, n.host().schema.arguments.size(), 1);
    case NodeKind::kConstant:
      return constant(n);
    case NodeKind::kUninitialized:
      return counts(n, 0, 1);
    case NodeKind::kIf:
      counts(n, 1, n.outputs().size(), 2);
      fits(n, n.input(0), Type::bool_(), "the condition");
      for (const Block* b : n.blocks()) {
        expect(b->parameters().empty(), &n, "a block of an if has parameters");
        yields(n, *b, n.outputs().size());
      }
      return;
    case NodeKind::kLoop:
      return loop(n);
    case NodeKind::kWith:
      counts(n, 1, n.outputs().size(), 1);
      expect(n.body()->parameters().size() == 1, &n, "the block takes what enter gave");
      return yields(n, *n.body(), n.outputs().size());
    case NodeKind::kCall:
      expect(n.function() != nullptr, &n, "no function");
      return counts(n, n.function()->schema().arguments.size(), 1);
    case NodeKind::kCallMethod:
      expect(!n.inputs().empty() && !n.name().empty(), &n, "no receiver or no name");
      return shape(n, 1);
    case NodeKind::kCallPython:
      expect(n.object() != nullptr, &n, "no callable");
      return shape(n, 1);
    case NodeKind::kFork:
      return fork(n);
    case NodeKind::kWait:
      return counts(n, 1, 1);
    case NodeKind::kGetAttr:
      return counts(n, 1, 1);
    case NodeKind::kSetAttr:
      return counts(n, 2, 0);
    case NodeKind::kNewObject:
      return counts(n, 0, 1);
    case NodeKind::kTupleConstruct:
      shape(n, 1);
      return expect(n.output()->type()->elements().size() == n.inputs().size(), &n,
                    "items do not match the type");
    case NodeKind::kListConstruct:
      return shape(n, 1);
    case NodeKind::kDictConstruct:
      expect(n.inputs().size() % 2 == 0, &n, "a key without a value");
      return shape(n, 1);
    case NodeKind::kTupleGet:
      return counts(n, 1, 1);
    case NodeKind::kTupleUnpack:
      return counts(n, 1, n.input(0)->type()->elements().size());
    case NodeKind::kListUnpack:
      return counts(n, 1, n.outputs().size());
    case NodeKind::kIsInstance:
      return counts(n, 1, 1);
    case NodeKind::kUncheckedCast:
      return counts(n, 1, 1);
    case NodeKind::kRaise:
      return counts(n, 1, 0);
    case NodeKind::kAssert:
      return counts(n, 2, 0);
    case NodeKind::kFused: {
      const Graph& g = n.subgraph();
      expect(g.inputs().size() == n.inputs().size(), &n, "inputs do not match the subgraph's");
      shape(n, g.outputs().size());
      return Verifier(g).run_subgraph();
    }
    case NodeKind::kYield:
      return shape(n, 0);
    }
  }

  void constant(const Node& n) {
    counts(n, 0, 1);
    const IValue& v = n.constant();
    expect(!v.is_dict() && !v.is_future(), &n, "a ", name_of(v.tag()), " cannot be a constant");
    if (!v.is_list()) return;
    for (const Use& use : n.output()->uses())
      expect(use.user->is(NodeKind::kOp) || use.user->is(NodeKind::kFused), &n,
             "a list constant goes where it may be changed: into ", spelling(use.user->kind()));
  }

  void loop(const Node& n) {
    expect(n.inputs().size() >= 2, &n, "no trip count or no condition");
    const size_t carried = n.inputs().size() - 2;
    shape(n, carried, 1);
    expect(n.input(0)->type()->is(TypeKind::kInt) || n.input(0)->type()->is(TypeKind::kNone), &n,
           "the trip count is ", n.input(0)->type());
    fits(n, n.input(1), Type::bool_(), "the condition");
    const Block& b = *n.body();
    expect(b.parameters().size() == carried + 1, &n, "the block takes (i, carried...)");
    yields(n, b, carried + 1);
    fits(n, b.results()[0], Type::bool_(), "the condition that is yielded");
    for (size_t i = 0; i < carried; ++i) {
      fits(n, n.input(i + 2), b.parameter(i + 1)->type(), "a carried value");
      fits(n, b.results()[i + 1], b.parameter(i + 1)->type(), "a carried value that is yielded");
      fits(n, b.parameter(i + 1), n.output(i)->type(), "a carried value");
    }
  }

  void fork(const Node& n) {
    shape(n, 1, n.blocks().size());
    expect(n.output()->type()->is(TypeKind::kFuture), &n, "the output is ", n.output()->type());
    const int ways = (n.function() != nullptr) + !n.name().empty() + !n.blocks().empty();
    expect(ways == 1, &n, "a fork has a function, a method or a block");
    if (n.function())
      expect(n.inputs().size() == n.function()->schema().arguments.size(), &n,
             "inputs do not match the schema");
    if (n.blocks().empty()) return;
    expect(n.body()->parameters().size() == n.inputs().size() && n.body()->results().size() == 1,
           &n, "the block takes the inputs and yields one value");
    // A task must not look into the frame that forked it.
    const std::unordered_set<Value*> outside = std::exchange(defined_, {});
    block(*n.body());
    defined_ = outside;
  }

  const Graph& graph_;
  bool is_subgraph_ = false;
  std::unordered_set<Value*> defined_;
};

}  // namespace

void verify(const Graph& graph) {
  try {
    Verifier(graph).run();
  } catch (const Error& e) {
    throw_error(e.kind(), cat(e.message(), "\n", graph.str()));
  }
}

}  // namespace prong
