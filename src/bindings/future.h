// Futures in Python: conversion of arguments and results. Called by script.cpp; the class is made
// by future.cpp.
#pragma once

#include <nanobind/nanobind.h>

#include "bindings/convert.h"

namespace prong::python {

// The class Future, fork of Python calls, and the conversions of futures (converters()).
void bind_futures(nanobind::module_& m);

// The Python object of a future; `holds_objects`: its values are boxed Python objects.
PyObject* wrap_future(const Ref<Future>& future, bool holds_objects);

// A new Future that has the object already; null with an error set.
PyObject* future_of_object(PyObject* value);

}  // namespace prong::python
