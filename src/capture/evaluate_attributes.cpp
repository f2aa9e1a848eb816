// Attributes that a call reads, asks for, sets and deletes. See evaluator.h.
#include <cstring>
#include <unordered_map>

#include "base/str.h"
#include "capture/evaluator.h"
#include "capture/instance_access.h"
#include "capture/outside.h"
#include "capture/python_names.h"
#include "capture/session.h"

namespace prong::capture {

namespace {
PyObject* interned(const char* word) { return PyUnicode_InternFromString(word); }
}  // namespace

PyObject* type_attribute(PyTypeObject* type, const char* word) {
  static std::unordered_map<const void*, PyObject*> names;  // under the GIL
  PyObject*& name = names[word];
  if (!name) name = interned(word);
  return name ? _PyType_Lookup(type, name) : nullptr;
}

bool has_usual_access(PyTypeObject* type) {
  if (type->tp_getattro == PyObject_GenericGetAttr) return true;
  static PyObject* usual = type_attribute(&PyBaseObject_Type, "__getattribute__");
  return type_attribute(type, "__getattribute__") == usual;
}

PyObject* instance_dict(PyObject* object) {
  PyObject** at = _PyObject_GetDictPtr(object);
  return at ? *at : nullptr;
}

bool is_builtin_container(PyTypeObject* t) {
  return t == &PyList_Type || t == &PyDict_Type || t == &PyTuple_Type || t == &PySet_Type ||
         t == &PyFrozenSet_Type || t == &PyUnicode_Type || t == &PyBytes_Type ||
         t == &PyLong_Type || t == &PyFloat_Type || t == &PyBool_Type || t == &PyComplex_Type ||
         t == &PyRange_Type || t == &PyType_Type || t == &PyBaseObject_Type;
}

namespace {

// Which item of a named tuple the attribute is; -1: none.
Py_ssize_t index_of_field(PyObject* tuple, PyObject* name) {
  PyObject* field = _PyType_Lookup(Py_TYPE(tuple), name);
  if (!field || std::strcmp(Py_TYPE(field)->tp_name, "_collections._tuplegetter") != 0) return -1;
  PyObject* made_of = PyObject_CallMethod(field, "__reduce__", nullptr);  // type, (index, doc)
  PyObject* given = made_of && PyTuple_Check(made_of) ? PyTuple_GetItem(made_of, 1) : nullptr;
  const Py_ssize_t index =
      given && PyTuple_Check(given) ? PyLong_AsSsize_t(PyTuple_GET_ITEM(given, 0)) : -1;
  Py_XDECREF(made_of);
  PyErr_Clear();
  return index;
}

bool is_module_getattr(PyTypeObject* type) {
  PyObject* fallback = type_attribute(type, "__getattr__");
  return fallback && Py_IS_TYPE(fallback, &PyMethodDescr_Type) &&
         reinterpret_cast<PyMethodDescrObject*>(fallback)->d_method->ml_meth ==
             door().module_getattr;
}

// One of prong's own names, whose module is loaded when it is first asked for.
bool is_loaded_late(PyObject* module, PyObject* name) {
  if (!PyModule_CheckExact(module) || PyDict_GetItemWithError(PyModule_GetDict(module), name))
    return false;
  const char* own = PyModule_GetName(module);
  if (!own) PyErr_Clear();
  return own && (std::strcmp(own, "prong") == 0 || std::strncmp(own, "prong.", 6) == 0);
}

PyObject* load_late(PyObject* module, PyObject* name) {
  const Outside outside;
  return PyObject_GetAttr(module, name);
}

// Found as attributes of classes are, save for those that __getattr__ of a metaclass gives.
bool has_usual_class_access(PyTypeObject* meta) {
  static PyObject* const usual = type_attribute(&PyType_Type, "__getattribute__");
  return meta->tp_getattro == PyType_Type.tp_getattro ||
         type_attribute(meta, "__getattribute__") == usual;
}

// `name` and `value` of an enum's member: it has them under another name.
PyObject* enum_field(PyObject* object, PyObject* name) {
  static PyTypeObject* const base = [] {
    PyObject* module = PyImport_ImportModule("enum");
    PyObject* found = module ? PyObject_GetAttrString(module, "Enum") : nullptr;
    Py_XDECREF(module);
    PyErr_Clear();
    return reinterpret_cast<PyTypeObject*>(found);
  }();
  static PyObject *const under_name = interned("_name_"), *const under_value = interned("_value_");
  if (!base || !PyType_IsSubtype(Py_TYPE(object), base)) return nullptr;
  PyObject* field = std::strcmp(text_of(name), "name") == 0    ? under_name
                    : std::strcmp(text_of(name), "value") == 0 ? under_value
                                                               : nullptr;
  PyObject* descriptor = field ? _PyType_Lookup(base, name) : nullptr;
  const bool is_usual = descriptor && _PyType_Lookup(Py_TYPE(object), name) == descriptor &&
                        has_usual_access(Py_TYPE(object));
  return is_usual ? field : nullptr;
}

// The Python function that reading the attribute is about to call: a property's getter or
// __getattr__. Borrowed.
PyObject* function_behind(PyObject* object, PyObject* name) {
  PyTypeObject* type = Py_TYPE(object);
  if (!has_usual_access(type)) return nullptr;
  PyObject* descriptor = _PyType_Lookup(type, name);
  if (descriptor && Py_IS_TYPE(descriptor, &PyProperty_Type)) {
    PyObject* getter = PyObject_GetAttrString(descriptor, "fget");
    Py_XDECREF(getter);  // the property keeps it
    return getter && PyFunction_Check(getter) ? getter : nullptr;
  }
  if (descriptor) return nullptr;
  PyObject* dict = instance_dict(object);
  if (dict && PyDict_GetItemWithError(dict, name)) return nullptr;
  PyObject* fallback = type_attribute(type, "__getattr__");
  return fallback && PyFunction_Check(fallback) ? fallback : nullptr;
}

}  // namespace

Evaluator::Next Evaluator::load_attribute(const Instruction& i, bool is_method) {
  PyObject* name = PyTuple_GET_ITEM(co_->co_names, i.arg);
  PyObject* object = top();
  const Term owner = term();
  PyObject* behind = nullptr;
  const std::vector<Term> self_terms{owner, Term::same()};
  Tracker* t = tracker();
  const bool is_made = t && owner.is_made() && t->made(owner).kind == Made::Kind::kInstance;
  if (t && (owner.is_same() || is_made) && !PyType_Check(object) && !PyModule_Check(object)) {
    behind = function_behind(object, name);
    if (behind) {
      t->read_type(Py_TYPE(object));
      if (!is_made) t->read_type_of(object);
      if (PyObject* dict = is_made ? nullptr : instance_dict(object))
        t->read_dict(dict, name, PyDict_GetItemWithError(dict, name));
      const bool is_getter =
          !PyFunction_Check(behind) ? false : _PyType_Lookup(Py_TYPE(object), name) != nullptr;
      set_pending_call({behind, &self_terms, nullptr, is_getter ? size_t{1} : size_t{2}, {}});
    }
  }
  returned_term = {};
  is_escaped_error_followed = false;
  Tracker* const outer =
      t && owner.is_same() && enum_field(object, name) ? current_tracker() : nullptr;
  if (outer) set_current_tracker(nullptr);  // what the descriptor does is known
  PyObject* value = t && !body_ && is_loaded_late(object, name) ? load_late(object, name)
                                                                : PyObject_GetAttr(object, name);
  if (outer) set_current_tracker(outer);
  set_pending_call({});
  if (!value) return Next::kError;
  const Term made = behind ? returned_term : attribute_term(object, owner, name, value);
  if (is_method) {
    // [method, self] or [null, attribute]: the second form serves both.
    terms_[static_cast<size_t>(sp_ - slots_ - 1)] = {};
    top() = nullptr;
    push(value, made);
  } else {
    top() = value;
    term() = made;
  }
  Py_DECREF(object);
  return Next::kGo;
}

Term Evaluator::attribute_term(PyObject* object, Term owner, PyObject* name, PyObject* value) {
  Tracker* t = tracker();
  if (!t) return {};
  const char* word = text_of(name);
  const bool is_bound =
      PyMethod_Check(value) || (PyCFunction_Check(value) && PyCFunction_GET_SELF(value) == object);
  if (owner.is_tensor()) {
    if (is_bound) {
      PyObject* function = PyMethod_Check(value) ? PyMethod_GET_FUNCTION(value) : value;
      return t->make(Made::Kind::kMethod, {Term::same(), owner}, {function, object});
    }
    if (std::strcmp(word, "shape") == 0) return t->shape_of(object, value);
    if (is_one_of(word, {"nbytes", "names"})) {
      t->looked_at_sizes();
      return Term::same();
    }
    if (is_one_of(word, {"dtype", "device", "layout", "ndim", "itemsize", "requires_grad", "is_cpu",
                         "is_cuda", "is_sparse", "is_mps", "is_meta", "is_quantized", "is_nested",
                         "is_xpu", "is_mkldnn"}))
      return Term::same();
    if (is_one_of(word, {"T", "mT", "H", "mH"})) return t->tensor_result(value);
    if (std::strcmp(word, "grad_fn") == 0) return t->read_history(object, value);
    if (std::strcmp(word, "grad") == 0) return t->read_gradient(object, value);
    t->give_up(std::string("attribute ") + word + " of a tensor");
    return {};
  }
  if (owner.is_made() && t->made(owner).kind == Made::Kind::kInstance)
    return made_attribute(object, owner, name, value);
  if (owner.is_made()) {
    if (PyMethod_Check(value) && t->peek(owner).kind == Made::Kind::kOpaque &&
        PyMethod_GET_SELF(value) != object) {  // of super()
      PyObject* self = PyMethod_GET_SELF(value);
      const Term self_term = t->find(self);
      if (!self_term.is_known()) t->give_up("super() of an object of unknown origin");
      if (self_term.is_same() && !PyType_Check(self)) t->read_type_of(self);
      t->read_type(PyType_Check(self) ? reinterpret_cast<PyTypeObject*>(self) : Py_TYPE(self));
      return t->make(Made::Kind::kMethod, {Term::same(), self_term},
                     {PyMethod_GET_FUNCTION(value), self});
    }
    if (is_bound) return t->make(Made::Kind::kMethod, {Term::same(), owner}, {value, object});
    const Made& m = t->made(owner);
    if (m.kind == Made::Kind::kFuture) return future_attribute(owner, object, value);
    if (const Py_ssize_t k = m.type.get() ? index_of_field(object, name) : -1;
        k >= 0 && static_cast<size_t>(k) < m.items.size() &&
        m.objects[static_cast<size_t>(k)] == value)
      return m.items[static_cast<size_t>(k)];
    if (m.type.get() || m.kind == Made::Kind::kException || m.kind == Made::Kind::kFunction ||
        m.kind == Made::Kind::kOpaque)
      if (const Term found = t->adopt(value); found.is_known()) return found;
    for (size_t k = 0; m.has_names && k < m.items.size(); ++k)
      if (m.objects[k] == value) return m.items[k];
    t->give_up(std::string("attribute ") + word + " of what the call made");
    return {};
  }
  if (!owner.is_same()) {
    t->give_up("an attribute of a value of unknown origin");
    return {};
  }
  if (PyModule_CheckExact(object)) {
    PyObject* dict = PyModule_GetDict(object);
    if (PyDict_GetItemWithError(dict, name) == value) return t->read_dict(dict, name, value);
    t->give_up("an attribute that a module computes");
    return {};
  }
  if (PyType_Check(object)) {
    auto* type = reinterpret_cast<PyTypeObject*>(object);
    PyObject* of_class = _PyType_Lookup(Py_TYPE(object), name);  // goes first only if it is data
    const bool is_usual_class = has_usual_class_access(Py_TYPE(object));
    const bool is_usual = is_usual_class && (!of_class || !Py_TYPE(of_class)->tp_descr_set);
    if (is_usual_class && of_class && of_class == _PyType_Lookup(&PyType_Type, name) &&
        is_one_of(word, {"__name__", "__qualname__", "__module__", "__mro__", "__bases__"})) {
      if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) return t->same(value);
      t->read_type(Py_TYPE(object));
      return t->read_member(object, name, value);
    }
    if (is_usual && Py_TYPE(object) != &PyType_Type) t->read_type(Py_TYPE(object));
    if (is_usual && _PyType_Lookup(type, name)) {
      t->read_type(type);
      return t->same(value);
    }
    t->give_up("an attribute of a metaclass");
    return {};
  }
  return instance_attribute(object, name, value);
}

