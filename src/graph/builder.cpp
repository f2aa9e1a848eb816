// GraphBuilder: makes nodes, types their results.
#include "graph/builder.h"

namespace prong {

namespace {

// A graph value inside an IValue, for rules written against ops/builder.h.
struct ValueBox final : ObjectBase {
  explicit ValueBox(Value* v) : value(v) {}
  std::string describe() const override { return cat("graph value ", value->name()); }
  Value* value;
};

TypePtr result_of(const Schema& schema) {
  if (schema.results.size() == 1) return schema.results[0];
  return Type::tuple(schema.results);
}

TypePtr class_type_of(ObjectBase* object) {
  if (auto* o = dynamic_cast<Object*>(object)) return Type::class_(o->cls);
  return Type::py_object();
}

}  // namespace

TypePtr type_of_constant(const IValue& value) {
  switch (value.tag()) {
  case IValue::Tag::kNone:
    return Type::none();
  case IValue::Tag::kBool:
    return Type::bool_();
  case IValue::Tag::kInt:
    return Type::int_();
  case IValue::Tag::kFloat:
    return Type::float_();
  case IValue::Tag::kDType:
    return Type::dtype();
  case IValue::Tag::kTensor:
  case IValue::Tag::kMeta:
    return Type::tensor();
  case IValue::Tag::kString:
    return Type::str();
  case IValue::Tag::kList:
    PRONG_CHECK(!value.items().empty(), kValue, "the type of an empty list constant is not known");
    return Type::list(type_of_constant(value.items()[0]));
  case IValue::Tag::kTuple: {
    std::vector<TypePtr> items;
    for (const IValue& v : value.items()) items.push_back(type_of_constant(v));
    const TupleNames* names = value.tuple()->names.get();
    return names ? Type::named_tuple(names->type_name, names->fields, std::move(items))
                 : Type::tuple(std::move(items));
  }
  case IValue::Tag::kObject:
    return class_type_of(value.object());
  case IValue::Tag::kDict:
  case IValue::Tag::kFuture:
  case IValue::Tag::kComplex:
    break;
  }
  throw_error(ErrorKind::kValue, cat("a ", name_of(value.tag()), " cannot be a constant"));
}

GraphBuilder::GraphBuilder(Graph& graph) : GraphBuilder(graph.top()) {}
GraphBuilder::GraphBuilder(Block* block) : graph_(&block->graph()), at_(block->yield()) {}

GraphBuilder GraphBuilder::before(Node* node) {
  GraphBuilder b;
  b.graph_ = &node->graph();
  b.at_ = node;
  b.range_ = node->range();
  return b;
}

Node* GraphBuilder::create(NodeKind kind, Values inputs) {
  Node* n = graph_->create(kind);
  for (Value* v : inputs) n->add_input(v);
  n->set_range(range_);
  n->insert_before(at_);
  return n;
}

Value* GraphBuilder::constant(IValue value) {
  TypePtr type = type_of_constant(value);
  return constant(std::move(value), std::move(type));
}

Value* GraphBuilder::constant(IValue value, TypePtr type) {
  return create(NodeKind::kConstant, {})
      ->set_constant(std::move(value))
      ->add_output(std::move(type));
}

Value* GraphBuilder::uninitialized(TypePtr type) {
  return create(NodeKind::kUninitialized, {})->add_output(std::move(type));
}

// ── calls ──

namespace {

// `given`, with the defaults of what is left out as constants.
std::vector<Value*> filled(GraphBuilder& b, const Schema& schema, std::span<Value* const> given) {
  std::vector<Value*> inputs(given.begin(), given.end());
  PRONG_ASSERT(inputs.size() <= schema.arguments.size(), schema.name, " takes ",
               schema.arguments.size(), " arguments, got ", inputs.size());
  for (size_t i = inputs.size(); i < schema.arguments.size(); ++i) {
    const Argument& a = schema.arguments[i];
    PRONG_ASSERT(a.has_default, schema.name, " lacks argument '", a.name, "'");
    inputs.push_back(
        b.constant(a.default_value, a.default_value.is_none() || a.default_value.is_list()
                                        ? a.type
                                        : type_of_constant(a.default_value)));
  }
  return inputs;
}

}  // namespace

Value* GraphBuilder::op(const OpDef& op, Values inputs) {
  Node* n = create(NodeKind::kOp, filled(*this, op.schema(), inputs));
  return n->set_op(op)->add_output(result_of(op.schema()));
}

Value* GraphBuilder::op(std::string_view name, std::initializer_list<Value*> inputs) {
  return op(registry().get(name), Values(inputs.begin(), inputs.size()));
}

Value* GraphBuilder::host(const HostOp& op, Values inputs, TypePtr result) {
  const std::vector<Value*> all = filled(*this, op.schema, inputs);
  if (!result) {
    TypeBindings bindings;
    for (size_t i = 0; i < all.size(); ++i)
      PRONG_ASSERT(match_type(op.schema.arguments[i].type, all[i]->type(), bindings), op.name(),
                   ": argument ", i, " is ", all[i]->type(), ", expected ",
                   op.schema.arguments[i].type);
    result = prong::substitute(result_of(op.schema), bindings);
    PRONG_ASSERT(result, op.name(), ": the result's type doesn't follow from the arguments");
  }
  return create(NodeKind::kHost, all)->set_host(op)->add_output(std::move(result));
}

Value* GraphBuilder::host(std::string_view name, std::initializer_list<Value*> inputs,
                          TypePtr result) {
  return host(host_registry().get(name), Values(inputs.begin(), inputs.size()), std::move(result));
}

Value* GraphBuilder::call(Ref<Function> function, Values inputs) {
  const Schema& schema = function->schema();
  Node* n = create(NodeKind::kCall, filled(*this, schema, inputs));
  n->set_function(std::move(function));
  return n->add_output(result_of(schema));
}

Value* GraphBuilder::call_method(Value* receiver, std::string_view method, Values arguments,
                                 TypePtr result) {
  Node* n = create(NodeKind::kCallMethod, {});
  n->add_input(receiver);
  for (Value* v : arguments) n->add_input(v);
  return n->set_name(method)->add_output(std::move(result));
}

Value* GraphBuilder::call_python(Ref<PyCallable> callable, Values inputs, TypePtr result) {
  return create(NodeKind::kCallPython, inputs)
      ->set_object(std::move(callable))
      ->add_output(std::move(result));
}

Value* GraphBuilder::fork(Ref<Function> function, Values inputs) {
  const Schema& schema = function->schema();
  Node* n = create(NodeKind::kFork, filled(*this, schema, inputs));
  n->set_function(std::move(function));
  return n->add_output(Type::future(result_of(schema)));
}

Value* GraphBuilder::fork_method(Value* receiver, std::string_view method, Values arguments,
                                 TypePtr result) {
  Node* n = create(NodeKind::kFork, {});
  n->add_input(receiver);
  for (Value* v : arguments) n->add_input(v);
  return n->set_name(method)->add_output(Type::future(std::move(result)));
}

Node* GraphBuilder::fork_block(Values inputs, TypePtr result) {
  Node* n = create(NodeKind::kFork, inputs);
  Block* body = n->add_block();
  for (Value* v : inputs) body->add_parameter(v->type(), v->name());
  n->add_output(Type::future(std::move(result)));
  return n;
}

Value* GraphBuilder::wait(Value* future) {
  Value* const inputs[] = {future};
  PRONG_ASSERT(future->type()->is(TypeKind::kFuture), "wait of a ", future->type());
  return create(NodeKind::kWait, inputs)->add_output(future->type()->element());
}

// ── objects and containers ──

Value* GraphBuilder::get_attr(Value* object, std::string_view name, TypePtr type) {
  Value* const inputs[] = {object};
  return create(NodeKind::kGetAttr, inputs)->set_name(name)->add_output(std::move(type), name);
}

void GraphBuilder::set_attr(Value* object, std::string_view name, Value* value) {
  Value* const inputs[] = {object, value};
  create(NodeKind::kSetAttr, inputs)->set_name(name);
}

Value* GraphBuilder::new_object(TypePtr class_type) {
  return create(NodeKind::kNewObject, {})->add_output(std::move(class_type));
}

Value* GraphBuilder::tuple(Values items) {
  std::vector<TypePtr> types;
  for (const Value* v : items) types.push_back(v->type());
  return named_tuple(Type::tuple(std::move(types)), items);
}

Value* GraphBuilder::named_tuple(TypePtr type, Values items) {
  return create(NodeKind::kTupleConstruct, items)->add_output(std::move(type));
}

Value* GraphBuilder::list(TypePtr element, Values items) {
  return create(NodeKind::kListConstruct, items)->add_output(Type::list(std::move(element)));
}

Value* GraphBuilder::dict(TypePtr key, TypePtr value, Values keys_and_values) {
  return create(NodeKind::kDictConstruct, keys_and_values)
      ->add_output(Type::dict(std::move(key), std::move(value)));
}

Value* GraphBuilder::tuple_get(Value* tuple, int64_t index) {
  Value* const inputs[] = {tuple};
  const auto& items = tuple->type()->elements();
  PRONG_ASSERT(tuple->type()->is(TypeKind::kTuple) && index >= 0 &&
                   index < static_cast<int64_t>(items.size()),
               "item ", index, " of a ", tuple->type());
  return create(NodeKind::kTupleGet, inputs)
      ->set_index(index)
      ->add_output(items[static_cast<size_t>(index)]);
}

std::vector<Value*> GraphBuilder::tuple_unpack(Value* tuple) {
  Value* const inputs[] = {tuple};
  PRONG_ASSERT(tuple->type()->is(TypeKind::kTuple), "tuple_unpack of a ", tuple->type());
  Node* n = create(NodeKind::kTupleUnpack, inputs);
  for (const TypePtr& t : tuple->type()->elements()) n->add_output(t);
  return {n->outputs().begin(), n->outputs().end()};
}

std::vector<Value*> GraphBuilder::list_unpack(Value* list, size_t n) {
  Value* const inputs[] = {list};
  PRONG_ASSERT(list->type()->is(TypeKind::kList), "list_unpack of a ", list->type());
  Node* node = create(NodeKind::kListUnpack, inputs);
  for (size_t i = 0; i < n; ++i) node->add_output(list->type()->element());
  return {node->outputs().begin(), node->outputs().end()};
}

Value* GraphBuilder::isinstance(Value* value, std::vector<TypePtr> types) {
  Value* const inputs[] = {value};
  return create(NodeKind::kIsInstance, inputs)
      ->set_types(std::move(types))
      ->add_output(Type::bool_());
}

Value* GraphBuilder::unchecked_cast(Value* value, TypePtr type) {
  Value* const inputs[] = {value};
  return create(NodeKind::kUncheckedCast, inputs)->add_output(std::move(type), value->name());
}

// ── control flow ──

Node* GraphBuilder::if_(Value* condition) {
  Value* const inputs[] = {condition};
  Node* n = create(NodeKind::kIf, inputs);
  n->add_block();
  n->add_block();
  return n;
}

Node* GraphBuilder::loop(Value* trip_count, Value* condition, Values carried) {
  Node* n = create(NodeKind::kLoop, {});
  n->add_input(trip_count);
  n->add_input(condition);
  Block* body = n->add_block();
  body->add_parameter(Type::int_(), "i");
  for (Value* v : carried) {
    n->add_input(v);
    body->add_parameter(v->type(), v->name());
    n->add_output(v->type(), v->name());
  }
  return n;
}

Node* GraphBuilder::with(Value* manager, TypePtr entered) {
  Value* const inputs[] = {manager};
  Node* n = create(NodeKind::kWith, inputs);
  n->add_block()->add_parameter(std::move(entered));
  return n;
}

void GraphBuilder::yield(Values values) {
  block()->set_results(values);
  block()->yield()->set_range(range_);
}

void GraphBuilder::raise(std::string_view class_name, Value* message,
                         Ref<ObjectBase> python_class) {
  Value* const inputs[] = {message};
  Node* n = create(NodeKind::kRaise, inputs)->set_name(class_name);
  if (python_class) n->set_object(std::move(python_class));
}

void GraphBuilder::assert_(Value* condition, Value* message) {
  Value* const inputs[] = {condition, message};
  create(NodeKind::kAssert, inputs);
}

// ── ops/builder.h ──

IValue GraphBuilder::box(Value* value) {
  return IValue(Ref<ObjectBase>(make_ref<ValueBox>(value)));
}

Value* GraphBuilder::value_of(const IValue& boxed) {
  if (boxed.is_object())
    if (auto* box = dynamic_cast<ValueBox*>(boxed.object())) return box->value;
  if (boxed.is_list()) {  // of values: a list made here
    std::vector<Value*> items;
    bool has_value = false;
    for (const IValue& v : boxed.items()) has_value |= v.is_object();
    if (has_value) {
      for (const IValue& v : boxed.items()) items.push_back(value_of(v));
      return list(items[0]->type(), items);
    }
  }
  return constant(boxed);
}

IValue GraphBuilder::apply(const OpDef& op, std::span<const IValue> args) {
  std::vector<Value*> inputs;
  for (const IValue& v : args) inputs.push_back(value_of(v));
  return box(this->op(op, inputs));
}

TensorMeta GraphBuilder::meta(const IValue&) {
  throw_error(ErrorKind::kInternal,
              "the shapes of graph values are not known while a graph is built");
}

}  // namespace prong
