// Expressions: literals, names, displays, the ternary; the rest is handed to the file of its
// construct.
#include <charconv>
#include <cstdlib>

#include "script/emitter.h"

namespace prong::script {

namespace {

IValue int_literal(const Expr& e) {
  std::string digits = e.text;
  bool negative = false;
  if (digits[0] == '-') {
    negative = true;
    digits.erase(0, 1);
  }
  int base = 10;
  if (digits.size() > 2 && digits[0] == '0' &&
      std::isalpha(static_cast<unsigned char>(digits[1]))) {
    base = digits[1] == 'x' || digits[1] == 'X' ? 16 : digits[1] == 'o' || digits[1] == 'O' ? 8 : 2;
    digits.erase(0, 2);
  }
  if (negative) digits.insert(0, "-");
  int64_t out = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), out, base);
  if (error == std::errc::result_out_of_range)
    fail(e.range, cat("the int ", e.text, " does not fit 64 bits"),
         "scripts have 64-bit ints: use a float");
  if (error != std::errc() || end != digits.data() + digits.size())
    fail(e.range, cat("bad number '", e.text, "'"));
  return IValue(out);
}

}  // namespace

Value* Emitter::expr_value(const Expr& e, const TypePtr& hint) {
  return value(expr(e, hint), e.range, hint);
}

Term Emitter::name(const Expr& e) {
  const auto found = env_.find(e.text);
  if (found != env_.end()) {
    if (found->second.term.kind == Term::Kind::kNothing) fail(e.range, found->second.problem);
    return found->second.term;
  }
  Named n = resolver().lookup(e.text);
  if (n.kind == Named::Kind::kMissing)
    fail(e.range, cat("undefined name '", e.text, "'"),
         "scripts see variables, globals of the file, closures and builtins");
  if (n.kind == Named::Kind::kUnsupported) unsupported(e.range, n.name, {});
  return Term::of(std::move(n));
}

