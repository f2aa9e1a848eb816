// What is done with an op's result on the way to Python: out=, requires_grad=, named results.
#pragma once

#include "bindings/op_function.h"

namespace prong::python {

// requires_grad=True of factories.
void require_grad(const IValue& result);
// Warns that a tensor with elements, given as out=, took another shape.
void warn_resized(const char* name);
// Copies the result into the tensor (or tuple of tensors) given as out=; returns that object anew.
// `name` is the function's, for its errors.
PyObject* store_out(const char* name, const IValue& result, PyObject* out);
// The same of a result that Python code made: a tensor, or a tuple or list of them.
PyObject* store_out(const char* name, PyObject* result, PyObject* out);
// An instance of a struct sequence type from a tuple.
PyObject* named_result(PyTypeObject* type, const IValue& result);
// Gives the tensor other sizes in place, as resize_ does; old elements keep their places in memory.
void resize(const Tensor& tensor, DimsView sizes);

}  // namespace prong::python
