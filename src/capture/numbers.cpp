// Numbers that change between the calls of a plan: noted while recording, computed before its
// programs run. See number_memory.h, plan.h and tracker.h.
#include <cstring>

#include "capture/session.h"
#include "capture/tracker.h"
#include "ops/kernels/pointwise.h"

namespace prong::capture {

namespace {

constexpr size_t kMaxSeen = 4096;  // of a function that reads ever new objects

using Binary = PyObject* (*)(PyObject*, PyObject*);
PyObject* power(PyObject* a, PyObject* b) { return PyNumber_Power(a, b, Py_None); }
PyObject* inplace_power(PyObject* a, PyObject* b) { return PyNumber_InPlacePower(a, b, Py_None); }

// By the argument of BINARY_OP.
constexpr Binary kBinary[] = {PyNumber_Add,
                              PyNumber_And,
                              PyNumber_FloorDivide,
                              PyNumber_Lshift,
                              PyNumber_MatrixMultiply,
                              PyNumber_Multiply,
                              PyNumber_Remainder,
                              PyNumber_Or,
                              power,
                              PyNumber_Rshift,
                              PyNumber_Subtract,
                              PyNumber_TrueDivide,
                              PyNumber_Xor,
                              PyNumber_InPlaceAdd,
                              PyNumber_InPlaceAnd,
                              PyNumber_InPlaceFloorDivide,
                              PyNumber_InPlaceLshift,
                              PyNumber_InPlaceMatrixMultiply,
                              PyNumber_InPlaceMultiply,
                              PyNumber_InPlaceRemainder,
                              PyNumber_InPlaceOr,
                              inplace_power,
                              PyNumber_InPlaceRshift,
                              PyNumber_InPlaceSubtract,
                              PyNumber_InPlaceTrueDivide,
                              PyNumber_InPlaceXor};

bool is_int_or_float(PyObject* o) { return PyLong_CheckExact(o) || PyFloat_CheckExact(o); }

std::optional<double> value_of(const IValue& n) {
  if (n.is_int()) return static_cast<double>(n.to_int());
  if (n.is_float()) return n.to_double();
  if (!n.is_tensor() || is_complex(n.tensor_impl()->dtype)) return std::nullopt;
  const Tensor t = n.to_tensor();
  return is_floating(t.dtype()) ? t.item_double() : static_cast<double>(t.item_int());
}

// The number as the op takes it, like the one that was recorded; none where it doesn't fit.
IValue like_recorded(PyObject* value, const IValue& recorded) {
  const bool is_tensor = recorded.is_tensor();
  if (PyFloat_CheckExact(value)) {
    const double d = PyFloat_AS_DOUBLE(value);
    if (is_tensor) return IValue(Tensor::wrapped(d));
    return recorded.is_float() ? IValue(d) : IValue();
  }
  if (!PyLong_CheckExact(value)) return {};
  const long long n = PyLong_AsLongLong(value);
  if (n == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    return {};
  }
  const auto i = static_cast<int64_t>(n);
  if (is_tensor) return IValue(Tensor::wrapped(i));
  return recorded.is_float() ? IValue(static_cast<double>(i)) : IValue(i);
}

void collect_slots(const Trace& trace, const Operand& o, std::vector<size_t>* slots) {
  if (o.kind == Operand::Kind::kNumber) slots->push_back(static_cast<size_t>(o.index));
  if (o.kind == Operand::Kind::kList)
    for (const Operand& item : trace.lists[static_cast<size_t>(o.index)])
      collect_slots(trace, item, slots);
}

// Does the op take any number of the type that it was given?
bool is_content_with_any_number(const OpDef& op) {
  const OpDef* base = op.inplace_of() ? op.inplace_of() : &op;
  if (base->pointwise())
    return base->pointwise()->options.divisor < 0 && !base->pointwise()->options.check;
  return op.schema().results[0]->is(TypeKind::kNone);  // an optimizer's step
}

}  // namespace

PyObject* apply_operator(int code, PyObject* a, PyObject* b) {
  return code < kCompare ? kBinary[code](a, b) : PyObject_RichCompare(a, b, code - kCompare);
}

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

// ── recording ──

Term Tracker::number(NumberStep step, PyObject* value) {
  step.is_float = PyFloat_CheckExact(value);
  plan_->numbers.push_back(std::move(step));
  numbers_.push_back({Kept(value), false});
  return Term::number(static_cast<int32_t>(numbers_.size()) - 1);
}

bool Tracker::varies(const void* owner, uint64_t key, PyObject* value) {
  return memory_ && value && is_int_or_float(value) && memory_->varies(owner, key, value);
}

void Tracker::pin(Term t) {
  const auto i = static_cast<size_t>(t.index);
  if (numbers_[i].is_pinned) return;
  numbers_[i].is_pinned = true;
  plan_->number_checks.push_back({t.index, Kept(numbers_[i].value.get())});
}

Term Tracker::number_result(int code, PyObject* a, Term ta, PyObject* b, Term tb,
                            PyObject* result) {
  const auto step_of = [&](Term t, PyObject* value) {
    if (t.is_number()) return t.index;
    NumberStep constant{NumberStep::Kind::kConstant};
    constant.object = Kept(value);
    return number(std::move(constant), value).index;
  };
  NumberStep step{NumberStep::Kind::kOperator};
  step.index = code;
  step.a = step_of(ta, a);
  step.b = step_of(tb, b);
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

void Tracker::bind_numbers(uint64_t nodes_before, const char* called, std::span<const Term> terms) {
  if (numbers_.empty()) return;
  std::vector<Term> given;
  for (const Term& term : terms) collect_numbers(term, &given);
  if (given.empty()) return;
  Recorder& r = thread_recorder();
  Trace* trace = r.num_recorded() == nodes_before + 1 ? r.open_trace() : nullptr;
  std::vector<size_t> slots;
  if (trace && !trace->nodes.empty()) {
    const TraceNode& n = trace->nodes.back();
    const bool is_direct = !n.op->is_composite() &&
                           (called ? n.op->base_name() == called : n.op->pointwise() != nullptr);
    if (is_direct)
      for (const Operand& o : n.args) collect_slots(*trace, o, &slots);
    if (!is_content_with_any_number(*n.op)) trace->checks_data = true;
  }
  // By its place among the arguments, where an optimizer's step is called.
  const auto at_its_place = [&](Term number, size_t slot) {
    const TraceNode& n = trace->nodes.back();
    if (!called || !n.op->schema().results[0]->is(TypeKind::kNone)) return false;
    for (size_t i = 0; i < terms.size() && i < n.args.size(); ++i)
      if (terms[i].is_number() && terms[i].index == number.index &&
          n.args[i].kind == Operand::Kind::kNumber && static_cast<size_t>(n.args[i].index) == slot)
        return true;
    return false;
  };
  for (const Term t : given) {
    PyObject* value = numbers_[static_cast<size_t>(t.index)].value.get();
    const double wanted = PyFloat_CheckExact(value)  ? PyFloat_AS_DOUBLE(value)
                          : PyLong_CheckExact(value) ? PyLong_AsDouble(value)
                                                     : 0;
    PyErr_Clear();
    size_t found = slots.size(), count = 0;
    for (const size_t s : slots)
      if (value_of(trace->numbers[s]) == wanted) {
        found = s;
        ++count;
        if (!at_its_place(t, s)) continue;
        count = 1;
        break;
      }
    if (count != 1 || !is_int_or_float(value) || trace->varying.count(found)) {
      pin(t);
    } else {
      trace->varying.emplace(found, t.index);
    }
  }
}

bool Tracker::write_attribute(PyObject* dict, PyObject* owner, PyObject* name, PyObject* value,
                              Term term) {
  if (!note_write(dict, name, value, term)) return false;
  effects_.push_back({Kept(owner), Kept(name), Kept(value), term, Effect::Kind::kAttribute});
  return true;
}

bool Tracker::write_item(PyObject* dict, PyObject* key, PyObject* value, Term term) {
  if (!is_any_dict(dict) || !note_write(dict, key, value, term)) return false;
  effects_.push_back({Kept(dict), Kept(key), Kept(value), term, Effect::Kind::kItem});
  return true;
}

bool Tracker::append_outside(PyObject* list, PyObject* value, Term term) {
  if (!(term.is_number() || term.is_tensor() || term.is_made() ||
        (term.is_same() && is_plain_value(value))) ||
      is_fragile(term))
    return false;
  for (const Guard& g : plan_->guards)
    if (g.kind == Guard::Kind::kList && g.object.get() == list) return false;
  appended_.push_back(list);
  effects_.push_back({Kept(list), Kept(list), Kept(value), term, Effect::Kind::kAppend});
  return true;
}
bool Tracker::note_write(PyObject* dict, PyObject* key, PyObject* value, Term term) {
  // What is written is found again by the key's address.
  if (!is_interned(key)) return false;
  if (!(term.is_number() || term.is_tensor() || term.is_made() ||
        (term.is_same() && is_plain_value(value))))
    return false;
  Guard& g = guard(Guard::Kind::kDict, dict);
  g.is_written = true;
  g.number = 0;
  overlay_.insert_or_assign(std::pair<const void*, const void*>(dict, key),
                            Written{term, Kept(value)});
  return true;
}

// ── replay ──

bool Plan::find_numbers(PyObject* const* args) {
  found_.clear();
  found_.reserve(numbers.size());
  for (const NumberStep& s : numbers) {
    PyObject* value = nullptr;
    switch (s.kind) {
    case NumberStep::Kind::kArgument:
      value = Py_NewRef(args[s.index]);
      break;
    case NumberStep::Kind::kDict:
      value = Py_XNewRef(PyDict_GetItemWithError(s.object.get(), s.key.get()));
      break;
    case NumberStep::Kind::kConstant:
      value = Py_NewRef(s.object.get());
      break;
    case NumberStep::Kind::kOperator:
      value = apply_operator(s.index, found_[static_cast<size_t>(s.a)].get(),
                             found_[static_cast<size_t>(s.b)].get());
      break;
    }
    if (!value) {
      PyErr_Clear();
      return false;
    }
    found_.emplace_back(value);
    Py_DECREF(value);
    const bool is_input =
        s.kind == NumberStep::Kind::kArgument || s.kind == NumberStep::Kind::kDict;
    if (is_input && !(s.is_float ? PyFloat_CheckExact(value) : PyLong_CheckExact(value)))
      return false;
  }
  for (const NumberCheck& c : number_checks)
    if (!same_value(found_[static_cast<size_t>(c.number)].get(), c.expected.get())) return false;
  return true;
}

bool Plan::fill_numbers(PlanProgram& p, const std::vector<Kept>& found,
                        std::vector<IValue>* numbers_now) {
  *numbers_now = p.numbers;
  for (const auto& [at, number] : p.varying) {
    IValue& n = (*numbers_now)[at];
    n = like_recorded(found[static_cast<size_t>(number)].get(), n);
    if (n.is_none()) return false;
  }
  return true;
}

}  // namespace prong::capture
