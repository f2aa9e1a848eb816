// Calls, and functions that a call makes. See evaluator.h.
#include <opcode.h>

#include <cstring>

#include "base/str.h"
#include "capture/evaluator.h"
#include "capture/instance_access.h"
#include "capture/python_names.h"
#include "capture/python_steps.h"
#include "capture/session.h"

namespace prong::capture {

namespace {

bool is_opaque_function(PyCFunctionObject* f) {
  PyObject* self = f->m_self;
  if (self && !PyModule_Check(self)) {
    if (door().is_tensor(self) || PyType_Check(self)) return false;
    if (reinterpret_cast<PyObject*>(Py_TYPE(self)) == door().size_type) return false;
    if (PyContextVar_CheckExact(self)) return std::strcmp(f->m_ml->ml_name, "get") != 0;
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

PyObject* Evaluator::invoke(PyObject* callable, Term term, PyObject* const* args,
                            std::vector<Term> terms, PyObject* kwnames, Term* result,
                            PyObject* packed, PyObject* packed_by_name) {
  if (callable == door().fork) return fork(args, terms, kwnames, result);
  if (body_ && !may_call_on_trial(callable, term, args, terms)) {
    body_->drop("calls " + name_of_callable(callable));
    return nullptr;
  }
  const bool may_be_step = is_opaque(callable) || is_whole_step(callable);
  if (PyObject * value;
      may_be_step && call_as_step(callable, term, args, terms, kwnames, &value, result))
    return value;
  if (PyObject * value; may_be_step && has_logged_steps() && take_logged(callable, &value))
    return value;
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

// What stands there becomes a tuple of its items; false: an error is set.
bool Evaluator::make_tuple(int at) {
  Tracker* t = tracker();
  const Term source = term(at);
  Term made;
  PyObject* tuple;
  if (PyList_CheckExact(top(at))) {
    tuple = PyList_AsTuple(top(at));
    if (t && source.is_same()) t->read_list(top(at));
    if (t && tuple && source.is_known()) {
      std::vector<Term> items;
      std::vector<PyObject*> objects;
      if (source.is_made()) items = t->made(source).items;
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
        objects.push_back(PyTuple_GET_ITEM(tuple, i));
        if (source.is_same()) items.push_back(t->same(objects.back()));
      }
      if (items.size() == objects.size())
        made = t->make(Made::Kind::kTuple, std::move(items), objects);
    }
  } else {
    auto* type = reinterpret_cast<PyObject*>(&PyTuple_Type);
    tuple = invoke(type, Term::same(), &top(at), {source}, nullptr, &made);
  }
  if (!tuple) return false;
  Py_SETREF(top(at), tuple);
  term(at) = made;
  return true;
}

Evaluator::Next Evaluator::call_unpacked(const Instruction& i) {
  PyObject* keywords = i.arg & 1 ? top(1) : nullptr;
  const int at = keywords ? 2 : 1;
  PyObject* callable = top(at + 1);
  // Other kinds of arguments have messages of their own in the interpreter.
  const bool is_iterable = Py_TYPE(top(at))->tp_iter || PySequence_Check(top(at));
  if (!is_iterable || (keywords && !PyDict_CheckExact(keywords))) return Next::kInterpret;
  if (!PyTuple_CheckExact(top(at)) && !make_tuple(at)) return Next::kError;
  PyObject* positional = top(at);
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
