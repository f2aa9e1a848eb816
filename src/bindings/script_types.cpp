// Static types in Python: made by python/prong/jit/types.py from annotations.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/script.h"

namespace nb = nanobind;

namespace prong::python {

namespace {

std::vector<TypePtr> types_of(const std::vector<PyType>& items) {
  std::vector<TypePtr> out;
  for (const PyType& t : items) out.push_back(t.type);
  return out;
}

const char* kind_name(TypeKind k) {
  switch (k) {
  case TypeKind::kAny:
    return "Any";
  case TypeKind::kNone:
    return "None";
  case TypeKind::kTensor:
    return "Tensor";
  case TypeKind::kInt:
    return "int";
  case TypeKind::kFloat:
    return "float";
  case TypeKind::kBool:
    return "bool";
  case TypeKind::kStr:
    return "str";
  case TypeKind::kNumber:
    return "number";
  case TypeKind::kDType:
    return "dtype";
  case TypeKind::kDevice:
    return "device";
  case TypeKind::kLayout:
    return "layout";
  case TypeKind::kGenerator:
    return "Generator";
  case TypeKind::kOptional:
    return "Optional";
  case TypeKind::kList:
    return "List";
  case TypeKind::kDict:
    return "Dict";
  case TypeKind::kTuple:
    return "Tuple";
  case TypeKind::kFuture:
    return "Future";
  case TypeKind::kClass:
    return "class";
  case TypeKind::kFunction:
    return "function";
  case TypeKind::kPyObject:
    return "PyObject";
  case TypeKind::kVar:
    return "variable";
  }
  return "";
}

}  // namespace

void bind_script_types(nb::module_& m) {
  nb::class_<PyType>(m, "Type")
      .def_static("any", [] { return PyType{Type::any()}; })
      .def_static("none", [] { return PyType{Type::none()}; })
      .def_static("tensor", [] { return PyType{Type::tensor()}; })
      .def_static("int", [] { return PyType{Type::int_()}; })
      .def_static("float", [] { return PyType{Type::float_()}; })
      .def_static("bool", [] { return PyType{Type::bool_()}; })
      .def_static("str", [] { return PyType{Type::str()}; })
      .def_static("number", [] { return PyType{Type::number()}; })
      .def_static("dtype", [] { return PyType{Type::dtype()}; })
      .def_static("device", [] { return PyType{Type::device()}; })
      .def_static("layout", [] { return PyType{Type::layout()}; })
      .def_static("generator", [] { return PyType{Type::generator()}; })
      .def_static("py_object", [] { return PyType{Type::py_object()}; })
      .def_static("optional", [](const PyType& t) { return PyType{Type::optional(t.type)}; })
      .def_static("list", [](const PyType& t) { return PyType{Type::list(t.type)}; })
      .def_static("dict", [](const PyType& k,
                             const PyType& v) { return PyType{Type::dict(k.type, v.type)}; })
      .def_static("future", [](const PyType& t) { return PyType{Type::future(t.type)}; })
      .def_static(
          "tuple",
          [](const std::vector<PyType>& items) { return PyType{Type::tuple(types_of(items))}; })
      .def_static("named_tuple",
                  [](std::string name, std::vector<std::string> fields,
                     const std::vector<PyType>& items, nb::object python_class) {
                    register_named_tuple(name, python_class.ptr());
                    return PyType{
                        Type::named_tuple(std::move(name), std::move(fields), types_of(items))};
                  })
      .def_static("parse", [](const std::string& text) { return PyType{Type::parse(text)}; })
      .def_prop_ro("kind", [](const PyType& t) { return kind_name(t.type->kind()); })
      .def_prop_ro("elements",
                   [](const PyType& t) {
                     std::vector<PyType> out;
                     for (const TypePtr& e : t.type->elements()) out.push_back({e});
                     return out;
                   })
      .def("fits", [](const PyType& a, const PyType& b) { return is_subtype(a.type, b.type); })
      .def("__eq__",
           [](const PyType& a, nb::handle b) {
             return nb::isinstance<PyType>(b) && same(a.type, nb::cast<const PyType&>(b).type);
           })
      .def("__hash__", [](const PyType& t) { return std::hash<std::string>()(t.type->str_()); })
      .def("__repr__", [](const PyType& t) { return t.type->str_(); });
}

}  // namespace prong::python
