// Attributes, calls and functions made in a call. See evaluator.h.
#include <opcode.h>

#include <cstring>
#include <unordered_map>

#include "base/str.h"
#include "capture/evaluator.h"
#include "capture/python_names.h"
#include "capture/session.h"

namespace prong::capture {

namespace {

bool is_builtin_container(PyTypeObject* t) {
  return t == &PyList_Type || t == &PyDict_Type || t == &PyTuple_Type || t == &PySet_Type ||
         t == &PyFrozenSet_Type || t == &PyUnicode_Type || t == &PyBytes_Type ||
         t == &PyLong_Type || t == &PyFloat_Type || t == &PyBool_Type || t == &PyComplex_Type ||
         t == &PyRange_Type || t == &PyType_Type || t == &PyBaseObject_Type;
}

bool is_opaque_function(PyCFunctionObject* f) {
  PyObject* self = f->m_self;
  if (self && !PyModule_Check(self)) {
    if (door().is_tensor(self) || PyType_Check(self)) return false;
    if (reinterpret_cast<PyObject*>(Py_TYPE(self)) == door().size_type) return false;
    if (is_builtin_container(Py_TYPE(self)) || PyGen_Check(self)) return false;
    return !is_one_of(Py_TYPE(self)->tp_name,
                      {"collections.OrderedDict", "collections.deque", "collections.defaultdict"});
  }
  const char* module = module_of(f);
  if (std::strcmp(module, "builtins") == 0)
    return is_one_of(f->m_ml->ml_name,
                     {"print", "input", "exec", "eval", "breakpoint", "__import__"});
  return !is_one_of(module, {"math", "itertools", "functools", "_functools", "operator",
                             "_operator", "_collections", "collections", "prong._core", "_abc",
                             "cmath", "_bisect", "_heapq"});
}

PyObject* interned(const char* word) { return PyUnicode_InternFromString(word); }

// `word` is a literal; its string object lives on.
PyObject* type_attribute(PyTypeObject* type, const char* word) {
  static std::unordered_map<const void*, PyObject*> names;  // under the GIL
  PyObject*& name = names[word];
  if (!name) name = interned(word);
  return name ? _PyType_Lookup(type, name) : nullptr;
}

// Attribute access on instances follows the usual rules: no __getattribute__ of its own.
bool has_usual_access(PyTypeObject* type) {
  if (type->tp_getattro == PyObject_GenericGetAttr) return true;
  static PyObject* usual = type_attribute(&PyBaseObject_Type, "__getattribute__");
  return type_attribute(type, "__getattribute__") == usual;
}

bool is_module_getattr(PyTypeObject* type) {
  PyObject* fallback = type_attribute(type, "__getattr__");
  return fallback && Py_IS_TYPE(fallback, &PyMethodDescr_Type) &&
         reinterpret_cast<PyMethodDescrObject*>(fallback)->d_method->ml_meth ==
             door().module_getattr;
}

PyObject* instance_dict(PyObject* object) {
  PyObject** at = _PyObject_GetDictPtr(object);
  return at ? *at : nullptr;
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

void set_root_call(Tracker& tracker, PyObject* callable, PyObject* const* args, size_t count,
                   PyObject* kwnames, std::vector<Term>& terms) {
  PyObject* function = callable;
  if (PyMethod_Check(callable)) {
    function = PyMethod_GET_FUNCTION(callable);
    terms.push_back(tracker.same(PyMethod_GET_SELF(callable)));
  } else if (!PyFunction_Check(callable)) {
    function = type_attribute(Py_TYPE(callable), "__call__");
    tracker.read_type(Py_TYPE(callable));
    tracker.read_type_of(callable);
    terms.push_back(tracker.same(callable));
  }
  if (!function || !PyFunction_Check(function))
    return tracker.give_up("what is compiled is no Python function");
  const size_t by_name = kwnames ? static_cast<size_t>(PyTuple_GET_SIZE(kwnames)) : 0;
  for (size_t i = 0; i < count + by_name; ++i)
    terms.push_back(is_opened(args[i]) ? tracker.container_argument(args[i])
                                       : tracker.argument(args[i], static_cast<int32_t>(i)));
  tracker.open_containers();
  set_pending_call({function, &terms, kwnames, terms.size() - by_name, {}});
}

bool is_opaque(PyObject* callable) {
  if (PyFunction_Check(callable) || door().is_op(callable)) return false;
  if (PyMethod_Check(callable)) return is_opaque(PyMethod_GET_FUNCTION(callable));
  if (PyCFunction_Check(callable))
    return is_opaque_function(reinterpret_cast<PyCFunctionObject*>(callable));
  if (Py_IS_TYPE(callable, &PyMethodDescr_Type) || Py_IS_TYPE(callable, &PyWrapperDescr_Type))
    return !is_builtin_container(PyDescr_TYPE(callable));
  if (PyType_Check(callable)) return false;  // what its __new__ and __init__ call is seen there
  const char* type = Py_TYPE(callable)->tp_name;
  if (std::strncmp(type, "nanobind.", 9) == 0 || std::strncmp(type, "prong.", 6) == 0 ||
      std::strcmp(type, "method-wrapper") == 0)
    return false;
  if (std::strcmp(type, "functools.partial") == 0) {
    PyObject* function = PyObject_GetAttrString(callable, "func");
    Py_XDECREF(function);  // the partial keeps it
    return !function || is_opaque(function);
  }
  if (std::strncmp(type, "operator.", 9) == 0) return false;
  if (PyWeakref_CheckRef(callable)) return false;
  return !PyType_HasFeature(Py_TYPE(callable), Py_TPFLAGS_HEAPTYPE);
}

// ── attributes ──

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
  PyObject* value = PyObject_GetAttr(object, name);
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
    const bool is_usual = Py_TYPE(object)->tp_getattro == PyType_Type.tp_getattro &&
                          (!of_class || !Py_TYPE(of_class)->tp_descr_set);
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
  if (is_module) {  // a plain attribute, not a parameter, buffer or module of that name
    for (const char* store : {"_parameters", "_buffers", "_modules"}) {
      PyObject* key = interned(store);
      PyObject* items = PyDict_GetItemWithError(dict, key);
      Py_DECREF(key);  // interned names of modules live on
      if (!items || !is_dict(items) || PyDict_GetItemWithError(items, name)) return false;
      t->read_dict(dict, key, items);
      t->read_dict(items, name, nullptr);
    }
  }
  t->read_type(type);
  t->read_type_of(owner);
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
      return Term::same();
    }
  }
  t->give_up(cat("calls ", word));
  return {};
}

