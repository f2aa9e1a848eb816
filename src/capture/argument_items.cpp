// Lists, tuples, dicts and records (instances that hold tensors and plain values) that a call is
// given: a plan asks that they are built as those of the recording were, and takes their items as
// further arguments. So they may be other objects at each
// call. See tracker.h and plan.h.
#include <algorithm>

#include "capture/instance_access.h"
#include "capture/tracker.h"

namespace prong::capture {

namespace {

constexpr Py_ssize_t kMaxItems = 256;  // of a container; larger ones are the same object each time
constexpr size_t kMaxContainers = 128;

bool is_sequence(PyObject* o) { return PyList_CheckExact(o) || PyTuple_CheckExact(o); }

bool has_plain_keys(PyObject* dict) {
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(dict, &position, &key, &value))
    if (!is_plain_value(key)) return false;
  return true;
}

constexpr Py_ssize_t kMaxAttributes = 32;  // of an instance
constexpr int kMaxDepth = 4;

// Of a class that only keeps attributes in a dict and slots, and reads them in the usual way.
bool is_record_class(PyTypeObject* type) {
  return is_instance_class(type) && Py_TYPE(type) == &PyType_Type &&
         type->tp_getattro == PyObject_GenericGetAttr && !type->tp_finalize && !type->tp_del &&
         !type_attribute(type, "__getattr__");
}

// The slots that are set: their descriptors and values, of each class that has some.
template <class F>
void for_each_slot(PyObject* record, F f) {
  PyObject* mro = Py_TYPE(record)->tp_mro;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); ++i) {
    PyObject *name, *descriptor;
    Py_ssize_t position = 0;
    PyObject* dict = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(mro, i))->tp_dict;
    while (dict && PyDict_Next(dict, &position, &name, &descriptor)) {
      if (!Py_IS_TYPE(descriptor, &PyMemberDescr_Type)) continue;
      PyObject* value =
          Py_TYPE(descriptor)
              ->tp_descr_get(descriptor, record, reinterpret_cast<PyObject*>(Py_TYPE(record)));
      if (!value) {
        PyErr_Clear();
        continue;
      }
      f(descriptor, name, value);
      Py_DECREF(value);  // the record keeps it
    }
  }
}

bool is_opened_within(PyObject* o, int depth);

// Tensors, plain values, and containers and records of such: what a program hands on as one thing.
// Other objects have a life of their own, and are the same at each call.
bool is_record(PyObject* o, int depth) {
  if (depth > kMaxDepth || !is_record_class(Py_TYPE(o))) return false;
  Py_ssize_t count = 0;
  bool is_data = true;
  const auto look = [&](PyObject* value) {
    ++count;
    is_data = is_data &&
              (door().is_exact_tensor(value) || is_plain_value(value) || PyFunction_Check(value) ||
               PyType_Check(value) || is_opened_within(value, depth + 1));
  };
  PyObject *key, *value;
  Py_ssize_t position = 0;
  if (PyObject* dict = instance_dict(o))
    while (PyDict_Next(dict, &position, &key, &value)) {
      is_data = is_data && PyUnicode_CheckExact(key);
      look(value);
    }
  for_each_slot(o, [&](PyObject*, PyObject*, PyObject* in_slot) { look(in_slot); });
  return is_data && count > 0 && count <= kMaxAttributes;
}

bool is_named_tuple(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  return PyTuple_Check(o) && PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) &&
         type->tp_getattro == PyObject_GenericGetAttr && type->tp_iter == PyTuple_Type.tp_iter &&
         type_attribute(type, "_fields") && !instance_dict(o) &&
         !type_attribute(type, "__getattr__");
}

bool is_opened_within(PyObject* o, int depth) {
  if (is_sequence(o)) return !is_plain_value(o) && PySequence_Fast_GET_SIZE(o) <= kMaxItems;
  if (PyDict_CheckExact(o)) return PyDict_GET_SIZE(o) <= kMaxItems && has_plain_keys(o);
  if (is_named_tuple(o)) return PyTuple_GET_SIZE(o) <= kMaxItems;
  return is_record(o, depth);
}

