// What attribute access on Python objects goes by: types, instance dicts. Called by the files of
// the evaluator that follow attributes and calls.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace prong::capture {

// Of the type or its bases; null if there is none. Borrowed. `word` is a literal.
PyObject* type_attribute(PyTypeObject* type, const char* word);
// Access follows the usual rules: no __getattribute__ of its own.
bool has_usual_access(PyTypeObject* type);
PyObject* instance_dict(PyObject* object);  // borrowed; null: it has none
bool is_builtin_container(PyTypeObject* type);

}  // namespace prong::capture
