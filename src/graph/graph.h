// The one IR: Graph owns Blocks, Nodes and Values. Made by script/ and capture/, rewritten by
// passes/, run by exec/. Invariants are in README.md and checked by verify.h. Not thread-safe while
// it changes.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/source_range.h"
#include "ops/op_def.h"
#include "ops/type.h"
#include "tensor/ivalue.h"

namespace prong {

class Block;
class Function;
class Graph;
class Node;
struct HostOp;

enum class NodeKind : uint8_t {
#define PRONG_NODE(name, spelling, operands, comment) k##name,
#include "graph/node_kinds.def"
#undef PRONG_NODE
};
std::string_view spelling(NodeKind kind);

struct Use {
  Node* user;
  int index;  // of the input
  friend bool operator==(const Use&, const Use&) = default;
};

class Value {
 public:
  const TypePtr& type() const { return type_; }
  void set_type(TypePtr type) { type_ = std::move(type); }
  const std::string& name() const { return name_; }  // a hint for print; may be empty
  Value* set_name(std::string_view name);
  Node* producer() const { return producer_; }  // null for a parameter
  Block* block() const;                         // where it is defined
  bool is_parameter() const { return producer_ == nullptr; }
  int index() const { return index_; }  // among the outputs or parameters
  const std::vector<Use>& uses() const { return uses_; }
  bool has_uses() const { return !uses_.empty(); }
  void replace_all_uses_with(Value* other);
  // The constant's value, or null when it isn't a constant.
  const IValue* constant() const;

 private:
  friend class Graph;
  friend class Node;
  friend class Block;
  TypePtr type_;
  std::string name_;
  Node* producer_ = nullptr;
  Block* block_ = nullptr;
  int index_ = 0;
  std::vector<Use> uses_;
};

class Node {
 public:
  NodeKind kind() const { return kind_; }
  bool is(NodeKind k) const { return kind_ == k; }
  Graph& graph() const { return *graph_; }
  Block* block() const { return block_; }
  Node* next() const { return next_; }  // the yield is last; null after it
  Node* prev() const { return prev_; }

  std::span<Value* const> inputs() const { return inputs_; }
  Value* input(size_t i) const { return inputs_[i]; }
  void add_input(Value* v);
  void set_input(size_t i, Value* v);
  void remove_input(size_t i);

  std::span<Value* const> outputs() const { return outputs_; }
  Value* output(size_t i = 0) const { return outputs_[i]; }
  Value* add_output(TypePtr type, std::string_view name = {});
  void remove_output(size_t i);  // kInternal if used

  std::span<Block* const> blocks() const { return blocks_; }
  Block* body(size_t i = 0) const { return blocks_[i]; }
  Block* add_block();

  // ── what the kind needs; see node_kinds.def ──
  const OpDef& op() const { return *op_; }
  const HostOp& host() const { return *host_; }
  const IValue& constant() const { return constant_; }
  const std::string& name() const { return name_; }
  int64_t index() const { return index_; }
  Function* function() const { return function_.get(); }
  ObjectBase* object() const { return constant_.is_object() ? constant_.object() : nullptr; }
  const std::vector<TypePtr>& types() const { return types_; }
  Graph& subgraph() const { return *subgraph_; }  // of a fused node
  const std::shared_ptr<Graph>& subgraph_ref() const { return subgraph_; }
  // What code generation attached (exec/fused.h); not part of the program's meaning.
  const Ref<RefCounted>& attachment() const { return attachment_; }
  void set_attachment(Ref<RefCounted> a) { attachment_ = std::move(a); }

  Node* set_op(const OpDef& op) {
    op_ = &op;
    return this;
  }
  Node* set_host(const HostOp& op) {
    host_ = &op;
    return this;
  }
  Node* set_constant(IValue v) {
    constant_ = std::move(v);
    return this;
  }
  Node* set_object(Ref<ObjectBase> o) {
    constant_ = IValue(std::move(o));
    return this;
  }
  Node* set_name(std::string_view name) {
    name_ = name;
    return this;
  }
  Node* set_index(int64_t i) {
    index_ = i;
    return this;
  }
  Node* set_function(Ref<Function> f);
  Node* set_types(std::vector<TypePtr> t) {
    types_ = std::move(t);
    return this;
  }
  Node* set_subgraph(std::shared_ptr<Graph> g) {
    subgraph_ = std::move(g);
    return this;
  }

