// GraphBuilder: appends nodes at an insertion point. Used by front ends and by passes; as
// ops/builder.h's Builder it lets composite rules and gradients write graphs.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "graph/function.h"
#include "graph/graph.h"
#include "graph/host_op.h"
#include "ops/builder.h"

namespace prong {

class GraphBuilder final : public Builder {
 public:
  using Values = std::span<Value* const>;

  explicit GraphBuilder(Graph& graph);  // at the end of the top block
  explicit GraphBuilder(Block* block);  // at its end
  static GraphBuilder before(Node* node);

  Graph& graph() const { return *graph_; }
  Block* block() const { return at_->block(); }
  void move_to_end(Block* block) { at_ = block->yield(); }
  void move_before(Node* node) { at_ = node; }
  // Where the nodes made from now on come from.
  void set_range(SourceRange range) { range_ = std::move(range); }
  const SourceRange& range() const { return range_; }

  // ── leaves ──
  Value* constant(IValue value);                // type by its tag; tuples by their items
  Value* constant(IValue value, TypePtr type);  // None as Optional[T], objects
  Value* none() { return constant(IValue()); }
  Value* uninitialized(TypePtr type);

  // ── calls ──
  // Inputs in the schema's order; trailing ones with defaults may be left out. Result: the
  // schema's, a tuple for several.
  Value* op(const OpDef& op, Values inputs);
  Value* op(std::string_view name, std::initializer_list<Value*> inputs);
  // The result's type is found by matching the schema's variables; pass it where it can't be (empty
  // lists).
  Value* host(const HostOp& op, Values inputs, TypePtr result = {});
  Value* host(std::string_view name, std::initializer_list<Value*> inputs, TypePtr result = {});
  Value* call(Ref<Function> function, Values inputs);
  Value* call_method(Value* receiver, std::string_view method, Values arguments, TypePtr result);
  Value* call_python(Ref<PyCallable> callable, Values inputs, TypePtr result);
  Value* fork(Ref<Function> function, Values inputs);
  Value* fork_method(Value* receiver, std::string_view method, Values arguments, TypePtr result);
  // A fork of block 0; its parameters stand for the inputs. Fill it, and set its result with
  // yield().
  Node* fork_block(Values inputs, TypePtr result);
  Value* wait(Value* future);

  // ── objects and containers ──
  Value* get_attr(Value* object, std::string_view name, TypePtr type);
  void set_attr(Value* object, std::string_view name, Value* value);
  Value* new_object(TypePtr class_type);
  Value* tuple(Values items);
  Value* named_tuple(TypePtr type, Values items);
  Value* list(TypePtr element, Values items);
  Value* dict(TypePtr key, TypePtr value, Values keys_and_values);
  Value* tuple_get(Value* tuple, int64_t index);
  std::vector<Value*> tuple_unpack(Value* tuple);
  std::vector<Value*> list_unpack(Value* list, size_t n);
  Value* isinstance(Value* value, std::vector<TypePtr> types);
  Value* unchecked_cast(Value* value, TypePtr type);

  // ── control flow: fill the blocks with a builder at their ends, then yield(); then add the
  // outputs ──
  Node* if_(Value* condition);  // node->body(0), node->body(1); node->add_output(type)
  // carried: initial values; adds block parameters (i, carried...) and outputs of the same types.
  Node* loop(Value* trip_count, Value* condition, Values carried);
  Node* with(Value* manager,
             TypePtr entered);  // node->body() has one parameter; node->add_output(type)
  void yield(Values values);    // ends the block that the insertion point is in
  void yield(std::initializer_list<Value*> values) { yield(Values(values.begin(), values.size())); }

  void raise(std::string_view class_name, Value* message, Ref<ObjectBase> python_class = {});
  void assert_(Value* condition, Value* message);

  Node* create(NodeKind kind, Values inputs);  // at the insertion point, with the current range

  // ── ops/builder.h: IValues hold graph values (value_of) or plain numbers, which become constants
  // ──
  IValue apply(const OpDef& op, std::span<const IValue> args) override;
  TensorMeta meta(const IValue& tensor) override;  // kInternal: shapes aren't known here yet
  static IValue box(Value* value);
  Value* value_of(const IValue& boxed);

 private:
  GraphBuilder() = default;
  Graph* graph_ = nullptr;
  Node* at_ = nullptr;  // nodes go before it
  SourceRange range_;
};

// The static type of a constant: Tensor, int, List[int], Tuple[...]; kValue for what has none (an
// empty list).
TypePtr type_of_constant(const IValue& value);

}  // namespace prong
