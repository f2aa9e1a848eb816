// The Python type Tensor; see tensor_type.h.
#include "bindings/tensor_type.h"

#include <structmember.h>

#include <vector>

namespace prong::python {

PyTypeObject* tensor_type = nullptr;

namespace {

PyTensor* as_tensor(PyObject* self) { return reinterpret_cast<PyTensor*>(self); }

void tensor_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyTensor* t = as_tensor(self);
  if (t->weakrefs) PyObject_ClearWeakRefs(self);
  Py_CLEAR(t->dict);
  if (t->impl) {
    // Only the object that stands for the tensor takes its name away.
    if (t->impl->py_object == self) t->impl->py_object = nullptr;
    t->impl->release();
  }
  type->tp_free(self);
  Py_DECREF(type);
}

Py_hash_t tensor_hash(PyObject* self) { return _Py_HashPointer(self); }

PyObject* tensor_iter(PyObject* self) {
  return guarded([&]() -> PyObject* {
    const Tensor t = tensor_of(self);
    if (t.rank() == 0) throw_error(ErrorKind::kType, "iteration over a 0-d tensor");
    Owned items(checked(PyTuple_New(static_cast<Py_ssize_t>(t.sizes()[0]))));
    for (int64_t i = 0; i < t.sizes()[0]; ++i) {
      Owned index(checked(PyLong_FromLongLong(i)));
      PyTuple_SET_ITEM(items.get(), i, checked(tensor_subscript(self, index.get())));
    }
    return PyObject_GetIter(items.get());
  });
}

Py_ssize_t tensor_length(PyObject* self) {
  return guarded([&]() -> Py_ssize_t {
    const TensorImpl* impl = impl_of(self);
    if (impl->sizes.empty()) throw_error(ErrorKind::kType, "len() of a 0-d tensor");
    return static_cast<Py_ssize_t>(impl->sizes[0]);
  });
}

PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(PyTensor, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(PyTensor, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyObject* allocate(PyTypeObject* type, Tensor tensor) {
  PyObject* self;
  if (type == tensor_type) {
    self = checked(reinterpret_cast<PyObject*>(PyObject_New(PyTensor, type)));
    as_tensor(self)->dict = nullptr;
    as_tensor(self)->weakrefs = nullptr;
  } else {
    self = checked(type->tp_alloc(type, 0));
  }
  TensorImpl* impl = tensor.release();
  impl->py_object = self;
  as_tensor(self)->impl = impl;
  return self;
}

}  // namespace

PyObject* wrap(Tensor tensor) {
  if (!tensor.defined()) return Py_NewRef(Py_None);
  if (void* object = tensor.impl()->py_object) return Py_NewRef(static_cast<PyObject*>(object));
  // A Python number that an op wrapped is a number no longer once a program holds it.
  return allocate(tensor_type, std::move(tensor));
}

PyObject* wrap_as(Tensor tensor, PyTypeObject* type) {
  PRONG_ASSERT(tensor.defined() && !tensor.impl()->py_object,
               "the tensor has a Python object already");
  return allocate(type, std::move(tensor));
}

void init_tensor_type(PyObject* module) {
  std::vector<PyType_Slot> slots = {
      {Py_tp_doc, const_cast<char*>("A strided array of numbers of one dtype.")},
      {Py_tp_new, reinterpret_cast<void*>(tensor_new)},
      {Py_tp_dealloc, reinterpret_cast<void*>(tensor_dealloc)},
      {Py_tp_hash, reinterpret_cast<void*>(tensor_hash)},
      {Py_tp_iter, reinterpret_cast<void*>(tensor_iter)},
      {Py_tp_members, members},
      {Py_tp_getset, tensor_attributes()},
      {Py_tp_methods, tensor_methods()},
      {Py_mp_length, reinterpret_cast<void*>(tensor_length)},
      {Py_mp_subscript, reinterpret_cast<void*>(tensor_subscript)},
      {Py_mp_ass_subscript, reinterpret_cast<void*>(tensor_assign_subscript)}};
  for (PyType_Slot* slot = tensor_number_slots(); slot->slot; ++slot) slots.push_back(*slot);
  slots.push_back({0, nullptr});
  PyType_Spec spec = {"prong.Tensor", sizeof(PyTensor), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                      slots.data()};
  tensor_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
  checked(PyModule_AddType(module, tensor_type));
}

}  // namespace prong::python