std::vector<PyObject*> items_of(PyObject* container) {
  std::vector<PyObject*> items;
  if (PyTuple_Check(container) || PyList_CheckExact(container)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(container); ++i)
      items.push_back(PySequence_Fast_GET_ITEM(container, i));
    return items;
  }
  const bool is_dict = PyDict_CheckExact(container);
  PyObject *key, *value;
  Py_ssize_t position = 0;
  if (PyObject* dict = is_dict ? container : instance_dict(container))
    while (PyDict_Next(dict, &position, &key, &value)) items.push_back(value);
  if (!is_dict)
    for_each_slot(container,
                  [&](PyObject*, PyObject*, PyObject* in_slot) { items.push_back(in_slot); });
  return items;
}

}  // namespace

bool is_opened(PyObject* argument) { return is_opened_within(argument, 0); }

bool ArgumentContainer::holds(PyObject* o) const {
  if (Py_TYPE(o) != type) return false;
  if (!keys.get()) return PySequence_Fast_GET_SIZE(o) == size;
  PyObject* const dict = is_record ? instance_dict(o) : o;
  const Py_ssize_t named = PyTuple_GET_SIZE(keys.get());
  if ((dict ? PyDict_GET_SIZE(dict) : 0) + (slots.get() ? PyTuple_GET_SIZE(slots.get()) : 0) !=
      size)
    return false;
  PyObject *key, *value;
  Py_ssize_t position = 0, k = 0;
  while (dict && PyDict_Next(dict, &position, &key, &value)) {
    if (k >= named || !same_value(PyTuple_GET_ITEM(keys.get(), k), key)) return false;
    ++k;
  }
  if (!slots.get()) return true;
  Py_ssize_t s = 0;
  bool same = true;
  for_each_slot(o, [&](PyObject* descriptor, PyObject*, PyObject*) {
    same =
        same && s < PyTuple_GET_SIZE(slots.get()) && PyTuple_GET_ITEM(slots.get(), s) == descriptor;
    ++s;
  });
  return same && s == PyTuple_GET_SIZE(slots.get());
}

// ── recording ──

Term Tracker::container_argument(PyObject* value) {
  if (is_container_argument(value) || plan_->containers.size() == kMaxContainers) {
    give_up("one container is passed twice, or too many are passed");
    return {};
  }
  const bool is_dict = PyDict_CheckExact(value);
  const bool is_record = !is_dict && !PyTuple_Check(value) && !PyList_CheckExact(value);
  ArgumentContainer c{static_cast<int32_t>(arguments_.size()), Py_TYPE(value),
                      static_cast<Py_ssize_t>(items_of(value).size())};
  c.is_record = is_record;
  if (is_record || !is_sequence(value)) read_type(Py_TYPE(value));
  if (PyObject* dict = is_dict ? value : is_record ? instance_dict(value) : nullptr) {
    c.keys = Kept::steal(PySequence_Tuple(dict));
  } else if (is_record) {
    c.keys = Kept::steal(PyTuple_New(0));
  }
  if (is_record) {
    PyObject* slots = PyList_New(0);
    for_each_slot(value, [&](PyObject* descriptor, PyObject*, PyObject*) {
      if (slots) PyList_Append(slots, descriptor);
    });
    if (slots && PyList_GET_SIZE(slots)) c.slots = Kept::steal(PyList_AsTuple(slots));
    Py_XDECREF(slots);
  }
  plan_->containers.push_back(std::move(c));
  arguments_.push_back(value);
  const Term t = make(is_dict                    ? Made::Kind::kDict
                      : is_record                ? Made::Kind::kInstance
                      : PyList_CheckExact(value) ? Made::Kind::kList
                                                 : Made::Kind::kTuple,
                      {}, {});
  if (t.is_made() && PyTuple_Check(value) && !PyTuple_CheckExact(value))
    made_[static_cast<size_t>(t.index)].type = Kept(reinterpret_cast<PyObject*>(Py_TYPE(value)));
  given_.emplace_back();
  given_.back().term = t;
  given_.back().object = Kept(value);
  return t;
}