// ── calls ──

PyObject* Evaluator::invoke(PyObject* callable, Term term, PyObject* const* args,
                            std::vector<Term> terms, PyObject* kwnames, Term* result,
                            PyObject* packed, PyObject* packed_by_name) {
  if (callable == door().fork) return fork(args, terms, kwnames, result);
  if (body_ && !may_call_on_trial(callable, term, args, terms)) {
    body_->drop("calls " + name_of_callable(callable));
    return nullptr;
  }
  if (is_opaque(callable)) {
    const std::string what = "calls " + name_of_callable(callable);
    if (Tracker* t = tracker()) t->give_up(what);
    try {
      thread_recorder().settle(what.c_str());
    } catch (...) {
      door().set_error();
      return nullptr;
    }
  }
  if (term.is_same() && tracker() && door().core_function(callable) == CoreFunction::kMakeTensor)
    return make_tensor(callable, args, terms, kwnames, result);
  const size_t by_name = kwnames ? static_cast<size_t>(PyTuple_GET_SIZE(kwnames)) : 0;
  const size_t count = terms.size() - by_name;
  PendingCall next;
  std::vector<Term> with_self;
  PyTypeObject* makes = nullptr;
  Tracker* t = tracker();
  if (t && term.is_known()) {
    PyObject* function = callable;
    if (PyMethod_Check(callable)) {
      function = PyMethod_GET_FUNCTION(callable);
      with_self.push_back(term.is_made() ? t->made(term).items[1]
                                         : t->same(PyMethod_GET_SELF(callable)));
    } else if (!PyFunction_Check(callable) && !PyCFunction_Check(callable) &&
               !PyType_Check(callable)) {
      PyObject* method = type_attribute(Py_TYPE(callable), "__call__");
      if (method && PyFunction_Check(method)) {
        function = method;
        t->read_type(Py_TYPE(callable));
        if (term.is_same()) t->read_type_of(callable);
        with_self.push_back(term);
      }
    }
    if (PyType_Check(callable) && term.is_same()) {
      auto* type = reinterpret_cast<PyTypeObject*>(callable);
      const bool is_named_tuple = PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) &&
                                  PyType_HasFeature(type, Py_TPFLAGS_TUPLE_SUBCLASS) &&
                                  !door().is_op(callable);
      if (Py_TYPE(type)->tp_call == PyType_Type.tp_call &&
          (is_instance_class(type) || is_named_tuple)) {
        t->read_type(type);
        makes = type;
        PyObject* maker = type_attribute(type, "__new__");
        if (maker && Py_IS_TYPE(maker, &PyStaticMethod_Type)) {
          function = PyObject_GetAttrString(maker, "__func__");
          Py_XDECREF(function);  // the class keeps it
          with_self.push_back(term);
        } else if (PyObject* init = type_attribute(type, "__init__");
                   init && PyFunction_Check(init)) {
          function = init;
          next.makes_self = true;
          with_self.push_back(Term::same());
        }
      }
    }
    if (function && PyFunction_Check(function)) {
      const Term closure =
          term.is_made() && t->made(term).kind == Made::Kind::kFunction ? term : Term();
      with_self.insert(with_self.end(), terms.begin(), terms.end());
      next = {function, &with_self, kwnames, with_self.size() - by_name, closure, next.makes_self};
    } else {
      with_self.clear();
    }
  }
  set_pending_call(next);
  if (makes) t->making.push_back(makes);
  returned_term = {};
  is_escaped_error_followed = false;
  nodes_before_call_ = thread_recorder().num_recorded();
  const bool reads =
      t && is_number_type(callable) && count == 1 && !kwnames && terms[0].is_tensor();
  if (reads) t->set_reading(true);
  // A callable of C that takes a tuple gets the one that the program gave.
  PyObject* value = packed && !PyVectorcall_Function(callable)
                        ? PyObject_Call(callable, packed, packed_by_name)
                        : PyObject_Vectorcall(callable, args, count, kwnames);
  set_pending_call({});
  if (reads) t->set_reading(false);
  if (makes) t->making.pop_back();
  t = tracker();
  if (!value) {
    if (t && !next.function && !is_escaped_error_followed) {
      escaped_error = nullptr;
      is_escaped_error_followed = is_error_transparent(callable, term, args, terms);
    }
    return nullptr;
  }
  if (makes && t) {
    const bool is_plainly_made = !next.function && Py_IS_TYPE(value, makes);
    *result = is_plainly_made && PyTuple_Check(value) ? t->adopt(value) : t->find(value);
    if (!result->is_known() && Py_IS_TYPE(value, makes) && !next.function)
      *result = t->make_instance(value);
    if (!result->is_known()) t->give_up("a class whose instances are made in a way of its own");
    return value;
  }
  *result = next.function ? returned_term : call_term(callable, term, args, terms, kwnames, value);
  return value;
}