// An attribute of an instance that the call made.
Term Evaluator::made_attribute(PyObject* object, Term owner, PyObject* name, PyObject* value) {
  Tracker* t = tracker();
  PyTypeObject* type = Py_TYPE(object);
  if (!has_usual_access(type)) {
    t->give_up("a class with attribute access of its own");
    return {};
  }
  if (PyMethod_Check(value) && PyMethod_GET_SELF(value) == object)
    return t->make(Made::Kind::kMethod, {Term::same(), owner},
                   {PyMethod_GET_FUNCTION(value), object});
  if (PyCFunction_Check(value) && PyCFunction_GET_SELF(value) == object)
    return t->make(Made::Kind::kMethod, {Term::same(), owner}, {value, object});
  PyObject* found = _PyType_Lookup(type, name);
  const bool is_data = found && Py_TYPE(found)->tp_descr_set;
  if (PyObject* dict = is_data ? nullptr : instance_dict(object);
      dict && PyDict_GetItemWithError(dict, name)) {
    const Made& m = t->made(owner);
    for (size_t k = 0; k < m.keys.size(); ++k)
      if (same_value(m.keys[k].get(), name) && m.objects[k] == value) return m.items[k];
  } else if (found && !is_data &&
             (found == value || PyFunction_Check(value) || PyCFunction_Check(value) ||
              PyMethod_Check(value))) {
    return t->same(value);
  }
  if (value == reinterpret_cast<PyObject*>(type)) return Term::same();
  if (found && Py_IS_TYPE(found, &PyMemberDescr_Type))
    if (const Term slot = t->read_slot(owner, found, value); slot.is_known()) return slot;
  const Term known = t->find(value);
  if (!known.is_known()) t->give_up(cat("attribute ", text_of(name), " of what the call made"));
  return known;
}

