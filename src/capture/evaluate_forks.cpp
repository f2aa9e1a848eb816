// fork in compiled calls: the body is evaluated where it stands, on trial, as a region of the
// graph. What may have effects that others see, or may wait, is not run on trial: then the fork is
// one of plain Python. See evaluator.h and forked_body.h.
#include <opcode.h>

#include <cstring>

#include "capture/evaluator.h"
#include "capture/forked_body.h"
#include "capture/python_names.h"
#include "capture/session.h"

namespace prong::capture {

namespace {

std::string name_of_method(PyObject* method) {
  PyObject* name = PyObject_GetAttrString(method, "__name__");
  std::string found = name && PyUnicode_Check(name) ? text_of(name) : "";
  Py_XDECREF(name);
  PyErr_Clear();
  return found;
}

// Builtins that only look at their arguments.
bool is_pure_builtin(const char* name) {
  return is_one_of(name, {"len", "isinstance", "iter",       "next",    "min",      "max",   "sum",
                          "abs", "round",      "divmod",     "pow",     "any",      "all",   "hash",
                          "id",  "ord",        "chr",        "repr",    "callable", "bin",   "hex",
                          "oct", "sorted",     "issubclass", "hasattr", "getattr",  "format"});
}

bool is_pure_type(PyObject* type) {
  for (PyTypeObject* t :
       {&PyTuple_Type, &PyList_Type, &PyDict_Type, &PySet_Type, &PyFrozenSet_Type, &PyLong_Type,
        &PyFloat_Type, &PyBool_Type, &PyUnicode_Type, &PyComplex_Type, &PyRange_Type, &PySlice_Type,
        &PyEnum_Type, &PyZip_Type, &PyReversed_Type})
    if (type == reinterpret_cast<PyObject*>(t)) return true;
  return false;
}

bool is_pure_method(PyObject* self, const char* name) {
  if (door().is_tensor(self)) return tensor_method(name) != TensorMethod::kOther;
  if (is_dict(self)) return is_one_of(name, {"get", "keys", "values", "items", "copy"});
  if (PyList_CheckExact(self)) return is_one_of(name, {"index", "count", "copy"});
  return is_plain_value(self) || PyTuple_Check(self) || PyRange_Check(self);
}

}  // namespace

// ── what a body on trial may do ──

bool Evaluator::is_own(Term t) const { return t.is_made() && body_->has_made(t.index); }

// Could others see what the instruction does?
bool Evaluator::has_effect(const Instruction& i) {
  switch (i.opcode) {
  case STORE_ATTR:
  case DELETE_ATTR:
    return !is_own(term(1));
  case STORE_DEREF:
    return !is_own(terms_[static_cast<size_t>(i.arg)]);
  case STORE_SUBSCR:
  case DELETE_SUBSCR:
    return !(term(2).is_tensor() && i.opcode == STORE_SUBSCR) && !is_own(term(2));
  case BINARY_OP:
    return i.arg >= NB_INPLACE_ADD && !term(2).is_tensor() && !term(2).is_number() &&
           !is_plain_value(top(2)) && !PyTuple_CheckExact(top(2)) && !is_own(term(2));
  case FOR_ITER:
    return !is_own(term(1));
  case RETURN_GENERATOR:  // what stands in its `finally` runs when it is dropped
    return !code_.handlers.empty();
  case STORE_GLOBAL:
  case DELETE_GLOBAL:
  case DELETE_DEREF:
  case IMPORT_NAME:
    return true;
  default:
    return false;
  }
}

Evaluator::Next Evaluator::step_on_trial(const Instruction& i) {
  const auto drop = [&](const char* reason) {
    body_->drop(reason);
    return Next::kDrop;
  };
  if (!tracker()) return drop(why_not_tracked().c_str());
  if (has_effect(i)) return drop("others can see what it does");
  if (body_->is_too_long()) return drop("it is very long");
  const Next next = step(i);
  if (body_->is_dropped()) return drop("");
  if (!tracker()) return drop(why_not_tracked().c_str());
  if (next == Next::kInterpret) return drop("an instruction that is not followed");
  return next;
}

bool Evaluator::may_call_on_trial(PyObject* callable, Term term, PyObject* const* args,
                                  const std::vector<Term>& terms) {
  Tracker* t = tracker();
  if (!t) return false;
  for (size_t i = 0; i < terms.size(); ++i)  // it may take items
    if (PyIter_Check(args[i]) && !is_own(terms[i])) return false;
  PyObject* function = PyMethod_Check(callable) ? PyMethod_GET_FUNCTION(callable) : callable;
  if (PyFunction_Check(function) || door().is_op(function) || callable == door().fork) return true;
  for (size_t i = 0; i < terms.size(); ++i)  // it may call them
    if (PyCFunction_Check(args[i]) && !door().is_op(args[i])) return false;
  if (term.is_made() && t->peek(term).kind == Made::Kind::kMethod) {
    const Term self = t->peek(term).items[1];
    if (self.is_made() && t->peek(self).kind == Made::Kind::kFuture)
      return is_one_of(name_of_method(callable), {"wait", "done", "value"});
    if (PyCFunction_Check(callable) && is_own(self)) return true;
  }
  if (PyType_Check(callable)) {
    auto* type = reinterpret_cast<PyTypeObject*>(callable);
    return is_pure_type(callable) || is_instance_class(type) ||
           (PyExceptionClass_Check(callable) && !PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE));
  }
  if (PyCFunction_Check(callable)) {
    auto* c = reinterpret_cast<PyCFunctionObject*>(callable);
    PyObject* self = c->m_self;
    if (self && !PyModule_Check(self))
      return is_pure_method(self, c->m_ml->ml_name) || is_own(t->find(self));
    const char* module = module_of(c);
    return (std::strcmp(module, "builtins") == 0 && is_pure_builtin(c->m_ml->ml_name)) ||
           std::strcmp(module, "math") == 0;
  }
  static PyObject* const call = PyUnicode_InternFromString("__call__");
  PyObject* method =
      term.is_same() || term.is_made() ? _PyType_Lookup(Py_TYPE(callable), call) : nullptr;
  return method && PyFunction_Check(method);
}

