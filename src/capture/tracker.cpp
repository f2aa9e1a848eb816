// Terms, guards and the segments of a call. See tracker.h.
#include "capture/tracker.h"

#include <algorithm>

#include "base/log.h"
#include "base/str.h"
#include "capture/frame_311.h"
#include "capture/gil.h"
#include "capture/python_steps.h"
#include "capture/session.h"
#include "eager/modes.h"

namespace prong::capture {

namespace {
thread_local Tracker* tracker_of_thread = nullptr;
uint64_t last_number = 0;  // under the GIL

bool same_items(PyObject* a, PyObject* b) {
  if (PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); ++i)
    if (PyTuple_GET_ITEM(a, i) != PyTuple_GET_ITEM(b, i)) return false;
  return true;
}
}  // namespace

Tracker* current_tracker() {
  return tracker_of_thread && tracker_of_thread->is_on() ? tracker_of_thread : nullptr;
}
void forget_objects() {
  if (tracker_of_thread) tracker_of_thread->forget();
}
std::string why_not_tracked() {
  return tracker_of_thread ? tracker_of_thread->reason() : std::string();
}
void set_current_tracker(Tracker* tracker) { tracker_of_thread = tracker; }

Tracker::Tracker(size_t count, PyObject* kwnames, bool keeps_places, bool is_static,
                 NumberMemory* memory)
    : memory_(memory), pins_sizes_(is_static), is_grad_on_(eager::is_grad_enabled()),
      keeps_places_(keeps_places), is_static_(is_static), number_(++last_number) {
  plan_->num_arguments = count + (kwnames ? static_cast<size_t>(PyTuple_GET_SIZE(kwnames)) : 0);
  plan_->kwnames = Kept(kwnames);
  plan_->default_dtype = default_dtype();
  plan_->tensor_type_version = version_of_tensor_type();
}

void Tracker::give_up(std::string reason) {
  if (!reason_.empty()) return;
  reason_ = std::move(reason);
  if (!is_logged(LogTopic::kCapture) || !holds_gil()) return;
  int line = 0;
  if (PyCodeObject* code = prong_user_frame("", &line))
    reason_place_ = cat(" (", PyUnicode_AsUTF8(code->co_filename), ":", line, ")");
}

Guard& Tracker::guard(Guard::Kind kind, PyObject* object) {
  const uint64_t key = reinterpret_cast<uint64_t>(object) << 4 ^ static_cast<uint64_t>(kind);
  const auto [it, is_new] = guard_at_.try_emplace(key, plan_->guards.size());
  if (is_new) {
    plan_->guards.push_back(Guard{kind, 0, 0, Kept(object), Kept(nullptr), {}});
    plan_->guards.back().place = place();
  }
  return plan_->guards[it->second];
}

int32_t Tracker::place() {
  if (!keeps_places_ || !door().user_place) return -1;
  Place p = door().user_place();
  if (plan_->places.empty() || plan_->places.back().line != p.line ||
      plan_->places.back().file != p.file)
    plan_->places.push_back(std::move(p));
  return static_cast<int32_t>(plan_->places.size()) - 1;
}

int32_t Tracker::keep(PyObject* object) {
  plan_->objects.emplace_back(object);
  return static_cast<int32_t>(plan_->objects.size()) - 1;
}

void Tracker::watch_tensor(PyObject* tensor, TensorSource source) {
  TensorImpl* impl = door().impl_of(tensor);
  if (roots_.count(impl)) return;
  if (source.kind == TensorSource::Kind::kObject) source.object = keep(tensor);
  roots_.emplace(impl,
                 Root{source, Ref<TensorImpl>(impl), is_plain_leaf(impl), impl->requires_grad});
  plan_->tensors.push_back({source,
                            impl->dtype,
                            impl->requires_grad,
                            door().is_exact_tensor(tensor),
                            static_cast<int64_t>(impl->sizes.size()),
                            {},
                            {},
                            source.kind == TensorSource::Kind::kObject ? place() : -1,
                            false,
                            impl->is_inference,
                            is_view_of_leaf(impl)});
  needs_tape_ |= impl->requires_grad;
}

