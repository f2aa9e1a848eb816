// Values, nodes, blocks and graphs: links, uses, order and copying.
#include "graph/graph.h"

#include <algorithm>
#include <unordered_map>

#include "graph/function.h"
#include "graph/printer.h"

namespace prong {

std::string_view spelling(NodeKind kind) {
  static constexpr std::string_view names[] = {
#define PRONG_NODE(name, spelling, operands, comment) spelling,
#include "graph/node_kinds.def"
#undef PRONG_NODE
  };
  return names[static_cast<size_t>(kind)];
}

// ── Value ──

Value* Value::set_name(std::string_view name) {
  name_ = name;
  return this;
}

Block* Value::block() const { return producer_ ? producer_->block() : block_; }

void Value::replace_all_uses_with(Value* other) {
  PRONG_ASSERT(other != this, "a value cannot replace itself");
  while (!uses_.empty()) {
    const Use use = uses_.back();
    use.user->set_input(static_cast<size_t>(use.index), other);
  }
}

const IValue* Value::constant() const {
  return producer_ && producer_->is(NodeKind::kConstant) ? &producer_->constant() : nullptr;
}

// ── Node: inputs and outputs ──

Node::Node(Graph* graph, NodeKind kind) : graph_(graph), kind_(kind) {}

namespace {

constexpr int64_t kOrderStep = int64_t{1} << 20;  // between neighbours, so that others fit in

void remove_use(std::vector<Use>& uses, Use use) {
  const auto it = std::find(uses.rbegin(), uses.rend(), use);
  PRONG_ASSERT(it != uses.rend(), "a use is not listed");
  uses.erase(std::next(it).base());
}

}  // namespace

void Node::add_input(Value* v) {
  v->uses_.push_back({this, static_cast<int>(inputs_.size())});
  inputs_.push_back(v);
}

void Node::set_input(size_t i, Value* v) {
  remove_use(inputs_[i]->uses_, {this, static_cast<int>(i)});
  inputs_[i] = v;
  v->uses_.push_back({this, static_cast<int>(i)});
}

void Node::remove_input(size_t i) {
  remove_use(inputs_[i]->uses_, {this, static_cast<int>(i)});
  for (size_t j = i + 1; j < inputs_.size(); ++j)
    for (Use& use : inputs_[j]->uses_)
      if (use == Use{this, static_cast<int>(j)}) {
        use.index = static_cast<int>(j) - 1;
        break;
      }
  inputs_.erase(inputs_.begin() + static_cast<std::ptrdiff_t>(i));
}

void Node::drop_inputs() {
  for (size_t i = 0; i < inputs_.size(); ++i)
    remove_use(inputs_[i]->uses_, {this, static_cast<int>(i)});
  inputs_.clear();
}

Value* Node::add_output(TypePtr type, std::string_view name) {
  Value* v = graph_->new_value(std::move(type), name);
  v->producer_ = this;
  v->index_ = static_cast<int>(outputs_.size());
  outputs_.push_back(v);
  return v;
}

void Node::remove_output(size_t i) {
  PRONG_ASSERT(!outputs_[i]->has_uses(), "an output that is removed is used");
  outputs_.erase(outputs_.begin() + static_cast<std::ptrdiff_t>(i));
  for (size_t j = i; j < outputs_.size(); ++j) outputs_[j]->index_ = static_cast<int>(j);
}

Block* Node::add_block() {
  blocks_.push_back(graph_->new_block(this));
  return blocks_.back();
}

Node* Node::set_function(Ref<Function> f) {
  function_ = std::move(f);
  return this;
}

// ── Node: place ──

void Node::insert_before(Node* other) {
  PRONG_ASSERT(!block_ && other->block_, "insert_before wants a loose node and a placed one");
  block_ = other->block_;
  next_ = other;
  prev_ = other->prev_;
  (prev_ ? prev_->next_ : block_->first_) = this;
  other->prev_ = this;
  // A number between its neighbours', while there is one.
  const int64_t low = prev_ ? prev_->order_ : 0;
  order_ = low + (next_->order_ - low) / 2;
  block_->ordered_ &= order_ > low && order_ < next_->order_;
}

void Node::insert_after(Node* other) {
  PRONG_ASSERT(other->next_, "nothing stands after a yield");
  insert_before(other->next_);
}

void Node::move_before(Node* other) {
  if (other == this) return;
  unlink();
  insert_before(other);
}

void Node::unlink() {
  if (!block_) return;
  PRONG_ASSERT(this != block_->last_, "a yield stays where it is");
  (prev_ ? prev_->next_ : block_->first_) = next_;
  next_->prev_ = prev_;
  block_ = nullptr;
  prev_ = next_ = nullptr;
}

void Node::erase() {
  for (Value* v : outputs_) PRONG_ASSERT(!v->has_uses(), "a node that is erased is used");
  for (Block* b : blocks_) {
    b->last_->drop_inputs();
    while (b->first_ != b->last_) b->last_->prev_->erase();
  }
  drop_inputs();
  unlink();
}

bool Node::is_before(const Node* other) const {
  PRONG_ASSERT(block_ == other->block_, "is_before compares nodes of one block");
  if (!block_->ordered_) {
    int64_t order = 0;
    for (const Node* n = block_->first_; n; n = n->next_) n->order_ = order += kOrderStep;
    block_->ordered_ = true;
  }
  return order_ < other->order_;
}

// ── Block ──

Value* Block::add_parameter(TypePtr type, std::string_view name) {
  Value* v = graph_->new_value(std::move(type), name);
  v->block_ = this;
  v->index_ = static_cast<int>(parameters_.size());
  parameters_.push_back(v);
  return v;
}

void Block::remove_parameter(size_t i) {
  PRONG_ASSERT(!parameters_[i]->has_uses(), "a parameter that is removed is used");
  parameters_.erase(parameters_.begin() + static_cast<std::ptrdiff_t>(i));
  for (size_t j = i; j < parameters_.size(); ++j) parameters_[j]->index_ = static_cast<int>(j);
}

void Block::set_results(std::span<Value* const> values) {
  const std::vector<Value*> kept(values.begin(), values.end());  // may be the yield's own inputs
  last_->drop_inputs();
  for (Value* v : kept) last_->add_input(v);
}

// ── Graph ──

Graph::Graph() { top_ = new_block(nullptr); }
Graph::~Graph() = default;

Value* Graph::new_value(TypePtr type, std::string_view name) {
  values_.emplace_back(new Value());
  Value* v = values_.back().get();
  v->type_ = std::move(type);
  v->name_ = name;
  return v;
}

Block* Graph::new_block(Node* owner) {
  blocks_.emplace_back(new Block());
  Block* b = blocks_.back().get();
  b->graph_ = this;
  b->owner_ = owner;
  Node* y = create(NodeKind::kYield);
  y->block_ = b;
  b->first_ = b->last_ = y;
  return b;
}

Node* Graph::create(NodeKind kind) {
  nodes_.emplace_back(new Node(this, kind));
  return nodes_.back().get();
}

namespace {

using Copies = std::unordered_map<const Value*, Value*>;

Value* copied(const Copies& copies, Value* v) {
  const auto it = copies.find(v);
  return it == copies.end() ? v : it->second;  // else of a block around what is copied
}

void copy_nodes(Graph& to, Node* at, const Block& from, Copies& copies);

Node* copy_node(Graph& to, Node* at, const Node& n, Copies& copies) {
  Node* c = to.create(n.kind());
  for (Value* v : n.inputs()) c->add_input(copied(copies, v));
  if (n.is(NodeKind::kOp)) c->set_op(n.op());
  if (n.is(NodeKind::kHost)) c->set_host(n.host());
  c->set_constant(n.constant())->set_name(n.name())->set_index(n.index())->set_types(n.types());
  c->set_function(Ref<Function>(n.function()))
      ->set_subgraph(n.subgraph_ref())
      ->set_range(n.range());
  c->set_attachment(n.attachment());
  for (Value* v : n.outputs()) copies[v] = c->add_output(v->type(), v->name());
  c->insert_before(at);
  for (const Block* b : n.blocks()) {
    Block* body = c->add_block();
    for (Value* p : b->parameters()) copies[p] = body->add_parameter(p->type(), p->name());
    copy_nodes(to, body->yield(), *b, copies);
    for (Value* v : b->results()) body->yield()->add_input(copied(copies, v));
    body->yield()->set_range(b->yield()->range());
  }
  return c;
}

void copy_nodes(Graph& to, Node* at, const Block& from, Copies& copies) {
  for (const Node* n : from) copy_node(to, at, *n, copies);
}

}  // namespace

std::unique_ptr<Graph> Graph::copy() const {
  auto to = std::make_unique<Graph>();
  Copies copies;
  for (Value* p : inputs()) copies[p] = to->add_input(p->type(), p->name());
  copy_nodes(*to, to->top_->last_, *top_, copies);
  for (Value* v : outputs()) to->top_->last_->add_input(copied(copies, v));
  to->top_->last_->set_range(top_->last_->range());
  return to;
}

std::vector<Value*> Graph::inline_before(Node* at, const Block& from,
                                         std::span<Value* const> arguments) {
  PRONG_ASSERT(arguments.size() == from.parameters().size(), "inline: ", arguments.size(),
               " arguments for ", from.parameters().size(), " parameters");
  Copies copies;
  for (size_t i = 0; i < arguments.size(); ++i) copies[from.parameter(i)] = arguments[i];
  copy_nodes(*this, at, from, copies);
  std::vector<Value*> results;
  for (Value* v : from.results()) results.push_back(copied(copies, v));
  return results;
}

std::string Graph::str() const { return print(*this); }

}  // namespace prong