void Tracker::open_containers(size_t first) {
  for (size_t k = first; k < given_.size() && is_on(); ++k) {  // grows on the way
    PyObject* const container = given_[k].object.get();
    const Term t = given_[k].term;
    std::vector<PyObject*> items = items_of(container);
    std::vector<Term> terms;
    for (PyObject* item : items) {
      given_[k].items.emplace_back(item);
      terms.push_back(is_opened(item) ? container_argument(item)
                                      : argument(item, static_cast<int32_t>(arguments_.size())));
    }
    if (!is_on()) return;
    Made& m = made_[static_cast<size_t>(t.index)];
    m.given = static_cast<int32_t>(k);
    if (PyObject* slots = plan_->containers[k].slots.get()) {
      const size_t named = terms.size() - static_cast<size_t>(PyTuple_GET_SIZE(slots));
      for (size_t i = named; i < terms.size(); ++i)
        given_[k].slots.push_back({PyTuple_GET_ITEM(slots, static_cast<Py_ssize_t>(i - named)),
                                   terms[i], Kept(items[i]), false});
      terms.resize(named);
      items.resize(named);
    }
    given_[k].terms = terms;
    m.items = std::move(terms);
    m.objects = std::move(items);
    if (PyObject* keys = plan_->containers[k].keys.get())
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys); ++i)
        m.keys.emplace_back(PyTuple_GET_ITEM(keys, i));
    own(t, container);
  }
}

// A tensor that stood somewhere else when the function was last recorded; unknown: it is a fact.
Term Tracker::held_tensor(PyObject* holder, PyObject* key, PyObject* value, PyObject* owner) {
  if (!value || !door().is_exact_tensor(value) || !memory_) return {};
  const std::pair<const void*, const void*> place(holder, key);
  TensorImpl* const impl = door().impl_of(value);
  if (const auto known = held_.find(place); known != held_.end()) {
    if (known->second != impl) give_up("a tensor that was read changed during the call");
    return Term::tensor();
  }
  if (!memory_->is_replaced(holder, reinterpret_cast<uint64_t>(key), impl)) return {};
  if (knows(impl) || is_container_argument(holder)) return {};
  held_.emplace(place, impl);
  const auto index = static_cast<int32_t>(arguments_.size());
  arguments_.push_back(nullptr);  // the place holds it only until the call assigns another
  plan_->held.push_back({Kept(holder), Kept(key), Kept(owner), given_.size()});
  watch_tensor(value, {TensorSource::Kind::kArgument, index, 0, 0});
  return Term::tensor();
}

bool Tracker::is_container_argument(PyObject* o) const {
  return std::any_of(given_.begin(), given_.end(),
                     [&](const Given& g) { return g.object.get() == o; });
}

// The attributes of a record that the call assigned are assigned in a replay too: those of the one
// that it is given then. False: it did something else to it.
bool Tracker::note_record_stores(size_t k) {
  const ArgumentContainer& c = plan_->containers[k];
  PyObject* const record = given_[k].object.get();
  const std::vector<Kept>& before = given_[k].items;
  const auto store = [&](PyObject* name, PyObject* value, Term term) {
    if (!term.is_known() || is_fragile(term)) return false;
    effects_.push_back({Kept(record), Kept(name), Kept(value), term, Effect::Kind::kArgument,
                        num_steps_, c.index});
    return true;
  };
  const Made& m = made(given_[k].term);
  const auto named = static_cast<size_t>(PyTuple_GET_SIZE(c.keys.get()));
  if (m.keys.size() < named) return false;
  bool is_followed = true;
  const size_t stores_before = effects_.size();
  for (size_t i = 0; i < m.keys.size() && is_followed; ++i) {
    if (i < named &&
        !same_value(m.keys[i].get(), PyTuple_GET_ITEM(c.keys.get(), static_cast<Py_ssize_t>(i))))
      return false;
    // Another value, or one that is the same only this time.
    if (i >= named || m.objects[i] != before[i].get() ||
        m.items[i].kind != given_[k].terms[i].kind || m.items[i].index != given_[k].terms[i].index)
      is_followed = store(m.keys[i].get(), m.objects[i], m.items[i]);
  }
  size_t num_set = 0;
  for_each_slot(record, [&](PyObject* descriptor, PyObject* name, PyObject* value) {
    const GivenSlot* slot = slot_of(k, descriptor);
    ++num_set;
    is_followed = is_followed && slot && slot->value.get() == value &&
                  (!slot->is_stored || store(name, value, slot->term));
  });
  // Between two steps nobody knows when.
  return is_followed && num_set == given_[k].slots.size() &&
         (num_steps_ == 0 || effects_.size() == stores_before);
}

Tracker::GivenSlot* Tracker::slot_of(size_t k, PyObject* descriptor) {
  for (GivenSlot& s : given_[k].slots)
    if (s.descriptor == descriptor) return &s;
  return nullptr;
}

// Of a record that the call is given; unknown: it is not followed.
Term Tracker::read_slot(Term owner, PyObject* descriptor, PyObject* value) {
  const int32_t k = peek(owner).given;
  const GivenSlot* s = k < 0 ? nullptr : slot_of(static_cast<size_t>(k), descriptor);
  return s && s->value.get() == value ? s->term : Term();
}

