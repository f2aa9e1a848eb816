// Lists, tuples and dicts that a call finds in attributes, variables and dicts, and that it
// changes, or that are others each time: a plan takes their items as it takes those of containers
// that the call is given (argument_items.cpp). Known by what earlier recordings saw. See tracker.h.
#include <algorithm>

#include "capture/tracker.h"

namespace prong::capture {

namespace {

bool is_kept(PyObject* o) {
  return (PyList_CheckExact(o) || PyTuple_CheckExact(o) || PyDict_CheckExact(o)) && is_opened(o);
}

}  // namespace

// One that is opened already, if it was found there.
Term Tracker::opened(PyObject* value, PyObject* holder, PyObject* key) const {
  for (const Given& g : given_)
    if (g.object.get() == value && g.holder == holder && g.key == key) return g.term;
  return {};
}

Term Tracker::held_container(PyObject* holder, PyObject* key, PyObject* value, PyObject* owner) {
  if (!value || !memory_ || !is_kept(value)) return {};
  const void* const place = key ? key : holder;  // a cell
  if (memory_->is_replaced(holder, reinterpret_cast<uint64_t>(key), value) ||
      memory_->is_changing(value, place))
    memory_->note_changing(value, place);
  return open_held(holder, key, value, owner);
}

// `holder` null: it was reached another way, and is the very one each time.
Term Tracker::open_held(PyObject* holder, PyObject* key, PyObject* value, PyObject* owner) {
  const bool is_itself = !holder;
  PyObject* const found_in = is_itself ? value : holder;
  PyObject* const name = is_itself ? nullptr : key;
  if (const Term known = opened(value, found_in, name); known.is_known()) return known;
  if (!memory_ || !memory_->is_changing(value, name ? name : found_in)) return {};
  if (is_itself ? !PyList_CheckExact(value) || !is_opened(value) : !is_kept(value)) return {};
  // Nothing of it was looked at by another way, and it is not looked at as somebody's attributes.
  const auto is_guarded = [&](const Guard& g) { return g.object.get() == value; };
  if (known_.count(value) || is_container_argument(value) || is_container_argument(found_in) ||
      std::find(appended_.begin(), appended_.end(), value) != appended_.end() ||
      std::any_of(plan_->guards.begin(), plan_->guards.end(), is_guarded))
    return {};
  const size_t k = given_.size();
  plan_->held.push_back({Kept(found_in), Kept(name), Kept(owner), k, true});
  container_argument(value);
  if (!is_on()) return {};
  given_[k].holder = found_in;
  given_[k].key = name;
  open_containers(k);
  return is_on() ? given_[k].term : Term();
}

void Tracker::note_changed(PyObject* container) {
  if (!memory_ || !PyList_CheckExact(container) || !is_opened(container)) return;
  const void* name = nullptr;
  for (const Guard& g : plan_->guards)
    for (const Guard::Read& r : g.reads)
      if (r.value.get() == container && r.key.get() && is_interned(r.key.get())) name = r.key.get();
  has_learned_ |= memory_->note_changing(container, name);
}

// Those that the plan knows by identity, and reads or changes, must not be among those that it is
// given, where it changes these.
void Tracker::note_other_containers(bool has_lists, bool has_dicts) {
  for (const Store& e : effects_)
    if (e.kind != Effect::Kind::kContents && e.owner.get() &&
        (PyList_Check(e.owner.get()) || PyDict_Check(e.owner.get())))
      plan_->strangers.push_back(e.owner.get());
  for (const Guard& g : plan_->guards)
    if ((has_lists && g.kind == Guard::Kind::kList) ||
        (has_dicts && (g.kind == Guard::Kind::kDict || g.kind == Guard::Kind::kOrder)))
      plan_->strangers.push_back(g.object.get());
}

bool set_contents(PyObject* container, PyObject* to) {
  if (PyList_CheckExact(container))
    return PyList_SetSlice(container, 0, PyList_GET_SIZE(container), to) == 0;
  PyObject *key, *value, *new_key, *new_value;
  Py_ssize_t position = 0, new_position = 0;
  bool only_grows = true;  // so that the keys keep their order
  while (only_grows && PyDict_Next(container, &position, &key, &value))
    only_grows = PyDict_Next(to, &new_position, &new_key, &new_value) && same_value(key, new_key);
  if (!only_grows) PyDict_Clear(container);
  return PyDict_Update(container, to) == 0;
}

}  // namespace prong::capture
