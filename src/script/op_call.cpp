// Calls of tensor ops and of operations of the language: choosing the overload, converting the
// arguments.
#include "script/op_call.h"

namespace prong::script {

namespace {

bool is_missing(const Term& t) { return t.kind == Term::Kind::kNothing; }

// dtype=float means torch.float32, as PyTorch reads Python's own types.
std::optional<DType> dtype_of_builtin(const Term& t) {
  if (t.kind != Term::Kind::kNamed || t.named.kind != Named::Kind::kBuiltin) return std::nullopt;
  if (t.named.name == "float") return default_dtype();
  if (t.named.name == "int") return DType::kInt64;
  if (t.named.name == "bool") return DType::kBool;
  return std::nullopt;
}

}  // namespace

std::string place_arguments(const Schema& s, size_t skip, const GivenList& given, bool varargs_ints,
                            Placed& out) {
  out.terms.assign(s.arguments.size(), Term());
  out.ranges.assign(s.arguments.size(), Range());
  size_t next = skip;
  const size_t positional = static_cast<size_t>(s.num_positional());
  size_t count = 0;
  for (const Given& g : given) count += g.keyword.empty();
  const bool spread = varargs_ints && count > 1 && s.takes_varargs_ints(static_cast<int>(skip));
  for (const Given& g : given) {
    if (g.keyword.empty()) {
      if (spread) {
        Term& list = out.terms[skip];
        if (is_missing(list)) list = Term::tuple({});
        list.items.push_back(g.term);
        out.ranges[skip] = g.range;
        continue;
      }
      if (next >= positional)
        return cat("takes at most ", positional - skip, " positional arguments but ", count,
                   " were given");
      out.terms[next] = g.term;
      out.ranges[next++] = g.range;
      continue;
    }
    const int at = s.find(g.keyword);
    if (at < 0) return cat("unknown argument '", g.keyword, "'");
    if (static_cast<size_t>(at) < skip || !is_missing(out.terms[static_cast<size_t>(at)]))
      return cat("argument '", g.keyword, "' is given twice");
    out.terms[static_cast<size_t>(at)] = g.term;
    out.ranges[static_cast<size_t>(at)] = g.range;
  }
  for (size_t i = skip; i < s.arguments.size(); ++i)
    if (is_missing(out.terms[i]) && !s.arguments[i].has_default)
      return cat("missing value for argument '", s.arguments[i].name, "'");
  return {};
}

bool fits_argument(Emitter& e, const Term& t, const Argument& formal, int level) {
  Unknowns& u = e.unknowns();
  const TypePtr want = without_none(formal.type);
  if (t.kind == Term::Kind::kTuple) {
    if (want->is(TypeKind::kList)) {
      Argument item;
      item.type = want->element();
      for (const Term& x : t.items)
        if (!fits_argument(e, x, item, level)) return false;
      return true;
    }
    return want->is(TypeKind::kAny) || want->is(TypeKind::kVar);
  }
  if (want->is(TypeKind::kDType) && dtype_of_builtin(t)) return true;
  if (t.kind == Term::Kind::kNamed && t.named.kind == Named::Kind::kConstant) {
    const TypePtr from = t.named.type;
    if (is_subtype(from, formal.type)) return true;
    if (from->is(TypeKind::kTuple) && want->is(TypeKind::kList)) {
      for (const TypePtr& x : from->elements())
        if (!is_subtype(x, want->element())) return false;
      return true;
    }
    if (want->is(TypeKind::kFloat) && from->is(TypeKind::kInt)) return true;
    if (want->is(TypeKind::kList) && formal.fixed_list_size && is_subtype(from, want->element()))
      return true;
    return level > 0 && ((want->is(TypeKind::kTensor) && is_number(from)) ||
                         (want->is(TypeKind::kDevice) && from->is(TypeKind::kStr)));
  }
  if (t.kind == Term::Kind::kGenerator || t.kind == Term::Kind::kIterable)
    return want->is(TypeKind::kList);
  if (!t.is_value()) return false;
  const TypePtr from = e.type(t.value);
  if (from->is(TypeKind::kNone))
    return formal.type->is(TypeKind::kOptional) || formal.type->is(TypeKind::kAny);
  if (u.fits(from, formal.type)) return true;
  if (want->is(TypeKind::kNumber))
    return is_number(from) || (level > 1 && from->is(TypeKind::kTensor));
  if (want->is(TypeKind::kFloat) &&
      (from->is(TypeKind::kInt) || from->is(TypeKind::kBool) || from->is(TypeKind::kNumber)))
    return true;
  if (want->is(TypeKind::kInt) && from->is(TypeKind::kBool)) return true;
  if (want->is(TypeKind::kList)) {
    if (formal.fixed_list_size && u.fits(from, want->element())) return true;
    if (from->is(TypeKind::kTuple)) {
      for (const TypePtr& x : from->elements())
        if (!u.fits(x, want->element()) &&
            !(level > 0 && want->element()->is(TypeKind::kInt) && x->is(TypeKind::kTensor)))
          return false;
      return true;
    }
    if (from->is(TypeKind::kList) && t.value->producer() &&
        t.value->producer()->is(NodeKind::kListConstruct)) {
      for (Value* x : t.value->producer()->inputs()) {
        Argument item;
        item.type = want->element();
        if (!fits_argument(e, Term(x), item, level)) return false;
      }
      return true;
    }
    // x.view(n) with one int where a list is asked.
    return level > 0 && want->element()->is(TypeKind::kInt) &&
           (from->is(TypeKind::kInt) || (level > 1 && from->is(TypeKind::kTensor)));
  }
  if (level == 0) return false;
  if (want->is(TypeKind::kTensor)) return is_number(from);
  if (want->is(TypeKind::kDevice)) return from->is(TypeKind::kStr);
  if (want->is(TypeKind::kInt) && from->is(TypeKind::kNumber)) return true;
  if (level > 1 && (want->is(TypeKind::kInt) || want->is(TypeKind::kFloat)))
    return from->is(TypeKind::kTensor);
  return false;
}

Value* make_argument(Emitter& e, const Term& t, const Argument& formal, const Range& at) {
  const TypePtr want = without_none(formal.type);
  if (want->is(TypeKind::kDType))
    if (const auto d = dtype_of_builtin(t)) return e.constant(IValue(*d));
  Value* v = nullptr;
  if (want->is(TypeKind::kList) && t.kind == Term::Kind::kTuple) {
    std::vector<Value*> items;
    Argument item;
    item.type = want->element();
    for (const Term& x : t.items) items.push_back(make_argument(e, x, item, at));
    return e.build().list(want->element(), items);
  }
  v = e.value(t, at, formal.type);
  const TypePtr from = e.type(v);
  if (want->is(TypeKind::kList) && !from->is(TypeKind::kList) && !from->is(TypeKind::kTuple) &&
      !from->is(TypeKind::kNone) && !from->is(TypeKind::kOptional)) {
    Value* one = e.convert(v, want->element(), true);
    if (one)
      return e.build().list(
          want->element(),
          std::vector<Value*>(static_cast<size_t>(std::max(1, formal.fixed_list_size)), one));
  }
  if (Value* converted = e.convert(v, formal.type, true)) return converted;
  return e.expect(v, formal.type, at, cat("argument '", formal.name, "'"));
}

namespace {

std::string types_of(Emitter& e, Value* self, const GivenList& given) {
  std::string out;
  const auto add = [&](const std::string& s) { out += out.empty() ? s : ", " + s; };
  if (self) add(e.name_of(self->type()));
  for (const Given& g : given) {
    std::string s = g.keyword.empty() ? "" : g.keyword + "=";
    add(s + (g.term.is_value() ? e.name_of(g.term.value->type()) : e.describe(g.term)));
  }
  return out;
}

}  // namespace

Value* Emitter::call_op(const std::string& base, Value* self, const GivenList& args,
                        const Range& where) {
  const auto overloads = registry().overloads(base);
  if (overloads.empty())
    fail(where, cat("prong has no op '", base, "' yet"),
         "the list of ops is in the documentation's compatibility table");
  GivenList given = args;
  // Generators and the like become lists before the overload is chosen.
  for (Given& g : given)
    if (g.term.kind == Term::Kind::kGenerator) g.term = Term(value(g.term, g.range));
  std::string reasons;
  for (int level = 0; level < 3; ++level) {
    for (const OpDef* op : overloads) {
      Placed placed;
      const size_t skip = self ? 1 : 0;
      const std::string problem = place_arguments(op->schema(), skip, given, true, placed);
      if (self) placed.terms[0] = Term(self);
      bool fits = problem.empty();
      std::string misfit;
      for (size_t i = 0; fits && i < placed.terms.size(); ++i) {
        if (placed.terms[i].kind == Term::Kind::kNothing) continue;
        if (!fits_argument(*this, placed.terms[i], op->schema().arguments[i], level)) {
          fits = false;
          misfit = cat("argument '", op->schema().arguments[i].name, "' is ",
                       op->schema().arguments[i].type->str_(), ", not ",
                       placed.terms[i].is_value() ? name_of(placed.terms[i].value->type())
                                                  : describe(placed.terms[i]));
        }
      }
      if (!fits) {
        if (level == 2)
          reasons +=
              cat("\n    ", op->schema().str(), "\n      ", problem.empty() ? misfit : problem);
        continue;
      }
      std::vector<Value*> inputs;
      for (size_t i = 0; i < placed.terms.size(); ++i) {
        const Argument& formal = op->schema().arguments[i];
        if (placed.terms[i].kind == Term::Kind::kNothing)
          inputs.push_back(constant_of(formal.default_value, formal.type, where));
        else
          inputs.push_back(make_argument(*this, placed.terms[i], formal,
                                         placed.ranges[i] ? placed.ranges[i] : where));
      }
      if (where) at(where);
      return b_.op(*op, inputs);
    }
  }
  fail(where,
       cat(base, "(): no form of it takes (", types_of(*this, self, given), "). It has:", reasons));
}

Value* Emitter::emit_host(const HostOp& op, std::vector<Value*> args, const Range& where,
                          SchemaBindings bindings) {
  for (size_t i = 0; i < args.size(); ++i) {
    const TypePtr& formal = op.schema.arguments[i].type;
    if (formal->is(TypeKind::kFloat) || formal->is(TypeKind::kInt)) {
      if (Value* c = convert(args[i], formal)) args[i] = c;
    }
  }
  // What is known while compiling is computed now: lengths of module lists, ranges with fixed
  // bounds.
  if (op.effect == Effect::kPure || op.effect == Effect::kMayRaise) {
    std::vector<IValue> known;
    for (Value* v : args) {
      const IValue* c = v->constant();
      if (!c || c->is_object() || c->is_tensor()) break;
      known.push_back(*c);
    }
    if (known.size() == args.size()) {
      try {
        IValue out = op.fn(known);
        if (out.is_number() || out.is_string() || out.is_none()) return constant(std::move(out));
      } catch (const std::exception&) {  // it raises when it runs, where the program can see it
      }
    }
  }
  if (where) at(where);
  return b_.host(op, args, substitute_all(unknowns_, op.schema.results[0], bindings));
}

namespace {

// Level 0: as they are; 1: int to float; 2: bool to int and float; 3: any number to Scalar.
bool fits_host(Emitter& e, const HostOp& op, const std::vector<Value*>& args, int level,
               SchemaBindings& bindings) {
  for (size_t i = 0; i < args.size(); ++i) {
    const TypePtr& formal = op.schema.arguments[i].type;
    const TypePtr actual = e.type(args[i]);
    if (formal->is(TypeKind::kNumber) && !actual->is(TypeKind::kNumber)) {
      if (level < 3 || !is_number(actual)) return false;
      continue;
    }
    if (match(e.unknowns(), formal, actual, bindings)) continue;
    if (level == 0) return false;
    if (formal->is(TypeKind::kFloat) && actual->is(TypeKind::kInt)) continue;
    if (level > 1 && (formal->is(TypeKind::kInt) || formal->is(TypeKind::kFloat)) &&
        actual->is(TypeKind::kBool))
      continue;
    // An item put into a list of floats may be an int.
    if (formal->is(TypeKind::kVar)) {
      const auto bound = [&]() -> TypePtr {
        for (const auto& [name, t] : bindings)
          if (name == formal->name()) return e.unknowns().resolve(t);
        return {};
      }();
      if (bound && bound->is(TypeKind::kFloat) && actual->is(TypeKind::kInt)) continue;
    }
    return false;
  }
  return true;
}

}  // namespace

namespace {

// In which order forms are tried: one whose first argument may be anything ("str of any") comes
// after those that fit without giving anything up, and before those that take a bool for an int.
struct Trial {
  int level;
  bool is_generic;
};
constexpr Trial kTrials[] = {{0, false}, {1, false}, {0, true}, {2, false}, {3, false}, {3, true}};

bool is_generic(const HostOp& op) {
  return !op.schema.arguments.empty() && op.schema.arguments[0].type->is(TypeKind::kVar);
}

}  // namespace

bool Emitter::try_host(const std::string& base, const std::vector<Value*>& args, const Range& where,
                       Value** result) {
  GivenList given;
  for (Value* v : args) given.push_back({{}, Term(v), where});
  for (const Trial& trial : kTrials)
    for (const HostOp* op : host_registry().overloads(base == "not" ? "not_" : base)) {
      if (trial.is_generic != is_generic(*op)) continue;
      Placed placed;
      if (!place_arguments(op->schema, 0, given, false, placed).empty()) continue;
      SchemaBindings bindings;
      if (!fits_host(*this, *op, args, trial.level, bindings)) continue;
      std::vector<Value*> inputs = args;
      for (size_t i = 0; i < inputs.size(); ++i)
        if (op->schema.arguments[i].type->is(TypeKind::kVar))
          for (const auto& [name, t] : bindings)
            if (name == op->schema.arguments[i].type->name())
              if (Value* c = convert(inputs[i], t)) inputs[i] = c;
      for (size_t i = inputs.size(); i < op->schema.arguments.size(); ++i)
        inputs.push_back(constant_of(op->schema.arguments[i].default_value,
                                     op->schema.arguments[i].type, where));
      *result = emit_host(*op, std::move(inputs), where, std::move(bindings));
      return true;
    }
  return false;
}

Value* Emitter::call_host(const std::string& base, Value* self, const GivenList& args,
                          const Range& where) {
  std::string reasons;
  for (const Trial& trial : kTrials)
    for (const HostOp* op : host_registry().overloads(base)) {
      if (trial.is_generic != is_generic(*op)) continue;
      Placed placed;
      const std::string problem = place_arguments(op->schema, self ? 1 : 0, args, false, placed);
      if (!problem.empty()) {
        if (trial.level == 3) reasons += cat("\n    ", op->schema.str(), "\n      ", problem);
        continue;
      }
      if (self) placed.terms[0] = Term(self);
      std::vector<Value*> inputs;
      for (size_t i = 0; i < placed.terms.size(); ++i) {
        const Argument& formal = op->schema.arguments[i];
        if (placed.terms[i].kind == Term::Kind::kNothing)
          inputs.push_back(constant_of(formal.default_value, formal.type, where));
        else
          inputs.push_back(value(placed.terms[i], placed.ranges[i] ? placed.ranges[i] : where));
      }
      SchemaBindings bindings;
      if (!fits_host(*this, *op, inputs, trial.level, bindings)) {
        if (trial.level == 3) reasons += cat("\n    ", op->schema.str());
        continue;
      }
      for (size_t i = 0; i < inputs.size(); ++i)
        if (op->schema.arguments[i].type->is(TypeKind::kVar))
          for (const auto& [name, t] : bindings)
            if (name == op->schema.arguments[i].type->name())
              if (Value* c = convert(inputs[i], t)) inputs[i] = c;
      return emit_host(*op, std::move(inputs), where, std::move(bindings));
    }
  fail(where, cat("'", base, "' does not take (", types_of(*this, self, args), ")",
                  reasons.empty() ? "" : ". It has:", reasons));
}

}  // namespace prong::script
