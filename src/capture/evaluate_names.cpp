// Globals that are assigned, cells of enclosing functions, deleted names and imports. See
// evaluator.h.
#include <opcode.h>

#include "capture/evaluator.h"
#include "capture/session.h"

namespace prong::capture {

Evaluator::Next Evaluator::step_name(const Instruction& i) {
  Tracker* t = tracker();
  switch (i.opcode) {
  case STORE_GLOBAL: {
    PyObject* globals = prong_frame_globals(frame_);
    PyObject* name = PyTuple_GET_ITEM(co_->co_names, i.arg);
    if (t && !(PyDict_CheckExact(globals) && t->write_item(globals, name, top(), term())))
      t->give_up("a global is assigned");
    if (PyDict_SetItem(globals, name, top()) < 0) return Next::kError;
    drop(1);
    return Next::kGo;
  }
  case DELETE_DEREF: {
    PyObject* cell = slots_[i.arg];
    if (!PyCell_GET(cell)) return Next::kInterpret;
    const Term cell_term = terms_[static_cast<size_t>(i.arg)];
    if (t && !cell_term.is_made()) t->give_up("a variable of an enclosing function is deleted");
    PyObject* old = PyCell_GET(cell);
    PyCell_SET(cell, nullptr);
    Py_DECREF(old);
    return Next::kGo;
  }
  case IMPORT_NAME:
    return import_name(i);
  case IMPORT_FROM: {
    PyObject* name = PyTuple_GET_ITEM(co_->co_names, i.arg);
    PyObject* module = top();
    PyObject* dict = PyModule_CheckExact(module) ? PyModule_GetDict(module) : nullptr;
    PyObject* value = dict ? PyDict_GetItemWithError(dict, name) : nullptr;
    if (!value) return Next::kInterpret;  // a submodule, or an error in words of its own
    push(Py_NewRef(value), t ? t->read_dict(dict, name, value) : Term());
    return Next::kGo;
  }
  default:
    return Next::kInterpret;
  }
}

// An import of modules that are there already; others are the interpreter's.
Evaluator::Next Evaluator::import_name(const Instruction& i) {
  static PyObject* const usual = PyDict_GetItemString(PyEval_GetBuiltins(), "__import__");
  static PyObject* const key = PyUnicode_InternFromString("__import__");
  PyObject* builtins = prong_frame_builtins(frame_);
  PyObject *names = top(1), *level = top(2);
  PyObject* name = PyTuple_GET_ITEM(co_->co_names, i.arg);
  PyObject* modules = PyImport_GetModuleDict();
  if (!PyDict_CheckExact(builtins) || PyDict_GetItemWithError(builtins, key) != usual ||
      !PyLong_CheckExact(level) || PyLong_AsLong(level) != 0)
    return Next::kInterpret;
  PyObject* found = PyDict_GetItemWithError(modules, name);
  if (!found || !PyModule_CheckExact(found)) return Next::kInterpret;
  Tracker* t = tracker();
  if (names == Py_None) {
    // `import a.b` gives a.
    const Py_ssize_t dot = PyUnicode_FindChar(name, '.', 0, PyUnicode_GET_LENGTH(name), 1);
    if (dot >= 0) {
      PyObject* first = PyUnicode_Substring(name, 0, dot);
      PyObject* root = first ? PyDict_GetItemWithError(modules, first) : nullptr;
      if (t && root) t->read_dict(modules, name, found);
      Py_XDECREF(first);
      if (!root || !PyModule_CheckExact(root)) return Next::kInterpret;
      if (t) t->know(root);  // the guard on the submodule stands for it
      drop(2);
      push(Py_NewRef(root), Term::same());
      return Next::kGo;
    }
  } else {
    PyObject* dict = PyModule_GetDict(found);
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(names); ++k)
      if (!PyDict_GetItemWithError(dict, PyTuple_GET_ITEM(names, k))) return Next::kInterpret;
  }
  Term term;
  if (t) {
    t->read_dict(builtins, key, usual);
    term = t->read_dict(modules, name, found);
  }
  drop(2);
  push(Py_NewRef(found), term);
  return Next::kGo;
}

}  // namespace prong::capture
