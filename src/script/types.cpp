// Inference of unknown types, joins of paths, matching of generic signatures.
#include "script/types.h"

#include <charconv>

#include "base/str.h"

namespace prong::script {

TypePtr rebuild(const TypePtr& type, std::vector<TypePtr> elements) {
  switch (type->kind()) {
  case TypeKind::kOptional:
    return Type::optional(std::move(elements[0]));
  case TypeKind::kList:
    return Type::list(std::move(elements[0]));
  case TypeKind::kFuture:
    return Type::future(std::move(elements[0]));
  case TypeKind::kDict:
    return Type::dict(std::move(elements[0]), std::move(elements[1]));
  case TypeKind::kTuple:
    return type->fields().empty()
               ? Type::tuple(std::move(elements))
               : Type::named_tuple(type->name(), type->fields(), std::move(elements));
  default:
    return type;
  }
}

namespace {
template <class F>
TypePtr map_elements(const TypePtr& type, F&& f) {
  if (type->elements().empty()) return type;
  std::vector<TypePtr> elements;
  bool changed = false;
  for (const TypePtr& e : type->elements()) {
    elements.push_back(f(e));
    changed |= elements.back().get() != e.get();
  }
  return changed ? rebuild(type, std::move(elements)) : type;
}
}  // namespace

bool Unknowns::is_unknown(const TypePtr& type) {
  return type->is(TypeKind::kVar) && type->name().starts_with('?');
}

TypePtr Unknowns::fresh() {
  known_.emplace_back();
  return Type::var(cat("?", known_.size() - 1));
}

TypePtr& Unknowns::slot(const TypePtr& variable) {
  size_t n = 0;
  const std::string& name = variable->name();
  std::from_chars(name.data() + 1, name.data() + name.size(), n);
  return known_[n];
}
const TypePtr& Unknowns::slot(const TypePtr& variable) const {
  return const_cast<Unknowns*>(this)->slot(variable);
}

TypePtr Unknowns::resolve(const TypePtr& type) const {
  if (is_unknown(type)) {
    const TypePtr& known = slot(type);
    return known ? resolve(known) : type;
  }
  return map_elements(type, [&](const TypePtr& e) { return resolve(e); });
}

bool Unknowns::has_unknown(const TypePtr& type) const {
  const TypePtr t = resolve(type);
  if (is_unknown(t)) return true;
  for (const TypePtr& e : t->elements())
    if (has_unknown(e)) return true;
  return false;
}

namespace {
bool occurs(const Unknowns& unknowns, const TypePtr& variable, const TypePtr& in) {
  const TypePtr t = unknowns.resolve(in);
  if (same(t, variable)) return true;
  for (const TypePtr& e : t->elements())
    if (occurs(unknowns, variable, e)) return true;
  return false;
}
}  // namespace

bool Unknowns::equate(const TypePtr& a0, const TypePtr& b0) {
  const TypePtr a = resolve(a0), b = resolve(b0);
  if (same(a, b)) return true;
  if (is_unknown(a) || is_unknown(b)) {
    const TypePtr& variable = is_unknown(a) ? a : b;
    const TypePtr& meaning = is_unknown(a) ? b : a;
    if (occurs(*this, variable, meaning)) return false;
    slot(variable) = meaning;
    return true;
  }
  if (a->kind() != b->kind() || a->elements().size() != b->elements().size() ||
      a->elements().empty() || a->name() != b->name())
    return false;
  for (size_t i = 0; i < a->elements().size(); ++i)
    if (!equate(a->elements()[i], b->elements()[i])) return false;
  return true;
}

bool Unknowns::fits(const TypePtr& from0, const TypePtr& to0) {
  const TypePtr from = resolve(from0), to = resolve(to0);
  if (!has_unknown(from) && !has_unknown(to)) return is_subtype(from, to);
  if (is_unknown(from) || is_unknown(to)) return equate(from, to);
  switch (to->kind()) {
  case TypeKind::kAny:
    return true;
  case TypeKind::kOptional:
    if (from->is(TypeKind::kNone)) return true;
    return fits(from->is(TypeKind::kOptional) ? from->element() : from, to->element());
  case TypeKind::kTuple:
  case TypeKind::kFuture:
    if (from->kind() != to->kind() || from->elements().size() != to->elements().size())
      return false;
    for (size_t i = 0; i < from->elements().size(); ++i)
      if (!fits(from->elements()[i], to->elements()[i])) return false;
    return true;
  default:
    return equate(from, to);
  }
}

TypePtr Unknowns::settle(const TypePtr& type) {
  const TypePtr t = resolve(type);
  if (is_unknown(t)) return slot(t) = Type::tensor();
  if (t->is(TypeKind::kDict) && is_unknown(t->elements()[0])) slot(t->elements()[0]) = Type::str();
  return map_elements(resolve(t), [&](const TypePtr& e) { return settle(e); });
}

TypePtr without_none(const TypePtr& type) {
  return type->is(TypeKind::kOptional) ? type->element() : type;
}

TypePtr join(Unknowns& unknowns, const TypePtr& a0, const TypePtr& b0) {
  const TypePtr a = unknowns.resolve(a0), b = unknowns.resolve(b0);
  if (same(a, b)) return a;
  if (unknowns.has_unknown(a) || unknowns.has_unknown(b)) {
    if (unknowns.fits(a, b)) return unknowns.resolve(b);
    if (unknowns.fits(b, a)) return unknowns.resolve(a);
  }
  return unify(a, b);
}

bool match(Unknowns& unknowns, const TypePtr& formal, const TypePtr& actual0,
           SchemaBindings& bindings) {
  const TypePtr actual = unknowns.resolve(actual0);
  switch (formal->kind()) {
  case TypeKind::kVar: {
    for (auto& [name, type] : bindings) {
      if (name != formal->name()) continue;
      if (unknowns.fits(actual, type)) return true;
      return false;
    }
    bindings.emplace_back(formal->name(), actual);
    return true;
  }
  case TypeKind::kOptional:
    if (actual->is(TypeKind::kNone)) return true;
    return match(unknowns, formal->element(), without_none(actual), bindings);
  case TypeKind::kList:
  case TypeKind::kDict:
  case TypeKind::kFuture:
  case TypeKind::kTuple: {
    if (Unknowns::is_unknown(actual)) {
      const TypePtr meaning = substitute_all(unknowns, formal, bindings);
      return unknowns.equate(actual, meaning);
    }
    if (actual->kind() != formal->kind() || actual->elements().size() != formal->elements().size())
      return false;
    const bool invariant = formal->is(TypeKind::kList) || formal->is(TypeKind::kDict);
    for (size_t i = 0; i < formal->elements().size(); ++i) {
      const TypePtr& f = formal->elements()[i];
      const TypePtr& a = actual->elements()[i];
      if (invariant && !f->is(TypeKind::kVar) && f->elements().empty()) {
        if (!unknowns.equate(a, f)) return false;
      } else if (!match(unknowns, f, a, bindings)) {
        return false;
      }
    }
    return true;
  }
  default:
    return unknowns.fits(actual, formal);
  }
}

TypePtr substitute_all(Unknowns& unknowns, const TypePtr& type, SchemaBindings& bindings) {
  if (type->is(TypeKind::kVar) && !Unknowns::is_unknown(type)) {
    for (const auto& [name, bound] : bindings)
      if (name == type->name()) return unknowns.resolve(bound);
    bindings.emplace_back(type->name(), unknowns.fresh());
    return bindings.back().second;
  }
  return map_elements(type,
                      [&](const TypePtr& e) { return substitute_all(unknowns, e, bindings); });
}

}  // namespace prong::script
