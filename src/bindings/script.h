// Scripts in Python: the handles that python/prong/jit works with. Split over script_*.cpp.
#pragma once

#include <nanobind/nanobind.h>

#include "bindings/convert.h"
#include "script/compiler.h"

namespace prong::python {

struct PyType {
  TypePtr type;
};
struct PyEntry {
  Ref<script::FunctionEntry> entry;
};
struct PyFunction {
  explicit PyFunction(Ref<Function> f) : home(f->home()), function(std::move(f)) {}
  Ref<Definitions> home;
  Ref<Function> function;
};
struct PyClass {
  Ref<script::ClassEntry> entry;
};
struct PyScriptObject {
  Ref<Object> object;
};

void bind_script(nanobind::module_& m);  // script.cpp: functions and what they are called with
void bind_script_types(nanobind::module_& m);    // script_types.cpp
void bind_script_classes(nanobind::module_& m);  // script_classes.cpp
void bind_script_archive(nanobind::module_& m);  // script_archive.cpp
void bind_script_trace(nanobind::module_& m);    // script_trace.cpp

// What python/prong/jit/resolve.py says of a name: a tuple whose first item is its kind; None: no
// such name.
script::Named named_from(nanobind::handle description);

// Calls into Python while compiling: takes the GIL, turns Python's exceptions into PythonError.
nanobind::object call_python_side(nanobind::handle callable, nanobind::handle argument);

// Names of Python asked of an object with lookup(name), type(text) and default(parameter, text,
// type).
Ref<script::Resolver> make_resolver(nanobind::object names);

}  // namespace prong::python
