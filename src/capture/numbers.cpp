// Numbers that may change between the calls of a plan, noted while a call is recorded. See
// number_steps.h, number_memory.h and tracker.h.
#include <algorithm>
#include <cstring>

#include "capture/python_names.h"
#include "capture/python_steps.h"
#include "capture/session.h"
#include "capture/tracker.h"
#include "ops/kernels/pointwise.h"

namespace prong::capture {

namespace {

constexpr size_t kMaxSeen = 4096;  // of a function that reads ever new objects

bool is_int_or_float(PyObject* o) { return PyLong_CheckExact(o) || PyFloat_CheckExact(o); }
bool is_number(PyObject* o) { return is_int_or_float(o) || PyBool_Check(o); }

// For other numbers of the same types.
bool may_fail(const NumberStep& s) {
  if (s.kind == NumberStep::Kind::kOperator) return !never_fails(s.index);
  return s.kind == NumberStep::Kind::kCall && !s.is_safe;
}

}  // namespace

bool NumberMemory::varies(const void* owner, uint64_t key, PyObject* value) {
  const bool is_float = PyFloat_CheckExact(value);
  uint64_t bits = 0;
  if (is_float) {
    const double d = PyFloat_AS_DOUBLE(value);
    std::memcpy(&bits, &d, sizeof d);
  } else {
    int overflow = 0;
    bits = static_cast<uint64_t>(PyLong_AsLongLongAndOverflow(value, &overflow));
    if (overflow) return false;
  }
  const auto it = seen_.find({owner, key});
  if (it == seen_.end()) {
    if (seen_.size() < kMaxSeen) seen_.emplace(std::pair(owner, key), Seen{is_float, bits});
    return false;
  }
  Seen& s = it->second;
  if (s.is_float != is_float) {
    s = {is_float, bits};
    return false;
  }
  s.varies |= s.bits != bits;
  return s.varies;
}

bool NumberMemory::note_changing(const void* container, const void* key) {
  if (is_changing(container, key) || changing_.size() >= kMaxSeen) return false;
  changing_.insert(container);
  if (key) changing_.insert(key);
  return true;
}

bool NumberMemory::is_replaced(const void* owner, uint64_t key, const void* tensor) {
  if (tensors_.size() >= kMaxSeen) return false;
  const auto [it, is_new] = tensors_.try_emplace({owner, key}, tensor);
  if (it->second != tensor) it->second = nullptr;
  return !it->second;
}

bool Tracker::has_fixed_type(Term number) {
  const NumberStep& step = plan_->numbers[static_cast<size_t>(number.index)];
  switch (step.kind) {
  case NumberStep::Kind::kCall:
  case NumberStep::Kind::kStep:
    return false;
  case NumberStep::Kind::kOperator:
    break;
  default:
    return true;  // guards, or the dtype of a tensor, see to it
  }
  if (step.after == 0) {
    numbers_[static_cast<size_t>(number.index)].is_type_read = true;
    return true;
  }
  return is_one_of(operator_text(step.index), {"+", "-", "*", "/", "//", "%"}) &&
         std::all_of(step.of.begin(), step.of.end(), [&](int32_t part) {
           return has_fixed_type({Term::Kind::kNumber, part});
         });
}

// May it be an input of the plan?
bool Tracker::is_input(PyObject* value) const {
  return value && !is_static_ && is_int_or_float(value);
}

Term Tracker::number(NumberStep step, PyObject* value, bool is_seen_changing) {
  step.type = Py_TYPE(value);
  step.place = place();
  for (const int32_t i : step.of) {
    step.after = std::max(step.after, plan_->numbers[static_cast<size_t>(i)].after);
    is_seen_changing |= numbers_[static_cast<size_t>(i)].is_seen_changing;
  }
  if (may_fail(step) && step.after > first_write_)
    give_up("a number is computed of what was read from a tensor after something was written");
  plan_->numbers.push_back(std::move(step));
  numbers_.push_back({Kept(value), false, is_seen_changing, false});
  return Term::number(static_cast<int32_t>(numbers_.size()) - 1);
}

Term Tracker::outside_number(NumberStep step, const void* owner, uint64_t key, PyObject* value) {
  const bool varies = memory_ && memory_->varies(owner, key, value);
  return number(std::move(step), value, varies);
}

void Tracker::pin(Term t) {
  const auto i = static_cast<size_t>(t.index);
  if (numbers_[i].is_pinned) return;
  numbers_[i].is_pinned = true;
  if (plan_->numbers[i].after > first_write_)
    give_up("Python needs a number that was read from a tensor after something was written");
  plan_->number_checks.push_back({t.index, Kept(numbers_[i].value.get()), place()});
}

bool Tracker::is_read_from_tensor(Term t) const {
  const NumberStep& step = plan_->numbers[static_cast<size_t>(t.index)];
  return step.kind == NumberStep::Kind::kItem ||
         std::any_of(step.of.begin(), step.of.end(),
                     [&](int32_t n) { return is_read_from_tensor(Term::number(n)); });
}

void Tracker::pin_truth(Term t, PyObject* value) {
  if (PyBool_Check(value)) return pin(t);
  PyObject* truth = PyObject_IsTrue(value) ? Py_True : Py_False;
  pin(number_unary(kTruth, value, t, truth));
}

bool Tracker::is_plain(Term t, PyObject* value) {
  if (t.is_number()) pin(t);
  if (t.is_made() && made(t).kind == Made::Kind::kTuple && PyTuple_Check(value)) {
    for (size_t i = 0; i < made(t).items.size(); ++i)
      if (!made(t).objects[i] || !is_plain(made(t).items[i], made(t).objects[i])) return false;
    return true;
  }
  return t.is_number() || (t.is_same() && is_plain_value(value));
}

int32_t Tracker::step_of(Term t, PyObject* value) {
  if (t.is_number()) return t.index;
  NumberStep constant{NumberStep::Kind::kConstant};
  constant.object = Kept(value);
  return number(std::move(constant), value).index;
}

Term Tracker::number_result(int code, PyObject* a, Term ta, PyObject* b, Term tb,
                            PyObject* result) {
  NumberStep step{NumberStep::Kind::kOperator};
  step.index = code;
  step.of = {step_of(ta, a), step_of(tb, b)};
  return number(std::move(step), result);
}

Term Tracker::number_unary(int code, PyObject* a, Term ta, PyObject* result) {
  NumberStep step{NumberStep::Kind::kOperator};
  step.index = code;
  step.of = {step_of(ta, a)};
  return number(std::move(step), result);
}

// No term: not of numbers only.
Term Tracker::number_call(PyObject* function, std::span<const Term> terms, PyObject* const* args,
                          PyObject* result) {
  if (!is_number(result)) return {};
  const bool is_packed = terms.size() == 1 && terms[0].is_made();
  std::vector<Term> items(terms.begin(), terms.end());
  std::vector<PyObject*> values(args, args + terms.size());
  if (is_packed) {
    const Made& m = made(terms[0]);
    if (m.kind != Made::Kind::kTuple && m.kind != Made::Kind::kList) return {};
    items = m.items;
    values = m.objects;
  }
  bool has_number = false;
  for (size_t i = 0; i < items.size(); ++i) {
    const bool is_constant = items[i].is_same() && values[i] && is_number(values[i]);
    if (!items[i].is_number() && !is_constant) return {};
    has_number |= items[i].is_number();
  }
  if (!has_number) return {};
  NumberStep step{NumberStep::Kind::kCall};
  step.object = Kept(function);
  step.is_packed = is_packed;
  for (size_t i = 0; i < items.size(); ++i) step.of.push_back(step_of(items[i], values[i]));
  return number(std::move(step), result);
}

void Tracker::collect_numbers(Term t, std::vector<Term>* out) {
  if (t.is_number()) out->push_back(t);
  if (!t.is_made()) return;
  const Made& m = made(t);
  for (const Term& item : m.items) collect_numbers(item, out);
}

void Tracker::pin_all(std::span<const Term> terms) {
  if (numbers_.empty()) return;
  std::vector<Term> given;
  for (const Term& term : terms) collect_numbers(term, &given);
  for (const Term t : given) pin(t);
}

void Tracker::keep_constant(PyObject* tensor) {
  constants_.insert(door().impl_of(tensor)->storage.get());
  same(tensor);
}

void Tracker::pin_twins(std::span<const Term> containers) {
  if (numbers_.empty()) return;
  std::vector<std::pair<PyObject*, Term>> all;
  for (const Term& c : containers) {
    if (!c.is_made()) continue;
    const Made& m = peek(c);
    for (size_t i = 0; i < m.items.size(); ++i) all.emplace_back(m.objects[i], m.items[i]);
  }
  for (const auto& [object, term] : all)
    for (const auto& [other, of_other] : all)
      if (term.is_number() && other == object &&
          !(of_other.is_number() && of_other.index == term.index))
        pin(term);
}

bool Tracker::write_attribute(PyObject* dict, PyObject* owner, PyObject* name, PyObject* value,
                              Term term) {
  if (!note_write(dict, name, value, term)) return false;
  effects_.push_back(
      {Kept(owner), Kept(name), Kept(value), term, Effect::Kind::kAttribute, num_steps_});
  return true;
}

bool Tracker::write_item(PyObject* dict, PyObject* key, PyObject* value, Term term) {
  if (!is_any_dict(dict) || !note_write(dict, key, value, term)) return false;
  effects_.push_back({Kept(dict), Kept(key), Kept(value), term, Effect::Kind::kItem, num_steps_});
  return true;
}

bool Tracker::append_outside(PyObject* list, PyObject* value, Term term) {
  if (!(term.is_number() || term.is_tensor() || term.is_made() ||
        (term.is_same() && is_plain_value(value))) ||
      is_fragile(term))
    return false;
  for (const Guard& g : plan_->guards)
    if (g.kind == Guard::Kind::kList && g.object.get() == list) {
      note_changed(list);
      return false;
    }
  appended_.push_back(list);
  effects_.push_back(
      {Kept(list), Kept(list), Kept(value), term, Effect::Kind::kAppend, num_steps_});
  return true;
}
bool Tracker::may_be_stored(Term term, PyObject* value) {
  return term.is_number() || term.is_tensor() || term.is_made() ||
         (term.is_same() && is_plain_value(value));
}

// The variable of an enclosing function.
bool Tracker::write_cell(PyObject* cell, PyObject* value, Term term) {
  if (!may_be_stored(term, value)) return false;
  overlay_.insert_or_assign(std::pair<const void*, const void*>(cell, nullptr),
                            Written{term, Kept(value)});
  effects_.push_back({Kept(cell), Kept(), Kept(value), term, Effect::Kind::kCell, num_steps_});
  return true;
}

bool Tracker::note_write(PyObject* dict, PyObject* key, PyObject* value, Term term) {
  // What is written is found again by the key's address.
  if (!is_interned(key)) return false;
  if (!may_be_stored(term, value)) return false;
  Guard& g = guard(Guard::Kind::kDict, dict);
  g.is_written = true;
  g.number = 0;
  overlay_.insert_or_assign(std::pair<const void*, const void*>(dict, key),
                            Written{term, Kept(value)});
  return true;
}

// ── the end of the recording ──

// Numbers that turned out to be facts become guards and constants; what nobody needs is not found
// again.
void Tracker::settle_numbers() {
  std::vector<NumberStep>& steps = plan_->numbers;
  const auto is_of_facts = [&](const NumberStep& s) {
    return std::all_of(s.of.begin(), s.of.end(),
                       [&](int32_t k) { return numbers_[static_cast<size_t>(k)].is_fixed; });
  };
  for (size_t i = 0; i < steps.size(); ++i)
    numbers_[i].is_fixed = numbers_[i].is_pinned || steps[i].kind == NumberStep::Kind::kConstant ||
                           (!steps[i].of.empty() && is_of_facts(steps[i]));
  // What comes from outside has to be there and of its type, and an error that Python would raise
  // is not to be missed.
  std::vector<bool> needed(steps.size(), false);
  for (size_t i = 0; i < steps.size(); ++i)
    needed[i] = steps[i].kind < NumberStep::Kind::kConstant ||
                ((may_fail(steps[i]) || numbers_[i].is_type_read) && !is_of_facts(steps[i]));
  std::erase_if(plan_->number_checks, [&](const NumberCheck& c) {
    const auto i = static_cast<size_t>(c.number);
    NumberStep& s = steps[i];
    const bool is_outside = s.kind < NumberStep::Kind::kConstant;
    const bool is_told =
        s.of.empty() ? guards_number(s, numbers_[i].value.get(), c.place) : is_of_facts(s);
    if (is_outside || !is_told) needed[i] = !is_told;
    return is_told;
  });
  const auto need_in = [&](const Template& t, const auto& self) -> void {
    if (t.kind == Template::Kind::kNumber) needed[static_cast<size_t>(t.object)] = true;
    for (const Template& item : t.items) self(item, self);
  };
  need_in(plan_->result, need_in);
  for (const Template& node : plan_->nodes) need_in(node, need_in);
  for (const Effect& e : plan_->effects) need_in(e.value, need_in);
  for (const Part& p : parts_)
    if (p.step)
      for (const Template& t : p.step->args) need_in(t, need_in);
  for (const Part& p : parts_) {
    std::erase_if(p.trace->varying,
                  [&](const auto& v) { return numbers_[static_cast<size_t>(v.second)].is_fixed; });
    for (const auto& [slot, n] : p.trace->varying) needed[static_cast<size_t>(n)] = true;
  }
  settle_rehearsal(needed);
  for (size_t i = steps.size(); i-- > 0;) {
    NumberStep& s = steps[i];
    s.is_needed = needed[i];
    if (!needed[i]) continue;
    if (!s.of.empty() && is_of_facts(s)) {
      s.after = 0;
      s.kind = NumberStep::Kind::kConstant;
      s.object = Kept(numbers_[i].value.get());
      s.of.clear();
    }
    plan_->has_late_numbers |= s.after > 0;
    for (const int32_t k : s.of) needed[static_cast<size_t>(k)] = true;
  }
}

// A number from outside that is a fact: a guard like others.
bool Tracker::guards_number(const NumberStep& s, PyObject* value, int32_t place) {
  switch (s.kind) {
  case NumberStep::Kind::kConstant:
    return true;
  case NumberStep::Kind::kArgument:
    plan_->guards.push_back(
        Guard{Guard::Kind::kArgumentEqual, s.index, 0, Kept(value), Kept(), {}});
    plan_->guards.back().place = place;
    return true;
  case NumberStep::Kind::kDict:
    if (s.size) return false;
    guard(Guard::Kind::kDict, s.object.get())
        .reads.push_back({Kept(s.key.get()), Kept(value), place});
    return true;
  case NumberStep::Kind::kCell:
    guard(Guard::Kind::kCell, s.object.get()).other = Kept(value);
    return true;
  default:
    return false;
  }
}

// ── numbers as arguments of ops ──

std::optional<double> value_of(const IValue& n) {
  if (n.is_int()) return static_cast<double>(n.to_int());
  if (n.is_float()) return n.to_double();
  if (!n.is_tensor()) return std::nullopt;
  const void* at = n.to_tensor().raw();
  switch (n.tensor_impl()->dtype) {
  case DType::kFloat64:
    return *static_cast<const double*>(at);
  case DType::kInt64:
    return static_cast<double>(*static_cast<const int64_t*>(at));
  default:
    return std::nullopt;
  }
}

namespace {

bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

// Is the operand what Python gave?
bool agrees(const Trace& trace, const Operand& o, Term t, PyObject* value) {
  switch (o.kind) {
  case Operand::Kind::kValue:
    return t.is_tensor() || door().is_tensor(value);
  case Operand::Kind::kNumber: {
    if (!is_int_or_float(value)) return false;
    const auto recorded = value_of(trace.numbers[static_cast<size_t>(o.index)]);
    const double given =
        PyFloat_CheckExact(value) ? PyFloat_AS_DOUBLE(value) : PyLong_AsDouble(value);
    PyErr_Clear();
    return recorded && same_bits(*recorded, given);
  }
  case Operand::Kind::kConstant:
    return !t.is_number() && !t.is_tensor();
  default:
    return false;
  }
}

bool is_dimension(const std::string& name) {
  return name.starts_with("dim") || name.ends_with("_dim") || name == "source" ||
         name == "destination" || name == "axis";
}

// Is the program as good for another number here, and its other arguments the same?
bool may_vary(const OpDef& op, size_t argument, const IValue& recorded) {
  const OpDef& base = op.inplace_of() ? *op.inplace_of() : op;
  if (base.pointwise() || op.schema().results[0]->is(TypeKind::kNone)) return true;
  if (is_dimension(op.schema().arguments[argument].name)) return false;
  switch (op.family()) {
  case Family::kFactory:
    return true;
  case Family::kView:
    return recorded.is_int();
  case Family::kCopy:
    return recorded.is_int() || op.mutated_argument() == 0;  // fill_
  default:
    return false;
  }
}

bool computes_in_float(const Trace& trace, const TraceNode& node) {
  return std::all_of(node.args.begin(), node.args.end(), [&](const Operand& o) {
    if (o.kind != Operand::Kind::kValue) return true;
    const DType d = trace.values[static_cast<size_t>(o.index)].meta.dtype;
    return d == DType::kFloat32 || d == DType::kFloat64;
  });
}

// Does the op compute with any number, whatever it is?
bool takes_any_number(const Trace& trace, const TraceNode& node) {
  const OpDef& base = node.op->inplace_of() ? *node.op->inplace_of() : *node.op;
  return node.op->schema().results[0]->is(TypeKind::kNone) ||
         (base.pointwise() && computes_in_float(trace, node));
}

}  // namespace

std::vector<bool> refusable_numbers(const Trace& trace) {
  std::vector<bool> is_used(trace.numbers.size(), false), is_refusable(trace.numbers.size(), false);
  const auto note = [&](const auto& self, const Operand& o, bool takes_any) -> void {
    if (o.kind == Operand::Kind::kList)
      for (const Operand& item : trace.lists[static_cast<size_t>(o.index)])
        self(self, item, takes_any);
    if (o.kind != Operand::Kind::kNumber) return;
    is_used[static_cast<size_t>(o.index)] = true;
    if (!takes_any) is_refusable[static_cast<size_t>(o.index)] = true;
  };
  for (const TraceNode& node : trace.nodes)
    for (const Operand& o : node.args) note(note, o, takes_any_number(trace, node));
  for (size_t i = 0; i < is_used.size(); ++i) is_refusable[i] = is_refusable[i] || !is_used[i];
  return is_refusable;
}

void Tracker::bind(Trace& trace, const TraceNode& node, size_t argument, const Operand& o, Term t) {
  if (!t.is_number()) return;
  const OpDef& op = *node.op;
  const auto slot = static_cast<size_t>(o.index);
  const auto i = static_cast<size_t>(t.index);
  if (o.kind != Operand::Kind::kNumber || !is_int_or_float(numbers_[i].value.get())) return pin(t);
  const IValue& recorded = trace.numbers[slot];
  const bool varies = may_vary(op, argument, recorded);
  if (numbers_[i].is_pinned || !(varies || numbers_[i].is_seen_changing)) return pin(t);
  if (plan_->numbers[i].after > 0) {
    has_items_ = true;
    const std::string& name = op.schema().arguments[argument].name;
    const bool may_be_refused = recorded.is_int() || (!takes_any_number(trace, node) &&
                                                      !is_one_of(name, {"fill_value", "value"}));
    sizes_wait_ |= may_be_refused;
    if (may_be_refused && plan_->numbers[i].after > first_write_)
      return give_up("a size that was read from a tensor after something was written");
  }
  if (!varies && !recorded.is_int()) trace.checks_data = true;  // it may refuse the next one
  trace.varying.emplace(slot, t.index);
}

// Arguments as the schema names them. False: they cannot be told apart.
bool Tracker::bind_arguments(Trace& trace, const TraceNode& node, const OpCall& call) {
  const auto& arguments = node.op->schema().arguments;
  const size_t by_name = call.kwnames ? static_cast<size_t>(PyTuple_GET_SIZE(call.kwnames)) : 0;
  const size_t positional = call.terms.size() - by_name;
  size_t self = arguments.size();
  if (call.is_method) {
    self = 0;
    for (size_t i = 0; i < arguments.size(); ++i)
      if (arguments[i].name == "input" || arguments[i].name == "self") self = i;
  }
  const auto items_of = [&](size_t given, std::vector<Term>* terms,
                            std::vector<PyObject*>* values) {
    const Term t = call.terms[given];
    PyObject* value = call.values[given];
    if (t.is_made()) {
      *terms = made(t).items;
      *values = made(t).objects;
    } else if (PyTuple_Check(value) || PyList_Check(value)) {
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i) {
        terms->push_back(Term::same());
        values->push_back(PySequence_Fast_GET_ITEM(value, i));
      }
    } else {
      return false;
    }
    return true;
  };
  struct Found {
    size_t argument;
    Operand operand;
    Term term;
  };
  std::vector<Found> found;
  const auto match_list = [&](size_t argument, const std::vector<Operand>& list,
                              std::span<const Term> terms, std::span<PyObject* const> values) {
    if (list.size() != terms.size()) return false;
    for (size_t i = 0; i < list.size(); ++i) {
      if (!values[i] || !agrees(trace, list[i], terms[i], values[i])) return false;
      found.push_back({argument, list[i], terms[i]});
    }
    return true;
  };
  size_t next = 0, named = 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (i == self) continue;
    const Operand& o = node.args[i];
    size_t given = call.terms.size();
    if (next < positional && !arguments[i].is_keyword_only) {
      given = next++;
    } else {
      for (size_t k = 0; k < by_name; ++k)
        if (arguments[i].name ==
            PyUnicode_AsUTF8(PyTuple_GET_ITEM(call.kwnames, static_cast<Py_ssize_t>(k))))
          given = positional + k;
      if (given == call.terms.size()) continue;
      ++named;
    }
    const Term t = call.terms[given];
    PyObject* value = call.values[given];
    if (o.kind != Operand::Kind::kList) {
      if (!agrees(trace, o, t, value)) return false;
      found.push_back({i, o, t});
      continue;
    }
    const std::vector<Operand>& list = trace.lists[static_cast<size_t>(o.index)];
    std::vector<Term> terms;
    std::vector<PyObject*> values;
    if (items_of(given, &terms, &values)) {
      if (!match_list(i, list, terms, values)) return false;
    } else if (given < positional) {  // view(2, 3): the rest are its items
      const size_t rest = positional - given;
      if (rest != list.size() ||
          !match_list(i, list, call.terms.subspan(given, rest), {call.values + given, rest}))
        return false;
      next = positional;
    } else {
      return false;
    }
  }
  if (next < positional) return false;
  for (size_t k = positional; k < call.terms.size(); ++k)
    if (!call.terms[k].is_same() && named < by_name) return false;
  for (const Found& f : found) bind(trace, node, f.argument, f.operand, f.term);
  return true;
}

