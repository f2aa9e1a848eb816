// TraceRecorder: which value of the graph each tensor is, as ops run.
#include "script/trace.h"

#include "exec/run.h"
#include "graph/verify.h"

namespace prong::script {

struct TraceRecorder::Scope {
  explicit Scope(Block* block, Node* f = nullptr) : builder(block), fork(f) {}
  GraphBuilder builder;
  Node* fork;
  std::unordered_map<const void*, Value*> values;   // of tensors, by address
  std::unordered_map<const Value*, Value*> handed;  // values from further out: parameters
};

namespace {

const void* key_of(const IValue& tensor) { return tensor.tensor_impl(); }

TypePtr tuple_type(const IValue& v, std::vector<TypePtr> items) {
  const TupleNames* names = v.tuple()->names.get();
  return names ? Type::named_tuple(names->type_name, names->fields, std::move(items))
               : Type::tuple(std::move(items));
}

TypePtr type_of_example(const IValue& v, std::string_view what) {
  if (v.is_tensor()) return Type::tensor();
  if (v.is_tuple()) {
    std::vector<TypePtr> items;
    for (const IValue& item : v.items()) items.push_back(type_of_example(item, what));
    return tuple_type(v, std::move(items));
  }
  if (v.is_list() && !v.items().empty()) {
    TypePtr first = type_of_example(v.items()[0], what);
    for (const IValue& item : v.items())
      PRONG_CHECK(same(type_of_example(item, what), first), kRuntime,
                  "trace: the items of a list in ", what, " differ in type");
    return Type::list(std::move(first));
  }
  if (v.is_dict() && v.dict()->size()) {
    const auto& [key, value] = v.dict()->entry(0);
    return Type::dict(type_of_constant(key), type_of_example(value, what));
  }
  throw_error(
      ErrorKind::kRuntime,
      cat("trace: ", what, " is or holds ", repr(v),
          ": only tensors, and (nested) tuples, lists and dicts of tensors, can be traced"));
}

bool holds_tensor(const IValue& v) {
  if (v.is_tensor()) return true;
  if (v.is_list() || v.is_tuple())
    for (const IValue& item : v.items())
      if (holds_tensor(item)) return true;
  if (v.is_dict())
    for (size_t k = 0; k < v.dict()->size(); ++k)
      if (holds_tensor(v.dict()->entry(k).second)) return true;
  return false;
}

// The same data as a tensor of its own, in the same containers.
IValue alias(const IValue& v) {
  if (v.is_tensor()) {
    const Tensor t = v.to_tensor();
    return IValue(
        Tensor::view_of(t.storage(), t.impl()->offset, t.sizes(), t.strides(), t.dtype()));
  }
  if (v.is_dict()) {
    auto dict = make_ref<DictBox>();
    for (size_t k = 0; k < v.dict()->size(); ++k)
      dict->set(v.dict()->entry(k).first, alias(v.dict()->entry(k).second));
    return IValue(std::move(dict));
  }
  std::vector<IValue> items;
  for (const IValue& item : v.items()) items.push_back(alias(item));
  if (v.is_list()) return IValue::list(std::move(items));
  return IValue(make_ref<TupleBox>(std::move(items), v.tuple()->names));
}

IValue number_of(const Tensor& t) {
  switch (t.dtype()) {
  case DType::kBool:
    return IValue(*t.data<bool>());
  case DType::kInt64:
    return IValue(*t.data<int64_t>());
  default:
    return IValue(*t.data<double>());
  }
}

}  // namespace

TraceRecorder::TraceRecorder(std::string name, Ref<Object> self)
    : name_(std::move(name)), self_(std::move(self)), graph_(std::make_unique<Graph>()) {
  scopes_.push_back(std::make_unique<Scope>(graph_->top()));
  schema_.name = name_;
  if (!self_) return;
  Argument argument;
  argument.name = "self";
  argument.type = Type::class_(self_->cls);
  objects_[self_.get()] = graph_->add_input(argument.type, "self");
  schema_.arguments.push_back(std::move(argument));
  find_state(*self_);
}

TraceRecorder::~TraceRecorder() = default;

TraceRecorder* TraceRecorder::current() {
  auto* interceptor = reinterpret_cast<eager::Interceptor*>(context()[ContextWord::kInterceptor]);
  return interceptor ? dynamic_cast<TraceRecorder*>(interceptor) : nullptr;
}

GraphBuilder& TraceRecorder::build() { return scopes_.back()->builder; }

// Ops of several threads would come in any order.
void TraceRecorder::check_thread() const {
  PRONG_CHECK(std::this_thread::get_id() == thread_, kRuntime,
              "trace: an op ran on another thread than the traced call");
}

// ── inputs and state ──

IValue TraceRecorder::input(const std::string& name, const IValue& example) {
  Argument argument;
  argument.name = name;
  argument.type = type_of_example(example, cat("the input '", name, "'"));
  IValue mine = alias(example);
  bind(mine, graph_->add_input(argument.type, name));
  schema_.arguments.push_back(std::move(argument));
  return mine;
}

void TraceRecorder::find_state(Object& object) {
  for (size_t k = 0; k < object.slots.size(); ++k) {
    const IValue& v = object.slots[k];
    if (v.is_tensor()) {
      places_.try_emplace(key_of(v), Place{&object, k});
      alive_.push_back(v);
    } else if (v.is_object()) {
      auto* child = dynamic_cast<Object*>(v.object());
      if (child && child != self_.get() && places_.try_emplace(child, Place{&object, k}).second)
        find_state(*child);
    }
  }
}

// Read at the start of the top block, so that every scope can have it.
Value* TraceRecorder::state(const Place& place) {
  Value* holder = object_value(place.holder);
  const ClassType::Attribute& attribute = place.holder->cls->attributes()[place.slot];
  GraphBuilder b = scopes_[0]->builder;
  b.move_before(holder->producer() ? holder->producer()->next() : graph_->top()->front());
  return b.get_attr(holder, attribute.name, attribute.type);
}

Value* TraceRecorder::object_value(Object* object) {
  if (const auto known = objects_.find(object); known != objects_.end()) return known->second;
  return objects_[object] = state(places_.at(object));
}

// ── values ──

Value* TraceRecorder::inward(size_t scope, Value* value) {
  for (++scope; scope < scopes_.size(); ++scope) {
    Scope& s = *scopes_[scope];
    Value*& handed = s.handed[value];
    if (!handed) {
      s.fork->add_input(value);
      handed = s.fork->body()->add_parameter(value->type(), value->name());
    }
    value = handed;
  }
  return value;
}

Value* TraceRecorder::find(const void* key) {
  for (size_t k = scopes_.size(); k-- > 0;)
    if (const auto found = scopes_[k]->values.find(key); found != scopes_[k]->values.end())
      return inward(k, found->second);
  return nullptr;
}

Value* TraceRecorder::tensor_value(const Tensor& t) {
  if (t.is_wrapped_number()) return build().constant(number_of(t));
  const void* key = t.impl();
  if (Value* v = find(key)) return v;
  if (const auto place = places_.find(key); place != places_.end())
    return inward(0, scopes_[0]->values[key] = state(place->second));
  PRONG_CHECK(!inside_.contains(key), kRuntime,
              "trace: a tensor that was made in a forked call is used without waiting for it");
  PRONG_CHECK(!t.requires_grad(), kRuntime,
              "trace: cannot insert a Tensor that requires grad as a constant: make it a parameter "
              "of the module or an input, or detach() it");
  alive_.emplace_back(t);
  return scopes_.back()->values[key] = build().constant(IValue(t));
}

Value* TraceRecorder::list_value(const IValue& v, const TypePtr& wanted) {
  const bool fits = wanted && wanted->is(TypeKind::kList);
  if (!holds_tensor(v) && (fits || !v.items().empty())) {
    IValue list = v.is_list() ? v : IValue::list(v.items());
    return fits ? build().constant(std::move(list), wanted) : build().constant(std::move(list));
  }
  const TypePtr element = fits ? wanted->element() : TypePtr();
  std::vector<Value*> items;
  for (const IValue& item : v.items()) items.push_back(value_of(item, element));
  PRONG_CHECK(element || !items.empty(), kRuntime, "trace: an empty list cannot be traced");
  return build().list(element ? element : items[0]->type(), items);
}

Value* TraceRecorder::value_of(const IValue& v, const TypePtr& wanted) {
  const TypePtr type = wanted && wanted->is(TypeKind::kOptional) ? wanted->element() : wanted;
  if (v.is_tensor()) return tensor_value(v.to_tensor());
  if (v.is_none()) return wanted ? build().constant(v, wanted) : build().none();
  if (v.is_list() || (v.is_tuple() && type && type->is(TypeKind::kList)))
    return list_value(v, type);
  if (v.is_tuple()) {
    std::vector<Value*> items;
    std::vector<TypePtr> types;
    for (const IValue& item : v.items()) items.push_back(value_of(item));
    for (const Value* item : items) types.push_back(item->type());
    return build().named_tuple(tuple_type(v, std::move(types)), items);
  }
  if (v.is_dict()) {
    std::vector<Value*> items;
    for (size_t k = 0; k < v.dict()->size(); ++k) {
      items.push_back(build().constant(v.dict()->entry(k).first));
      items.push_back(value_of(v.dict()->entry(k).second));
    }
    PRONG_CHECK(!items.empty(), kRuntime, "trace: an empty dict cannot be traced");
    return build().dict(items[0]->type(), items[1]->type(), items);
  }
  if (v.is_future()) {
    const auto known = futures_.find(v.future());
    PRONG_CHECK(known != futures_.end(), kRuntime,
                "trace: a future that was not forked in the traced call");
    return inward(known->second.scope, known->second.future);
  }
  if (v.is_object())
    if (auto* o = dynamic_cast<Object*>(v.object());
        o && (objects_.contains(o) || places_.contains(o)))
      return inward(0, object_value(o));
  return build().constant(v);
}

void TraceRecorder::bind(const IValue& v, Value* value) {
  if (v.is_tensor()) {
    alive_.push_back(v);
    scopes_.back()->values[key_of(v)] = value;
    return;
  }
  if (!holds_tensor(v)) return;
  if (v.is_dict()) {
    for (size_t k = 0; k < v.dict()->size(); ++k) {
      const auto& [key, item] = v.dict()->entry(k);
      bind(item, build().host("getitem.dict", {value, build().constant(key)}));
    }
    return;
  }
  const std::vector<Value*> items =
      v.is_tuple() ? build().tuple_unpack(value) : build().list_unpack(value, v.items().size());
  for (size_t k = 0; k < items.size(); ++k) bind(v.items()[k], items[k]);
}

// A constant stays as it is: what is written to is a copy, made anew in each call.
void TraceRecorder::copy_before_write(const IValue& target) {
  if (!target.is_tensor()) return;
  Value* v = tensor_value(target.to_tensor());
  if (!v->producer() || !v->producer()->is(NodeKind::kConstant)) return;
  const OpDef& clone = registry().get("clone");
  std::vector<IValue> args(clone.schema().arguments.size());
  for (size_t k = 1; k < args.size(); ++k) args[k] = clone.schema().arguments[k].default_value;
  args[0] = target;
  v->producer()->set_constant(eager::run_plain(clone, args));
  Value* const inputs[] = {v};
  scopes_.back()->values[key_of(target)] = build().op(clone, inputs);
}

// ── while it watches ──

IValue TraceRecorder::run(const OpDef& op, std::span<const IValue> args) {
  check_thread();
  const eager::InterceptorScope off(nullptr);
  const int mutated = op.mutated_argument();
  if (mutated >= 0) copy_before_write(args[static_cast<size_t>(mutated)]);
  std::vector<Value*> inputs;
  for (size_t k = 0; k < args.size(); ++k)
    inputs.push_back(value_of(args[k], op.schema().arguments[k].type));
  IValue result = eager::run_plain(op, args);
  if (mutated < 0 && !holds_tensor(result)) {
    note_read(op.base_name());
    return result;
  }
  bind(result, build().op(op, inputs));
  return result;
}

IValue TraceRecorder::call(Function& function, std::vector<IValue> args) {
  check_thread();
  const eager::InterceptorScope off(nullptr);
  std::vector<Value*> inputs;
  for (size_t k = 0; k < args.size(); ++k)
    inputs.push_back(value_of(args[k], function.schema().arguments[k].type));
  Value* v = build().call(Ref<Function>(&function), inputs);
  IValue result = exec::run(function, std::move(args));
  bind(result, v);
  return result;
}

void TraceRecorder::begin_fork() {
  check_thread();
  Node* fork = build().fork_block({}, Type::none());
  scopes_.push_back(std::make_unique<Scope>(fork->body(), fork));
}

void TraceRecorder::end_fork(const IValue& result, const Ref<Future>& future) {
  Value* v = value_of(result);
  build().yield({v});
  Node* fork = scopes_.back()->fork;
  for (const auto& [key, value] : scopes_.back()->values) inside_.insert(key);
  scopes_.pop_back();
  // Tensors from outside that it only passed on, or wrote to, stay what they are outside.
  for (const auto& scope : scopes_)
    for (const auto& [key, value] : scope->values) inside_.erase(key);
  fork->output()->set_type(Type::future(v->type()));
  futures_[future.get()] = {scopes_.size() - 1, fork->output()};
  alive_.emplace_back(future);
}

void TraceRecorder::abandon_fork() {
  Node* fork = scopes_.back()->fork;
  scopes_.pop_back();
  fork->erase();
}

void TraceRecorder::wait(const Ref<Future>& future, const IValue& result) {
  const auto known = futures_.find(future.get());
  if (known == futures_.end()) return;
  check_thread();
  bind(result, build().wait(inward(known->second.scope, known->second.future)));
}

Ref<Function> TraceRecorder::finish(const IValue& result) {
  type_of_example(result, "the result");
  build().yield({value_of(result)});
  schema_.results = {graph_->outputs()[0]->type()};
  schema_.result_names = {""};
  verify(*graph_);
  auto function = make_ref<Function>(name_, std::move(schema_));
  function->define(std::move(graph_));
  return function;
}

}  // namespace prong::script
