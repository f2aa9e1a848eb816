// [f(x) for x in xs if c], {k: v for ...}, generators given to functions: loops that append.
#include "script/emitter.h"

namespace prong::script {

void Emitter::for_each(const IterablePtr& over, const std::set<std::string>& assigned,
                       const Range& where, const std::function<void(const Term& item)>& body) {
  const std::optional<int64_t> known = over->known_length();
  const auto write_out = [&](int64_t n) {
    for (int64_t i = 0; i < n; ++i) body(over->item(*this, integer(i)));
  };
  if (over->must_unroll()) {
    if (!known)
      unsupported(where, "this goes over things of different types, whose number is not known",
                  "go over one list at a time");
    return write_out(*known);
  }
  const Environment before = env_;
  Block* block = b_.block();
  const Node* last = block->yield()->prev();
  try {
    at(where);
    Node* node = b_.loop(over->length(*this), boolean(true), {});
    b_.move_to_end(node->body());
    body(over->item(*this, node->body()->parameter(0)));
    for (const std::string& name : assigned)
      if (before.count(name) && env_.count(name) &&
          env_.at(name).term.value != before.at(name).term.value)
        unsupported(where,
                    cat("':=' of '", name, "' inside a comprehension is not available in scripts"),
                    "write a for loop");
    b_.yield({boolean(true)});
    b_.move_to_end(block);
    env_ = before;
  } catch (const NeedsUnrolling&) {
    if (!known) throw;
    b_.move_to_end(block);
    while (block->yield()->prev() != last) block->yield()->prev()->erase();
    env_ = before;
    write_out(*known);
  }
}

void Emitter::run_clauses(const Expr& e, size_t i, const std::function<void()>& innermost) {
  if (i == e.clauses.size()) return innermost();
  const Clause& c = e.clauses[i];
  const IterablePtr over = iterable(expr(*c.iterable), c.iterable->range);
  std::set<std::string> targets;
  names_of_target(*c.target, targets);
  Environment hidden;  // outer variables that the targets hide
  for (const std::string& name : targets)
    if (env_.count(name)) hidden[name] = env_.at(name);
  for_each(over, {}, c.iterable->range, [&](const Term& item) {
    assign(*c.target, item, c.target->range);
    // One if inside the other for each condition.
    std::function<void(size_t)> test = [&](size_t k) {
      if (k == c.conditions.size()) return run_clauses(e, i + 1, innermost);
      const Condition cond = condition(*c.conditions[k]);
      if (cond.known) {
        learn(*cond.known ? cond.if_true : cond.if_false);
        if (*cond.known) test(k + 1);
        return;
      }
      at(c.conditions[k]->range);
      Node* node = b_.if_(cond.value);
      Branch yes{node->body(0), env_}, no{node->body(1), env_};
      enter(yes);
      learn(cond.if_true);
      test(k + 1);
      leave(yes);
      merge(node, yes, no, c.conditions[k]->range);
    };
    test(0);
    for (const std::string& name : targets) env_.erase(name);
    for (const auto& [name, v] : hidden) env_[name] = v;
  });
}

Term Emitter::comprehension(const Expr& e, const TypePtr& hint) {
  const TypePtr wanted = hint ? without_none(unknowns_.resolve(hint)) : TypePtr();
  if (e.kind == ExprKind::kSetComp)
    unsupported(e.range, "sets are not available in scripts",
                "use a list, or a dict with the items as keys");
  if (e.kind == ExprKind::kDictComp) {
    const bool fits = wanted && wanted->is(TypeKind::kDict);
    const TypePtr key = fits ? wanted->elements()[0] : unknowns_.fresh();
    const TypePtr val = fits ? wanted->elements()[1] : unknowns_.fresh();
    at(e.range);
    Value* dict = b_.dict(key, val, {});
    run_clauses(e, 0, [&] {
      Value* k = expr_value(*e.items[0], key);
      Value* v = expr_value(*e.items[1], val);
      k = expect(k, key, e.items[0]->range, "a key of this dict");
      v = expect(v, val, e.items[1]->range, "a value of this dict");
      at(e.range);
      host("setitem", {dict, k, v}, e.range);
    });
    return Term(dict);
  }
  const TypePtr element =
      wanted && wanted->is(TypeKind::kList) ? wanted->element() : unknowns_.fresh();
  at(e.range);
  Value* list = b_.list(element, {});
  run_clauses(e, 0, [&] {
    Value* v = expr_value(*e.items[0], element);
    v = expect(v, element, e.items[0]->range, "an item of this list");
    at(e.range);
    host("append", {list, v}, e.range);
  });
  return Term(list);
}

}  // namespace prong::script
