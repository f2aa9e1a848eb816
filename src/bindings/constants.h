// The small immutable Python types: dtype, device, layout, memory_format and Size. Used by all of
// bindings/.
#pragma once

#include <string>

#include "base/small_vector.h"
#include "bindings/python.h"
#include "tensor/dtype.h"

namespace prong::python {

// prong.float32 and its like: one object a dtype.
PyObject* dtype_object(DType dtype);  // borrowed
bool is_dtype(PyObject* object);
DType dtype_of(PyObject* object);  // is_dtype was asked
// A dtype object, or Python's float, int or bool as PyTorch takes them; nothing for anything else.
bool dtype_from(PyObject* object, DType* out);

// prong.device("cpu"), also of kinds that Prong cannot compute on: programs name them before they
// ask.
bool is_device(PyObject* object);
PyObject* cpu_device();  // borrowed
// Takes a device, a text or an index; throws unless it is a CPU: there is no other hardware here.
// False when the object is none of these.
bool check_cpu_device(PyObject* object);

PyObject* strided_layout();  // borrowed
bool is_layout(PyObject* object);
bool is_memory_format(PyObject* object);
// Throws for sparse layouts.
void check_layout(PyObject* object);

PyObject* size_type_object();       // prong.Size, borrowed
PyObject* new_size(DimsView dims);  // a prong.Size, new reference

void init_constants(PyObject* module);

}  // namespace prong::python
