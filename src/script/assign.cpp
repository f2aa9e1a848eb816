// Assignments: names, unpacking with a star, attributes, items, annotated, augmented, del.
#include "script/emitter.h"

namespace prong::script {

void Emitter::assign_statement(const Stmt& s) {
  TypePtr hint;
  if (s.annotation) hint = type_expr(*s.annotation);
  const Expr& first = *s.targets[0];
  if (!hint && first.kind == ExprKind::kName && env_.count(first.text))
    hint = env_.at(first.text).declared;
  Term t = expr(*s.value, hint);
  if (s.annotation) {
    t = Term(expect(value(t, s.value->range, hint), hint, s.value->range,
                    cat("'", first.range.text(), "'")));
    if (first.kind == ExprKind::kName) env_[first.text].declared = hint;
  }
  // One value for a chain a = b = [], so that all names mean the same list.
  if (s.targets.size() > 1 && t.kind == Term::Kind::kGenerator) t = Term(value(t, s.value->range));
  for (const ExprPtr& target : s.targets) assign(*target, t, s.range);
}

void Emitter::annotated(const Stmt& s) {
  const Expr& target = *s.targets[0];
  const TypePtr t = type_expr(*s.annotation);
  if (!s.value) {
    if (target.kind == ExprKind::kName) {
      env_[target.text] = Variable();
      env_[target.text].declared = t;
      env_[target.text].problem = cat("'", target.text, "' is declared but has no value yet");
    }
    return;
  }
  Value* v = expect(expr_value(*s.value, t), t, s.value->range, cat("'", target.range.text(), "'"));
  if (target.kind == ExprKind::kName) {
    env_[target.text].declared = t;
    // A constant None counts as None until something else is assigned.
    if (v->constant() && v->constant()->is_none()) v = b_.none();
  }
  if (target.kind == ExprKind::kAttribute && !v->constant() && !same(type(v), t)) v = cast(v, t);
  if (target.kind == ExprKind::kAttribute && v->constant() && v->constant()->is_none())
    v = b_.constant(IValue(), t);
  assign(target, Term(v), s.range);
}

void Emitter::assign_name(const std::string& name, Term t, const Range& where) {
  Variable& v = env_[name];
  // Values as soon as they can be; what holds a module or a function stays as it is.
  if (t.kind == Term::Kind::kTuple) {
    bool plain = true;
    const auto look = [&](auto&& self, const Term& x) -> void {
      if (x.kind == Term::Kind::kTuple)
        for (const Term& item : x.items) self(self, item);
      else if (!x.is_value() &&
               !(x.kind == Term::Kind::kNamed && x.named.kind == Named::Kind::kConstant))
        plain = false;
      else if (x.is_value() && type(x.value)->is(TypeKind::kClass))
        plain = false;
    };
    look(look, t);
    if (plain) t = Term(value(t, where, v.declared));
  } else if (t.kind == Term::Kind::kGenerator ||
             (t.kind == Term::Kind::kNamed && t.named.kind == Named::Kind::kConstant)) {
    t = Term(value(t, where, v.declared));
  }
  if (v.declared) {
    Value* converted = expect(value(t, where, v.declared), v.declared, where, cat("'", name, "'"));
    t = Term(converted);
  }
  if (t.is_value() && t.value->name().empty() && !t.value->constant()) t.value->set_name(name);
  // Facts about attributes of the old value end here.
  const std::string prefix = name + ".";
  for (auto it = env_.lower_bound(prefix); it != env_.end() && it->first.starts_with(prefix);)
    it = env_.erase(it);
  Variable& again = env_[name];
  again.term = std::move(t);
  again.problem.clear();
}

void Emitter::assign(const Expr& target, const Term& t, const Range& where) {
  at(where);
  switch (target.kind) {
  case ExprKind::kName:
    return assign_name(target.text, t, where);
  case ExprKind::kTuple:
  case ExprKind::kList:
    return unpack(target.items, t, where);
  case ExprKind::kAttribute: {
    const Term object = expr(*target.items[0]);
    env_.erase(dotted_name(target));
    return set_attribute(object, target.text, value(t, where), target.range);
  }
  case ExprKind::kSubscript: {
    const Term base = expr(*target.items[0]);
    const Term item = index_expression(*target.items[1]);
    TypePtr hint;
    if (base.is_value() && type(base.value)->is(TypeKind::kDict))
      hint = type(base.value)->elements()[1];
    if (base.is_value() && type(base.value)->is(TypeKind::kList))
      hint = type(base.value)->element();
    return set_item(base, item, value(t, where, hint), target.range);
  }
  case ExprKind::kStarred:
    return unpack({std::make_shared<Expr>(target)}, t, where);
  default:
    fail(target.range, cat("cannot assign to '", target.range.text(), "'"));
  }
}

void Emitter::unpack(const std::vector<ExprPtr>& targets, const Term& t, const Range& where) {
  size_t star = targets.size();
  for (size_t i = 0; i < targets.size(); ++i)
    if (targets[i]->kind == ExprKind::kStarred) {
      if (star != targets.size()) fail(targets[i]->range, "two starred targets in one assignment");
      star = i;
    }
  const size_t fixed = targets.size() - (star < targets.size() ? 1 : 0);
  std::vector<Term> items;
  const bool has_star = star < targets.size();
  const auto check = [&](size_t n) {
    if (has_star ? n < fixed : n != fixed)
      fail(where, cat("cannot unpack ", n, " values into ",
                      has_star ? cat("at least ", fixed) : cat(fixed), " targets"));
  };
  Value* v = t.kind == Term::Kind::kTuple      ? nullptr
             : t.kind == Term::Kind::kIterable ? nullptr
                                               : value(t, where);
  if (t.kind == Term::Kind::kTuple) {
    check(t.items.size());
    items = t.items;
  } else if (!v) {
    const auto n = t.iterable->known_length();
    if (!n)
      v = to_list(t, where);
    else {
      check(static_cast<size_t>(*n));
      for (int64_t i = 0; i < *n; ++i) items.push_back(t.iterable->item(*this, integer(i)));
    }
  }
  if (v && type(v)->is(TypeKind::kTuple)) {
    check(type(v)->elements().size());
    if (v->producer() && v->producer()->is(NodeKind::kTupleConstruct))
      for (Value* item : v->producer()->inputs()) items.emplace_back(item);
    else
      for (Value* item : b_.tuple_unpack(v)) items.emplace_back(item);
  } else if (v && (type(v)->is(TypeKind::kList) || type(v)->is(TypeKind::kTensor) ||
                   type(v)->is(TypeKind::kStr))) {
    Value* list = v;
    if (type(v)->is(TypeKind::kTensor)) list = op("unbind", {v, integer(0)}, where);
    if (type(v)->is(TypeKind::kStr)) list = to_list(t, where);
    if (!has_star) {
      for (Value* item : b_.list_unpack(list, fixed)) {
        if (item->type()->is(TypeKind::kVar)) item->set_type(type(list)->element());
        items.emplace_back(item);
      }
    } else {
      const auto after = static_cast<int64_t>(fixed - star);
      const auto get = [&](int64_t i) { return Term(host("getitem", {list, integer(i)}, where)); };
      for (size_t i = 0; i < star; ++i) items.push_back(get(static_cast<int64_t>(i)));
      Value* end = after ? integer(-after) : b_.none();
      items.emplace_back(
          host("getslice", {list, integer(static_cast<int64_t>(star)), end, integer(1)}, where));
      for (int64_t i = after; i > 0; --i) items.push_back(get(-i));
      for (size_t i = 0; i < targets.size(); ++i)
        assign(i == star ? *targets[i]->items[0] : *targets[i], items[i], targets[i]->range);
      return;
    }
  } else if (v) {
    const IterablePtr over = iterable(Term(v), where);
    const auto n = over->known_length();
    if (!n) fail(where, cat("cannot unpack a value of type '", name_of(type(v)), "'"));
    check(static_cast<size_t>(*n));
    for (int64_t i = 0; i < *n; ++i) items.push_back(over->item(*this, integer(i)));
  }
  if (has_star) {
    const size_t many = items.size() - fixed;
    std::vector<Value*> middle;
    TypePtr element = unknowns_.fresh();
    for (size_t i = star; i < star + many; ++i) {
      middle.push_back(value(items[i], where));
      middle.back() = expect(middle.back(), element, where, "an item of the starred target");
    }
    Value* list = b_.list(element, middle);
    items.erase(items.begin() + static_cast<ptrdiff_t>(star),
                items.begin() + static_cast<ptrdiff_t>(star + many));
    items.insert(items.begin() + static_cast<ptrdiff_t>(star), Term(list));
  }
  for (size_t i = 0; i < targets.size(); ++i)
    assign(i == star ? *targets[i]->items[0] : *targets[i], items[i], targets[i]->range);
}

void Emitter::augmented(const Stmt& s) {
  const Expr& target = *s.targets[0];
  Term base, item;
  Term now;
  if (target.kind == ExprKind::kSubscript) {
    base = expr(*target.items[0]);
    item = index_expression(*target.items[1]);
    now = index(base, item, target.range);
  } else if (target.kind == ExprKind::kAttribute) {
    base = expr(*target.items[0]);
    now = attribute(base, target.text, target.range);
  } else {
    now = expr(target);
  }
  Term right = expr(*s.value, now.is_value() ? type(now.value) : TypePtr());
  at(s.range);
  Value* result = nullptr;
  Value* left = value(now, target.range);
  if (!augment_in_place(s.text, left,
                        right.kind == Term::Kind::kTuple ? value(right, s.value->range, type(left))
                                                         : value(right, s.value->range),
                        s.range, &result))
    result = binary(s.text, Term(left), right, s.range);
  if (target.kind == ExprKind::kName) return assign_name(target.text, Term(result), s.range);
  if (target.kind == ExprKind::kAttribute) {
    env_.erase(dotted_name(target));
    return set_attribute(base, target.text, result, target.range);
  }
  set_item(base, item, result, target.range);
}

void Emitter::delete_targets(const Stmt& s) {
  for (const ExprPtr& target : s.targets) {
    if (target->kind == ExprKind::kName) {
      if (!env_.count(target->text))
        fail(target->range, cat("'", target->text, "' is not defined"));
      env_[target->text] = Variable();
      env_[target->text].problem = cat("'", target->text, "' was deleted in line ", s.range.line());
    } else if (target->kind == ExprKind::kSubscript) {
      const Term base = expr(*target->items[0]);
      delete_item(base, index_expression(*target->items[1]), target->range);
    } else {
      unsupported(target->range, "only variables and items can be deleted in scripts",
                  "assign None instead");
    }
  }
}

}  // namespace prong::script