// A parameter, buffer or module of an nn.Module, as its __getattr__ finds it; none: there is none.
std::optional<Term> Evaluator::module_attribute(PyObject* dict, PyObject* name) {
  static PyObject* const stores[] = {interned("_parameters"), interned("_buffers"),
                                     interned("_modules")};
  Tracker* t = tracker();
  for (PyObject* store : stores) {
    PyObject* items = PyDict_GetItemWithError(dict, store);
    t->read_dict(dict, store, items);
    if (!items) continue;
    if (!is_dict(items)) {
      t->give_up("parameters, buffers or modules that are not in a dict");
      break;
    }
    PyObject* found = PyDict_GetItemWithError(items, name);
    const Term term = t->read_dict(items, name, found);
    if (found) return term;
  }
  return std::nullopt;
}

Term Evaluator::instance_attribute(PyObject* object, PyObject* name, PyObject* value) {
  Tracker* t = tracker();
  PyTypeObject* type = Py_TYPE(object);
  const char* word = text_of(name);
  if (is_plain_value(object) ||
      is_builtin_container(type)) {  // methods of str, dict, list and the like
    if (PyCFunction_Check(value) || value == reinterpret_cast<PyObject*>(type) ||
        (is_plain_value(object) && is_plain_value(value)))
      return Term::same();
    t->give_up("an attribute of a builtin value");
    return {};
  }
  if (!has_usual_access(type)) {
    t->give_up("a class with attribute access of its own");
    return {};
  }
  PyObject* descriptor = _PyType_Lookup(type, name);
  t->read_type(type);
  t->read_type_of(object);
  PyObject* dict = instance_dict(object);
  if (PyObject* field = dict ? enum_field(object, name) : nullptr) {
    PyObject* own = PyDict_GetItemWithError(dict, field);
    if (own == value) return t->read_dict(dict, field, own, type);
  }
  if (descriptor && Py_TYPE(descriptor)->tp_descr_set) {
    if (is_one_of(word, {"__dict__", "__class__"})) return Term::same();
    const bool is_slot = Py_IS_TYPE(descriptor, &PyMemberDescr_Type);
    if (is_slot || (PyFunction_Check(object) && is_plain_value(value)))
      return t->read_member(object, name, value);
    t->give_up(std::string("the descriptor of attribute ") + word);
    return {};
  }
  if (dict) {
    PyObject* own = PyDict_GetItemWithError(dict, name);
    const Term read = t->read_dict(dict, name, own, type);
    if (own) return read;
  }
  if (!descriptor && dict && is_module_getattr(type)) {
    if (const std::optional<Term> found = module_attribute(dict, name)) return *found;
    t->give_up("an attribute of a module that is not in its own dicts");
    return {};
  }
  if (descriptor && (PyMethod_Check(value) || value == descriptor || PyFunction_Check(value) ||
                     PyCFunction_Check(value)))
    return t->same(value);
  t->give_up(std::string("attribute ") + word + " comes from a descriptor");
  return {};
}

