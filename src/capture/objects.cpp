// What a call makes, known by its address: so what C code hands on (zip, sum, sorted, the items of
// a container) and what it calls is known again. Objects that the call can reach and that guards
// vouch for are known too. See tracker.h.
#include <algorithm>
#include <cstring>

#include "capture/python_names.h"
#include "capture/session.h"
#include "capture/tracker.h"

namespace prong::capture {

namespace {

// A class made by a class statement, whose instances keep their state in a dict and slots.
bool is_python_class(PyTypeObject* type) {
  static const destructor dealloc = [] {
    PyObject* module = PyImport_ImportModule("abc");
    PyObject* made = module ? PyObject_GetAttrString(module, "ABC") : nullptr;
    Py_XDECREF(module);
    Py_XDECREF(made);  // the module keeps it
    PyErr_Clear();
    return made ? reinterpret_cast<PyTypeObject*>(made)->tp_dealloc : nullptr;
  }();
  return dealloc && type->tp_dealloc == dealloc;
}

bool is_opaque_walk(PyObject* o) {  // iterators and views of builtin containers
  const std::string_view name = Py_TYPE(o)->tp_name;
  return name.substr(0, 10) == "itertools." || is_one_of(name, {"zip",
                                                                "enumerate",
                                                                "map",
                                                                "filter",
                                                                "reversed",
                                                                "list_iterator",
                                                                "list_reverseiterator",
                                                                "tuple_iterator",
                                                                "dict_keys",
                                                                "dict_values",
                                                                "dict_items",
                                                                "dict_keyiterator",
                                                                "dict_valueiterator",
                                                                "dict_itemiterator",
                                                                "dict_reversekeyiterator",
                                                                "dict_reversevalueiterator",
                                                                "dict_reverseitemiterator",
                                                                "set_iterator",
                                                                "range_iterator",
                                                                "longrange_iterator",
                                                                "str_iterator",
                                                                "str_ascii_iterator",
                                                                "bytes_iterator",
                                                                "callable_iterator",
                                                                "iterator",
                                                                "super",
                                                                "functools.partial",
                                                                "operator.itemgetter",
                                                                "operator.attrgetter",
                                                                "operator.methodcaller",
                                                                "mappingproxy",
                                                                "odict_iterator",
                                                                "odict_keys",
                                                                "odict_values",
                                                                "odict_items"});
}

}  // namespace

bool is_instance_class(PyTypeObject* type) {
  return PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && is_python_class(type) &&
         !PyType_HasFeature(type, Py_TPFLAGS_LIST_SUBCLASS | Py_TPFLAGS_DICT_SUBCLASS |
                                      Py_TPFLAGS_TUPLE_SUBCLASS | Py_TPFLAGS_UNICODE_SUBCLASS |
                                      Py_TPFLAGS_BYTES_SUBCLASS | Py_TPFLAGS_LONG_SUBCLASS |
                                      Py_TPFLAGS_BASE_EXC_SUBCLASS | Py_TPFLAGS_TYPE_SUBCLASS);
}

bool Tracker::knows_tensor(PyObject* tensor) const {
  const TensorImpl* impl = door().impl_of(tensor);
  return roots_.count(impl) || computed_.count(impl) ||
         thread_recorder().has_recorded(Tensor(Ref<TensorImpl>(door().impl_of(tensor))));
}

// A plain value by itself does not tell whether it is a number that may change: those are fixed.
void Tracker::pin_equal(PyObject* value) {
  if (numbers_.empty()) return;
  if (PyTuple_CheckExact(value)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i) pin_equal(PyTuple_GET_ITEM(value, i));
    return;
  }
  for (size_t i = 0; i < numbers_.size(); ++i)
    if (!numbers_[i].is_pinned && same_value(numbers_[i].value.get(), value))
      pin(Term::number(static_cast<int32_t>(i)));
}

Term Tracker::find(PyObject* o) {
  if (!o) return {};
  if (door().is_tensor(o)) return knows_tensor(o) ? Term::tensor() : Term();
  if (const auto it = known_.find(o); it != known_.end()) return it->second.term;
  if (PyGen_CheckExact(o)) {
    const GeneratorState* state = generator(o);
    return state ? state->made : Term();
  }
  if (is_plain_value(o)) {
    pin_equal(o);
    return Term::same();
  }
  if (PyType_Check(o) &&
      !PyType_HasFeature(reinterpret_cast<PyTypeObject*>(o), Py_TPFLAGS_HEAPTYPE))
    return Term::same();
  if (PyRange_Check(o) || PySlice_Check(o) || o == Py_NotImplemented) return Term::same();
  return {};
}

