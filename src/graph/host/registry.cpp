// The table of host ops, and matching of their generic signatures.
#include <map>

#include "graph/host/tables.h"
#include "graph/host_op.h"

namespace prong {

struct HostRegistry::Index {
  std::map<std::string, const HostOp*, std::less<>> by_name;
  std::map<std::string, std::vector<const HostOp*>, std::less<>> by_base;
};

void HostRegistry::add(Effect effect, std::string_view schema, HostFn fn) {
  if (!index_) index_ = std::make_shared<Index>();
  ops_.push_back(std::make_unique<HostOp>());
  HostOp& op = *ops_.back();
  op.schema = Schema::parse(schema);
  op.base_name = op.schema.name.substr(0, op.schema.name.find('.'));
  op.fn = fn;
  op.effect = effect;
  PRONG_ASSERT(index_->by_name.emplace(op.schema.name, &op).second, "host op '", op.schema.name,
               "' is there twice");
  index_->by_base[op.base_name].push_back(&op);
}

const HostOp* HostRegistry::find(std::string_view name) const {
  const auto it = index_->by_name.find(name);
  return it == index_->by_name.end() ? nullptr : it->second;
}

const HostOp& HostRegistry::get(std::string_view name) const {
  const HostOp* op = find(name);
  PRONG_CHECK(op, kAttribute, "there is no operation of the language '", name, "'");
  return *op;
}

std::span<const HostOp* const> HostRegistry::overloads(std::string_view base_name) const {
  const auto it = index_->by_base.find(base_name);
  if (it == index_->by_base.end()) return {};
  return it->second;
}

const HostRegistry& host_registry() {
  static const HostRegistry* table = [] {
    auto* r = new HostRegistry();
    register_numbers(*r);
    register_math(*r);
    register_conversions(*r);
    register_strings(*r);
    register_lists(*r);
    register_dicts(*r);
    register_tensors(*r);
    register_objects(*r);
    return r;
  }();
  return *table;
}

// ── generic signatures ──

namespace {

TypePtr* bound(TypeBindings& bindings, const std::string& name) {
  for (auto& [known, type] : bindings)
    if (known == name) return &type;
  return nullptr;
}

bool match_variable(const std::string& name, const TypePtr& actual, TypeBindings& bindings,
                    bool invariant) {
  TypePtr* type = bound(bindings, name);
  if (!type) {
    bindings.emplace_back(name, actual);
    return true;
  }
  if (invariant) return same(*type, actual);
  if (is_subtype(actual, *type)) return true;
  // A later argument may be wider: Optional[int] after int. The container that bound it first
  // decides otherwise.
  return false;
}

bool match(const TypePtr& formal, const TypePtr& actual, TypeBindings& bindings, bool conversion,
           bool invariant) {
  switch (formal->kind()) {
  case TypeKind::kVar:
    return match_variable(formal->name(), actual, bindings, invariant);
  case TypeKind::kOptional:
    if (actual->is(TypeKind::kNone)) return true;
    if (actual->is(TypeKind::kOptional))
      return match(formal->element(), actual->element(), bindings, conversion, invariant);
    return match(formal->element(), actual, bindings, conversion, invariant);
  case TypeKind::kList:
  case TypeKind::kDict:
  case TypeKind::kFuture:
  case TypeKind::kTuple: {
    if (actual->kind() != formal->kind() || actual->elements().size() != formal->elements().size())
      return false;
    const bool strict = formal->is(TypeKind::kList) || formal->is(TypeKind::kDict);
    for (size_t i = 0; i < formal->elements().size(); ++i)
      if (!match(formal->elements()[i], actual->elements()[i], bindings, false, strict))
        return false;
    return true;
  }
  default:
    if (invariant ? same(actual, formal) : is_subtype(actual, formal)) return true;
    if (!conversion) return false;
    return formal->is(TypeKind::kFloat) &&
           (actual->is(TypeKind::kInt) || actual->is(TypeKind::kBool));
  }
}

}  // namespace

bool match_type(const TypePtr& formal, const TypePtr& actual, TypeBindings& bindings,
                bool allow_conversion) {
  return match(formal, actual, bindings, allow_conversion, false);
}

TypePtr substitute(const TypePtr& type, const TypeBindings& bindings) {
  if (type->is(TypeKind::kVar)) {
    for (const auto& [name, t] : bindings)
      if (name == type->name()) return t;
    return {};
  }
  std::vector<TypePtr> items;
  for (const TypePtr& t : type->elements()) {
    items.push_back(substitute(t, bindings));
    if (!items.back()) return {};
  }
  switch (type->kind()) {
  case TypeKind::kOptional:
    return Type::optional(items[0]);
  case TypeKind::kList:
    return Type::list(items[0]);
  case TypeKind::kFuture:
    return Type::future(items[0]);
  case TypeKind::kDict:
    return Type::dict(items[0], items[1]);
  case TypeKind::kTuple:
    return type->name().empty() ? Type::tuple(std::move(items)) : type;
  default:
    return type;
  }
}

}  // namespace prong
