// Names of Python's callables as text. See python_names.h.
#include "capture/python_names.h"

namespace prong::capture {

const char* text_of(PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (!text) PyErr_Clear();
  return text ? text : "";
}

std::string name_of_opcode(int opcode) {
  // Nothing is imported while a frame is evaluated.
  PyObject* module = Py_XNewRef(PyDict_GetItemString(PyImport_GetModuleDict(), "opcode"));
  PyObject* names = module ? PyObject_GetAttrString(module, "opname") : nullptr;
  PyObject* name = names && PyList_Check(names) ? PyList_GetItem(names, opcode) : nullptr;
  std::string text = name && PyUnicode_Check(name) ? text_of(name) : std::to_string(opcode);
  Py_XDECREF(names);
  Py_XDECREF(module);
  PyErr_Clear();
  return text;
}

std::string name_of_callable(PyObject* callable) {
  PyObject* name = PyObject_GetAttrString(callable, "__qualname__");
  if (!name) PyErr_Clear();
  std::string text = name && PyUnicode_Check(name) ? text_of(name) : Py_TYPE(callable)->tp_name;
  Py_XDECREF(name);
  return text;
}

const char* module_of(PyCFunctionObject* function) {
  PyObject* module = function->m_module;
  return module && PyUnicode_Check(module) ? text_of(module) : "";
}

TensorMethod tensor_method(std::string_view name) {
  if (is_one_of(name, {"size", "numel", "nelement", "stride", "storage_offset", "is_contiguous"}))
    return TensorMethod::kSizes;
  if (is_one_of(name, {"dim", "ndimension", "element_size", "is_floating_point", "is_complex",
                       "is_signed"}))
    return TensorMethod::kFacts;
  if (is_one_of(name, {"to", "float", "double", "half", "bfloat16", "int", "long", "short", "char",
                       "byte", "bool", "type_as", "cpu", "contiguous"}))
    return TensorMethod::kConversion;
  return TensorMethod::kOther;
}

}  // namespace prong::capture
