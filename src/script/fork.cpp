// fork, wait and what futures can do in scripts.
#include "script/emitter.h"

namespace prong::script {

Term Emitter::fork(const Term& callee, const GivenList& args, const Range& where) {
  at(where);
  // What has a compiled function of its own is started directly.
  const Named* named = nullptr;
  Value* self = nullptr;
  Term target = callee;
  if (target.is_value() && type(target.value)->is(TypeKind::kClass)) {
    const auto& cls = static_cast<const ClassType&>(*type(target.value)->class_info());
    target = object_attribute(target.value, called_method(cls), where);
  } else if (target.kind == Term::Kind::kNamed && target.named.kind == Named::Kind::kObject) {
    Value* object = value(target, where);
    const auto& cls = static_cast<const ClassType&>(*type(object)->class_info());
    target = object_attribute(object, called_method(cls), where);
  }
  if (target.kind == Term::Kind::kNamed) named = &target.named;
  if (target.kind == Term::Kind::kBound) {
    named = &target.named;
    self = target.value;
  }
  if (named && (named->kind == Named::Kind::kFunction || named->kind == Named::Kind::kCompiled)) {
    const Ref<Function> f = function_of(*named, where);
    return Term(b_.fork(f, bind(f->name(), f->schema(), self, args, where, false)));
  }
  if (target.kind == Term::Kind::kMethod && type(target.value)->is(TypeKind::kClass)) {
    auto& cls = static_cast<ClassType&>(*type(target.value)->class_info());
    Function* declared = cls.find_method(target.name);
    PRONG_ASSERT(declared, "an interface method without a signature");
    std::vector<Value*> inputs =
        bind(target.name, declared->schema(), target.value, args, where, false);
    return Term(b_.fork_method(target.value, target.name,
                               std::span<Value* const>(inputs).subspan(1),
                               declared->schema().results[0]));
  }
  if (target.is_value()) {
    fail(where,
         cat("cannot call a value of type '", name_of(type(target.value)),
             "': torch.jit.fork needs something that can be called"),
         "give the function first and its arguments after it: torch.jit.fork(f, x)");
  }
  // Anything else is called inside a block of its own: ops, tensor methods, builtins, classes.
  std::vector<Value*> inputs;
  const auto capture = [&](const Term& t, auto&& again) -> void {
    if (t.kind == Term::Kind::kTuple)
      for (const Term& item : t.items) again(item, again);
    else if (t.is_value())
      inputs.push_back(t.value);
  };
  GivenList evaluated = args;
  for (Given& g : evaluated) {
    if (g.term.kind == Term::Kind::kGenerator || g.term.kind == Term::Kind::kIterable)
      g.term = Term(value(g.term, g.range));
    capture(g.term, capture);
  }
  if (target.value) inputs.push_back(target.value);
  Node* node = b_.fork_block(inputs, Type::tensor());
  Block* outer = node->block();
  b_.move_to_end(node->body());
  size_t next = 0;
  const auto replace = [&](Term& t, auto&& again) -> void {
    if (t.kind == Term::Kind::kTuple)
      for (Term& item : t.items) again(item, again);
    else if (t.is_value()) {
      // Constants stay known inside.
      Value* given = t.value;
      Value* parameter = node->body()->parameter(next++);
      t.value =
          given->constant() && !given->constant()->is_object() && !given->constant()->is_tensor()
              ? b_.constant(*given->constant(), given->type())
              : parameter;
    }
  };
  for (Given& g : evaluated) replace(g.term, replace);
  if (target.value) target.value = node->body()->parameter(next++);
  Value* result = value(apply(target, evaluated, where), where);
  b_.yield({result});
  node->output()->set_type(Type::future(type(result)));
  b_.move_to_end(outer);
  return Term(node->output());
}

Value* Emitter::wait(const Term& t, const Range& where) {
  Value* v = value(t, where);
  const TypePtr ty = type(v);
  if (ty->is(TypeKind::kOptional) && ty->element()->is(TypeKind::kFuture))
    fail(where,
         cat("cannot wait for a value of type '", name_of(ty), "': it may be None, not a Future"),
         "test it with 'is not None' first");
  if (Unknowns::is_unknown(ty)) unknowns_.equate(ty, Type::future(unknowns_.fresh()));
  if (!type(v)->is(TypeKind::kFuture))
    fail(where, cat("wait() needs a Future but got a value of type '", name_of(ty), "'"),
         "wait for what torch.jit.fork gave");
  at(where);
  Value* result = b_.wait(v);
  result->set_type(type(v)->element());
  return result;
}

bool Emitter::future_method(Value* self, const std::string& name, const GivenList& args,
                            const Range& where, Term* result) {
  if (name == "wait" && args.empty()) {
    *result = Term(wait(Term(self), where));
    return true;
  }
  if (name == "value" && args.empty()) {
    // Done already, or an error, as in Python; waiting covers the first and cannot give less.
    *result = Term(wait(Term(self), where));
    return true;
  }
  if (name == "done" && args.empty()) {
    *result = Term(host("done", {self}, where));
    return true;
  }
  if (name == "then" && args.size() == 1) {
    // A task that waits for this one and calls the function with it.
    const Term& f = args[0].term;
    *result = fork(f, {{{}, Term(self), where}}, where);
    return true;
  }
  fail(where, cat("futures in scripts have no '", name, "'"),
       "they have wait, value, done and then");
}

}  // namespace prong::script