void Tracker::know(PyObject* object) {
  // Methods are bound anew each time.
  if (PyMethod_Check(object)) return;
  if (PyCFunction_Check(object)) {
    PyObject* self = PyCFunction_GET_SELF(object);
    if (self && !PyModule_Check(self)) return;
  }
  known_.try_emplace(object, Known{Term::same(), Kept(object)});
}

void Tracker::know_stored(PyObject* method) {
  known_.try_emplace(method, Known{Term::same(), Kept(method)});
}

bool Tracker::is_builtin_exception(PyTypeObject* type) {
  if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) return true;
  read_type(type);
  for (const char* word : {"__init__", "__new__"}) {
    PyObject* name = PyUnicode_InternFromString(word);
    PyObject* found = _PyType_Lookup(type, name);
    Py_DECREF(name);
    if (!found || PyFunction_Check(found) || Py_IS_TYPE(found, &PyStaticMethod_Type)) return false;
  }
  return Py_TYPE(type)->tp_call == PyType_Type.tp_call;
}

bool Tracker::is_method_of(PyObject* function, PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (door().is_tensor(object) || !PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) return false;
  PyObject* mro = type->tp_mro;
  for (Py_ssize_t i = 0; mro && i < PyTuple_GET_SIZE(mro); ++i) {
    PyObject *key, *value;
    Py_ssize_t position = 0;
    PyObject* dict = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(mro, i))->tp_dict;
    while (dict && PyDict_Next(dict, &position, &key, &value)) {
      bool is_it = value == function;
      if (!is_it && Py_IS_TYPE(value, &PyProperty_Type))
        for (const char* part : {"fget", "fset"}) {
          PyObject* getter = PyObject_GetAttrString(value, part);
          is_it |= getter == function;
          Py_XDECREF(getter);
        }
      if (!is_it) continue;
      read_type(type);
      if (const Term t = find(object); t.is_same()) read_type_of(object);
      return is_on();
    }
  }
  return false;
}

void Tracker::read_context_variable(PyObject* variable, PyObject* value) {
  plan_->guards.push_back(Guard{Guard::Kind::kContextVariable,
                                0,
                                0,
                                Kept(variable),
                                Kept(value),
                                {},
                                false,
                                Kept(),
                                place()});
}

Term Tracker::read_member(PyObject* object, PyObject* name, PyObject* value) {
  plan_->guards.push_back(
      Guard{Guard::Kind::kMember, 0, 0, Kept(object), Kept(value), {}, false, Kept(name), place()});
  return same(value);
}

void Tracker::own(Term t, PyObject* object) {
  if (!t.is_made() || !is_on()) return;
  Made& m = made_[static_cast<size_t>(t.index)];
  if (m.object) return;
  for (const Term& item : m.items) {
    // Exceptions are not kept alive: their traceback holds the frames.
    if (item.is_made() && made_[static_cast<size_t>(item.index)].kind == Made::Kind::kException)
      return;
    if (item.is_made() && made_[static_cast<size_t>(item.index)].is_fragile)
      return give_up("a container holds a generator with something to do at its end");
  }
  m.object = object;
  known_.insert_or_assign(object, Known{t, Kept(object)});
  hold(m);
}

void Tracker::hold(Made& m) {
  m.held.clear();
  for (PyObject* o : m.objects) m.held.emplace_back(o);
}

void Tracker::forget() {
  for (Made& m : made_) {
    m.object = nullptr;
    m.held.clear();
  }
  auto dropped = std::move(known_);
  known_.clear();
}

