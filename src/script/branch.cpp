// if: two blocks and the join of their variables.
#include "script/emitter.h"

namespace prong::script {

void Emitter::enter(Branch& b) {
  b_.move_to_end(b.block);
  env_ = b.env;
}

void Emitter::leave(Branch& b) { b.env = env_; }

Value* Emitter::unify_at_end(Block* block, Value* v, const TypePtr& to) {
  const Block* before = b_.block();
  b_.move_to_end(block);
  Value* out = convert(v, to);
  if (!out) out = b_.unchecked_cast(v, to);
  b_.move_to_end(const_cast<Block*>(before));
  return out;
}

namespace {

bool same_term(const Term& a, const Term& b) {
  if (a.kind != b.kind) return false;
  if (a.kind == Term::Kind::kValue) return a.value == b.value;
  if (a.kind == Term::Kind::kTuple) {
    if (a.items.size() != b.items.size()) return false;
    for (size_t i = 0; i < a.items.size(); ++i)
      if (!same_term(a.items[i], b.items[i])) return false;
    return true;
  }
  return a.kind == Term::Kind::kNothing ||
         (a.kind == Term::Kind::kNamed && a.named.entry && a.named.entry == b.named.entry);
}

bool same_constant(const Term& a, const Term& b) {
  if (!a.is_value() || !b.is_value()) return false;
  const IValue *x = a.value->constant(), *y = b.value->constant();
  return x && y && x->tag() == y->tag() && !x->is_object() && !x->is_tensor() && equal(*x, *y);
}

// "$skip" and the like.
bool is_hidden(const std::string& name) { return name[0] == '$'; }

}  // namespace

// Called with both blocks filled; leaves the insertion point after the node.
void Emitter::merge(Node* node, Branch& a, Branch& b, const Range& where) {
  b_.move_to_end(node->block());
  std::vector<Value*> from_a, from_b;
  Environment out;
  std::set<std::string> names;
  for (const auto& [name, v] : a.env) names.insert(name);
  for (const auto& [name, v] : b.env) names.insert(name);
  const bool a_raises = a.flow == Flow::kRaises, b_raises = b.flow == Flow::kRaises;
  const auto materialise = [&](Branch& side, Variable& v) {
    // A tuple written out becomes a value at the end of its branch.
    if (v.term.kind != Term::Kind::kTuple && v.term.kind != Term::Kind::kNamed) return;
    if (v.term.kind == Term::Kind::kNamed && v.term.named.kind != Named::Kind::kConstant) return;
    b_.move_to_end(side.block);
    try {
      v.term = Term(value(v.term, where));
    } catch (const Error&) {  // holds something that is no value: it stays as it is
    }
  };
  for (const std::string& name : names) {
    const auto in_a = a.env.find(name), in_b = b.env.find(name);
    Variable* va = in_a == a.env.end() ? nullptr : &in_a->second;
    Variable* vb = in_b == b.env.end() ? nullptr : &in_b->second;
    if (name.find('.') != std::string::npos) {  // a fact about an attribute
      if (va && vb ? same(va->declared, vb->declared) : (va && b_raises) || (vb && a_raises))
        out[name] = va ? *va : *vb;
      continue;
    }
    // A side that never gets here leaves no trace, but the other side's values are defined only
    // inside its block.
    if (va && vb && same_term(va->term, vb->term)) {
      out[name] = *va;
      continue;
    }
    if (va && vb && same_constant(va->term, vb->term)) {
      b_.move_to_end(node->block());
      out[name] = *va;
      out[name].term = Term(constant(*va->term.value->constant()));
      continue;
    }
    if (va && !(b_raises && !a_raises)) materialise(a, *va);
    if (vb && !(a_raises && !b_raises)) materialise(b, *vb);
    if (a_raises && vb) materialise(b, *vb);
    if (b_raises && va) materialise(a, *va);
    const bool a_has = va && va->term.is_value(), b_has = vb && vb->term.is_value();
    const bool hidden = is_hidden(name);
    Variable joined;
    if (va && vb && va->declared && vb->declared && same(va->declared, vb->declared))
      joined.declared = va->declared;
    else if (va && (b_raises || !vb))
      joined.declared = va->declared;
    else if (vb && (a_raises || !va))
      joined.declared = vb->declared;
    // Without a value on a side: fine where that side never arrives, or left the list of statements
    // before.
    const bool a_excused = a_raises || hidden || a.flow == Flow::kExits;
    const bool b_excused = b_raises || hidden || b.flow == Flow::kExits;
    if (a_raises && !b_raises && vb && !b_has) {
      out[name] = *vb;
      continue;
    }
    if (b_raises && !a_raises && va && !a_has) {
      out[name] = *va;
      continue;
    }
    const bool use_a = a_has && !a_raises, use_b = b_has && !b_raises;
    if ((use_a || (a_excused && use_b)) && (use_b || (b_excused && use_a))) {
      TypePtr t;
      if (use_a && use_b) {
        t = join(unknowns_, type(va->term.value), type(vb->term.value));
        // Where one side has left, its value is never read again here: the type of the other one
        // counts.
        if (!hidden && a.flow == Flow::kExits && b.flow != Flow::kExits)
          t = type(vb->term.value);
        else if (!hidden && b.flow == Flow::kExits && a.flow != Flow::kExits)
          t = type(va->term.value);
        const TypePtr ta = type(va->term.value), tb = type(vb->term.value);
        // A number on one path and a tensor on the other: ops take a number for a tensor.
        if (!t && ((ta->is(TypeKind::kTensor) && is_number(tb)) ||
                   (tb->is(TypeKind::kTensor) && is_number(ta))))
          t = Type::tensor();
        if (!t) {
          joined.problem = cat("'", name, "' has type '", name_of(ta), "' on one path and '",
                               name_of(tb), "' on the other");
          out[name] = std::move(joined);
          continue;
        }
      } else {
        t = type(use_a ? va->term.value : vb->term.value);
      }
      const auto end_value = [&](Branch& side, bool use, Variable* v) {
        if (use && (unknowns_.fits(type(v->term.value), t) || side.flow != Flow::kExits || hidden))
          return unify_at_end(side.block, v->term.value, t);
        b_.move_to_end(side.block);
        return uninitialized(t);
      };
      from_a.push_back(end_value(a, use_a, va));
      from_b.push_back(end_value(b, use_b, vb));
      joined.term = Term(node->add_output(t, hidden ? name.substr(1) : name));
      out[name] = std::move(joined);
      continue;
    }
    if (a_raises && b_raises) continue;
    const Variable* problem = va && !va->problem.empty()   ? va
                              : vb && !vb->problem.empty() ? vb
                                                           : nullptr;
    if (problem) {
      joined.problem = problem->problem;
    } else if (va && vb) {
      joined.problem = cat(
          "'", name, "' means different things on the two paths of the if in line ", where.line());
    } else {
      joined.problem =
          cat("'", name, "' is not defined on ", va ? "the else path" : "the first path",
              " of the if in line ", where.line());
    }
    out[name] = std::move(joined);
  }
  b_.move_to_end(node->body(0));
  b_.yield(from_a);
  b_.move_to_end(node->body(1));
  b_.yield(from_b);
  b_.move_to_end(node->block());
  env_ = std::move(out);
}

Flow Emitter::if_statement(const Stmt& s, const Suite& rest, size_t from, bool* took_rest) {
  const Condition c = condition(*s.value);
  if (c.known) {
    learn(*c.known ? c.if_true : c.if_false);
    return statements(*c.known ? s.body : s.orelse);
  }
  at(s.range);
  Node* node = b_.if_(c.value);
  Branch a{node->body(0), env_}, b{node->body(1), env_};
  enter(a);
  learn(c.if_true);
  a.flow = statements(s.body);
  leave(a);
  enter(b);
  learn(c.if_false);
  b.flow = statements(s.orelse);
  leave(b);

  // One side left for good and the other goes on: what follows belongs to that side.
  const auto go_on = [&](Branch& side) {
    if (from >= rest.size()) return;
    *took_rest = true;
    enter(side);
    side.flow =
        side.flow == Flow::kMaybe ? rest_unless_skipped(rest, from) : statements(rest, from);
    leave(side);
  };
  const bool a_done = a.flow == Flow::kExits, b_done = b.flow == Flow::kExits;
  const auto goes_on = [](Flow f) { return f == Flow::kFalls || f == Flow::kMaybe; };
  // Inside what is taken over, nothing was skipped yet.
  if (a_done && goes_on(b.flow))
    go_on(b);
  else if (b_done && goes_on(a.flow))
    go_on(a);

  // Flags must have a value on both sides where one of them is set.
  if (a.flow != Flow::kFalls || b.flow != Flow::kFalls) {
    for (Branch* side : {&a, &b}) {
      if (side->flow != Flow::kFalls) continue;
      enter(*side);
      set_exit(false, false, false);
      leave(*side);
    }
  }
  merge(node, a, b, s.range);
  if (a.flow == Flow::kRaises) return b.flow;
  if (b.flow == Flow::kRaises) return a.flow;
  if (a.flow == b.flow) return a.flow;
  return Flow::kMaybe;
}

Value* Emitter::if_value(Value* condition, const std::function<Value*()>& then,
                         const std::function<Value*()>& otherwise, const Range& where,
                         std::string_view what) {
  at(where);
  Node* node = b_.if_(condition);
  const Environment before = env_;
  Block* outer = node->block();
  b_.move_to_end(node->body(0));
  Value* x = then();
  env_ = before;
  b_.move_to_end(node->body(1));
  Value* y = otherwise();
  env_ = before;
  TypePtr t = join(unknowns_, type(x), type(y));
  if (!t) {
    // As in Python, an int beside a float: the float wins.
    if (is_number(type(x)) && is_number(type(y)))
      t = Type::float_();
    else if ((type(x)->is(TypeKind::kTensor) && is_number(type(y))) ||
             (type(y)->is(TypeKind::kTensor) && is_number(type(x))))
      t = Type::tensor();
    else
      fail(where, cat(what, " gives '", name_of(type(x)), "' on one path and '", name_of(type(y)),
                      "' on the other"));
  }
  x = unify_at_end(node->body(0), x, t);
  y = unify_at_end(node->body(1), y, t);
  b_.move_to_end(node->body(0));
  b_.yield({x});
  b_.move_to_end(node->body(1));
  b_.yield({y});
  Value* out = node->add_output(t);
  b_.move_to_end(outer);
  return out;
}

}  // namespace prong::script
