// Statements in order, and how they end: return, break, continue and raise become values of
// "$skip", "$stop",
// "$returned" and "$result", so that the graph needs nothing but ifs.
#include "script/emitter.h"

namespace prong::script {

// Attributes count by their dotted names, since facts about them end with an assignment.
void names_of_target(const Expr& target, std::set<std::string>& names) {
  if (target.kind == ExprKind::kName) names.insert(target.text);
  if (target.kind == ExprKind::kAttribute) names.insert(dotted_name(target));
  if (target.kind == ExprKind::kTuple || target.kind == ExprKind::kList ||
      target.kind == ExprKind::kStarred)
    for (const ExprPtr& item : target.items) names_of_target(*item, names);
}

namespace {

void names_in_expr(const Expr& e, std::set<std::string>& names) {
  if (e.kind == ExprKind::kWalrus) names.insert(e.text);
  for (const ExprPtr& item : e.items)
    if (item) names_in_expr(*item, names);
  for (const CallArgument& a : e.arguments) names_in_expr(*a.value, names);
}

void collect(const Suite& block, bool in_inner_loop, Assigned& out) {
  for (const StmtPtr& s : block) {
    if (s->value) names_in_expr(*s->value, out.names);
    if (s->kind != StmtKind::kDelete)
      for (const ExprPtr& t : s->targets) names_of_target(*t, out.names);
    for (const WithItem& item : s->items)
      if (item.target) names_of_target(*item.target, out.names);
    if (s->kind == StmtKind::kReturn) out.has_return = true;
    if (s->kind == StmtKind::kBreak && !in_inner_loop) out.has_break = true;
    if (s->kind == StmtKind::kContinue && !in_inner_loop) out.has_continue = true;
    const bool is_loop = s->kind == StmtKind::kFor || s->kind == StmtKind::kWhile;
    collect(s->body, in_inner_loop || is_loop, out);
    collect(s->orelse, in_inner_loop, out);
  }
}

}  // namespace

Assigned assigned_in(const Suite& block) {
  Assigned out;
  collect(block, false, out);
  return out;
}

Flow Emitter::statements(const Suite& block, size_t from) {
  for (size_t i = from; i < block.size(); ++i) {
    const Stmt& s = *block[i];
    Flow flow;
    if (s.kind == StmtKind::kIf) {
      // What follows may belong into one of the two branches; then it was emitted there.
      bool took_rest = false;
      flow = if_statement(s, block, i + 1, &took_rest);
      if (took_rest) return flow;
    } else {
      flow = statement(s);
    }
    if (flow == Flow::kExits || flow == Flow::kRaises) return flow;
    if (flow == Flow::kMaybe)
      return i + 1 == block.size() ? flow : rest_unless_skipped(block, i + 1);
  }
  return Flow::kFalls;
}

Flow Emitter::rest_unless_skipped(const Suite& block, size_t from) {
  const Range& where = block[from]->range;
  at(where);
  Node* node = b_.if_(value(env_.at("$skip").term, where));
  Branch left{node->body(0), env_, Flow::kExits};
  Branch goes_on{node->body(1), env_};
  enter(goes_on);
  // Inside this branch nothing was skipped.
  set_exit(false, false, false);
  goes_on.flow = statements(block, from);
  leave(goes_on);
  merge(node, left, goes_on, where);
  return goes_on.flow == Flow::kExits || goes_on.flow == Flow::kRaises ? Flow::kExits
                                                                       : Flow::kMaybe;
}

void Emitter::set_exit(bool skip, bool stop, bool returned) {
  env_["$skip"].term = Term(boolean(skip));
  env_["$stop"].term = Term(boolean(stop));
  env_["$returned"].term = Term(boolean(returned));
}

Flow Emitter::statement(const Stmt& s) {
  at(s.range);
  switch (s.kind) {
  case StmtKind::kExpr: {
    // torch.set_grad_enabled(False) as a statement takes effect at once; in "with" it is a context
    // manager.
    if (s.value->kind == ExprKind::kCall && s.value->arguments.size() == 1 &&
        dotted_name(*s.value->items[0]).ends_with("set_grad_enabled")) {
      const Term callee = expr(*s.value->items[0]);
      if (callee.kind == Term::Kind::kNamed && callee.named.name == "manager:set_grad_enabled") {
        host("switch_grad", {expr_value(*s.value->arguments[0].value)}, s.range);
        return Flow::kFalls;
      }
    }
    expr(*s.value);
    return Flow::kFalls;
  }
  case StmtKind::kAssign:
    assign_statement(s);
    return Flow::kFalls;
  case StmtKind::kAnnotated:
    annotated(s);
    return Flow::kFalls;
  case StmtKind::kAugmented:
    augmented(s);
    return Flow::kFalls;
  case StmtKind::kIf: {
    bool took_rest = false;
    return if_statement(s, {}, 0, &took_rest);
  }
  case StmtKind::kFor:
    return for_statement(s);
  case StmtKind::kWhile:
    return while_statement(s);
  case StmtKind::kReturn:
    return return_(s);
  case StmtKind::kRaise:
    return raise(s);
  case StmtKind::kAssert:
    assert_(s);
    return Flow::kFalls;
  case StmtKind::kPass:
    return Flow::kFalls;
  case StmtKind::kBreak:
    set_exit(true, true, false);
    return Flow::kExits;
  case StmtKind::kContinue:
    set_exit(true, false, false);
    return Flow::kExits;
  case StmtKind::kWith:
    return with_statement(s, 0);
  case StmtKind::kDelete:
    delete_targets(s);
    return Flow::kFalls;
  case StmtKind::kFunction:
    unsupported(s.range,
                cat("the function '", s.function->name, "' is defined inside a scripted function"),
                "move the def out of the function, to the top of the file");
  case StmtKind::kClass:
    unsupported(s.range,
                cat("the class '", s.class_->name, "' is defined inside a scripted function"),
                "move the class out of the function and decorate it with @torch.jit.script");
  case StmtKind::kUnsupported:
    break;
  }
  if (s.text == "try")
    unsupported(
        s.range, "try is not available in scripts",
        "test for the error beforehand, or put the try into a function marked @torch.jit.ignore");
  if (s.text == "import" || s.text == "from")
    unsupported(s.range, "import is not available inside scripted functions",
                "move the import to the top of the file");
  unsupported(s.range, cat("'", s.text, "' is not available in scripts"),
              "pass the value as an argument and return the new one");
}

Flow Emitter::return_(const Stmt& s) {
  Value* result = nullptr;
  if (!s.value) {
    result = b_.none();
    if (s.text == "implicit" && entry_.has_declared_result &&
        !unknowns_.fits(Type::none(), result_))
      fail(s.range,
           cat("the function '", entry_.name, "' may end without a return, but its result is '",
               name_of(result_), "'"),
           "add a return or a raise at its end");
    if (s.text == "implicit" && result_ && !entry_.has_declared_result &&
        !result_->is(TypeKind::kNone) && entry_.ast)
      note_result(Type::none(), s.range);
  } else {
    Term t = expr(*s.value, result_);
    result = value(t, s.value->range, result_);
  }
  if (entry_.has_declared_result)
    result = expect(result, result_, s.value ? s.value->range : s.range, "return");
  else
    note_result(type(result), s.range);
  env_["$result"].term = Term(result);
  set_exit(true, true, true);
  return Flow::kExits;
}

Flow Emitter::raise(const Stmt& s) {
  if (!s.value)
    unsupported(s.range, "raise without an exception is not available in scripts",
                "name the exception: raise RuntimeError(\"...\")");
  const Expr& e = *s.value;
  const bool is_call = e.kind == ExprKind::kCall;
  const Term callee = expr(is_call ? *e.items[0] : e);
  if (callee.kind != Term::Kind::kNamed || callee.named.kind != Named::Kind::kException)
    fail(e.range, "raise takes an exception class or an instance made where it is raised",
         "write raise ValueError(\"...\")");
  Value* message = nullptr;
  if (is_call) {
    const GivenList args = evaluate_arguments(e);
    if (args.size() == 1)
      message = to_text(args[0].term, args[0].range);
    else if (args.size() > 1) {
      std::vector<Term> items;
      for (const Given& g : args) items.push_back(g.term);
      message = to_text(Term::tuple(std::move(items)), e.range);
    }
  }
  at(s.range);
  b_.raise(callee.named.name, message ? message : text(""), callee.named.object);
  return Flow::kRaises;
}

void Emitter::assert_(const Stmt& s) {
  const Condition c = condition(*s.value);
  if (c.known == true) return learn(c.if_true);
  // The message is made only where it is needed; a plain text needs no branch.
  if (!s.message || s.message->kind == ExprKind::kString) {
    at(s.range);
    b_.assert_(c.value, text(s.message ? s.message->text : ""));
  } else {
    at(s.range);
    Node* node = b_.if_(c.value);
    Branch fine{node->body(0), env_}, bad{node->body(1), env_, Flow::kRaises};
    enter(bad);
    Value* message = to_text(expr(*s.message), s.message->range);
    at(s.range);
    b_.raise("AssertionError", message);
    leave(bad);
    merge(node, fine, bad, s.range);
  }
  learn(c.if_true);
}

}  // namespace prong::script