void Tracker::write_slot(Term owner, PyObject* descriptor, PyObject* value, Term term) {
  const int32_t k = peek(owner).given;
  if (k < 0) return;
  GivenSlot* s = slot_of(static_cast<size_t>(k), descriptor);
  if (!s)
    s = &given_[static_cast<size_t>(k)].slots.emplace_back(GivenSlot{descriptor, {}, {}, true});
  s->term = term;
  s->value = Kept(value);
  s->is_stored = true;
}

// What the call did to a list or dict is done again; false: it cannot be.
bool Tracker::note_contents(size_t k) {
  const ArgumentContainer& c = plan_->containers[k];
  PyObject* const container = given_[k].object.get();
  const Made& m = made(given_[k].term);
  const std::vector<PyObject*> now = items_of(container);
  bool is_same = c.holds(container) && now.size() == given_[k].terms.size();
  for (size_t i = 0; is_same && i < now.size(); ++i)
    is_same = now[i] == given_[k].items[i].get() && m.items[i].kind == given_[k].terms[i].kind &&
              m.items[i].index == given_[k].terms[i].index;  // else the same only this time
  if (is_same) return true;
  // Between two steps nobody knows when.
  if (num_steps_ > 0 || !(PyList_CheckExact(container) || PyDict_CheckExact(container)))
    return false;
  if (!is_on() || std::any_of(m.items.begin(), m.items.end(),
                              [&](Term t) { return !t.is_known() || is_fragile(t); }))
    return false;
  effects_.push_back({Kept(container), Kept(), Kept(container), given_[k].term,
                      Effect::Kind::kContents, num_steps_, c.index});
  return true;
}

// Or what the call did to them is done again.
bool Tracker::containers_are_unchanged() {
  bool has_records = false, has_lists = false, has_dicts = false;
  for (size_t k = 0; k < given_.size(); ++k) {
    PyObject* const container = given_[k].object.get();
    if (plan_->containers[k].is_record) {
      has_records = true;
      if (Py_TYPE(container) != plan_->containers[k].type || !note_record_stores(k)) return false;
      continue;
    }
    const size_t effects = effects_.size();
    if (!note_contents(k)) return false;
    if (effects_.size() == effects) continue;
    has_lists |= PyList_Check(container) != 0;
    has_dicts |= PyDict_Check(container) != 0;
  }
  if (has_records) note_strangers();
  if (!given_.empty()) note_other_containers(has_lists, has_dicts);
  return true;
}

// Objects that the plan knows by identity must not be among the records that it is given.
void Tracker::note_strangers() {
  for (const auto& [object, known] : known_) {
    if (!known.term.is_same()) continue;
    for (const ArgumentContainer& c : plan_->containers)
      if (c.is_record && Py_TYPE(object) == c.type) {
        plan_->strangers.push_back(object);
        keep(object);
        break;
      }
  }
}

// ── replay ──

bool Plan::open(PyObject* const* args) {
  opened_.clear();
  for (size_t i = 0; i < num_arguments; ++i) opened_.emplace_back(args[i]);
  size_t h = 0;
  for (size_t k = 0; k <= containers.size(); ++k) {
    for (; h < held.size() && held[h].after == k; ++h) {
      PyObject* found = held[h].get();
      if (!found || !(held[h].is_container || door().is_exact_tensor(found))) return false;
      opened_.emplace_back(found);
    }
    if (k == containers.size()) break;
    const ArgumentContainer& c = containers[k];
    PyObject* const container = opened_[static_cast<size_t>(c.index)].get();
    if (!c.holds(container)) return false;
    if (!PyTuple_Check(container))  // which are never changed
      for (size_t before = 0; before < k; ++before)
        if (opened_[static_cast<size_t>(containers[before].index)].get() == container) return false;
    if (std::find(strangers.begin(), strangers.end(), container) != strangers.end()) return false;
    for (PyObject* item : items_of(container)) opened_.emplace_back(item);
  }
  return true;
}

PyObject* HeldTensor::get() const {
  if (PyCell_Check(holder.get())) return PyCell_GET(holder.get());
  if (!key.get()) return holder.get();
  PyObject* found = PyDict_GetItemWithError(holder.get(), key.get());
  if (!found) PyErr_Clear();
  return found;
}

}  // namespace prong::capture