Term Tracker::adopt(PyObject* o) {
  if (const Term t = find(o); t.is_known()) return t;
  std::vector<Term> items;
  std::vector<PyObject*> objects;
  PyTypeObject* type = Py_TYPE(o);
  const bool is_tuple = PyTuple_CheckExact(o) || (PyTuple_Check(o) && is_python_class(type));
  if (is_tuple || PyList_CheckExact(o)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
      objects.push_back(PySequence_Fast_GET_ITEM(o, i));
      items.push_back(adopt(objects.back()));
      if (!items.back().is_known()) return {};
    }
    const Term t = make(is_tuple ? Made::Kind::kTuple : Made::Kind::kList, std::move(items),
                        std::move(objects));
    if (is_tuple && !PyTuple_CheckExact(o) && t.is_made()) {
      read_type(type);
      made_[static_cast<size_t>(t.index)].type = Kept(reinterpret_cast<PyObject*>(type));
    }
    own(t, o);
    return t;
  }
  if (PyDict_CheckExact(o) || PyAnySet_CheckExact(o)) {
    const Term t = make(PyDict_CheckExact(o) ? Made::Kind::kDict : Made::Kind::kSet, {}, {});
    own(t, o);
    if (t.is_made()) made(t);
    return is_on() ? t : Term();
  }
  if (PyExceptionInstance_Check(o)) return make(Made::Kind::kException, {}, {});
  if (is_opaque_walk(o)) return make(Made::Kind::kOpaque, {}, {});
  return {};
}

Term Tracker::make_generator(PyObject* generator, GeneratorState state, bool is_fragile) {
  state.made = make(Made::Kind::kGenerator, {}, {});
  if (!state.made.is_made()) return {};
  made_[static_cast<size_t>(state.made.index)].is_fragile = is_fragile;
  return generators_.insert_or_assign(generator, std::move(state)).first->second.made;
}

const GeneratorState* Tracker::generator(PyObject* generator) const {
  const auto it = generators_.find(generator);
  return it == generators_.end() ? nullptr : &it->second;
}

void Tracker::keep_generator(PyObject* generator, std::vector<Term> terms) {
  generators_[generator].terms = std::move(terms);
}

Term Tracker::make_instance(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (!is_instance_class(type) || type->tp_finalize || type->tp_del) {
    give_up(std::string("an instance of ") + type->tp_name + " is made");
    return {};
  }
  read_type(type);
  know(reinterpret_cast<PyObject*>(type));
  const Term t = make(Made::Kind::kInstance, {}, {});
  own(t, object);
  return t;
}

// Follows what C code did to the real object since the last look.
void Tracker::refresh(Made& m) {
  if (!is_on()) return;
  switch (m.kind) {
  case Made::Kind::kList: {
    const auto n = static_cast<size_t>(PyList_GET_SIZE(m.object));
    const auto now = [&](size_t i) {
      return PyList_GET_ITEM(m.object, static_cast<Py_ssize_t>(i));
    };
    bool same = n == m.items.size() && m.held.size() == n;
    for (size_t i = 0; same && i < n; ++i) same = m.objects[i] == now(i);
    if (same) return;
    std::vector<Term> items;
    std::vector<PyObject*> objects;
    for (size_t i = 0; i < n; ++i) {
      PyObject* o = now(i);
      const bool is_where_it_was = i < m.items.size() && m.objects[i] == o && i < m.held.size();
      items.push_back(is_where_it_was ? m.items[i] : adopt(o));
      objects.push_back(o);
    }
    settle_items(m, std::move(items), std::move(objects));
    return;
  }
  case Made::Kind::kDict:
  case Made::Kind::kInstance: {
    PyObject* dict = m.object;
    if (m.kind == Made::Kind::kInstance) {
      PyObject** at = _PyObject_GetDictPtr(m.object);
      dict = at ? *at : nullptr;
      if (!dict) return;
    }
    PyObject *key, *value;
    Py_ssize_t position = 0;
    size_t i = 0;
    bool same = static_cast<size_t>(PyDict_GET_SIZE(dict)) == m.items.size() &&
                m.held.size() == m.items.size() && m.keys.size() == m.items.size();
    while (same && PyDict_Next(dict, &position, &key, &value)) {
      same = m.keys[i].get() == key && m.objects[i] == value;
      ++i;
    }
    if (same) return;
    std::vector<Term> items;
    std::vector<PyObject*> objects;
    std::vector<Kept> keys;
    position = 0;
    while (PyDict_Next(dict, &position, &key, &value)) {
      Term term;
      for (size_t k = 0; k < m.held.size() && k < m.items.size() && k < m.keys.size(); ++k)
        if (m.objects[k] == value && same_value(m.keys[k].get(), key)) term = m.items[k];
      items.push_back(term.is_known() ? term : adopt(value));
      objects.push_back(value);
      keys.emplace_back(key);
      if (!find(key).is_known()) give_up("a dict has a key of unknown origin");
    }
    m.keys = std::move(keys);
    settle_items(m, std::move(items), std::move(objects));
    return;
  }
  case Made::Kind::kSet: {
    PyObject* now = PySequence_Tuple(m.object);
    if (!now) {
      PyErr_Clear();
      return give_up("a set that is not followed");
    }
    std::vector<Term> items;
    std::vector<PyObject*> objects;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(now); ++i) {
      objects.push_back(PyTuple_GET_ITEM(now, i));
      // The order of others depends on where they lie in memory.
      items.push_back(is_plain_value(objects.back()) ? find(objects.back()) : Term());
    }
    settle_items(m, std::move(items), std::move(objects));
    Py_DECREF(now);
    return;
  }
  default:
    return;
  }
}

