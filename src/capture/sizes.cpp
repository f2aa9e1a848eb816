// Sizes of tensors as numbers of the plan, values that Python reads from tensors, and tuples of
// both. See tracker.h, number_steps.h and rehearsal.h.
#include <algorithm>

#include "capture/session.h"
#include "capture/tracker.h"

namespace prong::capture {

namespace {
bool is_size(PyObject* o) { return reinterpret_cast<PyObject*>(Py_TYPE(o)) == door().size_type; }
}  // namespace

// What an op gave whose shapes depend on data: it is there before the rehearsal goes on.
Rehearsal::Value Tracker::step_root(TensorSource source) {
  const TensorSource output = output_of(source);
  std::vector<TensorSource>& roots = plan_->rehearsal_roots;
  const auto at = std::find_if(roots.begin(), roots.end(), [&](const TensorSource& s) {
    return s.kind == output.kind && s.index == output.index && s.output == output.output;
  });
  const auto index = static_cast<int32_t>(at - roots.begin());
  if (at == roots.end()) roots.push_back(output);
  return {-1, index};
}

// Which tensor of the rehearsal it is; none: one of unknown origin.
std::optional<Rehearsal::Value> Tracker::rehearsed_value(const TensorImpl* impl) {
  if (const auto it = computed_.find(impl); it != computed_.end()) {
    if (parts_[static_cast<size_t>(it->second.index)].is_step) return step_root(it->second);
    return Rehearsal::Value{it->second.index, it->second.output};
  }
  if (const auto it = roots_.find(impl); it != roots_.end()) {
    if (it->second.rehearsed < 0) {
      it->second.rehearsed = static_cast<int32_t>(plan_->rehearsal_roots.size());
      plan_->rehearsal_roots.push_back(it->second.source);
    }
    return Rehearsal::Value{-1, it->second.rehearsed};
  }
  const Trace* trace = thread_recorder().open_trace();
  const ValueId v = trace ? thread_recorder().open_value(impl) : -1;
  if (v < 0 || trace->values[static_cast<size_t>(v)].producer < 0) return std::nullopt;
  return Rehearsal::Value{static_cast<int32_t>(parts_.size()), v};
}

Term Tracker::rehearsed(Rehearsal::Question q, PyObject* value) {
  NumberStep step{NumberStep::Kind::kRehearsed};
  step.index = plan_->rehearsal.ask(q);
  step.after = has_items_ || has_steps_ ? static_cast<int32_t>(parts_.size()) : 0;
  return number(std::move(step), value);
}

Term Tracker::size_of(PyObject* tensor, int32_t dim, PyObject* value) {
  const TensorImpl* impl = door().impl_of(tensor);
  if (is_static_) {
    looked_at_sizes();
    return Term::same();
  }
  const auto known = read_sizes_.find({impl, dim});
  if (known != read_sizes_.end()) return known->second;
  Term t;
  if (const auto root = roots_.find(impl); root != roots_.end()) {
    NumberStep step{NumberStep::Kind::kSize};
    step.tensor = root->second.source;
    step.index = dim;
    const uint64_t key =
        static_cast<uint64_t>(root->second.source.index) << 8 | static_cast<uint64_t>(dim + 1);
    const bool is_object = root->second.source.kind == TensorSource::Kind::kObject;
    t = outside_number(
        std::move(step),
        is_object ? static_cast<const void*>(impl) : static_cast<const void*>(memory_), key, value);
  } else if (const auto v = rehearsed_value(impl)) {
    using Kind = Rehearsal::Question::Kind;
    t = rehearsed({dim < 0 ? Kind::kCount : Kind::kSize, *v, dim}, value);
    numbers_.back().is_seen_changing = has_steps_ || have_sizes_changed();
  } else {
    looked_at_sizes();
    return Term::same();
  }
  read_sizes_.emplace(std::pair<const void*, int32_t>(impl, dim), t);
  return t;
}

void Tracker::pin_size(PyObject* tensor, int32_t dim) {
  PyObject* size = PyLong_FromLongLong(door().impl_of(tensor)->sizes[static_cast<size_t>(dim)]);
  if (const Term t = size_of(tensor, dim, size); t.is_number()) pin(t);
  Py_DECREF(size);
}

// Of any tensor from outside that was looked at.
bool Tracker::have_sizes_changed() const {
  for (size_t i = 0; i < numbers_.size(); ++i)
    if (plan_->numbers[i].kind == NumberStep::Kind::kSize && numbers_[i].is_seen_changing)
      return true;
  return false;
}

Term Tracker::shape_of(PyObject* tensor, PyObject* size) {
  if (is_static_) {
    looked_at_sizes();
    return Term::same();
  }
  std::vector<Term> items;
  std::vector<PyObject*> objects;
  for (Py_ssize_t d = 0; d < PyTuple_GET_SIZE(size); ++d) {
    objects.push_back(PyTuple_GET_ITEM(size, d));
    items.push_back(size_of(tensor, static_cast<int32_t>(d), objects.back()));
  }
  const Term t = make(Made::Kind::kTuple, std::move(items), std::move(objects));
  if (t.is_made()) made(t).is_size = true;
  own(t, size);
  return t;
}

// What a program gives that Python reads: a number of the plan.
Term Tracker::element_of(PyObject* tensor, int32_t index, PyObject* value) {
  const auto source = source_of(door().impl_of(tensor));
  if (!source) {
    give_up("the value of a tensor of unknown origin is read");
    return {};
  }
  NumberStep step{NumberStep::Kind::kItem};
  step.tensor = output_of(*source);
  step.index = index;
  step.after = static_cast<int32_t>(parts_.size());
  has_items_ = true;
  return number(std::move(step), value, true);
}

Term Tracker::item_of(PyObject* tensor, PyObject* value) {
  if (!PyFloat_CheckExact(value) && !PyLong_CheckExact(value) && !PyBool_Check(value)) {
    give_up("a complex number is read from a tensor");
    return {};
  }
  return element_of(tensor, -1, value);
}

constexpr Py_ssize_t kMaxItems = 64;

Term Tracker::list_of_items(PyObject* tensor, PyObject* list) {
  if (!PyList_CheckExact(list)) return item_of(tensor, list);
  const Py_ssize_t n = PyList_GET_SIZE(list);
  if (door().impl_of(tensor)->sizes.size() != 1 || n > kMaxItems) {
    give_up("tolist() of a large tensor or of several dimensions");
    return {};
  }
  pin_size(tensor, 0);
  std::vector<Term> items;
  std::vector<PyObject*> objects;
  for (Py_ssize_t i = 0; i < n; ++i) {
    objects.push_back(PyList_GET_ITEM(list, i));
    if (PyComplex_Check(objects.back())) {
      give_up("complex numbers are read from a tensor");
      return {};
    }
    items.push_back(element_of(tensor, static_cast<int32_t>(i), objects.back()));
  }
  if (!is_on()) return {};
  const Term t = make(Made::Kind::kList, std::move(items), std::move(objects));
  own(t, list);
  return t;
}

// An op gave its argument back: whether it does may depend on how that lies.
void Tracker::on_shortcut(const OpDef& op, std::span<const IValue> args, size_t given_back) {
  Rehearsal::Shortcut s{&op, {}, {}, given_back};
  for (size_t i = 0; i < args.size(); ++i) {
    const bool is_tensor = args[i].is_tensor() && !args[i].tensor_impl()->is_wrapped_number;
    s.args.push_back(is_tensor ? IValue() : args[i]);
    if (!is_tensor && !args[i].is_list()) continue;
    const auto v = is_tensor ? rehearsed_value(args[i].tensor_impl()) : std::nullopt;
    if (is_tensor && !v) return looked_at_sizes();
    if (v) s.tensors.emplace_back(i, *v);
    if (args[i].is_list())
      for (const IValue& item : args[i].items())
        if (item.is_tensor()) return looked_at_sizes();
  }
  if (is_static_) return looked_at_sizes();
  const auto number = static_cast<int32_t>(plan_->rehearsal.shortcuts.size());
  plan_->rehearsal.shortcuts.push_back(std::move(s));
  PyObject* yes = PyLong_FromLong(1);
  pin(rehearsed({Rehearsal::Question::Kind::kShortcut, {}, number}, yes));
  Py_DECREF(yes);
}

// The op that made these tensors gave as many of them as a size says.
void Tracker::pin_number_of_results(const TensorImpl* first) {
  const auto known = computed_.find(first);
  if (known != computed_.end() && parts_[static_cast<size_t>(known->second.index)].is_step) return;
  const auto v = rehearsed_value(first);
  if (!v || v->part < 0 || is_static_) return looked_at_sizes();
  PyObject* yes = PyLong_FromLong(1);
  pin(rehearsed({Rehearsal::Question::Kind::kOutputs, *v, 0}, yes));
  Py_DECREF(yes);
}

void Tracker::pin_rank(const TensorImpl* impl) {
  const auto v = rehearsed_value(impl);
  if (!v || is_static_) return looked_at_sizes();
  PyObject* rank = PyLong_FromSize_t(impl->sizes.size());
  pin(rehearsed({Rehearsal::Question::Kind::kRank, *v, 0}, rank));
  Py_DECREF(rank);
}

void Tracker::settle_rehearsal(std::vector<bool>& needed) {
  bool is_asked = false;
  for (size_t i = 0; i < plan_->numbers.size(); ++i)
    is_asked |= plan_->numbers[i].kind == NumberStep::Kind::kRehearsed;
  if (!is_asked) return;
  Rehearsal& r = plan_->rehearsal;
  for (const Part& p : parts_) r.parts.push_back({p.trace, p.rehearsed_inputs});
  r.prepare();
  const std::vector<NumberStep>& steps = plan_->numbers;
  std::vector<bool> is_used(steps.size(), false);
  for (const int32_t n : r.numbers_used())
    is_used[static_cast<size_t>(n)] = needed[static_cast<size_t>(n)] = true;
  for (size_t i = steps.size(); i-- > 0;) {
    if (!is_used[i]) continue;
    for (const int32_t k : steps[i].of) is_used[static_cast<size_t>(k)] = true;
    if (steps[i].kind == NumberStep::Kind::kItem) plan_->rehearsal_numbers_vary_late = true;
    if (steps[i].is_from_outside()) {
      plan_->rehearsal_numbers.push_back(static_cast<int32_t>(i));
      needed[i] = true;
    }
  }
}

// ── tuples ──

std::optional<Term> Tracker::tuple_operator(int code, PyObject* a, Term ta, PyObject* b, Term tb,
                                            PyObject* result) {
  // A class of the program's may have operators of its own.
  const auto has_usual_operators = [](PyTypeObject* type) {
    return type->tp_richcompare == PyTuple_Type.tp_richcompare &&
           type->tp_as_sequence->sq_concat == PyTuple_Type.tp_as_sequence->sq_concat &&
           !(type->tp_as_number && type->tp_as_number->nb_add);
  };
  const auto is_tuple = [&](Term t, PyObject* o) {
    return PyTuple_Check(o) && (is_size(o) || has_usual_operators(Py_TYPE(o))) &&
           (t.is_same() || (t.is_made() && made(t).kind == Made::Kind::kTuple));
  };
  if (!(ta.is_made() || tb.is_made()) || !is_tuple(ta, a) || !is_tuple(tb, b)) return std::nullopt;
  const auto item = [&](Term t, PyObject* o, Py_ssize_t i) {
    return t.is_made() ? made(t).items[static_cast<size_t>(i)] : same(PyTuple_GET_ITEM(o, i));
  };
  const Py_ssize_t na = PyTuple_GET_SIZE(a), nb = PyTuple_GET_SIZE(b);
  if (operator_text(code)[0] == '+' && PyTuple_Check(result)) {
    std::vector<Term> items;
    std::vector<PyObject*> objects;
    for (Py_ssize_t i = 0; i < na + nb; ++i) {
      items.push_back(i < na ? item(ta, a, i) : item(tb, b, i - na));
      objects.push_back(PyTuple_GET_ITEM(result, i));
    }
    const Term t = make(Made::Kind::kTuple, std::move(items), std::move(objects));
    if (t.is_made()) made(t).is_size = is_size(result);
    own(t, result);
    return t;
  }
  if (code != kCompare + Py_EQ && code != kCompare + Py_NE) return std::nullopt;
  if (na != nb) return Term::same();
  const auto is_number = [](Term t, PyObject* o) {
    return t.is_number() || (t.is_same() && (PyLong_Check(o) || PyFloat_CheckExact(o)));
  };
  for (Py_ssize_t i = 0; i < na; ++i)
    if (!is_number(item(ta, a, i), PyTuple_GET_ITEM(a, i)) ||
        !is_number(item(tb, b, i), PyTuple_GET_ITEM(b, i)))
      return std::nullopt;
  const bool equal = (result == Py_True) == (code == kCompare + Py_EQ);
  for (Py_ssize_t i = 0; i < na; ++i) {
    PyObject *x = PyTuple_GET_ITEM(a, i), *y = PyTuple_GET_ITEM(b, i);
    const Term tx = item(ta, a, i), ty = item(tb, b, i);
    const bool same_here = PyObject_RichCompareBool(x, y, Py_EQ) == 1;
    if (equal == same_here && (tx.is_number() || ty.is_number()))
      pin(number_result(kCompare + Py_EQ, x, tx, y, ty, same_here ? Py_True : Py_False));
    if (!equal && !same_here) break;  // one difference is enough
  }
  return Term::same();
}

std::optional<Term> Tracker::item_of_tuple(Term tuple, PyObject* key, PyObject* value) {
  const Made::Kind kind = made(tuple).kind;
  if (!PySlice_Check(key) || (kind != Made::Kind::kTuple && kind != Made::Kind::kList))
    return std::nullopt;
  Py_ssize_t start, stop, step;
  if (PySlice_Unpack(key, &start, &stop, &step) < 0) {
    PyErr_Clear();
    return std::nullopt;
  }
  const std::vector<Term>& from = made(tuple).items;
  const Py_ssize_t n =
      PySlice_AdjustIndices(static_cast<Py_ssize_t>(from.size()), &start, &stop, step);
  if (PySequence_Fast_GET_SIZE(value) != n) return std::nullopt;
  std::vector<Term> items;
  std::vector<PyObject*> objects;
  for (Py_ssize_t i = 0; i < n; ++i) {
    items.push_back(from[static_cast<size_t>(start + i * step)]);
    objects.push_back(PySequence_Fast_GET_ITEM(value, i));
  }
  const Term t = make(kind, std::move(items), std::move(objects));
  if (t.is_made()) made(t).is_size = is_size(value);
  own(t, value);
  return t;
}

}  // namespace prong::capture