// Of an operator: a op b, or b op a.
bool Tracker::bind_operands(Trace& trace, const TraceNode& node, const OpCall& call) {
  if (!(node.op->pointwise() || (node.op->inplace_of() && node.op->inplace_of()->pointwise())) ||
      node.args.size() < call.terms.size())
    return false;
  const size_t n = call.terms.size();
  for (const bool turned : {false, true}) {
    bool fits = true;
    for (size_t i = 0; i < n; ++i) {
      const size_t k = turned ? n - 1 - i : i;
      fits = fits && agrees(trace, node.args[i], call.terms[k], call.values[k]);
    }
    if (!fits) continue;
    for (size_t i = 0; i < n; ++i)
      bind(trace, node, i, node.args[i], call.terms[turned ? n - 1 - i : i]);
    return true;
  }
  return false;
}

void Tracker::bind_numbers(uint64_t nodes_before, const OpCall& call) {
  if (numbers_.empty()) return;
  std::vector<Term> given;
  for (size_t i = 0; i < call.terms.size(); ++i) collect_numbers(call.terms[i], &given);
  if (given.empty()) return;
  Recorder& r = thread_recorder();
  Trace* trace = r.num_recorded() == nodes_before + 1 ? r.open_trace() : nullptr;
  if (trace && !trace->nodes.empty()) {
    const TraceNode node = trace->nodes.back();
    if (call.name ? node.op->base_name() == call.name && bind_arguments(*trace, node, call)
                  : bind_operands(*trace, node, call))
      return;
  }
  for (const Term t : given) pin(t);
}