Term Tracker::argument(PyObject* value, int32_t index) {
  arguments_.push_back(value);
  if (door().is_tensor(value)) {
    // A subclass may do anything in its methods.
    if (!door().is_exact_tensor(value)) return guard_identity(value, index);
    if (const auto root = roots_.find(door().impl_of(value)); root != roots_.end())
      return argument_again(root->second.source, index);
    watch_tensor(value, {TensorSource::Kind::kArgument, index, 0, 0});
    return Term::tensor();
  }
  if (is_input(value)) {
    arguments_.back() = nullptr;  // no value that is the same each time
    NumberStep step{NumberStep::Kind::kArgument};
    step.index = index;
    return outside_number(std::move(step), nullptr, static_cast<uint64_t>(index), value);
  }
  if (!is_plain_value(value)) know(value);
  plan_->guards.push_back(
      Guard{is_plain_value(value) ? Guard::Kind::kArgumentEqual : Guard::Kind::kArgumentIs,
            index,
            0,
            Kept(value),
            Kept(nullptr),
            {}});
  return Term::same();
}

// A tensor that is known as another argument, or as an object, already.
Term Tracker::argument_again(TensorSource known, int32_t index) {
  if (known.kind == TensorSource::Kind::kArgument) {
    Guard g{Guard::Kind::kSameTensor, index, static_cast<uint64_t>(known.index), {}, {}, {}};
    plan_->guards.push_back(std::move(g));
    return Term::tensor();
  }
  if (known.kind == TensorSource::Kind::kObject) {
    plan_->guards.push_back(Guard{Guard::Kind::kArgumentIs,
                                  index,
                                  0,
                                  Kept(plan_->objects[static_cast<size_t>(known.object)].get()),
                                  {},
                                  {}});
    return Term::tensor();
  }
  give_up("one tensor is passed twice");
  return {};
}

Term Tracker::guard_identity(PyObject* value, int32_t index) {
  plan_->guards.push_back(
      Guard{Guard::Kind::kArgumentIs, index, 0, Kept(value), Kept(nullptr), {}});
  return same(value);
}

Term Tracker::same(PyObject* value) {
  if (!door().is_tensor(value)) {
    if (const Term t = value ? open_held(value, nullptr, value, nullptr) : Term(); t.is_known())
      return t;
    if (value && is_container_argument(value))
      give_up("a container that is passed is also reached by another way");
    if (value && !is_plain_value(value)) know(value);
    return Term::same();
  }
  if (const auto root = roots_.find(door().impl_of(value)); root != roots_.end()) {
    const TensorSource::Kind kind = root->second.source.kind;
    if (kind == TensorSource::Kind::kArgument)
      give_up("an argument is also reached by another way");
    if (kind == TensorSource::Kind::kGradient) give_up("a gradient is also reached by another way");
  }
  watch_tensor(value, {TensorSource::Kind::kObject, 0, 0, 0});
  return Term::tensor();
}

Term Tracker::make(Made::Kind kind, std::vector<Term> items, std::vector<PyObject*> objects) {
  for (const Term& t : items)
    if (!t.is_known()) {
      give_up("a container holds a value of unknown origin");
      return {};
    }
  Made m;
  m.kind = kind;
  m.items = std::move(items);
  m.objects = std::move(objects);
  made_.push_back(std::move(m));
  return {Term::Kind::kMade, static_cast<int32_t>(made_.size()) - 1};
}

Term Tracker::tensor_result(PyObject* value) {
  if (door().is_exact_tensor(value)) {
    const TensorImpl* made = door().impl_of(value);
    if (made->requires_grad && !made->grad_fn) make_leaf(value);  // by requires_grad=True
    return Term::tensor();
  }
  if (door().is_tensor(value) && roots_.count(door().impl_of(value)))
    return Term::tensor();  // a parameter, written in place
  if (value == Py_None || PyBool_Check(value)) {
    give_up("an op's answer depends on data");
    return {};
  }
  // A tuple with names is one for whoever takes its items.
  if (!PyTuple_Check(value) && !PyList_CheckExact(value)) {
    give_up("an op gave something else than tensors");
    return {};
  }
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(value);
  // So many by the op's own rule, or as many as some size?
  const Trace* trace = thread_recorder().open_trace();
  if (!trace || trace->nodes.empty() || trace->nodes.back().result != ResultKind::kTuple ||
      trace->nodes.back().num_outputs != n) {
    if (n && door().is_exact_tensor(PySequence_Fast_GET_ITEM(value, 0)))
      pin_number_of_results(door().impl_of(PySequence_Fast_GET_ITEM(value, 0)));
    else
      looked_at_sizes();
  }
  std::vector<Term> items;
  std::vector<PyObject*> objects;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(value, i);
    items.push_back(door().is_exact_tensor(item) ? tensor_result(item) : Term());
    objects.push_back(item);
  }
  const Term made_now = make(PyTuple_Check(value) ? Made::Kind::kTuple : Made::Kind::kList,
                             std::move(items), std::move(objects));
  if (made_now.is_made())
    made(made_now).has_names = !PyTuple_CheckExact(value) && PyTuple_Check(value);
  return made_now;
}

