// Attributes of nn.Module that are parameters, buffers and modules: looked up at every call of
// every layer, hence here. Installed by python/prong/nn/module.py.
#include <nanobind/nanobind.h>

#include "bindings/module.h"
#include "bindings/python.h"
#include "capture/python_door.h"

namespace nb = nanobind;

namespace prong::python {

namespace {

PyObject* stores[3];  // "_parameters", "_buffers", "_modules"

// Module.__getattr__: Python comes here when the usual places have no such attribute.
PyObject* module_getattr(PyObject* self, PyObject* name) {
  PyObject** const slot = _PyObject_GetDictPtr(self);
  if (slot && *slot) {
    for (PyObject* store : stores) {
      PyObject* const items = PyDict_GetItemWithError(*slot, store);
      if (!items) {
        if (PyErr_Occurred()) return nullptr;
        continue;
      }
      PyObject* found = nullptr;
      if (PyDict_CheckExact(items)) {
        found = Py_XNewRef(PyDict_GetItemWithError(items, name));
      } else {
        found = PyObject_GetItem(items, name);  // an OrderedDict, or what a user put there
        if (!found && PyErr_ExceptionMatches(PyExc_KeyError)) PyErr_Clear();
      }
      if (found) return found;
      if (PyErr_Occurred()) return nullptr;
    }
  }
  PyErr_Format(PyExc_AttributeError, "'%.100s' object has no attribute '%U'",
               Py_TYPE(self)->tp_name, name);
  return nullptr;
}

PyMethodDef getattr_method = {"__getattr__", module_getattr, METH_O,
                              "A parameter, buffer or module of that name."};

void install_module_getattr(nb::type_object module_type) {
  const Owned method(
      PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(module_type.ptr()), &getattr_method));
  if (!method || PyObject_SetAttrString(module_type.ptr(), "__getattr__", method.get()) < 0)
    throw nb::python_error();
  capture::door().module_setattr = PyObject_GetAttrString(module_type.ptr(), "__setattr__");
}

}  // namespace

void bind_nn_module(nb::module_& m) {
  const char* const names[] = {"_parameters", "_buffers", "_modules"};
  capture::door().module_getattr = &module_getattr;
  for (int i = 0; i < 3; ++i) stores[i] = PyUnicode_InternFromString(names[i]);
  m.def("_install_module_getattr", &install_module_getattr);
}

}  // namespace prong::python
