// Calls: evaluating arguments, binding them to a signature, functions, methods, classes, named
// tuples.
#include "script/op_call.h"

namespace prong::script {

GivenList Emitter::evaluate_arguments(const Expr& e, size_t skip) {
  GivenList out;
  for (size_t i = skip; i < e.arguments.size(); ++i) {
    const CallArgument& a = e.arguments[i];
    if (a.is_double_star) {
      if (a.value->kind != ExprKind::kDict)
        unsupported(a.value->range, "'**' of a dict is not available in scripts",
                    "write the keyword arguments out");
      for (size_t k = 0; k + 1 < a.value->items.size(); k += 2) {
        if (!a.value->items[k] || a.value->items[k]->kind != ExprKind::kString)
          fail(a.value->range, "the keys after '**' are to be texts");
        out.push_back(
            {a.value->items[k]->text, expr(*a.value->items[k + 1]), a.value->items[k + 1]->range});
      }
      continue;
    }
    Term t = expr(*a.value);
    if (!a.is_star) {
      out.push_back({a.keyword, std::move(t), a.value->range});
      continue;
    }
    const IterablePtr over = iterable(t, a.value->range);
    const auto n = over->known_length();
    if (!n)
      unsupported(
          a.value->range,
          cat("'*' of ", describe(t), ", whose length is not known when the function is compiled"),
          "give a tuple, or write the arguments out");
    for (int64_t k = 0; k < *n; ++k)
      out.push_back({{}, over->item(*this, integer(k)), a.value->range});
  }
  return out;
}

Term Emitter::call(const Expr& e, const TypePtr& hint) {
  const Term callee = expr(*e.items[0]);
  if (callee.kind == Term::Kind::kNamed && callee.named.kind == Named::Kind::kBuiltin) {
    Term result;
    if (special_call(callee.named, e, hint, &result)) return result;
  }
  const GivenList args = evaluate_arguments(e);
  at(e.range);
  return apply(callee, args, e.range, hint);
}

std::vector<Value*> Emitter::bind(const std::string& callee, const Schema& s, Value* self,
                                  const GivenList& args, const Range& where, bool loose) {
  Placed placed;
  const std::string problem = place_arguments(s, self ? 1 : 0, args, false, placed);
  if (!problem.empty()) {
    Range at_fault = where;
    for (const Given& g : args)
      if (!g.keyword.empty() && problem.find(cat("'", g.keyword, "'")) != std::string::npos)
        at_fault = g.range;
    fail(at_fault, cat(callee, "(): ", problem, "\n    its signature is ", s.str()));
  }
  std::vector<Value*> inputs;
  for (size_t i = 0; i < s.arguments.size(); ++i) {
    const Argument& formal = s.arguments[i];
    if (i == 0 && self) {
      inputs.push_back(self);
      continue;
    }
    if (placed.terms[i].kind == Term::Kind::kNothing) {
      inputs.push_back(constant_of(formal.default_value, formal.type, where));
      continue;
    }
    Value* v = value(placed.terms[i], placed.ranges[i], formal.type);
    if (loose)
      if (Value* converted = convert(v, formal.type, true)) v = converted;
    inputs.push_back(expect(v, formal.type, placed.ranges[i],
                            cat("argument '", formal.name, "' of ", callee, "()")));
  }
  at(where);
  return inputs;
}

Value* Emitter::call_function(Function& f, Value* self, const GivenList& args, const Range& where) {
  const std::vector<Value*> inputs = bind(f.name(), f.schema(), self, args, where, false);
  return b_.call(Ref<Function>(&f), inputs);
}

Ref<Function> Emitter::function_of(const Named& n, const Range& where) {
  if (n.function) return n.function;
  FunctionEntry& callee = *n.entry;
  if (callee.state == FunctionEntry::State::kActive && !callee.has_declared_result &&
      callee.function->schema().results.empty())
    fail(where, cat("the result of the recursive function '", callee.name, "' is not known yet"),
         cat("annotate it: def ", callee.name, "(...) -> int:"));
  try {
    return compile(callee);
  } catch (const Error& error) {
    throw Error(error.kind(), cat(error.message(), "\n  '", callee.name, "' is used here:\n",
                                  show(where, entry_.name)));
  }
}

// What a call of an instance means: a module has a __call__ where hooks stand around its forward.
const char* Emitter::called_method(const ClassType& cls) {
  if (cls.kind == ClassType::Kind::kClass || cls.find_method("__call__")) return "__call__";
  const ClassEntry* entry = find_class(cls);
  return entry && entry->source && entry->source->member("__call__").is_method ? "__call__"
                                                                               : "forward";
}

Term Emitter::apply(const Term& callee, const GivenList& args, const Range& where,
                    const TypePtr& hint) {
  switch (callee.kind) {
  case Term::Kind::kNamed:
    return apply_named(callee.named, args, where, hint);
  case Term::Kind::kBound: {
    const Named& n = callee.named;
    if (n.kind == Named::Kind::kPython) {
      std::vector<Value*> inputs = bind(n.name, n.signature, callee.value, args, where, true);
      return Term(b_.call_python(n.callable, inputs, n.signature.results[0]));
    }
    return Term(call_function(*function_of(n, where), callee.value, args, where));
  }
  case Term::Kind::kMethod: {
    Value* self = callee.value;
    const TypePtr t = type(self);
    if (t->is(TypeKind::kFuture)) {
      Term result;
      if (future_method(self, callee.name, args, where, &result)) return result;
    }
    if (t->is(TypeKind::kClass)) {  // an interface: found when it runs
      auto& cls = static_cast<ClassType&>(*t->class_info());
      if (const ClassEntry* entry = find_class(cls);
          entry && entry->container == ContainerKind::kDict) {
        // keys(), values(), items() of a ModuleDict, known while compiling.
        std::vector<Term> items;
        for (const std::string& key : entry->keys) {
          const Term module = callee.name == "keys" ? Term() : object_attribute(self, key, where);
          if (callee.name == "keys")
            items.emplace_back(text(key));
          else
            items.push_back(callee.name == "values" ? module
                                                    : Term::tuple({Term(text(key)), module}));
        }
        return Term::tuple(std::move(items));
      }
      Function* declared = cls.find_method(callee.name);
      PRONG_ASSERT(declared, "an interface method without a signature");
      std::vector<Value*> inputs = bind(callee.name, declared->schema(), self, args, where, false);
      return Term(b_.call_method(self, callee.name, std::span<Value* const>(inputs).subspan(1),
                                 declared->schema().results[0]));
    }
    if (t->is(TypeKind::kTensor)) {
      if (callee.name == "size" && args.size() == 1 && args[0].keyword.empty())
        return Term(call_op("size", self, args, where));
      return Term(call_op(callee.name, self, args, where));
    }
    if (t->is(TypeKind::kStr) && callee.name == "format") {
      std::vector<Term> items;
      for (const Given& g : args) {
        if (!g.keyword.empty())
          unsupported(g.range, "keywords of str.format are not available in scripts",
                      "use positions, or an f-string");
        items.push_back(Term(value(g.term, g.range)));
      }
      return Term(host("str_format", {self, value(Term::tuple(std::move(items)), where)}, where));
    }
    if (t->is(TypeKind::kStr) && callee.name == "join" && args.size() == 1)
      return Term(host("join", {self, to_list(args[0].term, where)}, where));
    if (t->is(TypeKind::kList) && callee.name == "extend" && args.size() == 1)
      return Term(host("extend", {self, to_list(args[0].term, where, t)}, where));
    if (t->is(TypeKind::kList) && (callee.name == "append" || callee.name == "insert") &&
        !args.empty()) {
      GivenList typed = args;
      Given& last = typed.back();
      last.term = Term(value(last.term, last.range, t->element()));
      if (Value* c = convert(last.term.value, t->element())) last.term = Term(c);
      return Term(call_host(callee.name, self, typed, where));
    }
    return Term(call_host(callee.name, self, args, where));
  }
  case Term::Kind::kValue: {
    const TypePtr t = type(callee.value);
    if (t->is(TypeKind::kClass)) {
      const auto& cls = static_cast<const ClassType&>(*t->class_info());
      return apply(object_attribute(callee.value, called_method(cls), where), args, where, hint);
    }
    fail(where, cat("cannot call a value of type '", name_of(t), "'"),
         t->is(TypeKind::kTensor) ? "give a function or a module" : "");
  }
  default:
    fail(where, cat("cannot call ", describe(callee)));
  }
}

Term Emitter::apply_named(const Named& n, const GivenList& args, const Range& where,
                          const TypePtr& hint) {
  switch (n.kind) {
  case Named::Kind::kOp:
    return Term(call_op(n.name, nullptr, args, where));
  case Named::Kind::kBuiltin:
    return builtin(n.name, args, where, hint);
  case Named::Kind::kFunction:
  case Named::Kind::kCompiled:
    return Term(call_function(*function_of(n, where), nullptr, args, where));
  case Named::Kind::kPython: {
    std::vector<Value*> inputs = bind(n.name, n.signature, nullptr, args, where, true);
    return Term(b_.call_python(n.callable, inputs, n.signature.results[0]));
  }
  case Named::Kind::kClass:
    return instantiate(n, args, where);
  case Named::Kind::kNamedTuple:
    return make_named_tuple(n, args, where);
  case Named::Kind::kObject:
    return apply(Term(value(Term::of(n), where)), args, where, hint);
  case Named::Kind::kUnsupported:
    unsupported(where, n.name, {});
  case Named::Kind::kConstant:
    fail(where, cat("cannot call a value of type '", n.type->str_(), "'"));
  default:
    fail(where, cat("cannot call ", describe(Term::of(n))));
  }
}

Term Emitter::instantiate(const Named& n, const GivenList& args, const Range& where) {
  auto& cls = static_cast<ClassType&>(*n.type->class_info());
  ClassEntry* entry = find_class(cls);
  PRONG_ASSERT(entry, "a class without an entry: ", n.name);
  const Ref<Function> init = method_of(cls, "__init__");
  entry->is_initialized = true;
  at(where);
  Value* object = b_.new_object(n.type);
  if (init)
    call_function(*init, object, args, where);
  else if (!args.empty())
    fail(where, cat(n.name, "() takes no arguments"));
  return Term(object);
}

Term Emitter::make_named_tuple(const Named& n, const GivenList& args, const Range& where) {
  Schema s;
  s.name = n.name;
  const auto& fields = n.type->fields();
  for (size_t i = 0; i < fields.size(); ++i) {
    Argument a;
    a.name = fields[i];
    a.type = n.type->elements()[i];
    const size_t first_default = fields.size() - n.defaults.size();
    if (i >= first_default) {
      a.has_default = true;
      a.default_value = n.defaults[i - first_default];
    }
    s.arguments.push_back(std::move(a));
  }
  s.results = {n.type};
  return Term(b_.named_tuple(n.type, bind(n.name, s, nullptr, args, where, false)));
}

}  // namespace prong::script
