// Attributes of tensors: shape, dtype, requires_grad and their like.
#include "bindings/constants.h"
#include "bindings/convert.h"
#include "bindings/grad_fn.h"
#include "bindings/op_result.h"
#include "bindings/tensor_type.h"
#include "bindings/trace.h"
#include "eager/batched.h"
#include "eager/dispatch.h"
#include "eager/record.h"

namespace prong::python {

namespace {

PyObject* get_shape(PyObject* self, void*) {
  note_read("shape");
  return guarded([&] { return new_size(impl_of(self)->sizes); });
}
PyObject* get_dtype(PyObject* self, void*) { return Py_NewRef(dtype_object(impl_of(self)->dtype)); }
PyObject* get_device(PyObject*, void*) { return Py_NewRef(cpu_device()); }
PyObject* get_layout(PyObject*, void*) { return Py_NewRef(strided_layout()); }
PyObject* get_ndim(PyObject* self, void*) { return PyLong_FromSize_t(impl_of(self)->sizes.size()); }
PyObject* get_itemsize(PyObject* self, void*) {
  return PyLong_FromSize_t(size_of(impl_of(self)->dtype));
}
PyObject* get_nbytes(PyObject* self, void*) {
  return PyLong_FromLongLong(impl_of(self)->numel *
                             static_cast<int64_t>(size_of(impl_of(self)->dtype)));
}
PyObject* get_version(PyObject* self, void*) {
  return PyLong_FromUnsignedLongLong(impl_of(self)->version());
}
PyObject* get_true(PyObject*, void*) { Py_RETURN_TRUE; }
PyObject* get_false(PyObject*, void*) { Py_RETURN_FALSE; }
PyObject* get_names(PyObject* self, void*) {
  PyObject* names = PyTuple_New(static_cast<Py_ssize_t>(impl_of(self)->sizes.size()));
  for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i)
    PyTuple_SET_ITEM(names, i, Py_NewRef(Py_None));
  return names;
}
PyObject* get_is_inference(PyObject* self, void*) {
  return PyBool_FromLong(impl_of(self)->is_inference);
}

PyObject* get_requires_grad(PyObject* self, void*) {
  return PyBool_FromLong(eager::requires_grad(impl_of(self)));
}
int set_requires_grad(PyObject* self, PyObject* value, void*) {
  return guarded([&]() -> int {
    PRONG_CHECK(value && PyBool_Check(value), kRuntime, "requires_grad must be a bool");
    const bool on = value == Py_True;
    const Tensor t = tensor_of(self);
    PRONG_CHECK(
        on || eager::is_leaf(t), kRuntime,
        "you can only change requires_grad flags of leaf variables. If you want to use a computed "
        "variable "
        "in a subgraph that doesn't require differentiation use var_no_grad = var.detach().");
    if (on)
      require_grad(IValue(t));
    else
      t.impl()->requires_grad = false;
    return 0;
  });
}
PyObject* get_is_leaf(PyObject* self, void*) {
  return PyBool_FromLong(eager::is_leaf(tensor_of(self)));
}
PyObject* get_grad_fn(PyObject* self, void*) {
  return guarded([&] {
    const Tensor t = tensor_of(self);
    return grad_fn_object(eager::requires_grad(t.impl()) ? eager::grad_fn(t) : nullptr);
  });
}
PyObject* get_output_nr(PyObject* self, void*) {
  return PyLong_FromUnsignedLong(impl_of(self)->output_nr);
}
PyObject* get_retains_grad(PyObject* self, void*) {
  const TensorImpl* t = impl_of(self);
  return PyBool_FromLong(t->autograd && eager::meta_of(t)->retains_grad);
}
PyObject* get_base(PyObject* self, void*) {
  return guarded([&] {
    const TensorImpl* t = impl_of(self);
    return wrap(eager::is_view(t) ? eager::meta_of(t)->base : Tensor());
  });
}

PyObject* get_grad(PyObject* self, void*) {
  return guarded([&] {
    const TensorImpl* t = impl_of(self);
    if (t->autograd && eager::meta_of(t)->grad.defined()) return wrap(eager::meta_of(t)->grad);
    if (t->requires_grad && !eager::is_leaf(tensor_of(self)) &&
        !eager::make_meta(impl_of(self)).retains_grad &&
        PyErr_WarnEx(
            PyExc_UserWarning,
            "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its "
            ".grad "
            "attribute won't be populated during autograd.backward(). If you indeed want the .grad "
            "field to be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf "
            "Tensor. "
            "If you access the non-leaf Tensor by mistake, make sure you access the leaf Tensor "
            "instead.",
            1) < 0)
      throw PythonError();
    return Py_NewRef(Py_None);
  });
}
int set_grad(PyObject* self, PyObject* value, void*) {
  return guarded([&]() -> int {
    TensorImpl* t = impl_of(self);
    if (!value || value == Py_None) {
      if (t->autograd) eager::meta_of(t)->grad = {};
      return 0;
    }
    PRONG_CHECK(is_tensor(value), kType,
                "assigned grad expected to be a Tensor or None but got grad of type ",
                type_name(value));
    PRONG_CHECK(value != self, kRuntime, "can't assign Variable as its own grad");
    PRONG_CHECK(impl_of(value)->dtype == t->dtype, kRuntime,
                "assigned grad has data of a different type");
    PRONG_CHECK(impl_of(value)->sizes == t->sizes, kRuntime,
                "attempting to assign a gradient of size '", impl_of(value)->sizes,
                "' to a tensor of size '", t->sizes,
                "'. Please ensure that the gradient and the tensor are the same size");
    eager::make_meta(t).grad = tensor_of(value);
    return 0;
  });
}

PyObject* get_data(PyObject* self, void*) {
  return guarded([&] {
    const Tensor t = tensor_of(self);
    if (eager::may_be_batched() && eager::batched_of(t.impl())) return wrap(eager::shallow_copy(t));
    const Tensor apart = t.as_strided(t.sizes(), t.strides(), t.offset());
    apart.impl()->is_apart = true;
    return wrap(apart);
  });
}
// t.data = other: the same Python object and tensor, other memory.
int set_data(PyObject* self, PyObject* value, void*) {
  return guarded([&]() -> int {
    PRONG_CHECK(value && is_tensor(value), kType, "Variable data has to be a tensor, but got ",
                value ? type_name(value) : "nothing");
    TensorImpl* to = impl_of(self);
    to->storage->data();  // recorded work that reads it comes first
    const TensorImpl* from = impl_of(value);
    eager::check_not_batched(to, "setting .data");
    eager::check_not_batched(from, "setting .data");
    to->storage = from->storage;
    to->offset = from->offset;
    to->sizes = from->sizes;
    to->strides = from->strides;
    to->numel = from->numel;
    to->dtype = from->dtype;
    to->is_contiguous = from->is_contiguous;
    if (to->autograd) eager::meta_of(to)->accumulator = {};  // it knows the old shape
    return 0;
  });
}

PyGetSetDef attributes[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {"shape", get_shape, nullptr, "The size of each dimension.", nullptr},
    {"dtype", get_dtype, nullptr, nullptr, nullptr},
    {"device", get_device, nullptr, nullptr, nullptr},
    {"layout", get_layout, nullptr, nullptr, nullptr},
    {"ndim", get_ndim, nullptr, nullptr, nullptr},
    {"itemsize", get_itemsize, nullptr, nullptr, nullptr},
    {"nbytes", get_nbytes, nullptr, nullptr, nullptr},
    {"requires_grad", get_requires_grad, set_requires_grad, nullptr, nullptr},
    {"is_leaf", get_is_leaf, nullptr, nullptr, nullptr},
    {"grad", get_grad, set_grad, nullptr, nullptr},
    {"grad_fn", get_grad_fn, nullptr, nullptr, nullptr},
    {"data", get_data, set_data, "The same memory, apart from gradients.", nullptr},
    {"names", get_names, nullptr, nullptr, nullptr},
    {"_version", get_version, nullptr, "Counts the in-place writes to the memory.", nullptr},
    {"output_nr", get_output_nr, nullptr, nullptr, nullptr},
    {"is_cpu", get_true, nullptr, nullptr, nullptr},
    {"is_cuda", get_false, nullptr, nullptr, nullptr},
    {"is_mps", get_false, nullptr, nullptr, nullptr},
    {"is_xpu", get_false, nullptr, nullptr, nullptr},
    {"is_meta", get_false, nullptr, nullptr, nullptr},
    {"is_sparse", get_false, nullptr, nullptr, nullptr},
    {"is_quantized", get_false, nullptr, nullptr, nullptr},
    {"is_nested", get_false, nullptr, nullptr, nullptr},
    {"is_mkldnn", get_false, nullptr, nullptr, nullptr},
    {"_base", get_base, nullptr, "The tensor that this is a view of.", nullptr},
    {"retains_grad", get_retains_grad, nullptr, nullptr, nullptr},
    {"_is_inference", get_is_inference, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

}  // namespace

PyGetSetDef* tensor_attributes() { return attributes; }

}  // namespace prong::python
