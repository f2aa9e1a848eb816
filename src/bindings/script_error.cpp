// Errors of scripts as Python exceptions: of the class that was raised, with the way through tasks
// and functions.
#include "exec/script_error.h"
#include "bindings/convert.h"
#include "bindings/errors.h"

namespace prong::python {

namespace {

// The traceback as a note of an exception that passed a script; once, however often it is raised
// again.
void add_note(PyObject* exception, const char* text) {
  Owned note(PyUnicode_FromString(text));
  Owned notes(PyObject_GetAttrString(exception, "__notes__"));
  PyErr_Clear();
  if (!note || (notes && PySequence_Contains(notes.get(), note.get()) == 1)) return;
  Owned done(PyObject_CallMethod(exception, "add_note", "O", note.get()));
  PyErr_Clear();
}

}  // namespace

bool set_script_error(const Error& error) noexcept {
  const auto* e = dynamic_cast<const exec::ScriptError*>(&error);
  if (!e) return false;
  if (e->original()) {
    try {
      std::rethrow_exception(e->original());
    } catch (const PythonError& raised) {
      add_note(raised.value(), e->what());
      raised.restore();
      return true;
    } catch (...) {
      return false;
    }
  }
  const auto* box = dynamic_cast<const PyObjectBox*>(e->python_class().get());
  if (!box || !PyExceptionClass_Check(box->get())) return false;
  Owned text(PyUnicode_FromString(e->what()));
  if (text) PyErr_SetObject(box->get(), text.get());
  if (!PyErr_Occurred()) return false;
  // Made now: a class whose constructor wants something else than a text becomes a RuntimeError.
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  const bool made = value && PyObject_TypeCheck(value, reinterpret_cast<PyTypeObject*>(box->get()));
  if (!made) {
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return false;
  }
  PyErr_Restore(type, value, traceback);
  return true;
}

}  // namespace prong::python
