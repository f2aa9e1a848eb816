// The Python type Tensor: one Python object stands for one TensorImpl as long as it lives.
#pragma once

#include <nanobind/nanobind.h>

#include "bindings/errors.h"
#include "bindings/python.h"
#include "tensor/tensor.h"

namespace prong::python {

struct PyTensor {
  PyObject_HEAD TensorImpl* impl;  // owned
  PyObject* dict;
  PyObject* weakrefs;
};

extern PyTypeObject* tensor_type;

inline bool is_tensor(PyObject* object) {
  return Py_TYPE(object) == tensor_type || PyType_IsSubtype(Py_TYPE(object), tensor_type);
}
// Borrowed; is_tensor was asked before.
inline TensorImpl* impl_of(PyObject* object) { return reinterpret_cast<PyTensor*>(object)->impl; }
inline Tensor tensor_of(PyObject* object) { return Tensor(Ref<TensorImpl>(impl_of(object))); }

// The Python object of a tensor: the one that there is, or a new one. A new reference; None for an
// undefined tensor.
PyObject* wrap(Tensor tensor);
// A new object of a subclass for a tensor that has none yet.
PyObject* wrap_as(Tensor tensor, PyTypeObject* type);

void init_tensor_type(PyObject* module);

// Slots and attributes of the type, by file.
PyType_Slot* tensor_number_slots();  // tensor_operators.cpp; ends with {0, nullptr}
PyGetSetDef* tensor_attributes();    // tensor_attributes.cpp
PyMethodDef* tensor_methods();       // tensor_methods.cpp
PyObject* tensor_subscript(PyObject* self, PyObject* index);  // tensor_index.cpp
int tensor_assign_subscript(PyObject* self, PyObject* index, PyObject* value);
PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs);  // tensor_data.cpp

}  // namespace prong::python

namespace nanobind::detail {
template <>
struct type_caster<prong::Tensor> {
  NB_TYPE_CASTER(prong::Tensor, const_name("prong.Tensor"))
  bool from_python(handle src, uint32_t, cleanup_list*) noexcept {
    if (!prong::python::is_tensor(src.ptr())) return false;
    value = prong::python::tensor_of(src.ptr());
    return true;
  }
  static handle from_cpp(const prong::Tensor& t, rv_policy, cleanup_list*) noexcept {
    return prong::python::guarded([&] { return prong::python::wrap(t); });
  }
};
}  // namespace nanobind::detail
