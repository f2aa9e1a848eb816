// Attributes: of modules and classes, tensors, named tuples, Python modules.
#include <algorithm>

#include "script/emitter.h"

namespace prong::script {

namespace {

bool has_tensor_method(const std::string& name) {
  for (const OpDef* op : registry().overloads(name))
    if (op->spelling().method || op->spelling().property || op->inplace_of()) return true;
  return false;
}

}  // namespace

Term Emitter::object_attribute(Value* self, const std::string& name, const Range& where) {
  auto& cls = static_cast<ClassType&>(*type(self)->class_info());
  const int slot = cls.find_attribute(name);
  if (slot >= 0) {
    if (where) at(where);
    const TypePtr& t = cls.attributes()[static_cast<size_t>(slot)].type;
    // What is None and stays None is known while compiling.
    if (t->is(TypeKind::kNone)) return Term(b_.none());
    return Term(b_.get_attr(self, name, t));
  }
  for (const auto& [constant_name, v] : cls.constants)
    if (constant_name == name) return Term(constant_of(v, type_of_constant(v), where));
  ClassEntry* entry = find_class(cls);
  if (cls.kind == ClassType::Kind::kInterface && cls.find_method(name))
    return Term::method(self, name);
  if (entry && entry->container == ContainerKind::kDict &&
      (name == "keys" || name == "values" || name == "items"))
    return Term::method(self, name);
  if (entry && entry->source) {
    const ClassSource::Member m = entry->source->member(name);
    if (m.named.kind == Named::Kind::kUnsupported) unsupported(where, m.named.name, {});
    if (m.named.kind != Named::Kind::kMissing) {
      if (m.is_property) return apply(Term::bound(self, m.named), {}, where);
      if (m.is_method) {
        if (m.named.kind == Named::Kind::kFunction || m.named.kind == Named::Kind::kPython)
          return Term::bound(self, m.named);
      }
      return Term::of(m.named);
    }
  }
  if (Function* f = cls.find_method(name)) {
    Named n;
    n.kind = Named::Kind::kCompiled;
    n.name = name;
    n.function = Ref<Function>(f);
    return Term::bound(self, std::move(n));
  }
  fail(
      where, cat("'", cls.qualified_name, "' has no attribute '", name, "'"),
      cls.is_module()
          ? "attributes of modules are set in __init__; those that scripts cannot hold are left out"
          : "");
}

Term Emitter::attribute(const Term& t, const std::string& name, const Range& where) {
  if (t.kind == Term::Kind::kNamed) {
    const Named& n = t.named;
    if (n.kind == Named::Kind::kBuiltin && (name == "apply" || name == "__name__")) {
    }
    if (n.entity) {
      Named found = n.entity->attribute(name);
      if (found.kind == Named::Kind::kUnsupported) unsupported(where, found.name, {});
      if (found.kind != Named::Kind::kMissing) return Term::of(std::move(found));
      fail(where, cat(n.entity->describe(), " has no attribute '", name, "' that scripts can use"));
    }
    if (n.kind == Named::Kind::kConstant || n.kind == Named::Kind::kObject)
      return attribute(Term(value(t, where)), name, where);
    fail(where, cat(describe(t), " has no attribute '", name, "'"));
  }
  if (t.kind == Term::Kind::kSuper) {
    const auto& cls = static_cast<const ClassType&>(*type(t.value)->class_info());
    const ClassEntry* entry = find_class(cls);
    const ClassSource::Member m = entry->source->super_member(name, entry_.qualified_name);
    if (m.named.kind == Named::Kind::kMissing) fail(where, cat("super() has no '", name, "'"));
    if (m.named.kind == Named::Kind::kUnsupported) unsupported(where, m.named.name, {});
    return m.is_method ? Term::bound(t.value, m.named) : Term::of(m.named);
  }
  Value* v = value(t, where);
  const TypePtr ty = type(v);
  switch (ty->kind()) {
  case TypeKind::kClass:
    return object_attribute(v, name, where);
  case TypeKind::kTuple: {
    const auto& fields = ty->fields();
    const auto found = std::find(fields.begin(), fields.end(), name);
    if (found != fields.end()) return Term(b_.tuple_get(v, found - fields.begin()));
    // The named results of an op: torch.max(x, 1).values
    if (v->producer() && v->producer()->is(NodeKind::kOp)) {
      const auto& names = v->producer()->op().schema().result_names;
      const auto result = std::find(names.begin(), names.end(), name);
      if (result != names.end()) return Term(b_.tuple_get(v, result - names.begin()));
    }
    break;
  }
  case TypeKind::kTensor: {
    if (name == "shape") return Term(op("size", {v}, where));
    if (name == "data") return Term(op("detach", {v}, where));
    if (name == "ndim") return Term(op("dim", {v}, where));
    if (name == "device") return Term(b_.constant(IValue("cpu"), Type::device()));
    if (name == "is_cuda" || name == "is_sparse" || name == "is_quantized" || name == "is_mkldnn" ||
        name == "is_meta")
      return Term(boolean(false));
    if (name == "layout") return Term(b_.constant(IValue("strided"), Type::layout()));
    if (name == "dtype" || name == "requires_grad" || name == "is_leaf")
      return Term(host(cat("tensor_", name), {v}, where));
    for (const OpDef* found : registry().overloads(name))
      if (found->spelling().property) return Term(op(name, {v}, where));
    if (has_tensor_method(name)) return Term::method(v, name);
    fail(where, cat("Tensor has no '", name, "' in prong yet"));
  }
  case TypeKind::kOptional:
    fail(
        where,
        cat("a value of type '", name_of(ty), "' may be None, which has no attribute '", name, "'"),
        "test it with 'is not None' first");
  case TypeKind::kDevice:
    if (name == "type") return Term(text("cpu"));
    if (name == "index") return Term(b_.none());
    break;
  case TypeKind::kDType:
    if (name == "is_floating_point") return Term(host("dtype_is_floating_point", {v}, where));
    break;
  case TypeKind::kFuture:
    return Term::method(v, name);
  default:
    if (!host_registry().overloads(name).empty() || name == "format") return Term::method(v, name);
    break;
  }
  fail(where, cat("'", name_of(ty), "' has no attribute '", name, "'"));
}

bool Emitter::has_attribute(const Term& t, const std::string& name, const Range& where) {
  if (t.is_value() && type(t.value)->is(TypeKind::kClass)) {
    const auto& cls = static_cast<const ClassType&>(*type(t.value)->class_info());
    if (cls.find_attribute(name) >= 0 || cls.find_method(name)) return true;
    for (const auto& [constant_name, v] : cls.constants)
      if (constant_name == name) return true;
    const ClassEntry* entry = find_class(cls);
    if (!entry || !entry->source) return false;
    return entry->source->member(name).named.kind != Named::Kind::kMissing;
  }
  if (t.is_value() && type(t.value)->is(TypeKind::kTensor))
    return has_tensor_method(name) || name == "shape" || name == "dtype" || name == "device";
  if (t.is_value() && type(t.value)->is(TypeKind::kTuple)) {
    const auto& fields = type(t.value)->fields();
    return std::find(fields.begin(), fields.end(), name) != fields.end();
  }
  if (t.kind == Term::Kind::kNamed && t.named.entity)
    return t.named.entity->attribute(name).kind != Named::Kind::kMissing;
  fail(where, cat("hasattr of ", describe(t), " cannot be answered while compiling"));
}

void Emitter::set_attribute(const Term& object, const std::string& name, Value* v,
                            const Range& where) {
  Value* self = value(object, where);
  const TypePtr ty = type(self);
  if (ty->is(TypeKind::kTensor)) {
    if (name == "data") {
      op("copy_", {self, v}, where);
      return;
    }
    unsupported(where, cat("scripts cannot set the attribute '", name, "' of a tensor"),
                name == "requires_grad" ? "call requires_grad_()" : "");
  }
  if (!ty->is(TypeKind::kClass))
    fail(where,
         cat("cannot set the attribute '", name, "' of a value of type '", name_of(ty), "'"));
  auto& cls = static_cast<ClassType&>(*ty->class_info());
  int slot = cls.find_attribute(name);
  if (slot < 0) {
    ClassEntry* entry = find_class(cls);
    if (entry && entry->is_open) {
      ClassType::Attribute a;
      a.name = name;
      a.type = unknowns_.settle(v->type());
      slot = cls.add_attribute(std::move(a));
    } else {
      for (const auto& [constant_name, c] : cls.constants)
        if (constant_name == name)
          fail(where,
               cat("'", name, "' is a constant of '", cls.qualified_name,
                   "' and cannot be assigned"),
               "take it out of __constants__ (or its Final annotation)");
      fail(where, cat("'", cls.qualified_name, "' has no attribute '", name, "' to assign"),
           "give it a value in __init__");
    }
  }
  const TypePtr& wanted = cls.attributes()[static_cast<size_t>(slot)].type;
  v = expect(v, wanted, where, cat("attribute '", name, "'"));
  at(where);
  b_.set_attr(self, name, v);
}

}  // namespace prong::script