// ── reads ──

Term Tracker::read_dict(PyObject* dict, PyObject* key, PyObject* value, PyTypeObject* owner) {
  Guard& g = guard(Guard::Kind::kDict, dict);
  if (owner && !g.owner.get()) g.owner = Kept(reinterpret_cast<PyObject*>(owner));
  if (const auto w = overlay_.find({dict, key}); w != overlay_.end()) {
    if (value == w->second.value.get()) return w->second.term;
    give_up("an attribute that the call wrote has another value");
    return {};
  }
  if (g.is_written && !is_interned(key))
    give_up("a dict that the call wrote to is read by other keys");
  g.number = version_of(dict);
  if (const auto n = read_numbers_.find({dict, key}); n != read_numbers_.end()) {
    if (value == numbers_[static_cast<size_t>(n->second.index)].value.get()) return n->second;
    give_up("what was read from a dict changed during the call");
    return {};
  }
  if (is_interned(key))
    for (const auto find : {&Tracker::held_tensor, &Tracker::held_container})
      if (const Term t = (this->*find)(dict, key, value, g.owner.get()); t.is_known()) return t;
  for (const Guard::Read& r : g.reads)
    if (r.key.get() == key) {
      if (r.value.get() == value) return value ? same(value) : Term::same();
      give_up("what was read from a dict changed during the call");
      return {};
    }
  if (const Term floats = read_floats(dict, key, value); floats.is_known()) return floats;
  if (PyUnicode_CheckExact(key) && is_input(value)) {
    NumberStep step{NumberStep::Kind::kDict};
    step.object = Kept(dict);
    step.key = Kept(key);
    const Term t = outside_number(std::move(step), dict, reinterpret_cast<uint64_t>(key), value);
    read_numbers_.emplace(std::pair<const void*, const void*>(dict, key), t);
    return t;
  }
  g.reads.push_back({Kept(key), Kept(value), place()});
  if (value && PyMethod_Check(value)) know_stored(value);
  return value ? same(value) : Term::same();
}

void Tracker::read_length(PyObject* dict) {
  Guard& g = guard(Guard::Kind::kDict, dict);
  if (g.is_written) return give_up("the length of a dict that the call wrote to");
  g.number = version_of(dict);
  PyObject* n = PyLong_FromSsize_t(PyDict_GET_SIZE(dict));
  g.reads.push_back({Kept(nullptr), Kept(n), place()});
  Py_DECREF(n);
}

Term Tracker::read_all(PyObject* dict, int what) {
  if (guard(Guard::Kind::kDict, dict).is_written) {
    give_up("a walk over a dict that the call wrote to");
    return {};
  }
  PyObject* order = PySequence_Tuple(dict);
  if (!order) {
    PyErr_Clear();
    give_up("out of memory");
    return {};
  }
  std::vector<Term> items;
  std::vector<PyObject*> objects;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(order); ++i) {
    PyObject* key = PyTuple_GET_ITEM(order, i);
    PyObject* value = PyDict_GetItemWithError(dict, key);
    const Term term = what == 0 ? Term() : read_dict(dict, key, value);
    if (!is_plain_value(key)) give_up("a dict with keys that are not plain values is walked");
    if (what == 2) {
      items.push_back(make(Made::Kind::kTuple, {Term::same(), term}, {key, value}));
      objects.push_back(nullptr);  // the pairs are made anew each time
    } else {
      items.push_back(what == 0 ? Term::same() : term);
      objects.push_back(what == 0 ? key : value);
    }
  }
  if (PyDict_CheckExact(dict)) {
    Guard& g = guard(Guard::Kind::kDict, dict);
    g.number = version_of(dict);
    g.reads.push_back({Kept(nullptr), Kept(order), place()});
  } else {
    guard(Guard::Kind::kOrder, dict).other = Kept(order);
  }
  Py_DECREF(order);
  return make(Made::Kind::kTuple, std::move(items), std::move(objects));
}