void Tracker::bind_index(uint64_t nodes_before, Term key_term, PyObject* key, Term value_term,
                         PyObject* value) {
  std::vector<Term> given;
  collect_numbers(key_term, &given);
  if (value) collect_numbers(value_term, &given);
  if (given.empty()) return;
  std::vector<Term> terms{key_term};
  std::vector<PyObject*> values{key};
  if (key_term.is_made() && made(key_term).kind == Made::Kind::kTuple) {
    terms = made(key_term).items;
    values = made(key_term).objects;
  } else if (key_term.is_same() && PyTuple_Check(key)) {
    terms.assign(static_cast<size_t>(PyTuple_GET_SIZE(key)), Term::same());
    values.assign(PySequence_Fast_ITEMS(key), PySequence_Fast_ITEMS(key) + PyTuple_GET_SIZE(key));
  }
  Recorder& r = thread_recorder();
  const auto count = static_cast<size_t>(r.num_recorded() - nodes_before);
  Trace* trace = r.open_trace();
  const auto pin_given = [&] {
    for (const Term t : given) pin(t);
  };
  if (!trace || trace->nodes.size() < count) return pin_given();
  size_t at = trace->nodes.size() - count;
  struct Found {
    size_t node, argument;
    Term term;
  };
  std::vector<Found> found;
  const auto fits = [&](const char* op, size_t argument, Term t, PyObject* v) {
    if (at >= trace->nodes.size() || trace->nodes[at].op->name() != op) return false;
    const Operand& o = trace->nodes[at].args[argument];
    if (!t.is_number()) return true;
    found.push_back({at, argument, t});
    return agrees(*trace, o, t, v);
  };
  bool all_fit = true;
  for (size_t i = 0; i < terms.size() && all_fit; ++i) {
    PyObject* item = values[i];
    if (!item || PyBool_Check(item)) {
      all_fit = false;
    } else if (PyLong_CheckExact(item)) {
      all_fit = fits("select", 2, terms[i], item);
      ++at;
    } else if (PySlice_Check(item)) {
      auto* s = reinterpret_cast<PySliceObject*>(item);
      if (s->start == Py_None && s->stop == Py_None && s->step == Py_None) continue;
      PyObject* const ends[] = {s->start, s->stop, s->step};
      for (size_t k = 0; k < 3; ++k) {
        const Term t = terms[i].is_made() && k < made(terms[i]).items.size()
                           ? made(terms[i]).items[k]
                           : Term::same();
        all_fit = all_fit && fits("slice", 2 + k, t, ends[k]);
      }
      ++at;
    } else if (item == Py_None) {
      ++at;
    } else if (PyList_Check(item)) {
      std::vector<Term> inside;  // numbers of the index tensor that the list becomes
      collect_numbers(terms[i], &inside);
      all_fit = inside.empty();
    }
  }
  if (all_fit && value && value_term.is_number()) {
    at = trace->nodes.size() - 1;
    all_fit = fits("fill_", 1, value_term, value);
  }
  if (!all_fit) return pin_given();
  for (const Found& f : found) {
    const TraceNode node = trace->nodes[f.node];
    bind(*trace, node, f.argument, node.args[f.argument], f.term);
  }
}

}  // namespace prong::capture