// A builtin failed: would it at each call?
bool Evaluator::is_error_transparent(PyObject* callable, Term term, PyObject* const* args,
                                     const std::vector<Term>& terms) {
  Tracker* t = tracker();
  const bool is_method = term.is_made() && t->peek(term).kind == Made::Kind::kMethod;
  Term unused;
  return term.is_known() &&
         follow_transparent(callable, is_method ? t->peek(term).items[1] : Term(), args, terms,
                            nullptr, &unused);
}

namespace {

// May an op take this as an argument at each call?
bool is_op_argument(Tracker& t, Term term, PyObject* value) {
  if (term.is_tensor() || term.is_number()) return true;
  if (term.is_same() && (PyList_CheckExact(value) || PyTuple_CheckExact(value)) &&
      !is_plain_value(value)) {  // of weights
    if (PyList_CheckExact(value)) t.read_list(value);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(value, i);
      if (!is_op_argument(t, t.same(item), item)) return false;
    }
    return t.is_on();
  }
  if (term.is_same())
    return !door().is_tensor(value) &&
           (is_plain_value(value) || PySlice_Check(value) || !PyList_Check(value));
  if (!term.is_made()) return false;
  const Made& m = t.made(term);
  if (m.kind != Made::Kind::kTuple && m.kind != Made::Kind::kList) return false;
  for (size_t i = 0; i < m.items.size(); ++i)
    if (!is_op_argument(t, m.items[i], m.objects[i])) return false;
  return true;
}

}  // namespace

