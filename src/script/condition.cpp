// Conditions: truth of a value, what "is None" and isinstance tell of a variable, short-circuit
// and/or.
#include "script/emitter.h"

namespace prong::script {

std::string Emitter::fact_key(const Expr& e) {
  if (e.kind == ExprKind::kWalrus) return e.text;
  return dotted_name(e);
}

void Emitter::learn(const Facts& facts) {
  for (const auto& [key, t] : facts) {
    if (key.find('.') != std::string::npos) {
      env_[key].declared = t;
      continue;
    }
    const auto found = env_.find(key);
    if (found == env_.end() || !found->second.term.is_value()) continue;
    Value* v = found->second.term.value;
    if (same(type(v), t)) continue;
    found->second.term = Term(t->is(TypeKind::kNone) ? b_.none() : cast(v, t));
  }
}

namespace {
Condition decided(bool b, Value* v) {
  Condition c;
  c.known = b;
  c.value = v;
  return c;
}
}  // namespace

Condition Emitter::truth(const Term& t, const Range& where) {
  at(where);
  Value* v = value(t, where);
  const TypePtr ty = type(v);
  Condition c;
  if (const IValue* k = v->constant();
      k && (k->is_bool() || k->is_number() || k->is_none() || k->is_string())) {
    const bool b = k->is_none()     ? false
                   : k->is_string() ? !k->to_string().empty()
                                    : k->to_double() != 0;
    return decided(b, boolean(b));
  }
  switch (ty->kind()) {
  case TypeKind::kBool:
    c.value = v;
    return c;
  case TypeKind::kNone:
    return decided(false, boolean(false));
  case TypeKind::kOptional: {
    Value* present = host("is_not", {v, b_.none()}, where);
    c.value = if_value(
        present,
        [&] {
          const Condition inner = truth(Term(cast(v, ty->element())), where);
          return inner.value;
        },
        [&] { return boolean(false); }, where, "the condition");
    return c;
  }
  case TypeKind::kClass: {
    if (has_attribute(Term(v), "__bool__", where))
      return truth(apply(attribute(Term(v), "__bool__", where), {}, where), where);
    if (has_attribute(Term(v), "__len__", where))
      return truth(apply(attribute(Term(v), "__len__", where), {}, where), where);
    return decided(true, boolean(true));
  }
  case TypeKind::kTuple: {
    const bool b = !ty->elements().empty();
    return decided(b, boolean(b));
  }
  case TypeKind::kFuture:
    return decided(true, boolean(true));
  case TypeKind::kList:
  case TypeKind::kDict:
    c.value = host("gt", {host("len", {v}, where), integer(0)}, where);
    return c;
  default:
    break;
  }
  Value* as_bool = nullptr;
  if (!try_host("bool", {v}, where, &as_bool))
    fail(where, cat("a value of type '", name_of(ty), "' cannot be used as a condition"),
         "compare it with something, so that the condition is a bool");
  c.value = as_bool;
  return c;
}

Condition Emitter::is_none(const Expr& subject, const Term& t, bool negate, const Range& where) {
  Condition c;
  if (!t.is_value()) {
    const bool none = t.kind == Term::Kind::kNamed && t.named.kind == Named::Kind::kConstant &&
                      t.named.value.is_none();
    return decided(none != negate, boolean(none != negate));
  }
  const TypePtr ty = type(t.value);
  if (ty->is(TypeKind::kNone)) return decided(!negate, boolean(!negate));
  if (!ty->is(TypeKind::kOptional) && !ty->is(TypeKind::kAny) && !Unknowns::is_unknown(ty))
    return decided(negate, boolean(negate));
  c.value = host(negate ? "is_not" : "is", {t.value, b_.none()}, where);
  const std::string key = fact_key(subject);
  if (!key.empty() && ty->is(TypeKind::kOptional)) {
    c.if_true = {{key, negate ? ty->element() : Type::none()}};
    c.if_false = {{key, negate ? Type::none() : ty->element()}};
  }
  return c;
}

// What the second argument of isinstance names. A bare container takes whatever it holds; none
// where `subject` can be no such container.
TypePtr Emitter::wanted_type(const Expr& wanted, const TypePtr& subject) {
  const std::string name = dotted_name(wanted);
  const auto is = [&](std::string_view builtin, std::string_view typing) {
    return name == builtin || name == typing || name == cat("typing.", typing);
  };
  TypeKind kind;
  if (is("list", "List"))
    kind = TypeKind::kList;
  else if (is("dict", "Dict"))
    kind = TypeKind::kDict;
  else if (is("tuple", "Tuple"))
    kind = TypeKind::kTuple;
  else
    return type_expr(wanted);
  const TypePtr inner = subject->is(TypeKind::kOptional) ? subject->element() : subject;
  if (inner->is(kind)) return inner;
  if (!inner->is(TypeKind::kAny)) return {};
  if (kind == TypeKind::kTuple)
    fail(wanted.range, "isinstance with a bare tuple, of a value of type Any, is not supported",
         "say what it holds: Tuple[int, Tensor]");
  return kind == TypeKind::kList ? Type::list(Type::any()) : Type::dict(Type::any(), Type::any());
}

Condition Emitter::isinstance(const Term& subject, const std::string& key,
                              const std::vector<TypePtr>& types, const Range& where) {
  Value* v = value(subject, where);
  const TypePtr ty = type(v);
  const auto fits_one = [&](const TypePtr& t) {
    for (const TypePtr& want : types)
      if (is_subtype(t, want)) return true;
    // As in Python, a bool is an int.
    if (t->is(TypeKind::kBool))
      for (const TypePtr& want : types)
        if (want->is(TypeKind::kInt)) return true;
    return false;
  };
  const bool open = ty->is(TypeKind::kAny) || ty->is(TypeKind::kOptional) ||
                    ty->is(TypeKind::kNumber) || ty->is(TypeKind::kClass) ||
                    Unknowns::is_unknown(ty);
  if (fits_one(ty)) return decided(true, boolean(true));
  if (!open) return decided(false, boolean(false));
  if (ty->is(TypeKind::kOptional)) {
    const bool element = fits_one(ty->element()), none = fits_one(Type::none());
    if (!element && !none && !ty->element()->is(TypeKind::kNumber))
      return decided(false, boolean(false));
  }
  Condition c;
  at(where);
  c.value = b_.isinstance(v, types);
  if (!key.empty()) {
    if (types.size() == 1) c.if_true = {{key, types[0]}};
    if (ty->is(TypeKind::kOptional)) {
      if (fits_one(ty->element())) {
        c.if_true = {{key, ty->element()}};
        c.if_false = {{key, Type::none()}};
      } else if (fits_one(Type::none())) {
        c.if_false = {{key, ty->element()}};
      }
    }
  }
  return c;
}

Condition Emitter::condition(const Expr& e) {
  at(e.range);
  if (e.kind == ExprKind::kNot) {
    Condition inner = condition(*e.items[0]);
    std::swap(inner.if_true, inner.if_false);
    if (inner.known) {
      inner.known = !*inner.known;
      inner.value = boolean(*inner.known);
    } else {
      inner.value = host("not", {inner.value}, e.range);
    }
    return inner;
  }
  if (e.kind == ExprKind::kAnd || e.kind == ExprKind::kOr) {
    const bool is_and = e.kind == ExprKind::kAnd;
    const auto combine = [&](auto&& self, size_t i) -> Condition {
      Condition first = condition(*e.items[i]);
      if (i + 1 == e.items.size()) return first;
      if (first.known) {
        if (*first.known != is_and) return first;  // decides the whole
        learn(is_and ? first.if_true : first.if_false);
        return self(self, i + 1);
      }
      const Environment before = env_;
      Condition rest;
      const auto right = [&] {
        learn(is_and ? first.if_true : first.if_false);
        rest = self(self, i + 1);
        return rest.value;
      };
      const auto left = [&] { return boolean(!is_and); };
      Condition both;
      if (is_and)
        both.value = if_value(first.value, right, left, e.range, "and");
      else
        both.value = if_value(first.value, left, right, e.range, "or");
      env_ = before;
      // Both held (and), or both failed (or).
      Facts all = is_and ? first.if_true : first.if_false;
      const Facts& more = is_and ? rest.if_true : rest.if_false;
      all.insert(all.end(), more.begin(), more.end());
      (is_and ? both.if_true : both.if_false) = std::move(all);
      if (rest.known && *rest.known == is_and)
        (is_and ? both.if_false : both.if_true) = is_and ? first.if_false : first.if_true;
      return both;
    };
    return combine(combine, 0);
  }
  if (e.kind == ExprKind::kCompare && e.operators.size() == 1 &&
      (e.operators[0] == "is" || e.operators[0] == "is not")) {
    const bool right_none = e.items[1]->kind == ExprKind::kNone,
               left_none = e.items[0]->kind == ExprKind::kNone;
    if (right_none || left_none) {
      const Expr& subject = *e.items[right_none ? 0 : 1];
      const Term t = expr(subject);
      return is_none(subject, t, e.operators[0] == "is not", e.range);
    }
  }
  if (e.kind == ExprKind::kCall && e.arguments.size() == 2) {
    const Expr& callee = *e.items[0];
    const std::string called = dotted_name(callee);
    if (called == "isinstance" || called == "torch.jit.isinstance" ||
        called.ends_with("jit.isinstance")) {
      const Term f = expr(callee);
      if (f.kind == Term::Kind::kNamed && f.named.kind == Named::Kind::kBuiltin &&
          (f.named.name == "isinstance" || f.named.name == "jit.isinstance")) {
        const Expr& subject = *e.arguments[0].value;
        const Term term = expr(subject);
        const TypePtr type_now = type(value(term, subject.range));
        std::vector<TypePtr> types;
        const Expr& wanted = *e.arguments[1].value;
        const auto add = [&](const Expr& w) {
          if (const TypePtr t = wanted_type(w, type_now)) types.push_back(t);
        };
        if (wanted.kind == ExprKind::kTuple)
          for (const ExprPtr& w : wanted.items) add(*w);
        else
          add(wanted);
        return isinstance(term, fact_key(subject), types, e.range);
      }
    }
  }
  const Term t = expr(e);
  Condition c = truth(t, e.range);
  // "if x:" of an optional tells that it is not None.
  if (t.is_value() && type(t.value)->is(TypeKind::kOptional)) {
    const std::string key = fact_key(e);
    if (!key.empty()) c.if_true = {{key, type(t.value)->element()}};
  }
  return c;
}

}  // namespace prong::script