// Notes that owner.name is assigned; false where that isn't followed.
bool Evaluator::follow_store(PyObject* owner, Term owner_term, PyObject* name, PyObject* value,
                             Term value_term) {
  Tracker* t = tracker();
  PyTypeObject* type = Py_TYPE(owner);
  if (!owner_term.is_same() || PyType_Check(owner) || PyModule_Check(owner) ||
      door().is_tensor(owner))
    return false;
  const bool is_module = type->tp_setattro != PyObject_GenericSetAttr;
  if (is_module && type_attribute(type, "__setattr__") != door().module_setattr) return false;
  PyObject* descriptor = _PyType_Lookup(type, name);
  PyObject* dict = instance_dict(owner);
  if ((descriptor && Py_TYPE(descriptor)->tp_descr_set) || !dict) return false;
  t->read_type(type);
  t->read_type_of(owner);
  if (is_module) {  // a buffer or a plain attribute, not a parameter or module of that name
    for (const char* store : {"_parameters", "_modules", "_buffers"}) {
      PyObject* key = interned(store);
      PyObject* items = PyDict_GetItemWithError(dict, key);
      Py_DECREF(key);  // interned names of modules live on
      if (!items || !is_dict(items)) return false;
      t->read_dict(dict, key, items);
      PyObject* const before = PyDict_GetItemWithError(items, name);
      if (!before) {
        t->read_dict(items, name, nullptr);
        continue;
      }
      // So it stays one of the buffers.
      return std::strcmp(store, "_buffers") == 0 && door().is_exact_tensor(value) &&
             door().is_tensor(before) && (t->read_dict(items, name, before), true) &&
             t->write_item(items, name, value, value_term);
    }
  }
  return t->write_attribute(dict, owner, name, value, value_term);
}