namespace {
bool is_id(PyObject* callable) {
  static PyObject* const id = PyDict_GetItemString(PyEval_GetBuiltins(), "id");
  return callable == id;
}
bool is_object_new(PyObject* callable) {
  return PyCFunction_Check(callable) &&
         PyCFunction_GET_SELF(callable) == reinterpret_cast<PyObject*>(&PyBaseObject_Type) &&
         std::strcmp(reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name, "__new__") == 0;
}
}  // namespace

// The op that was called gives nothing, and was recorded.
bool Evaluator::has_recorded_step() const {
  Recorder& r = thread_recorder();
  const Trace* trace = r.num_recorded() == nodes_before_call_ + 1 ? r.open_trace() : nullptr;
  return trace && trace->nodes.back().op->schema().results[0]->is(TypeKind::kNone);
}

// After a call of an op: whose numbers are which of its node's.
void Evaluator::bind_numbers(PyObject* op, const std::vector<Term>& terms, PyObject* const* args,
                             PyObject* kwnames, bool is_method) {
  PyObject* name = PyObject_GetAttrString(op, "__name__");
  if (!name) PyErr_Clear();
  tracker()->bind_numbers(nodes_before_call_, {name && PyUnicode_Check(name) ? text_of(name) : "",
                                               terms, args, kwnames, is_method});
  Py_XDECREF(name);
}

// getattr(object, name, default) and hasattr(object, name); nothing: another function.
std::optional<Term> Evaluator::asked_attribute(PyObject* callable, PyObject* const* args,
                                               const std::vector<Term>& terms, PyObject* result) {
  static PyObject* const builtins = PyEval_GetBuiltins();
  static PyObject* const get = PyDict_GetItemString(builtins, "getattr");
  static PyObject* const has = PyDict_GetItemString(builtins, "hasattr");
  if (callable != get && callable != has) return std::nullopt;
  Tracker* t = tracker();
  PyObject* object = args[0];
  PyTypeObject* type = Py_TYPE(object);
  PyObject* dict = instance_dict(object);
  const bool is_default = callable == get && terms.size() == 3 && result == args[2];
  const bool is_absent = callable == has ? result == Py_False : is_default;
  if (!dict || !is_interned(args[1]) || !has_usual_access(type) ||
      type_attribute(type, "__getattr__") || _PyType_Lookup(type, args[1]))
    return std::nullopt;
  PyObject* found = PyDict_GetItemWithError(dict, args[1]);
  if ((found == nullptr) != is_absent) return std::nullopt;
  t->read_type(type);
  t->read_type_of(object);
  const Term read = t->read_dict(dict, args[1], found, type);
  if (callable == has) return Term::same();
  return found ? read : terms[2];
}

