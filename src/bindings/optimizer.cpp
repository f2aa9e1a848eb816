// What optimizers do with all parameters of a group outside of ops: collecting gradients and state
// into lists, taking gradients away. Called by python/prong/optim.
#include <nanobind/nanobind.h>

#include "bindings/convert.h"
#include "bindings/module.h"
#include "bindings/tensor_type.h"
#include "eager/node.h"

namespace nb = nanobind;

namespace prong::python {

namespace {

Tensor gradient_of(PyObject* param) {
  PRONG_CHECK(is_tensor(param), kType,
              "optimizer can only optimize Tensors, but one of the params is ", type_name(param));
  const TensorImpl* t = impl_of(param);
  return t->autograd ? eager::meta_of(t)->grad : Tensor();
}

// Lists of the parameters that have gradients, of the gradients, and of their state under each
// name; None where one of them lacks a state.
nb::object gather_state(nb::list params, nb::dict state, nb::tuple names) {
  const size_t kinds = names.size();
  nb::list all;
  for (size_t i = 0; i < kinds + 2; ++i) all.append(nb::list());
  const auto append = [&](size_t list, PyObject* item) {
    if (PyList_Append(PyList_GET_ITEM(all.ptr(), static_cast<Py_ssize_t>(list)), item) < 0)
      throw PythonError();
  };
  for (nb::handle param : params) {
    Tensor gradient = gradient_of(param.ptr());
    if (!gradient.defined()) continue;
    append(0, param.ptr());
    append(1, Owned(wrap(std::move(gradient))).get());
    if (kinds == 0) continue;
    PyObject* of_param = PyDict_GetItemWithError(state.ptr(), param.ptr());
    if (!of_param || !PyDict_Check(of_param)) {
      if (PyErr_Occurred()) throw PythonError();
      return nb::none();
    }
    for (size_t i = 0; i < kinds; ++i) {
      PyObject* item = PyDict_GetItemWithError(
          of_param, PyTuple_GET_ITEM(names.ptr(), static_cast<Py_ssize_t>(i)));
      if (!item) {
        if (PyErr_Occurred()) throw PythonError();
        return nb::none();
      }
      append(i + 2, item);
    }
  }
  return all;
}

void clear_gradients(nb::list params) {
  for (nb::handle param : params) {
    if (!is_tensor(param.ptr())) continue;
    TensorImpl* t = impl_of(param.ptr());
    if (t->autograd) eager::meta_of(t)->grad = {};
  }
}

nb::list gradients_of(nb::list params) {
  nb::list all;
  for (nb::handle param : params) {
    Tensor gradient = gradient_of(param.ptr());
    if (gradient.defined()) all.append(nb::steal(wrap(std::move(gradient))));
  }
  return all;
}

}  // namespace

void bind_optimizer(nb::module_& m) {
  m.def("_gather_state", &gather_state);
  m.def("_clear_gradients", &clear_gradients);
  m.def("_gradients_of", &gradients_of);
}

}  // namespace prong::python