Evaluator::Next Evaluator::store_attribute(const Instruction& i) {
  PyObject* name = PyTuple_GET_ITEM(co_->co_names, i.arg);
  PyObject *owner = top(1), *value = top(2);
  Tracker* const t = tracker();
  if (t && term(1).is_made() && t->made(term(1)).kind == Made::Kind::kInstance)
    return store_made_attribute(name);
  const bool is_gradient = t && term(1).is_tensor() && std::strcmp(text_of(name), "grad") == 0;
  if (is_gradient) {
    if (term(2).is_tensor() || (term(2).is_same() && value == Py_None))
      t->write_gradient(owner, value);
    else
      t->give_up("a gradient is assigned");
  } else if (t && !follow_store(owner, term(1), name, value, term(2)))
    t->give_up("an attribute is assigned");
  Tracker* const outer = current_tracker();
  if (outer) set_current_tracker(nullptr);  // what a module's __setattr__ does is known
  const int done = PyObject_SetAttr(owner, name, value);
  if (outer) set_current_tracker(outer);
  drop(2);
  return done < 0 ? Next::kError : Next::kGo;
}

// An attribute of an instance that the call made; its own __setattr__ and properties are evaluated.
Evaluator::Next Evaluator::store_made_attribute(PyObject* name) {
  PyObject *owner = top(1), *value = top(2);
  Tracker* t = tracker();
  if (!term(2).is_known()) t->give_up("an attribute gets a value of unknown origin");
  t->made(term(1)).may_be_fragile =
      std::strcmp(Py_TYPE(owner)->tp_name, "_GeneratorContextManager") == 0;
  if (PyObject_SetAttr(owner, name, value) < 0) return Next::kError;
  PyObject* dict = instance_dict(owner);
  if (t = tracker(); t && dict && PyDict_GetItemWithError(dict, name) == value)
    t->set_named(term(1), name, value, term(2));
  PyObject* found = _PyType_Lookup(Py_TYPE(owner), name);
  if (t && found && Py_IS_TYPE(found, &PyMemberDescr_Type))
    t->write_slot(term(1), found, value, term(2));
  drop(2);
  return Next::kGo;
}