Term Evaluator::call_term(PyObject* callable, Term term, PyObject* const* args,
                          const std::vector<Term>& terms, PyObject* kwnames, PyObject* result) {
  static PyObject* const is_instance = PyDict_GetItemString(PyEval_GetBuiltins(), "isinstance");
  Tracker* t = tracker();
  if (!t) return {};
  if (term.is_same() && PyWeakref_CheckRef(callable) && terms.empty() && result != Py_None) {
    t->keep_alive(result);  // so it stays this object
    return t->same(result);
  }
  if (term.is_same() && callable == reinterpret_cast<PyObject*>(&PyType_Type) &&
      terms.size() == 1 && terms[0].is_known()) {
    if (terms[0].is_same() && !is_plain_value(args[0])) t->read_type_of(args[0]);
    t->know(result);
    return Term::same();
  }
  if (term.is_same() && terms.size() == 1 && is_id(callable) &&
      (terms[0].is_tensor() ? t->is_object(args[0])
                            : terms[0].is_same() && !is_plain_value(args[0]))) {
    if (!terms[0].is_tensor()) t->know(args[0]);
    t->keep_alive(args[0]);  // another object with its address would have its id
    return Term::same();
  }
  if (term.is_same() && is_object_new(callable) && terms.size() == 1 && terms[0].is_same())
    return t->make_instance(result);
  if (term.is_same() && !kwnames && PyCFunction_Check(callable) && terms.size() >= 2 &&
      terms[0].is_same() && !PyType_Check(args[0]) && !PyModule_Check(args[0]) &&
      t->is_plain(terms[1], args[1]) && PyUnicode_CheckExact(args[1]))
    if (const auto followed = asked_attribute(callable, args, terms, result)) return *followed;
  if (term.is_same())
    if (const CoreFunction f = door().core_function(callable); f != CoreFunction::kOther)
      return core_call_term(f, args, terms, kwnames, result);
  Term self;
  PyObject* self_object = nullptr;
  PyObject* function = callable;
  if (term.is_made() && t->made(term).kind == Made::Kind::kMethod) {
    self = t->made(term).items[1];
    self_object = t->made(term).objects[1];
    if (PyMethod_Check(callable)) function = PyMethod_GET_FUNCTION(callable);
  } else if (term.is_made() && t->made(term).kind == Made::Kind::kOpaque) {
    self = term;
  } else if (!term.is_same()) {
    t->give_up("a callable of unknown origin");
    return {};
  }
  if (self.is_made() && t->made(self).kind == Made::Kind::kFuture)
    return future_result(callable, self);
  bool all_fit = door().is_op(function) || self.is_tensor();
  for (size_t i = 0; i < terms.size() && all_fit; ++i)
    all_fit = is_op_argument(*t, terms[i], args[i]);
  if (!t->is_on()) return {};  // a list that it was given holds something else than weights
  if (door().is_op(function)) {
    if (all_fit) {
      if (t->has_numbers()) bind_numbers(function, terms, args, kwnames, self.is_known());
      return result == Py_None && has_recorded_step() ? Term::same() : t->tensor_result(result);
    }
    t->give_up("an op's argument is not followed");
    return {};
  }
  const bool is_append =
      self.is_made() && t->peek(self).kind == Made::Kind::kList && PyCFunction_Check(function) &&
      std::strcmp(reinterpret_cast<PyCFunctionObject*>(function)->m_ml->ml_name, "append") == 0;
  if (is_append && terms.size() == 1 && terms[0].is_known()) {
    t->append(self, args[0], terms[0]);
    return Term::same();
  }
  if (function == is_instance && terms.size() == 2 && terms[0].is_number() && terms[1].is_same() &&
      t->has_fixed_type(terms[0]))
    return Term::same();
  if (const Term made = number_term(function, self, self_object, args, terms, kwnames, result);
      made.is_known() || !t->is_on())
    return made;
  t->pin_all(terms);
  bool all_plain = true;
  for (size_t i = 0; i < terms.size(); ++i) all_plain = all_plain && t->is_plain(terms[i], args[i]);
  const char* word = PyCFunction_Check(function)
                         ? reinterpret_cast<PyCFunctionObject*>(function)->m_ml->ml_name
                     : PyType_Check(function) ? reinterpret_cast<PyTypeObject*>(function)->tp_name
                                              : "";
  if (self.is_tensor()) {
    if (!all_plain && !all_fit) {
      t->give_up("a method's argument is not followed");
      return {};
    }
    const TensorMethod method = tensor_method(word);
    if (method == TensorMethod::kSizes) t->looked_at_sizes();
    if (method == TensorMethod::kSizes || method == TensorMethod::kFacts) return Term::same();
    if (method == TensorMethod::kConversion && door().is_exact_tensor(result))
      return t->tensor_result(result);
    if (std::strcmp(word, "requires_grad_") == 0 && result == self_object && all_plain &&
        !door().impl_of(result)->requires_grad && t->began_without_gradients(result))
      return Term::tensor();
    if (std::strcmp(word, "requires_grad_") == 0 && result == self_object && all_plain &&
        t->make_leaf(result))
      return Term::tensor();
    t->give_up(std::string("method ") + word + " of a tensor");
    return {};
  }
  if (self.is_made() && self_object) {
    Term followed;
    if (follow_transparent(function, self, args, terms, result, &followed)) return followed;
    t->give_up(std::string("method ") + word + " of a container");
    return {};
  }
  PyObject* bound = PyCFunction_Check(function) ? PyCFunction_GET_SELF(function) : nullptr;
  if (bound && PyList_CheckExact(bound) && std::strcmp(word, "append") == 0 && terms.size() == 1 &&
      t->find(bound).is_same() && t->append_outside(bound, args[0], terms[0]))
    return Term::same();
  if (bound && is_dict(bound) && std::strcmp(word, "get") == 0 && all_plain && !kwnames &&
      !terms.empty()) {
    PyObject* found = PyDict_GetItemWithError(bound, args[0]);
    const Term read = t->read_dict(bound, args[0], found);
    return found ? read : Term::same();
  }
  if (bound && is_dict(bound) && terms.empty() && is_one_of(word, {"keys", "values", "items"}))
    return t->read_all(bound, word[0] == 'k' ? 0 : word[0] == 'v' ? 1 : 2);
  if (bound && PyModule_Check(bound) && std::strcmp(word, "iter") == 0 && terms.size() == 1 &&
      terms[0].is_made() && t->made(terms[0]).kind != Made::Kind::kDict) {
    if (t->made(terms[0]).kind == Made::Kind::kIterator) return terms[0];
    const Term m = t->make(Made::Kind::kIterator, {}, {});
    t->made(m).source = terms[0];
    t->made(m).keys.emplace_back(args[0]);
    return m;
  }
  const bool is_builtin = PyType_Check(function) || (bound && PyModule_Check(bound));
  if (is_builtin && std::strcmp(word, "len") == 0 && terms.size() == 1) {
    if (terms[0].is_same() && is_dict(args[0])) t->read_length(args[0]);
    if (terms[0].is_same() && PyList_CheckExact(args[0])) t->read_list(args[0]);
    const bool known = terms[0].is_tensor() || terms[0].is_made() || all_plain ||
                       (terms[0].is_same() &&
                        (is_dict(args[0]) || PyList_CheckExact(args[0]) || PyTuple_Check(args[0])));
    if (known) return Term::same();
  }
  if (is_builtin && std::strcmp(word, "isinstance") == 0 && terms.size() == 2 &&
      terms[0].is_known() && terms[1].is_same()) {
    if (terms[0].is_same() && !is_plain_value(args[0])) t->read_type_of(args[0]);
    return Term::same();
  }
  if (is_builtin && !kwnames && is_one_of(word, {"getattr", "hasattr", "setattr", "type"}))
    return attribute_call_term(word, args, terms, result);
  const bool is_pure_place =
      PyType_Check(function)
          ? !PyType_HasFeature(reinterpret_cast<PyTypeObject*>(function), Py_TPFLAGS_HEAPTYPE)
          : PyCFunction_Check(function) &&
                reinterpret_cast<PyCFunctionObject*>(function)->m_module &&
                is_one_of(text_of(reinterpret_cast<PyCFunctionObject*>(function)->m_module),
                          {"builtins", "math"});
  if (is_builtin && all_plain && is_pure_place &&
      (is_plain_value(result) || PyRange_Check(result)) &&
      is_one_of(word, {"abs",    "min",  "max",   "sum",   "int",  "float", "bool", "str",  "round",
                       "divmod", "pow",  "range", "sqrt",  "ceil", "floor", "log",  "exp",  "cos",
                       "sin",    "prod", "gcd",   "isqrt", "chr",  "ord",   "hash", "tuple"}))
    return Term::same();
  if (Term followed; follow_transparent(function, self, args, terms, result, &followed))
    return followed;
  t->give_up(std::string("calls ") + name_of_callable(callable));
  return {};
}