  const SourceRange& range() const { return range_; }
  Node* set_range(SourceRange r) {
    range_ = std::move(r);
    return this;
  }

  // ── place ──
  void insert_before(Node* other);  // a new or removed node
  void insert_after(Node* other);
  void move_before(Node* other);
  void erase();  // kInternal if an output is used; blocks inside go with it
  bool is_before(const Node* other) const;  // same block; counts

 private:
  friend class Graph;
  friend class Block;
  friend class Value;
  Node(Graph* graph, NodeKind kind);
  void unlink();
  void drop_inputs();

  Graph* graph_;
  NodeKind kind_;
  Block* block_ = nullptr;
  Node* prev_ = nullptr;
  Node* next_ = nullptr;
  std::vector<Value*> inputs_, outputs_;
  std::vector<Block*> blocks_;
  const OpDef* op_ = nullptr;
  const HostOp* host_ = nullptr;
  IValue constant_;
  std::string name_;
  int64_t index_ = 0;
  Ref<Function> function_;
  std::vector<TypePtr> types_;
  std::shared_ptr<Graph> subgraph_;
  Ref<RefCounted> attachment_;
  SourceRange range_;
  mutable int64_t order_ = 0;  // position, valid while block_->ordered_
};

class Block {
 public:
  Graph& graph() const { return *graph_; }
  Node* owner() const { return owner_; }  // null for the top block
  std::span<Value* const> parameters() const { return parameters_; }
  Value* parameter(size_t i) const { return parameters_[i]; }
  Value* add_parameter(TypePtr type, std::string_view name = {});
  void remove_parameter(size_t i);  // kInternal if used

  Node* front() const { return first_; }  // never null: a block has at least its yield
  Node* yield() const { return last_; }   // what the block gives
  std::span<Value* const> results() const { return last_->inputs(); }
  void set_results(std::span<Value* const> values);
  bool is_empty() const { return first_ == last_; }

  // for (Node* n : *block): without the yield. The current node may be erased or moved in the loop.
  class Iterator {
   public:
    explicit Iterator(Node* n) : node_(n), next_(n ? n->next() : nullptr) {}
    Node* operator*() const { return node_; }
    Iterator& operator++() {
      node_ = next_;
      next_ = node_ ? node_->next() : nullptr;
      return *this;
    }
    bool operator==(const Iterator& o) const { return node_ == o.node_; }

   private:
    Node* node_;
    Node* next_;
  };
  Iterator begin() const { return Iterator(first_); }
  Iterator end() const { return Iterator(last_); }

 private:
  friend class Graph;
  friend class Node;
  Graph* graph_ = nullptr;
  Node* owner_ = nullptr;
  std::vector<Value*> parameters_;
  Node* first_ = nullptr;
  Node* last_ = nullptr;
  mutable bool ordered_ = false;
};

class Graph {
 public:
  Graph();
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  Block* top() const { return top_; }
  std::span<Value* const> inputs() const { return top_->parameters(); }
  std::span<Value* const> outputs() const { return top_->results(); }
  Value* add_input(TypePtr type, std::string_view name = {}) {
    return top_->add_parameter(std::move(type), name);
  }

  Node* create(NodeKind kind);  // not in a block yet; GraphBuilder is the usual way
  std::unique_ptr<Graph> copy() const;
  // Copies the nodes of `from` (not its yield) before `at`, its parameters standing for
  // `arguments`; gives what the yield names.
  std::vector<Value*> inline_before(Node* at, const Block& from, std::span<Value* const> arguments);

  // Text form; see printer.h for options.
  std::string str() const;

 private:
  friend class Node;
  friend class Block;
  Value* new_value(TypePtr type, std::string_view name);
  Block* new_block(Node* owner);
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<std::unique_ptr<Value>> values_;
  Block* top_ = nullptr;
};

}  // namespace prong
