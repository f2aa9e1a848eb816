// Values of the emitter: constants, terms made into values, conversions, types of annotations.
#include "script/emitter.h"

namespace prong::script {

Term Term::tuple(std::vector<Term> items) {
  Term t;
  t.kind = Kind::kTuple;
  t.items = std::move(items);
  return t;
}
Term Term::of(Named named) {
  Term t;
  t.kind = Kind::kNamed;
  t.named = std::move(named);
  return t;
}
Term Term::method(Value* self, std::string name) {
  Term t;
  t.kind = Kind::kMethod;
  t.value = self;
  t.name = std::move(name);
  return t;
}
Term Term::bound(Value* self, Named named) {
  Term t;
  t.kind = Kind::kBound;
  t.value = self;
  t.named = std::move(named);
  return t;
}

Value* Emitter::constant(IValue v) { return b_.constant(std::move(v)); }

Value* Emitter::constant_of(const IValue& v, const TypePtr& type, const Range& at) {
  const TypePtr inner = without_none(type);
  if (v.is_none()) return b_.constant(v, type);
  if (v.is_list() && inner->is(TypeKind::kList)) {
    std::vector<Value*> items;
    for (const IValue& item : v.items()) items.push_back(constant_of(item, inner->element(), at));
    return b_.list(inner->element(), items);
  }
  if (v.is_dict() && inner->is(TypeKind::kDict)) {
    std::vector<Value*> items;
    for (size_t i = 0; i < v.dict()->size(); ++i) {
      items.push_back(constant_of(v.dict()->entry(i).first, inner->elements()[0], at));
      items.push_back(constant_of(v.dict()->entry(i).second, inner->elements()[1], at));
    }
    return b_.dict(inner->elements()[0], inner->elements()[1], items);
  }
  if (v.is_tuple() && inner->is(TypeKind::kTuple) && v.items().size() == inner->elements().size()) {
    std::vector<Value*> items;
    for (size_t i = 0; i < v.items().size(); ++i)
      items.push_back(constant_of(v.items()[i], inner->elements()[i], at));
    return inner->fields().empty() ? b_.tuple(items) : b_.named_tuple(inner, items);
  }
  if (inner->is(TypeKind::kFloat) && v.is_number()) return b_.constant(IValue(v.to_double()));
  return v.is_object() || v.is_tensor() ? b_.constant(v, inner) : b_.constant(v);
}

std::string Emitter::describe(const Term& t) const {
  switch (t.kind) {
  case Term::Kind::kNothing:
    return "nothing";
  case Term::Kind::kValue:
    return cat("a value of type '", name_of(t.value->type()), "'");
  case Term::Kind::kTuple:
    return "a tuple";
  case Term::Kind::kMethod:
    return cat("the method '", t.name, "'");
  case Term::Kind::kBound:
    return cat("the method '", t.named.name, "'");
  case Term::Kind::kIterable:
    return "an iterator";
  case Term::Kind::kGenerator:
    return "a generator";
  case Term::Kind::kSuper:
    return "super()";
  case Term::Kind::kNamed:
    break;
  }
  switch (t.named.kind) {
  case Named::Kind::kNamespace:
    return cat("the Python module ", t.named.entity->describe());
  case Named::Kind::kClass:
  case Named::Kind::kNamedTuple:
  case Named::Kind::kException:
    return cat("the class '", t.named.name, "'");
  default:
    return cat("the function '", t.named.name, "'");
  }
}

Value* Emitter::value(const Term& t, const Range& where, const TypePtr& hint) {
  switch (t.kind) {
  case Term::Kind::kValue:
    return t.value;
  case Term::Kind::kTuple: {
    std::vector<Value*> items;
    const TypePtr expected = hint ? without_none(unknowns_.resolve(hint)) : TypePtr();
    const bool fits =
        expected && expected->is(TypeKind::kTuple) && expected->elements().size() == t.items.size();
    for (size_t i = 0; i < t.items.size(); ++i) {
      Value* v = value(t.items[i], where, fits ? expected->elements()[i] : TypePtr());
      Value* converted = fits ? convert(v, expected->elements()[i]) : nullptr;
      items.push_back(converted ? converted : v);
    }
    return b_.tuple(items);
  }
  case Term::Kind::kNamed:
    if (t.named.kind == Named::Kind::kConstant)
      return constant_of(t.named.value, t.named.type, where);
    if (t.named.kind == Named::Kind::kObject || t.named.kind == Named::Kind::kManager)
      return b_.constant(t.named.value, t.named.type);
    if (t.named.kind == Named::Kind::kUnsupported) unsupported(where, t.named.name, {});
    break;
  case Term::Kind::kGenerator:
  case Term::Kind::kIterable:
    return to_list(t, where, hint);
  default:
    break;
  }
  unsupported(where, cat(describe(t), " cannot be used as a value in a script"),
              "call it, or give it to torch.jit.fork");
}

Value* Emitter::cast(Value* v, const TypePtr& to) {
  return same(type(v), unknowns_.resolve(to)) ? v : b_.unchecked_cast(v, to);
}

Value* Emitter::convert(Value* v, const TypePtr& to0, bool loose) {
  const TypePtr from = type(v), to = unknowns_.resolve(to0);
  if (same(from, to)) return v;
  // An unknown element type takes its meaning from what is asked here.
  if (unknowns_.fits(from, to)) {
    // The number a constant None stands for is of no matter; its type is.
    if (from->is(TypeKind::kNone) && v->constant()) return b_.constant(IValue(), to);
    return v;
  }
  const TypePtr inner = without_none(to);
  if (inner->is(TypeKind::kFloat) && (from->is(TypeKind::kInt) || from->is(TypeKind::kBool))) {
    if (const IValue* c = v->constant()) return constant(IValue(c->to_double()));
    return b_.host(host_registry().get(from->is(TypeKind::kInt) ? "float.int" : "float.bool"),
                   std::vector<Value*>{v});
  }
  if (inner->is(TypeKind::kInt) && from->is(TypeKind::kBool)) {
    if (const IValue* c = v->constant()) return constant(IValue(c->to_int()));
    return b_.host(host_registry().get("int.bool"), std::vector<Value*>{v});
  }
  if (inner->is(TypeKind::kList) && from->is(TypeKind::kTuple)) {
    std::vector<Value*> items;
    for (Value* item : b_.tuple_unpack(v)) {
      items.push_back(convert(item, inner->element(), loose));
      if (!items.back()) return nullptr;
    }
    return b_.list(inner->element(), items);
  }
  if (inner->is(TypeKind::kTuple) && from->is(TypeKind::kTuple) &&
      inner->elements().size() == from->elements().size() && inner->fields().empty()) {
    std::vector<Value*> items;
    for (Value* item : b_.tuple_unpack(v)) {
      items.push_back(convert(item, inner->elements()[items.size()], loose));
      if (!items.back()) return nullptr;
    }
    return b_.tuple(items);
  }
  if (!loose) return nullptr;
  if (inner->is(TypeKind::kTensor) && is_number(from)) return v;
  if (inner->is(TypeKind::kDevice) && from->is(TypeKind::kStr)) return cast(v, Type::device());
  if (from->is(TypeKind::kTensor)) {
    if (inner->is(TypeKind::kInt))
      return b_.host(host_registry().get("int.Tensor"), std::vector<Value*>{v});
    if (inner->is(TypeKind::kFloat))
      return b_.host(host_registry().get("float.Tensor"), std::vector<Value*>{v});
    if (inner->is(TypeKind::kNumber)) return op("item", {v}, {});
  }
  // A list of another element type, element by element, only where it was written out here.
  if (inner->is(TypeKind::kList) && from->is(TypeKind::kList) && v->producer() &&
      v->producer()->is(NodeKind::kListConstruct)) {
    std::vector<Value*> items;
    for (Value* item : v->producer()->inputs()) {
      items.push_back(convert(item, inner->element(), loose));
      if (!items.back()) return nullptr;
    }
    return b_.list(inner->element(), items);
  }
  return nullptr;
}

Value* Emitter::expect(Value* v, const TypePtr& to, const Range& where, std::string_view what) {
  if (Value* converted = convert(v, to)) return converted;
  const TypePtr from = type(v);
  std::string hint;
  if (from->is(TypeKind::kOptional) && unknowns_.fits(from->element(), to))
    hint = "test it with 'if x is not None' first, or assert that it is not None";
  else if (from->is(TypeKind::kTensor) && is_number(unknowns_.resolve(to)))
    hint = "take the number out of the tensor with .item(), int(...) or float(...)";
  else if (to->is(TypeKind::kTensor) && is_number(from))
    hint =
        "parameters without an annotation are Tensors: annotate it, or make a tensor with "
        "torch.tensor(...)";
  fail(where,
       cat(what, ": expected a value of type '", name_of(to), "' but got '", name_of(from), "'"),
       hint);
}

TypePtr Emitter::type_expr(const Expr& e) {
  try {
    if (e.kind == ExprKind::kString) return resolver().type(e.text);
    return resolver().type(std::string(e.range.text()));
  } catch (const Error& error) {
    fail(e.range, error.message());
  }
}

Value* Emitter::host(std::string_view name, std::vector<Value*> args, const Range& where) {
  Value* result = nullptr;
  at(where);
  if (!try_host(std::string(name), args, where, &result)) {
    std::string types;
    for (Value* a : args) types += cat(types.empty() ? "" : ", ", name_of(a->type()));
    fail(where, cat("'", name, "' is not defined for (", types, ")"));
  }
  return result;
}

Value* Emitter::op(std::string_view name, std::vector<Value*> args, const Range& where) {
  GivenList given;
  for (Value* a : args) given.push_back({{}, Term(a), where});
  return call_op(std::string(name), nullptr, given, where);
}

std::optional<int64_t> Emitter::known_int(const Term& t) const {
  const IValue* c = t.is_value() ? t.value->constant() : nullptr;
  if (t.kind == Term::Kind::kNamed && t.named.kind == Named::Kind::kConstant) c = &t.named.value;
  if (!c || !c->is_int()) return std::nullopt;
  return c->to_int();
}

std::optional<std::string> Emitter::known_text(const Term& t) const {
  const IValue* c = t.is_value() ? t.value->constant() : nullptr;
  if (t.kind == Term::Kind::kNamed && t.named.kind == Named::Kind::kConstant) c = &t.named.value;
  if (!c || !c->is_string()) return std::nullopt;
  return c->to_string();
}

}  // namespace prong::script