Evaluator::Next Evaluator::delete_attribute(const Instruction& i) {
  PyObject* name = PyTuple_GET_ITEM(co_->co_names, i.arg);
  if (Tracker* t = tracker();
      t && !(term().is_made() && t->made(term()).kind == Made::Kind::kInstance))
    t->give_up("an attribute is deleted");
  if (PyObject_SetAttr(top(), name, nullptr) < 0) return Next::kError;
  drop(1);
  return Next::kGo;
}

// Has the object an attribute, without code of the program's being asked? Guards on the answer.
std::optional<bool> Evaluator::has_attribute(PyObject* object, Term owner, PyObject* name) {
  Tracker* t = tracker();
  PyTypeObject* type = Py_TYPE(object);
  if (is_plain_value(object) && owner.is_same()) return _PyType_Lookup(type, name) != nullptr;
  const bool is_made = owner.is_made() && t->peek(owner).kind == Made::Kind::kInstance;
  if (PyFunction_Check(object)) {
    PyObject* found = _PyType_Lookup(type, name);
    return found && Py_TYPE(found)->tp_descr_set ? std::optional(true) : std::nullopt;
  }
  if (PyType_Check(object) && owner.is_same()) {
    t->read_type(reinterpret_cast<PyTypeObject*>(object));
    if (_PyType_Lookup(reinterpret_cast<PyTypeObject*>(object), name)) return true;
    return _PyType_Lookup(type, name) ? std::nullopt : std::optional(false);
  }
  if (!(owner.is_same() || is_made) || !has_usual_access(type) ||
      !PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE))
    return std::nullopt;
  t->read_type(type);
  if (!is_made) t->read_type_of(object);
  PyObject* descriptor = _PyType_Lookup(type, name);
  if (descriptor && Py_TYPE(descriptor)->tp_descr_set) return std::nullopt;
  PyObject* dict = instance_dict(object);
  PyObject* own = dict ? PyDict_GetItemWithError(dict, name) : nullptr;
  if (!is_made && dict && (own || !descriptor)) t->read_dict(dict, name, own, type);
  if (own || descriptor) return true;
  PyObject* fallback = type_attribute(type, "__getattr__");
  if (!fallback) return false;
  if (is_made || !dict || !is_module_getattr(type)) return std::nullopt;
  return module_attribute(dict, name).has_value();
}

Term Evaluator::attribute_call_term(std::string_view word, PyObject* const* args,
                                    const std::vector<Term>& terms, PyObject* result) {
  Tracker* t = tracker();
  if (!t) return {};
  const size_t n = terms.size();
  if (word == "type" && n == 1) {
    if (terms[0].is_same() && !is_plain_value(args[0])) t->read_type_of(args[0]);
    if (terms[0].is_known() && !PyType_Check(args[0])) return t->same(result);
  } else if (n >= 2 && PyUnicode_Check(args[1]) && t->is_plain(terms[1], args[1])) {
    const std::optional<bool> has = has_attribute(args[0], terms[0], args[1]);
    if (word == "hasattr" && has) return Term::same();
    if (word == "getattr" && has == false && n == 3) return terms[2];
    if (word == "getattr" && (has == true || n == 2))
      return attribute_term(args[0], terms[0], args[1], result);
    if (word == "setattr" && n == 3 && terms[0].is_made() && terms[2].is_known() &&
        t->peek(terms[0]).kind == Made::Kind::kInstance) {
      PyObject* dict = instance_dict(args[0]);
      if (dict && PyDict_GetItemWithError(dict, args[1]) == args[2])
        t->set_named(terms[0], args[1], args[2], terms[2]);
      PyObject* found = _PyType_Lookup(Py_TYPE(args[0]), args[1]);
      if (found && Py_IS_TYPE(found, &PyMemberDescr_Type))
        t->write_slot(terms[0], found, args[2], terms[2]);
      return Term::same();
    }
  }
  t->give_up(cat("calls ", word));
  return {};
}

}  // namespace prong::capture