Evaluator::Next Evaluator::call(const Instruction& i) {
  PyObject* kwnames = std::exchange(kwnames_, nullptr);
  int total = i.arg;
  const bool is_method = top(total + 2) != nullptr;
  if (is_method) ++total;
  PyObject* callable = top(total + 1);
  std::vector<Term> terms;
  for (int k = total; k >= 1; --k) terms.push_back(term(k));
  Term made;
  PyObject* value =
      invoke(callable, term(total + 1), sp_ - total, std::move(terms), kwnames, &made);
  if (!value) return Next::kError;
  drop(i.arg + 2);
  push(value, made);
  return Next::kGo;
}

Evaluator::Next Evaluator::call_unpacked(const Instruction& i) {
  PyObject* keywords = i.arg & 1 ? top(1) : nullptr;
  const int at = keywords ? 2 : 1;
  PyObject* positional = top(at);
  PyObject* callable = top(at + 1);
  // Other kinds of arguments have messages of their own in the interpreter.
  if (!PyTuple_CheckExact(positional) || (keywords && !PyDict_CheckExact(keywords)))
    return Next::kInterpret;
  std::vector<Term> terms;
  std::vector<PyObject*> args;
  Tracker* t = tracker();
  const Term p = term(at);
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(positional); ++k) {
    args.push_back(PyTuple_GET_ITEM(positional, k));
    Term each;
    if (t && p.is_made() &&
        t->made(p).items.size() == static_cast<size_t>(PyTuple_GET_SIZE(positional)))
      each = t->made(p).items[static_cast<size_t>(k)];
    else if (t && p.is_same())
      each = t->same(args.back());
    terms.push_back(each);
  }
  PyObject* names = nullptr;
  if (keywords && PyDict_GET_SIZE(keywords)) {
    names = PyTuple_New(PyDict_GET_SIZE(keywords));
    if (!names) return Next::kError;
    PyObject *key, *value;
    Py_ssize_t position = 0, k = 0;
    while (PyDict_Next(keywords, &position, &key, &value)) {
      if (!PyUnicode_CheckExact(key)) {
        Py_DECREF(names);
        return Next::kInterpret;
      }
      PyTuple_SET_ITEM(names, k++, Py_NewRef(key));
      args.push_back(value);
      Term each;
      if (t && term(1).is_made() && t->made(term(1)).kind == Made::Kind::kDict) {
        const Made& m = t->made(term(1));
        for (size_t n = 0; n < m.keys.size(); ++n)
          if (same_value(m.keys[n].get(), key)) each = m.items[n];
      }
      terms.push_back(each);
    }
  }
  if (t && keywords && !term(1).is_made())
    t->give_up("keyword arguments from a dict that is not followed");
  Term made;
  for (PyObject* a : args) Py_INCREF(a);  // the dict may change in the call
  PyObject* value = invoke(callable, term(at + 1), args.data(), std::move(terms), names, &made,
                           positional, keywords);
  for (PyObject* a : args) Py_DECREF(a);
  Py_XDECREF(names);
  if (!value) return Next::kError;
  drop(at + 2);
  push(value, made);
  return Next::kGo;
}