Term Emitter::expr(const Expr& e, const TypePtr& hint) {
  at(e.range);
  switch (e.kind) {
  case ExprKind::kName:
    return name(e);
  case ExprKind::kAttribute: {
    const Term base = expr(*e.items[0]);
    Term t = attribute(base, e.text, e.range);
    // "self.bias is not None" was tested before.
    const std::string key = dotted_name(e);
    if (!key.empty() && t.is_value()) {
      const auto fact = env_.find(key);
      if (fact != env_.end()) {
        if (fact->second.declared->is(TypeKind::kNone)) return Term(b_.none());
        return Term(cast(t.value, fact->second.declared));
      }
    }
    return t;
  }
  case ExprKind::kCall:
    return call(e, hint);
  case ExprKind::kSubscript:
    return subscript(e);
  case ExprKind::kSlice:
    fail(e.range, "a slice stands only inside [ ]");
  case ExprKind::kTuple: {
    const TypePtr wanted = hint ? without_none(unknowns_.resolve(hint)) : TypePtr();
    const bool fits =
        wanted && wanted->is(TypeKind::kTuple) && wanted->elements().size() == e.items.size();
    std::vector<Term> items;
    for (size_t i = 0; i < e.items.size(); ++i) {
      if (e.items[i]->kind == ExprKind::kStarred) {
        const Term inner = expr(*e.items[i]->items[0]);
        const IterablePtr over = iterable(inner, e.items[i]->range);
        const auto n = over->known_length();
        if (!n)
          unsupported(e.items[i]->range, "'*' of something whose length is not known",
                      "use a list: [*a, b]");
        for (int64_t k = 0; k < *n; ++k) items.push_back(over->item(*this, integer(k)));
        continue;
      }
      items.push_back(expr(*e.items[i], fits ? wanted->elements()[i] : TypePtr()));
      if (fits && items.back().is_value())
        if (Value* c = convert(items.back().value, wanted->elements()[i])) items.back() = Term(c);
    }
    return Term::tuple(std::move(items));
  }
  case ExprKind::kList:
    return list_display(e, hint);
  case ExprKind::kSet:
    unsupported(e.range, "sets are not available in scripts", "use a list, or a tuple with 'in'");
  case ExprKind::kDict:
    return dict_display(e, hint);
  case ExprKind::kCompare: {
    if (e.operators.size() == 1) {
      if (e.operators[0] == "is" || e.operators[0] == "is not") {
        if (e.items[0]->kind == ExprKind::kNone || e.items[1]->kind == ExprKind::kNone)
          return Term(condition(e).value);
      }
      const Term left = expr(*e.items[0]);
      const Term right = expr(*e.items[1]);
      return Term(compare(e.operators[0], left, right, e.range));
    }
    // a < b < c: each middle value once, later ones only where the earlier hold.
    const std::function<Value*(const Term&, size_t)> chain = [&](const Term& left,
                                                                 size_t i) -> Value* {
      const Term right = expr(*e.items[i + 1]);
      Value* held = compare(e.operators[i], left, right, e.range);
      if (i + 1 == e.operators.size()) return held;
      const Condition c = truth(Term(held), e.range);
      if (c.known) return *c.known ? chain(right, i + 1) : held;
      return if_value(
          c.value, [&] { return truth(Term(chain(right, i + 1)), e.range).value; },
          [&] { return boolean(false); }, e.range, "a comparison");
    };
    return Term(chain(expr(*e.items[0]), 0));
  }
  case ExprKind::kAnd:
  case ExprKind::kOr: {
    // Of bools: a condition. Of other values, Python gives one of the operands.
    const bool is_and = e.kind == ExprKind::kAnd;
    const std::function<Value*(size_t)> from = [&](size_t i) -> Value* {
      const ExprPtr& item = e.items[i];
      if (i + 1 == e.items.size()) {
        Condition c;
        if (item->kind == ExprKind::kCompare || item->kind == ExprKind::kNot)
          return condition(*item).value;
        return expr_value(*item, hint);
      }
      const bool plain = item->kind == ExprKind::kCompare || item->kind == ExprKind::kNot ||
                         item->kind == ExprKind::kCall;
      Condition c;
      Value* v = nullptr;
      if (plain && item->kind != ExprKind::kCall) {
        c = condition(*item);
        v = c.value;
      } else {
        c = condition(*item);
        v = c.value;
        const Term t = item->kind == ExprKind::kName ? expr(*item) : Term();
        if (t.is_value()) v = t.value;
      }
      if (c.known) {
        if (*c.known != is_and) return v;
        learn(is_and ? c.if_true : c.if_false);
        return from(i + 1);
      }
      // "x or default" of an optional x gives the thing itself.
      const auto keep = [&] {
        learn(is_and ? c.if_false : c.if_true);
        if (item->kind == ExprKind::kName) return expr_value(*item);
        return type(v)->is(TypeKind::kOptional) && !is_and ? cast(v, type(v)->element()) : v;
      };
      const auto rest = [&] {
        learn(is_and ? c.if_true : c.if_false);
        return from(i + 1);
      };
      return is_and ? if_value(c.value, rest, keep, e.range, "and")
                    : if_value(c.value, keep, rest, e.range, "or");
    };
    const Environment before = env_;
    Value* v = from(0);
    env_ = before;
    return Term(v);
  }
  case ExprKind::kNot:
    return Term(condition(e).value);
  case ExprKind::kUnary:
    return Term(unary(e.text, expr_value(*e.items[0]), e.range));
  case ExprKind::kBinary: {
    const Term left = expr(*e.items[0], hint);
    const Term right = expr(*e.items[1], hint);
    at(e.range);
    return Term(binary(e.text, left, right, e.range));
  }
  case ExprKind::kTernary:
    return ternary(e, hint);
  case ExprKind::kInt:
    return Term(constant(int_literal(e)));
  case ExprKind::kFloat:
    return Term(constant(IValue(std::strtod(e.text.c_str(), nullptr))));
  case ExprKind::kString:
    return Term(text(e.text));
  case ExprKind::kFString:
    return Term(f_string(e));
  case ExprKind::kTrue:
    return Term(boolean(true));
  case ExprKind::kFalse:
    return Term(boolean(false));
  case ExprKind::kNone:
    return Term(b_.none());
  case ExprKind::kEllipsis: {
    Named n;
    n.kind = Named::Kind::kBuiltin;
    n.name = "...";
    return Term::of(std::move(n));
  }
  case ExprKind::kListComp:
  case ExprKind::kSetComp:
  case ExprKind::kDictComp:
    return comprehension(e, hint);
  case ExprKind::kGenerator: {
    Term t;
    t.kind = Term::Kind::kGenerator;
    t.expression = std::make_shared<Expr>(e);
    return t;
  }
  case ExprKind::kLambda:
    unsupported(e.range, "lambda is not available in scripts",
                "write a def at the top of the file and use its name");
  case ExprKind::kWalrus: {
    const Term t = expr(*e.items[0], hint);
    assign_name(e.text, t, e.range);
    return env_.at(e.text).term;
  }
  case ExprKind::kStarred:
    fail(e.range, "'*' stands only in calls, displays and assignments");
  case ExprKind::kFormatted:
    break;
  }
  throw_error(ErrorKind::kInternal, "an expression of no kind");
}

