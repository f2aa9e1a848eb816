// How a plan builds anew what a call made and gave away: instances, and things that several places
// hold. Called by tracker.cpp when a plan is made and by plan.cpp when it runs.
#include "capture/tracker.h"

namespace prong::capture {

// ── describing ──

void Tracker::count_uses(Term t, std::map<int32_t, int>& uses) {
  if (!t.is_made() || ++uses[t.index] > 1) return;
  const Made& m = made(t);
  if (m.kind == Made::Kind::kFunction || m.kind == Made::Kind::kMethod) return;
  for (const Term& item : m.items) count_uses(item, uses);
}

// Gives numbers to what several places hold.
void Tracker::count_uses() {
  std::map<int32_t, int> uses;
  count_uses(result_term_, uses);
  for (const Store& e : effects_) count_uses(e.term, uses);
  for (const auto& [index, count] : uses)
    if (count > 1) nodes_.emplace(index, static_cast<int32_t>(nodes_.size()));
  plan_->nodes.resize(nodes_.size());
}

bool Tracker::describe_node(PyObject*, Term term, int32_t node, Template* out) {
  Template& definition = plan_->nodes[static_cast<size_t>(node)];
  out->kind = Template::Kind::kNode;
  out->object = node;
  if (definition.is_described) return definition.is_complete;  // else it holds itself
  definition.is_described = true;
  Template made;
  made.is_described = true;
  if (!describe_made(term, &made)) return false;
  made.is_complete = true;
  plan_->nodes[static_cast<size_t>(node)] = std::move(made);
  return true;
}

bool Tracker::describe_instance(const Made& m, Template* out) {
  if (!m.object) return false;
  PyObject* const object = m.object;
  PyTypeObject* type = Py_TYPE(object);
  if (type->tp_itemsize || type->tp_flags & Py_TPFLAGS_IS_ABSTRACT) return false;
  out->kind = Template::Kind::kInstance;
  std::vector<Term> items = m.items;
  std::vector<PyObject*> objects = m.objects, keys;
  for (const Kept& k : m.keys) keys.push_back(k.get());
  // Slots: of each class that has some, what stands there now.
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
    PyObject *name, *descriptor;
    Py_ssize_t position = 0;
    PyObject* dict = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i))->tp_dict;
    while (dict && PyDict_Next(dict, &position, &name, &descriptor)) {
      if (!Py_IS_TYPE(descriptor, &PyMemberDescr_Type)) continue;
      PyObject* value =
          Py_TYPE(descriptor)->tp_descr_get(descriptor, object, reinterpret_cast<PyObject*>(type));
      if (!value) {
        PyErr_Clear();
        continue;
      }
      items.push_back(find(value));
      objects.push_back(value);
      keys.push_back(descriptor);
      Py_DECREF(value);  // the object keeps it
    }
  }
  PyObject* names = PyTuple_New(static_cast<Py_ssize_t>(keys.size()) + 1);
  PyTuple_SET_ITEM(names, 0, Py_NewRef(reinterpret_cast<PyObject*>(type)));
  for (size_t i = 0; i < keys.size(); ++i)
    PyTuple_SET_ITEM(names, static_cast<Py_ssize_t>(i) + 1, Py_NewRef(keys[i]));
  out->object = keep(names);
  Py_DECREF(names);
  for (size_t i = 0; i < items.size(); ++i) {
    out->items.emplace_back();
    if (!describe(objects[i], items[i], &out->items.back())) return false;
  }
  return true;
}

// ── building ──

namespace {

thread_local std::vector<Kept>* built = nullptr;  // by node

bool set_part(PyObject* object, PyObject* key, PyObject* value) {
  if (Py_IS_TYPE(key, &PyMemberDescr_Type))
    return Py_TYPE(key)->tp_descr_set(key, object, value) == 0;
  PyObject* dict = PyObject_GenericGetDict(object, nullptr);
  if (!dict) return false;
  const int done = PyDict_SetItem(dict, key, value);
  Py_DECREF(dict);
  return done == 0;
}

PyObject* build_instance(const Template& t, PyObject* names, const BuildPart& build) {
  auto* type = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(names, 0));
  PyObject* none = PyTuple_New(0);
  PyObject* made = none ? PyBaseObject_Type.tp_new(type, none, nullptr) : nullptr;
  Py_XDECREF(none);
  for (size_t i = 0; made && i < t.items.size(); ++i) {
    PyObject* item = build(t.items[i]);
    if (!item || !set_part(made, PyTuple_GET_ITEM(names, static_cast<Py_ssize_t>(i) + 1), item))
      Py_CLEAR(made);
    Py_XDECREF(item);
  }
  return made;
}

}  // namespace

BuildScope::BuildScope(size_t num_nodes) : saved_(built) {
  for (size_t i = 0; i < num_nodes; ++i) nodes_.emplace_back(nullptr);
  built = &nodes_;
}
BuildScope::~BuildScope() { built = saved_; }

PyObject* build_object(const Template& t, const Plan& plan, const BuildPart& build) {
  const auto at = static_cast<size_t>(t.object);
  switch (t.kind) {
  case Template::Kind::kNode: {
    if (PyObject* known = (*built)[at].get()) return Py_NewRef(known);
    PyObject* made = build(plan.nodes[at]);
    if (made) (*built)[at] = Kept(made);
    return made;
  }
  case Template::Kind::kInstance:
    return build_instance(t, plan.objects[at].get(), build);
  case Template::Kind::kSet: {
    PyObject* made = PySet_New(nullptr);
    for (size_t i = 0; made && i < t.items.size(); ++i) {
      PyObject* item = build(t.items[i]);
      if (!item || PySet_Add(made, item) < 0) Py_CLEAR(made);
      Py_XDECREF(item);
    }
    return made;
  }
  default: {  // kTupleOf
    PyObject* items = PyTuple_New(static_cast<Py_ssize_t>(t.items.size()));
    for (size_t i = 0; items && i < t.items.size(); ++i) {
      PyObject* item = build(t.items[i]);
      if (item)
        PyTuple_SET_ITEM(items, static_cast<Py_ssize_t>(i), item);
      else
        Py_CLEAR(items);
    }
    PyObject* arguments = items ? PyTuple_Pack(1, items) : nullptr;
    Py_XDECREF(items);
    if (!arguments) return nullptr;
    PyObject* made = PyTuple_Type.tp_new(reinterpret_cast<PyTypeObject*>(plan.objects[at].get()),
                                         arguments, nullptr);
    Py_DECREF(arguments);
    return made;
  }
  }
}

}  // namespace prong::capture
