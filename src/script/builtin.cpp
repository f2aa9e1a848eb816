// The builtins of the language: len, range, int, print, isinstance, getattr, torch.jit.fork, ...
#include "script/iterable.h"

namespace prong::script {

namespace {

Term iterable_term(IterablePtr it) {
  Term t;
  t.kind = Term::Kind::kIterable;
  t.iterable = std::move(it);
  return t;
}

}  // namespace

bool Emitter::special_call(const Named& n, const Expr& e, const TypePtr& hint, Term* result) {
  const std::string& name = n.name;
  const auto& a = e.arguments;
  if (name == "isinstance" || name == "jit.isinstance" || name == "callable") {
    *result = Term(condition(e).value);
    if (name == "callable") return false;
    return true;
  }
  if (name == "jit.fork") {
    if (a.empty())
      fail(e.range, "torch.jit.fork() needs a function to call", "write torch.jit.fork(f, x)");
    const Term callee = expr(*a[0].value);
    *result = fork(callee, evaluate_arguments(e, 1), e.range);
    return true;
  }
  if (name == "jit.annotate" || name == "typing.cast") {
    if (a.size() != 2) fail(e.range, cat(name, "() takes a type and a value"));
    const TypePtr t = type_expr(*a[0].value);
    *result = Term(expect(expr_value(*a[1].value, t), t, a[1].value->range, name));
    return true;
  }
  if (name == "hasattr" || name == "getattr") {
    if (a.size() < 2 || a[1].value->kind != ExprKind::kString) {
      const auto key = a.size() >= 2 ? known_text(expr(*a[1].value)) : std::nullopt;
      if (!key)
        unsupported(e.range,
                    cat(name, "() needs a name that is known when the function is compiled"),
                    "write the name as a text");
      const Term object = expr(*a[0].value);
      *result = name == "hasattr" ? Term(boolean(has_attribute(object, *key, e.range)))
                                  : attribute(object, *key, e.range);
      return true;
    }
    const Term object = expr(*a[0].value);
    const std::string& key = a[1].value->text;
    if (name == "hasattr")
      *result = Term(boolean(has_attribute(object, key, e.range)));
    else if (a.size() > 2 && !has_attribute(object, key, e.range))
      *result = expr(*a[2].value, hint);
    else
      *result = attribute(object, key, e.range);
    return true;
  }
  if (name == "sum" && a.size() == 1 && a[0].value->kind == ExprKind::kGenerator) {
    *result = builtin("sum", {{{}, expr(*a[0].value), a[0].value->range}}, e.range, hint);
    return true;
  }
  return false;
}

Value* Emitter::length_of(const Term& t, const Range& where) {
  if (t.kind == Term::Kind::kTuple) return integer(static_cast<int64_t>(t.items.size()));
  if (t.kind == Term::Kind::kIterable) return t.iterable->length(*this);
  Value* v = value(t, where);
  const TypePtr ty = type(v);
  if (ty->is(TypeKind::kTuple)) return integer(static_cast<int64_t>(ty->elements().size()));
  if (ty->is(TypeKind::kClass)) {
    const ClassEntry* entry = find_class(static_cast<const ClassType&>(*ty->class_info()));
    if (entry && entry->container != ContainerKind::kNone)
      return integer(static_cast<int64_t>(entry->keys.size()));
    return value(apply(attribute(Term(v), "__len__", where), {}, where), where);
  }
  return host("len", {v}, where);
}

Value* Emitter::to_list(const Term& t, const Range& where, const TypePtr& hint) {
  if (t.kind == Term::Kind::kGenerator) {
    auto list = std::make_shared<Expr>(*t.expression);
    list->kind = ExprKind::kListComp;
    return comprehension(*list, hint).value;
  }
  if (t.is_value() && type(t.value)->is(TypeKind::kList)) return t.value;
  const IterablePtr over = iterable(t, where);
  const TypePtr wanted = hint ? without_none(unknowns_.resolve(hint)) : TypePtr();
  const TypePtr element =
      wanted && wanted->is(TypeKind::kList) ? wanted->element() : unknowns_.fresh();
  at(where);
  if (const auto n = over->known_length(); n && (over->must_unroll() || *n <= 8)) {
    std::vector<Value*> items;
    for (int64_t i = 0; i < *n; ++i) {
      Value* v = value(over->item(*this, integer(i)), where);
      Value* c = convert(v, element);
      if (!c)
        fail(where, cat("the items are of different types: '", name_of(element), "' and '",
                        name_of(type(v)), "'"));
      items.push_back(c);
    }
    return b_.list(element, items);
  }
  Value* list = b_.list(element, {});
  for_each(over, {}, where, [&](const Term& item) {
    host("append", {list, value(item, where)}, where);
  });
  return list;
}

Term Emitter::builtin(const std::string& name, const GivenList& given, const Range& where,
                      const TypePtr& hint) {
  GivenList args = given;
  const size_t n = args.size();
  const auto arg = [&](size_t i) -> const Term& { return args[i].term; };
  const auto at_least = [&](size_t least, size_t most) {
    if (n < least || n > most)
      fail(where, cat(name, "() takes ", least == most ? cat(least) : cat(least, " to ", most),
                      " arguments but ", n, " were given"));
  };
  const auto values = [&] {
    std::vector<Value*> out;
    for (const Given& g : args) out.push_back(value(g.term, g.range));
    return out;
  };
  const auto keyword = [&](const char* word) -> const Given* {
    for (const Given& g : args)
      if (g.keyword == word) return &g;
    return nullptr;
  };

  if (name == "len") {
    at_least(1, 1);
    return Term(length_of(arg(0), where));
  }
  if (name == "range") {
    at_least(1, 3);
    auto r = std::make_shared<RangeItems>();
    std::vector<Value*> v = values();
    for (size_t i = 0; i < v.size(); ++i) {
      if (type(v[i])->is(TypeKind::kTensor)) v[i] = convert(v[i], Type::int_(), true);
      if (type(v[i])->is(TypeKind::kNumber)) v[i] = host("int", {v[i]}, where);
      v[i] = expect(v[i], Type::int_(), args[i].range, "range()");
    }
    r->start = n > 1 ? v[0] : integer(0);
    r->stop = n > 1 ? v[1] : v[0];
    r->step = n > 2 ? v[2] : integer(1);
    r->start_known = known_int(Term(r->start));
    r->stop_known = known_int(Term(r->stop));
    r->step_known = known_int(Term(r->step));
    return iterable_term(r);
  }
  if (name == "enumerate") {
    at_least(1, 2);
    return iterable_term(
        make_enumerate(iterable(arg(0), args[0].range), n > 1 ? value(arg(1), where) : nullptr));
  }
  if (name == "zip") {
    std::vector<IterablePtr> all;
    for (const Given& g : args) all.push_back(iterable(g.term, g.range));
    return iterable_term(make_zip(std::move(all)));
  }
  if (name == "reversed") {
    at_least(1, 1);
    return iterable_term(make_reversed(iterable(arg(0), args[0].range)));
  }
  if (name == "iter") {
    at_least(1, 1);
    return iterable_term(iterable(arg(0), args[0].range));
  }
  if (name == "int" || name == "float" || name == "bool") {
    if (n == 0)
      return Term(name == "int"     ? integer(0)
                  : name == "float" ? constant(IValue(0.0))
                                    : boolean(false));
    if (name == "bool") {
      at_least(1, 1);
      return Term(truth(arg(0), where).value);
    }
    Value* result = nullptr;
    const std::vector<Value*> v = values();
    if (v.size() == 1 && type(v[0])->is(TypeKind::kClass))
      return apply(attribute(Term(v[0]), cat("__", name, "__"), where), {}, where);
    if (try_host(name, v, where, &result)) return Term(result);
    const TypePtr t = type(v[0]);
    fail(where, cat(name, "() cannot be made of a value of type '", name_of(t), "'"),
         t->is(TypeKind::kOptional) ? "test it with 'is not None' first" : "");
  }
  if (name == "str" || name == "repr") {
    if (n == 0) return Term(text(""));
    at_least(1, 1);
    return Term(name == "str" ? to_text(arg(0), where) : host("repr", values(), where));
  }
  if (name == "list") {
    if (n == 0)
      return Term(b_.list(hint && without_none(hint)->is(TypeKind::kList)
                              ? without_none(hint)->element()
                              : unknowns_.fresh(),
                          {}));
    at_least(1, 1);
    if (arg(0).is_value() && type(arg(0).value)->is(TypeKind::kList))
      return Term(host("list", {arg(0).value}, where));
    return Term(to_list(arg(0), where, hint));
  }
  if (name == "tuple") {
    if (n == 0) return Term::tuple({});
    at_least(1, 1);
    if (arg(0).kind == Term::Kind::kTuple) return arg(0);
    if (arg(0).is_value() && type(arg(0).value)->is(TypeKind::kTuple)) return arg(0);
    const IterablePtr over = iterable(
        arg(0).kind == Term::Kind::kGenerator ? Term(to_list(arg(0), where)) : arg(0), where);
    const auto length = over->known_length();
    if (!length)
      unsupported(where,
                  "tuple() of something whose length is not known when the function is compiled",
                  "keep it a list");
    std::vector<Term> items;
    for (int64_t i = 0; i < *length; ++i) items.push_back(over->item(*this, integer(i)));
    return Term::tuple(std::move(items));
  }
  if (name == "dict") {
    const bool typed = hint && without_none(hint)->is(TypeKind::kDict);
    if (n == 0)
      return Term(b_.dict(typed ? without_none(hint)->elements()[0] : unknowns_.fresh(),
                          typed ? without_none(hint)->elements()[1] : unknowns_.fresh(), {}));
    if (!args[0].keyword.empty()) {
      std::vector<Value*> flat;
      const TypePtr val = unknowns_.fresh();
      for (const Given& g : args) {
        flat.push_back(text(g.keyword));
        flat.push_back(expect(value(g.term, g.range), val, g.range, "a value of this dict"));
      }
      return Term(b_.dict(Type::str(), val, flat));
    }
    at_least(1, 1);
    if (arg(0).is_value() && type(arg(0).value)->is(TypeKind::kDict))
      return Term(host("dict", {arg(0).value}, where));
    return Term(host("dict", {to_list(arg(0), where)}, where));
  }
  if (name == "set" || name == "frozenset")
    unsupported(where, "sets are not available in scripts",
                "use a list, or a dict with the items as keys");
  if (name == "print") {
    std::vector<Term> items;
    Value* sep = text(" ");
    Value* end = text("\n");
    for (const Given& g : args) {
      if (g.keyword == "sep")
        sep = value(g.term, g.range);
      else if (g.keyword == "end")
        end = value(g.term, g.range);
      else if (g.keyword.empty())
        items.push_back(Term(value(g.term, g.range)));
      else
        unsupported(g.range, cat("print() in scripts has no '", g.keyword, "'"),
                    "it takes sep and end");
    }
    host("print", {value(Term::tuple(std::move(items)), where), sep, end}, where);
    return Term(b_.none());
  }
  if (name == "min" || name == "max") {
    if (n == 1 && args[0].keyword.empty()) {
      if (arg(0).is_value() && type(arg(0).value)->is(TypeKind::kTensor))
        return Term(op(name, {arg(0).value}, where));
      return Term(host(name, {to_list(arg(0), where)}, where));
    }
    std::vector<Value*> v = values();
    Value* best = v[0];
    for (size_t i = 1; i < v.size(); ++i) {
      if (type(best)->is(TypeKind::kTensor) || type(v[i])->is(TypeKind::kTensor)) {
        // As in Python: the one that compares so.
        Value* other = v[i];
        Value* mine = best;
        Value* take =
            truth(Term(compare(name == "min" ? "<" : ">", Term(other), Term(mine), where)), where)
                .value;
        best = if_value(
            take, [&] { return other; }, [&] { return mine; }, where, name);
      } else {
        best = host(name, {best, v[i]}, where);
      }
    }
    return Term(best);
  }
  if (name == "abs") {
    at_least(1, 1);
    Value* v = value(arg(0), where);
    return Term(type(v)->is(TypeKind::kTensor) ? op("abs", {v}, where) : host("abs", {v}, where));
  }
  if (name == "sum") {
    at_least(1, 2);
    if (arg(0).is_value() && type(arg(0).value)->is(TypeKind::kTensor))
      return Term(op("sum", {arg(0).value}, where));
    Value* list = to_list(arg(0), where);
    const TypePtr element = type(list)->element();
    Value* start = n > 1 ? value(arg(1), where) : integer(0);
    Value* result = nullptr;
    if (is_number(element) &&
        try_host("sum", n > 1 ? std::vector<Value*>{list, start} : std::vector<Value*>{list}, where,
                 &result))
      return Term(result);
    // Of tensors and others with '+': one after the other.
    at(where);
    const TypePtr t = element->is(TypeKind::kTensor) ? Type::tensor() : type(start);
    Node* node =
        b_.loop(host("len", {list}, where), boolean(true), std::vector<Value*>{cast(start, t)});
    Block* outer = node->block();
    b_.move_to_end(node->body());
    Value* item = host("getitem", {list, node->body()->parameter(0)}, where);
    Value* total = binary("+", Term(node->body()->parameter(1)), Term(item), where);
    b_.yield({boolean(true), total});
    b_.move_to_end(outer);
    return Term(node->output(0));
  }
  if (name == "any" || name == "all") {
    at_least(1, 1);
    if (arg(0).is_value() && type(arg(0).value)->is(TypeKind::kTensor))
      return Term(op(name, {arg(0).value}, where));
    Value* list = to_list(arg(0), where);
    if (type(list)->element()->is(TypeKind::kTensor)) {
      Value* bools = b_.list(Type::bool_(), {});
      for_each(iterable(Term(list), where), {}, where, [&](const Term& item) {
        host("append", {bools, truth(item, where).value}, where);
      });
      list = bools;
    }
    return Term(host(name, {list}, where));
  }
  if (name == "sorted") {
    if (keyword("key"))
      unsupported(where, "sorted() with a key is not available in scripts",
                  "sort a list of tuples (key, index)");
    GivenList typed = args;
    typed[0].term = Term(to_list(arg(0), where));
    return Term(call_host("sorted", nullptr, typed, where));
  }
  if (name == "super") {
    const auto self =
        env_.find(entry_.ast->parameters.empty() ? "" : entry_.ast->parameters[0].name);
    if (self == env_.end() || !entry_.self) fail(where, "super() stands only in methods");
    Term t;
    t.kind = Term::Kind::kSuper;
    t.value = self->second.term.value;
    return t;
  }
  if (name == "jit.wait") {
    at_least(1, 1);
    return Term(wait(arg(0), where));
  }
  if (name == "futures.wait_all") {
    at_least(1, 1);
    Value* list = to_list(arg(0), where);
    const TypePtr element = type(list)->element();
    if (Unknowns::is_unknown(element)) unknowns_.equate(element, Type::future(unknowns_.fresh()));
    if (!unknowns_.resolve(element)->is(TypeKind::kFuture))
      fail(where, cat("wait_all() needs a list of Futures but got '", name_of(type(list)), "'"));
    Value* out = b_.list(unknowns_.resolve(element)->element(), {});
    for_each(iterable(Term(list), where), {}, where, [&](const Term& item) {
      host("append", {out, wait(item, where)}, where);
    });
    return Term(out);
  }
  if (name == "futures.collect_all") {
    at_least(1, 1);
    return Term(host("collect_all", {to_list(arg(0), where)}, where));
  }
  if (name == "jit.is_scripting") return Term(boolean(true));
  if (name == "jit.is_tracing" || name == "false") return Term(boolean(false));
  if (name == "jit.fork" || name == "jit.annotate" || name == "isinstance" || name == "getattr" ||
      name == "hasattr")
    fail(where, cat("'", name, "' has to be called by its name"));
  if (name == "torch.tensor") {
    // Data may be a number, a tensor or nested lists of numbers.
    GivenList typed = args;
    std::erase_if(
        typed, [](const Given& g) { return g.keyword == "device" || g.keyword == "pin_memory"; });
    const Given* grad = nullptr;
    for (const Given& g : typed)
      if (g.keyword == "requires_grad") grad = &g;
    Value* wants_grad = grad ? value(grad->term, where) : nullptr;
    std::erase_if(typed, [](const Given& g) { return g.keyword == "requires_grad"; });
    if (typed.empty()) fail(where, "torch.tensor() needs its data");
    for (Given& g : typed) {
      if (g.keyword.empty() || g.keyword == "data")
        g.term = Term(value(
            g.term.kind == Term::Kind::kTuple ? Term(to_list(g.term, where)) : g.term, g.range));
      if (g.keyword == "data") g.keyword.clear();
    }
    for (Given& g : typed)
      if (g.keyword == "dtype" && g.term.kind == Term::Kind::kNamed &&
          g.term.named.kind == Named::Kind::kBuiltin)
        g.term = Term(constant(IValue(g.term.named.name == "float" ? default_dtype()
                                      : g.term.named.name == "int" ? DType::kInt64
                                                                   : DType::kBool)));
    Value* made = call_host("tensor", nullptr, typed, where);
    if (wants_grad) made = op("requires_grad_", {made, wants_grad}, where);
    return Term(made);
  }
  if (name == "torch.is_tensor") {
    at_least(1, 1);
    return Term(boolean(arg(0).is_value() && type(arg(0).value)->is(TypeKind::kTensor)));
  }
  if (name == "torch.Size") {
    at_least(0, 1);
    return Term(n ? to_list(arg(0), where, Type::list(Type::int_())) : b_.list(Type::int_(), {}));
  }
  if (name == "torch.device") {
    at_least(1, 2);
    return Term(b_.constant(IValue("cpu"), Type::device()));
  }
  if (name == "identity") {  // typing.cast and the like, once the type has been read
    at_least(1, 1);
    return arg(0);
  }
  if (name.starts_with("manager:")) return Term(call_host(name.substr(8), nullptr, args, where));
  if (name.starts_with("host:")) return Term(call_host(name.substr(5), nullptr, args, where));
  if (!host_registry().overloads(name).empty()) return Term(call_host(name, nullptr, args, where));
  fail(where, cat("'", name, "' is not available in scripts"));
}

}  // namespace prong::script