// ── fork and futures ──

PyObject* Evaluator::fork(PyObject* const* args, const std::vector<Term>& terms, PyObject* kwnames,
                          Term* result) {
  const size_t by_name = kwnames ? static_cast<size_t>(PyTuple_GET_SIZE(kwnames)) : 0;
  const size_t count = terms.size() - by_name;
  if (Tracker* t = tracker(); t && count) {
    ForkedBody body(thread_recorder(), t->num_made());
    Evaluator* const self = this;
    ForkedBody* const outer = std::exchange(body_, &body);
    Term value_term;
    PyObject* value =
        self->invoke(args[0], terms[0], args + 1, std::vector<Term>(terms.begin() + 1, terms.end()),
                     kwnames, &value_term);
    body_ = outer;
    if (value && !body.is_dropped() && t->is_on() && value_term.is_known()) {
      PyObject* future = door().make_future(value);
      if (future) {
        *result = t->make(Made::Kind::kFuture, {value_term}, {value});
        t->own(*result, future);
        body.keep(name_of_callable(args[0]), door().user_place ? door().user_place() : Place{});
      }
      Py_DECREF(value);
      return future;
    }
    Py_XDECREF(value);
    PyErr_Clear();
    std::string why = body.reason();
    if (why.empty()) why = t->is_on() ? "an exception is raised in it" : t->reason();
    if (outer) {
      outer->drop(why);
      return nullptr;
    }
    t->give_up("forks " + name_of_callable(args[0]) + ", whose body is not followed: " + why);
  } else if (body_) {
    body_->drop(why_not_tracked());
    return nullptr;
  }
  // As in plain Python, what stands before the fork is done before it: the task may write.
  std::string what = why_not_tracked();
  if (what.compare(0, 6, "forks ") != 0)
    what = "forks " + (count ? name_of_callable(args[0]) : std::string("nothing"));
  try {
    thread_recorder().settle(what.c_str());
  } catch (...) {
    door().set_error();
    return nullptr;
  }
  set_pending_call({});
  return PyObject_Vectorcall(door().fork, args, count, kwnames);
}

Term Evaluator::future_attribute(Term future, PyObject* object, PyObject* value) {
  return tracker()->make(Made::Kind::kMethod, {Term::same(), future}, {value, object});
}

// Of a future whose body was followed: it is done.
Term Evaluator::future_result(PyObject* method, Term future) {
  Tracker* t = tracker();
  const std::string name = name_of_method(method);
  if (name == "wait" || name == "value") return t->made(future).items[0];
  if (name == "done" || name == "exception") return Term::same();
  t->give_up("method " + name + " of a future");
  return {};
}

}  // namespace prong::capture