Term Emitter::ternary(const Expr& e, const TypePtr& hint) {
  const Condition c = condition(*e.items[0]);
  if (c.known) {
    const Environment before = env_;
    learn(*c.known ? c.if_true : c.if_false);
    const Term t = expr(*e.items[*c.known ? 1 : 2], hint);
    if (e.items[0]->kind != ExprKind::kWalrus) env_ = before;
    return t;
  }
  const auto side = [&](size_t i, const Facts& facts) {
    learn(facts);
    Value* v = expr_value(*e.items[i], hint);
    if (hint)
      if (Value* converted = convert(v, hint)) return converted;
    return v;
  };
  return Term(if_value(
      c.value, [&] { return side(1, c.if_true); }, [&] { return side(2, c.if_false); }, e.range,
      "the conditional expression"));
}

Term Emitter::list_display(const Expr& e, const TypePtr& hint) {
  const TypePtr wanted = hint ? without_none(unknowns_.resolve(hint)) : TypePtr();
  const bool fits = wanted && wanted->is(TypeKind::kList);
  TypePtr element = fits ? wanted->element() : TypePtr();
  std::vector<Value*> items;
  Value* list = nullptr;  // once a star was met, items go in one by one
  for (const ExprPtr& item : e.items) {
    if (item->kind == ExprKind::kStarred) {
      Value* more = to_list(expr(*item->items[0]), item->range, hint);
      if (!element) element = type(more)->element();
      if (!list) list = b_.list(element, items);
      host("extend", {list, more}, item->range);
      continue;
    }
    Value* v = expr_value(*item, fits ? wanted->element() : TypePtr());
    if (!fits) {
      TypePtr both = element ? join(unknowns_, element, type(v)) : type(v);
      if (!both && is_number(element) && is_number(type(v))) both = Type::float_();
      if (!both && ((element->is(TypeKind::kTensor) && is_number(type(v))) ||
                    (type(v)->is(TypeKind::kTensor) && is_number(element))))
        both = Type::tensor();
      if (!both)
        fail(item->range,
             cat("a list of '", name_of(element), "' cannot take a '", name_of(type(v)), "'"),
             "lists in scripts hold one type; a tuple may hold several");
      element = both;
    } else {
      v = expect(v, wanted->element(), item->range, "an item of this list");
    }
    if (list)
      host("append", {list, expect(v, element, item->range, "an item of this list")}, item->range);
    else
      items.push_back(v);
  }
  if (list) return Term(list);
  if (!element) element = unknowns_.fresh();
  for (size_t i = 0; i < items.size(); ++i) {
    Value* c = convert(items[i], element, true);
    items[i] = c ? c : cast(items[i], element);
  }
  at(e.range);
  return Term(b_.list(element, items));
}

Term Emitter::dict_display(const Expr& e, const TypePtr& hint) {
  const TypePtr wanted = hint ? without_none(unknowns_.resolve(hint)) : TypePtr();
  const bool fits = wanted && wanted->is(TypeKind::kDict);
  TypePtr key = fits ? wanted->elements()[0] : unknowns_.fresh();
  TypePtr val = fits ? wanted->elements()[1] : unknowns_.fresh();
  std::vector<Value*> flat;
  bool plain = true;
  for (size_t i = 0; i < e.items.size(); i += 2) plain &= e.items[i] != nullptr;
  if (plain && !fits) {
    // The widest of the values' types.
    TypePtr k, v;
    for (size_t i = 0; i < e.items.size(); ++i) {
      flat.push_back(expr_value(*e.items[i]));
      TypePtr& t = i % 2 == 0 ? k : v;
      const TypePtr both = t ? join(unknowns_, t, type(flat.back())) : type(flat.back());
      if (!both)
        fail(e.items[i]->range,
             cat("a dict of '", name_of(t), "' cannot take a '", name_of(type(flat.back())), "'"),
             "dicts in scripts hold one type of keys and one of values");
      t = both;
    }
    if (k) unknowns_.equate(key, k);
    if (v) unknowns_.equate(val, v);
    at(e.range);
    return Term(b_.dict(unknowns_.resolve(key), unknowns_.resolve(val), flat));
  }
  if (plain) {
    for (size_t i = 0; i < e.items.size(); ++i) {
      const TypePtr& t = i % 2 == 0 ? key : val;
      flat.push_back(expect(expr_value(*e.items[i], t), t, e.items[i]->range,
                            i % 2 == 0 ? "a key of this dict" : "a value of this dict"));
    }
    at(e.range);
    return Term(b_.dict(key, val, flat));
  }
  at(e.range);
  Value* dict = b_.dict(key, val, {});
  for (size_t i = 0; i < e.items.size(); i += 2) {
    if (!e.items[i])
      host("update", {dict, expr_value(*e.items[i + 1], hint)}, e.items[i + 1]->range);
    else
      host("setitem", {dict, expr_value(*e.items[i]), expr_value(*e.items[i + 1], val)},
           e.items[i]->range);
  }
  return Term(dict);
}

}  // namespace prong::script
