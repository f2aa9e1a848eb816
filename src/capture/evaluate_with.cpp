// `with`, and how exceptions are raised and handled inside a frame. See evaluator.h.
#include <opcode.h>

#include "capture/error_aside.h"
#include "capture/evaluator.h"
#include "capture/session.h"
#include "capture/tape_calls.h"

namespace prong::capture {

thread_local bool is_escaped_error_followed = false;
thread_local PyObject* escaped_error = nullptr;

PyObject* current_error() {
  PyObject *kind, *error, *trace;
  PyErr_Fetch(&kind, &error, &trace);
  PyErr_NormalizeException(&kind, &error, &trace);
  PyErr_Restore(kind, error, trace);
  return error;
}

namespace {

PyObject* const* exit_arguments(PyObject* error, PyObject** held) {
  held[0] = PyExceptionInstance_Class(error);
  held[1] = error;
  held[2] = PyException_GetTraceback(error);
  if (!held[2]) held[2] = Py_NewRef(Py_None);
  return held;
}

// A special method as the interpreter finds it: on the class, bound. Null without an error: none.
PyObject* special_method(PyObject* object, PyObject* found) {
  descrgetfunc bind = Py_TYPE(found)->tp_descr_get;
  return bind ? bind(found, object, reinterpret_cast<PyObject*>(Py_TYPE(object)))
              : Py_NewRef(found);
}

}  // namespace

// The class's method `found`, bound to an object with that term.
Term Evaluator::bound_term(PyObject* object, Term owner, PyObject* found, PyObject* bound) {
  Tracker* t = tracker();
  if (!t) return {};
  if (!(owner.is_same() || owner.is_made()) || !PyMethod_Check(bound)) {
    t->give_up("a context manager that is not followed");
    return {};
  }
  t->read_type(Py_TYPE(object));
  if (owner.is_same()) t->read_type_of(object);
  return t->make(Made::Kind::kMethod, {Term::same(), owner}, {found, object});
}

Evaluator::Next Evaluator::before_with() {
  static PyObject* const enter_name = PyUnicode_InternFromString("__enter__");
  static PyObject* const exit_name = PyUnicode_InternFromString("__exit__");
  PyObject* manager = top();
  const Term owner = term();
  PyObject* enter_found = _PyType_Lookup(Py_TYPE(manager), enter_name);
  PyObject* exit_found = _PyType_Lookup(Py_TYPE(manager), exit_name);
  if (!enter_found || !exit_found) return Next::kInterpret;  // which says what is missing
  const Kept exit_kept(exit_found);
  PyObject* enter = special_method(manager, enter_found);
  if (!enter) return Next::kError;
  const Term enter_term = bound_term(manager, owner, enter_found, enter);
  PyObject* exit = special_method(manager, exit_kept.get());
  if (!exit) {
    Py_DECREF(enter);
    return Next::kError;
  }
  const Term exit_term = bound_term(manager, owner, exit_kept.get(), exit);
  top() = exit;
  term() = exit_term;
  Term made;
  PyObject* value = invoke(enter, enter_term, nullptr, {}, nullptr, &made);
  Py_DECREF(manager);
  Py_DECREF(enter);
  if (!value) return Next::kError;
  push(value, made);
  return Next::kGo;
}

Evaluator::Next Evaluator::step_exception(const Instruction& i) {
  _PyErr_StackItem* handled = thread_->exc_info;
  switch (i.opcode) {
  case BEFORE_WITH:
    return before_with();
  case PUSH_EXC_INFO: {
    PyObject* error = pop();
    push(handled->exc_value ? handled->exc_value : Py_NewRef(Py_None), {});
    push(Py_NewRef(error), raised_term_);
    handled->exc_value = error;
    return Next::kGo;
  }
  case POP_EXCEPT: {
    PyObject* old = std::exchange(handled->exc_value, pop());
    Py_XDECREF(old);
    return Next::kGo;
  }
  case WITH_EXCEPT_START: {
    PyObject* held[3];
    PyObject* const* args = exit_arguments(top(1), held);
    Term made, trace_term;
    if (Tracker* t = tracker()) trace_term = t->make(Made::Kind::kException, {}, {});
    PyObject* value =
        invoke(top(4), term(4), args, {Term::same(), term(1), trace_term}, nullptr, &made);
    Py_DECREF(held[2]);
    if (!value) return Next::kError;
    push(value, made);
    return Next::kGo;
  }
  case CHECK_EXC_MATCH: {
    PyObject *kinds = top(1), *error = top(2);
    const Py_ssize_t n = PyTuple_Check(kinds) ? PyTuple_GET_SIZE(kinds) : 1;
    for (Py_ssize_t k = 0; k < n; ++k) {
      PyObject* kind = PyTuple_Check(kinds) ? PyTuple_GET_ITEM(kinds, k) : kinds;
      if (PyExceptionClass_Check(kind)) continue;
      PyErr_SetString(PyExc_TypeError,
                      "catching classes that do not inherit from BaseException is "
                      "not allowed");
      return Next::kError;
    }
    if (!term(1).is_known()) lose("an exception class of unknown origin");
    const int fits = PyErr_GivenExceptionMatches(error, kinds);
    Py_DECREF(pop());
    push(PyBool_FromLong(fits), Term::same());
    return Next::kGo;
  }
  default: {  // RERAISE
    PyObject* position = i.arg ? top(i.arg + 1) : nullptr;
    if (position && !PyLong_Check(position)) return Next::kInterpret;
    error_unit_ = position ? static_cast<int32_t>(PyLong_AsLong(position)) : i.unit;
    prong_set_position(frame_, error_unit_);
    raised_term_ = term();
    PyObject* error = pop();
    PyErr_Restore(Py_NewRef(PyExceptionInstance_Class(error)), error,
                  PyException_GetTraceback(error));
    return Next::kReraise;
  }
  }
}

namespace {

// An exception from what `raise` was given: null with an error set.
PyObject* instance_of(PyObject* given, const char* what) {
  if (PyExceptionInstance_Check(given)) return Py_NewRef(given);
  if (!PyExceptionClass_Check(given)) {
    PyErr_SetString(PyExc_TypeError, what);
    return nullptr;
  }
  PyObject* made = PyObject_CallNoArgs(given);
  if (made && !PyExceptionInstance_Check(made)) {
    PyErr_Format(PyExc_TypeError,
                 "calling %R should have returned an instance of BaseException, not %R", given,
                 Py_TYPE(made));
    Py_CLEAR(made);
  }
  return made;
}

}  // namespace

Evaluator::Next Evaluator::raise(const Instruction& i) {
  if (i.arg == 0) {
    const _PyErr_StackItem* at = thread_->exc_info;
    while ((!at->exc_value || at->exc_value == Py_None) && at->previous_item)
      at = at->previous_item;
    if (!at->exc_value || at->exc_value == Py_None) {
      PyErr_SetString(PyExc_RuntimeError, "No active exception to reraise");
      return Next::kError;
    }
    error_unit_ = i.unit;
    raised_term_ = {};
    PyObject* error = at->exc_value;
    PyErr_Restore(Py_NewRef(PyExceptionInstance_Class(error)), Py_NewRef(error),
                  PyException_GetTraceback(error));
    return Next::kReraise;
  }
  PyObject* cause = i.arg == 2 ? top(1) : nullptr;
  const Term given = term(i.arg);
  PyObject* error = instance_of(top(i.arg), "exceptions must derive from BaseException");
  if (!error) return Next::kError;
  if (cause) {
    PyObject* reason = cause == Py_None
                           ? nullptr
                           : instance_of(cause, "exception causes must derive from BaseException");
    if (!reason && cause != Py_None) {
      Py_DECREF(error);
      return Next::kError;
    }
    PyException_SetCause(error, reason);
  }
  is_raise_followed_ = given.is_known() && (!cause || term(1).is_known());
  PyErr_SetObject(PyExceptionInstance_Class(error), error);
  Py_DECREF(error);
  return Next::kError;
}

// Is the error that `i` raised raised at each call that the guards let through?
bool Evaluator::is_error_followed(const Instruction& i) {
  const bool came_from_below = std::exchange(is_escaped_error_followed, false) &&
                               (!escaped_error || escaped_error == current_error());
  escaped_error = nullptr;
  const bool came_from_tape = is_error_of_tape_call();
  switch (i.opcode) {
  case RAISE_VARARGS:
  case UNPACK_SEQUENCE:
  case UNPACK_EX:
    return std::exchange(is_raise_followed_, false);
  case BINARY_SUBSCR:
    return (came_from_below && came_from_tape) || is_lookup_followed();
  case BINARY_OP:
  case COMPARE_OP:
  case UNARY_NEGATIVE:
  case UNARY_POSITIVE:
    return came_from_below && came_from_tape;
  case CALL:
  case CALL_FUNCTION_EX:
  case FOR_ITER:
  case SEND:
  case BEFORE_WITH:
  case WITH_EXCEPT_START:
  case LOAD_ATTR:
  case LOAD_METHOD:
    return came_from_below;
  default:
    return false;
  }
}

// A subscript failed: of a container and by a key that are the same at each call?
bool Evaluator::is_lookup_followed() {
  Tracker* t = tracker();
  if (!t || term(2).is_tensor() || term(1).is_tensor()) return false;
  if (!PyErr_ExceptionMatches(PyExc_LookupError) && !PyErr_ExceptionMatches(PyExc_TypeError))
    return false;
  const ErrorAside aside;
  return t->vouch(term(2), top(2), false) && t->vouch(term(1), top(1), true);
}

void Evaluator::add_to_traceback(int32_t unit) {
  error_unit_ = unit;
  if (PyFrameObject* frame = PyThreadState_GetFrame(thread_)) {
    PyTraceBack_Here(frame);
    Py_DECREF(frame);
  }
}

// After an error, where tracing was turned on since the frame began: tells the tracer what the
// interpreter would, which it does not of a frame that it gets with an error.
PyObject* Evaluator::hand_over_traced(int32_t unit, ProngEntry* entry) {
  lose("tracing is turned on");
  add_to_traceback(unit);
  raised_term_ = {};
  prong_tell_error(thread_);
  if (handle_error(unit, false)) {
    prong_leave_frame(thread_, entry);
    return interpret(code_.instructions[next_].first - 1, 0);
  }
  prong_tell_exit(thread_);
  while (sp_ > slots_ + code_.num_slots) Py_XDECREF(pop());
  prong_set_stack_top(frame_, code_.num_slots);
  prong_leave_frame(thread_, entry);
  return nullptr;
}

// After an error that counts as raised at `error_unit_`: goes on in the frame's own handler; false:
// there is none. `is_new`: the traceback has no line of this frame yet.
bool Evaluator::handle_error(int32_t unit, bool is_new) {
  const ExceptionHandler* handler = code_.handler_at(unit);
  if (!handler) return false;
  if (is_new) {
    add_to_traceback(unit);
    Tracker* t = tracker();
    raised_term_ = t ? t->make(Made::Kind::kException, {}, {}) : Term();
  }
  PyObject** const base = slots_ + code_.num_slots + handler->depth;
  while (sp_ > base) {
    PyObject* dropped = pop();
    Py_XDECREF(dropped);
  }
  if (handler->keeps_position) push(PyLong_FromLong(error_unit_), Term::same());
  PyObject *kind, *error, *trace;
  PyErr_Fetch(&kind, &error, &trace);
  PyErr_NormalizeException(&kind, &error, &trace);
  PyException_SetTraceback(error, trace ? trace : Py_None);
  Py_XDECREF(kind);
  Py_XDECREF(trace);
  push(error, raised_term_);
  kwnames_ = nullptr;
  jump(handler->target);
  return true;
}

}  // namespace prong::capture