void Tracker::read_type(PyTypeObject* type) {
  static PyObject* const name = PyUnicode_InternFromString("__class__");
  _PyType_Lookup(type, name);  // gives it a version, if it has none yet
  if (!PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG))
    return give_up("a type without a version");
  Guard& g = guard(Guard::Kind::kTypeVersion, reinterpret_cast<PyObject*>(type));
  if (g.number && g.number != type->tp_version_tag) give_up("a class changed during the call");
  g.number = type->tp_version_tag;
}

void Tracker::read_type_of(PyObject* object) {
  Guard& g = guard(Guard::Kind::kTypeOf, object);
  if (g.other.get()) return;
  g.other = Kept(reinterpret_cast<PyObject*>(Py_TYPE(object)));
  PyObject** dict = PyType_Check(object) ? nullptr : _PyObject_GetDictPtr(object);
  if (dict) g.number = reinterpret_cast<uint64_t>(*dict);
}

void Tracker::read_list(PyObject* list) {
  if (std::find(appended_.begin(), appended_.end(), list) != appended_.end()) {
    note_changed(list);
    return give_up("a list that the call appended to is read");
  }
  Guard& g = guard(Guard::Kind::kList, list);
  PyObject* items = PyList_AsTuple(list);
  if (g.other.get() && !same_items(g.other.get(), items)) give_up("a list changed during the call");
  g.other = Kept(items);
  Py_XDECREF(items);
}

void Tracker::read_set(PyObject* set) {
  Guard& g = guard(Guard::Kind::kSet, set);
  PyObject* items = PySequence_Tuple(set);
  if (g.other.get() && !same_items(g.other.get(), items)) give_up("a set changed during the call");
  g.other = Kept(items);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items); ++i) same(PyTuple_GET_ITEM(items, i));
  Py_DECREF(items);
}

Term Tracker::read_list_item(PyObject* list, PyObject* value) {
  read_list(list);
  return same(value);
}

Term Tracker::read_cell(PyObject* cell, PyObject* name) {
  if (const auto w = overlay_.find({cell, nullptr}); w != overlay_.end()) {
    if (PyCell_GET(cell) == w->second.value.get()) return w->second.term;
    give_up("a cell that the call wrote has another value");
    return {};
  }
  const auto known = read_numbers_.find({cell, nullptr});
  if (known != read_numbers_.end()) {
    if (PyCell_GET(cell) == numbers_[static_cast<size_t>(known->second.index)].value.get())
      return known->second;
    give_up("a cell changed during the call");
    return {};
  }
  if (is_input(PyCell_GET(cell))) {
    NumberStep step{NumberStep::Kind::kCell};
    step.object = Kept(cell);
    step.key = Kept(name);
    const Term t = outside_number(std::move(step), cell, 0, PyCell_GET(cell));
    read_numbers_.emplace(std::pair<const void*, const void*>(cell, nullptr), t);
    return t;
  }
  for (const auto find : {&Tracker::held_tensor, &Tracker::held_container})
    if (const Term t = (this->*find)(cell, nullptr, PyCell_GET(cell), name); t.is_known()) return t;
  Guard& g = guard(Guard::Kind::kCell, cell);
  if (name && !g.owner.get()) g.owner = Kept(name);
  if (g.other.get() && g.other.get() != PyCell_GET(cell)) {
    give_up("a cell changed during the call");
    return {};
  }
  g.other = Kept(PyCell_GET(cell));
  return same(PyCell_GET(cell));
}