void Tracker::set_named(Term owner, PyObject* name, PyObject* value, Term term) {
  if (!term.is_known()) return;
  if (is_fragile(term) && !peek(owner).may_be_fragile)
    return give_up("a container holds a generator with something to do at its end");
  Made& m = made_[static_cast<size_t>(owner.index)];
  if (!m.object) return;
  size_t at = 0;
  while (at < m.keys.size() && !same_value(m.keys[at].get(), name)) ++at;
  if (at == m.keys.size()) {
    m.keys.emplace_back(name);
    m.items.emplace_back();
    m.objects.emplace_back();
    m.held.emplace_back(nullptr);
  }
  m.items[at] = term;
  m.objects[at] = value;
  m.held[at] = Kept(value);
}

void Tracker::append(Term list, PyObject* value, Term term) {
  if (is_fragile(term))
    return give_up("a container holds a generator with something to do at its end");
  Made& m = made_[static_cast<size_t>(list.index)];
  const size_t n = m.items.size();
  if (!m.object || static_cast<size_t>(PyList_GET_SIZE(m.object)) != n + 1 || m.held.size() != n)
    return;
  m.items.push_back(term);
  m.objects.push_back(value);
  m.held.emplace_back(value);
}

void Tracker::extend(Term list, const std::vector<PyObject*>& values,
                     const std::vector<Term>& terms) {
  Made& m = made_[static_cast<size_t>(list.index)];
  const size_t n = m.items.size();
  if (!m.object || m.held.size() != n ||
      static_cast<size_t>(PyList_GET_SIZE(m.object)) != n + terms.size())
    return;
  for (size_t i = 0; i < terms.size(); ++i) {
    m.items.push_back(terms[i]);
    m.objects.push_back(values[i]);
    m.held.emplace_back(values[i]);
  }
}

void Tracker::set_item(Term owner, PyObject* key, PyObject* value, Term term) {
  Made& m = made_[static_cast<size_t>(owner.index)];
  if (is_fragile(term))
    return give_up("a container holds a generator with something to do at its end");
  if (m.kind == Made::Kind::kDict) return set_named(owner, key, value, term);
  if (m.kind != Made::Kind::kList || !PyLong_CheckExact(key)) return;
  Py_ssize_t at = PyLong_AsSsize_t(key);
  const auto n = static_cast<Py_ssize_t>(m.items.size());
  if (at < 0) at += n;
  if (at < 0 || at >= n || m.held.size() != m.items.size()) return PyErr_Clear();
  const auto k = static_cast<size_t>(at);
  m.items[k] = term;
  m.objects[k] = value;
  m.held[k] = Kept(value);
}

void Tracker::settle_items(Made& m, std::vector<Term> items, std::vector<PyObject*> objects) {
  for (const Term& item : items) {
    if (!item.is_known() ||
        (item.is_made() && made_[static_cast<size_t>(item.index)].kind == Made::Kind::kException))
      return give_up("a container holds a value of unknown origin");
    if (item.is_made() && made_[static_cast<size_t>(item.index)].is_fragile && !m.may_be_fragile)
      return give_up("a container holds a generator with something to do at its end");
  }
  m.items = std::move(items);
  m.objects = std::move(objects);
  hold(m);
}