Evaluator::Next Evaluator::make_function(const Instruction& i) {
  PyObject* code = top();
  PyObject* made = PyFunction_New(code, prong_frame_globals(frame_));
  if (!made) return Next::kError;
  auto* f = reinterpret_cast<PyFunctionObject*>(made);
  Tracker* t = tracker();
  Py_DECREF(pop());
  std::vector<Term> cells;
  std::vector<PyObject*> objects;
  if (i.arg & 8) {
    if (t && term().is_made()) {
      cells = t->made(term()).items;
      objects = t->made(term()).objects;
    } else if (t && term().is_same()) {
      for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(top()); ++k) {
        cells.push_back(Term::same());
        objects.push_back(PyTuple_GET_ITEM(top(), k));
      }
    }
    f->func_closure = pop();
  }
  for (const int flag : {4, 2, 1}) {
    if (!(i.arg & flag)) continue;
    if (t && flag != 4 && !term().is_known()) t->give_up("defaults of unknown origin");
    PyObject* part = pop();
    (flag == 4 ? f->func_annotations : flag == 2 ? f->func_kwdefaults : f->func_defaults) = part;
  }
  Term m;
  if (t && t->is_on()) m = t->make(Made::Kind::kFunction, std::move(cells), std::move(objects));
  if (t) t->own(m, made);
  push(made, m);
  return Next::kGo;
}

}  // namespace prong::capture