void Tracker::read_function(PyObject* function) {
  Guard& g = guard(Guard::Kind::kFunction, function);
  if (g.other.get()) return;
  const auto* f = reinterpret_cast<PyFunctionObject*>(function);
  // Defaults by name stand in a dict, which may be changed without the function.
  PyObject* by_name = f->func_kwdefaults ? PyDict_Copy(f->func_kwdefaults) : Py_NewRef(Py_None);
  PyObject* parts = PyTuple_Pack(4, f->func_code, f->func_defaults ? f->func_defaults : Py_None,
                                 f->func_kwdefaults ? f->func_kwdefaults : Py_None, by_name);
  Py_XDECREF(by_name);
  g.other = Kept(parts);
  Py_XDECREF(parts);
}

// ── segments ──

std::optional<TensorSource> Tracker::source_of(const TensorImpl* impl) {
  if (const auto it = computed_.find(impl); it != computed_.end()) return it->second;
  if (const auto it = roots_.find(impl); it != roots_.end()) return it->second.source;
  return std::nullopt;
}

void Tracker::on_segment(const SegmentEnd& end) {
  if (!is_on()) return;
  const Trace& trace = end.trace;
  has_python_backend_ |= end.has_python_backend;
  has_other_names_ |= trace.has_other_names;
  Part part;
  part.trace = std::make_shared<Trace>(trace);
  part.runner = end.runner;
  part.number_inputs = end.number_inputs;
  part.runner_outputs = trace.outputs;
  part.is_step = end.is_step;
  has_steps_ |= end.is_step;
  cannot_retrace_ |= end.is_step;
  for (const ValueId v : trace.inputs) {
    const TensorImpl* given = end.impls[static_cast<size_t>(v)];
    const TensorImpl* known = known_as(given);
    has_other_names_ |= known != given;
    const auto source = source_of(known);
    if (!source) return give_up("a graph reads a tensor of unknown origin");
    part.inputs.push_back(output_of(*source));
    part.rehearsed_inputs.push_back(rehearsed_value(known).value_or(Rehearsal::Value{}));
  }
  note_checks(end);
  const auto index = static_cast<int32_t>(parts_.size());
  for (size_t v = 0; v < end.impls.size(); ++v)
    if (trace.values[v].producer >= 0)
      computed_[end.impls[v]] = {TensorSource::Kind::kProgram, index, static_cast<int32_t>(v), 0};
  for (const auto& [impl, v] : end.aliases) {
    if (trace.values[static_cast<size_t>(v)].producer >= 0 && !knows(impl))
      computed_[impl] = {TensorSource::Kind::kProgram, index, v, 0};
    alive_.emplace_back(impl);
  }
  for (const TraceNode& n : trace.nodes) {
    has_inference_ |= (n.modes & eager::kInference) != 0;
    plan_->has_draws |= n.op->is_random();
    if (n.op->is_random()) first_draw_ = std::min(first_draw_, index);
    if (!writes_outside(trace, n)) continue;
    plan_->has_writes = true;
    first_write_ = std::min(first_write_, index);
  }
  if (trace.checks_data) last_check_ = index;
  // What was written or drawn cannot be undone, and the error has to come from where the program
  // calls the op: the graphs that may fail run before all that does so.
  if (plan_->has_writes && last_check_ >= std::min(first_write_, first_draw_))
    give_up("an op that other data makes fail stands beside one that writes");
  for (TensorImpl* i : end.impls) alive_.emplace_back(i);
  parts_.push_back(std::move(part));
}

// Indices that are given to the plan, or that its programs give, are looked at before it writes
// anything.
void Tracker::note_checks(const SegmentEnd& end) {
  for (const IndexCheck& c : end.checks) {
    std::optional<TensorSource> source;
    size_t roots_there = 0;
    for (const auto& [impl, root] : roots_) {
      if (impl->storage != c.tensor->storage) continue;
      ++roots_there;
      source = root.source;
    }
    // Nothing before this graph wrote to it.
    const bool is_same_then = !plan_->has_writes || constants_.count(c.tensor->storage.get());
    const auto index = static_cast<int32_t>(parts_.size());
    if (roots_there == 1 && is_same_then) {
      checks_.push_back({*source, c.low, c.high, c.ignored});
      continue;
    }
    const auto computed = computed_.find(known_as(c.tensor.get()));
    if (roots_there == 0 && is_same_then && computed != computed_.end())
      checks_.push_back({output_of(computed->second), c.low, c.high, c.ignored, index});
    else
      last_check_ = index;
  }
}

}  // namespace prong::capture