// ── may C code look at it? ──

bool Tracker::vouch_items(PyObject* o, bool is_deep, int depth) {
  const bool is_list = PyList_CheckExact(o);
  if (is_list) read_list(o);
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(o, i);
    const Term t = same(item);
    if (PyMethod_Check(item)) know_stored(item);
    if (is_deep && !vouch(t, item, true, depth + 1)) return false;
  }
  return is_on();
}

bool Tracker::vouch(Term t, PyObject* o, bool is_deep, int depth) {
  if (!is_on() || depth > 8 || !t.is_known()) return false;
  if (t.is_number()) pin(t);
  if (t.is_number() || t.is_tensor()) return true;
  if (!o && !t.is_made()) return false;  // a pair of a dict's items, say, that nobody made yet
  if (o && is_plain_value(o)) return true;
  if (t.is_made()) {
    const Made& m = made(t);
    if (m.kind == Made::Kind::kException) return !is_deep;
    is_deep |= m.is_zip || m.is_enumerate;  // whoever takes from it gets what its sources hold
    if (!is_deep || m.kind == Made::Kind::kFunction || m.kind == Made::Kind::kMethod ||
        m.kind == Made::Kind::kInstance)
      return true;
    const std::vector<Term> items = m.items;
    const std::vector<PyObject*> objects = m.objects;
    for (size_t i = 0; i < items.size(); ++i)
      if (!vouch(items[i], objects[i], true, depth + 1)) return false;
    return is_on();
  }
  PyTypeObject* type = Py_TYPE(o);
  if (PyList_CheckExact(o) || PyTuple_CheckExact(o)) return vouch_items(o, is_deep, depth);
  if (is_dict(o)) {
    read_all(o, 1);
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (is_deep && PyDict_Next(o, &position, &key, &value))
      if (!vouch(find(value), value, true, depth + 1)) return false;
    return is_on();
  }
  if (PyAnySet_CheckExact(o)) {
    PyObject* items = PySequence_Tuple(o);
    const bool plain = items && is_plain_value(items);
    Py_XDECREF(items);
    if (!plain && !items) PyErr_Clear();
    if (plain && PySet_CheckExact(o)) read_set(o);
    return plain && is_on();
  }
  if (PyFunction_Check(o) || PyCFunction_Check(o) || PyType_Check(o) || PyMethod_Check(o) ||
      PyRange_Check(o) || PySlice_Check(o) || PyCode_Check(o) || PyModule_Check(o) ||
      o == Py_NotImplemented || door().is_op(o))
    return true;
  if (std::strcmp(type->tp_name, "prong.dtype") == 0 ||
      std::strcmp(type->tp_name, "prong.device") == 0)
    return true;
  if (PyTuple_Check(o) && is_python_class(type)) {
    read_type(type);
    return vouch_items(o, is_deep, depth);
  }
  if (std::strcmp(type->tp_name, "functools.partial") == 0) return vouch_partial(o);
  if (!is_instance_class(type)) return false;
  read_type(type);
  read_type_of(o);
  return is_on();
}

// Its function and arguments stay what they are.
bool Tracker::vouch_partial(PyObject* partial) {
  if (_PyObject_GetDictPtr(partial) && *_PyObject_GetDictPtr(partial)) return false;
  for (const char* part : {"func", "args", "keywords"}) {
    PyObject* held = PyObject_GetAttrString(partial, part);
    Py_XDECREF(held);  // the partial keeps it
    if (!held) {
      PyErr_Clear();
      return false;
    }
    if (!PyDict_CheckExact(held)) {
      if (!vouch(same(held), held, false, 1)) return false;
    } else if (PyDict_GET_SIZE(held) && !vouch(Term::same(), held, false, 1)) {
      return false;
    }
  }
  return is_on();
}

bool Tracker::holds_tensor(Term t, PyObject* o, int depth) {
  if (t.is_tensor() || depth > 8 || door().is_tensor(o)) return true;
  if (PyTuple_Check(o) || PyList_CheckExact(o)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
      if (holds_tensor({}, PySequence_Fast_GET_ITEM(o, i), depth + 1)) return true;
    return false;
  }
  return !is_plain_value(o) && !PyFunction_Check(o) && !PyType_Check(o);
}

}  // namespace prong::capture
