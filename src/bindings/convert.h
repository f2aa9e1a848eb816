// Python objects to IValues and back, by the static types of schemas and scripts. Called by the op
// functions, script and futures.
#pragma once

#include <string>

#include "bindings/errors.h"
#include "bindings/python.h"
#include "ops/type.h"
#include "tensor/ivalue.h"

namespace prong::python {

// Converts to `type`; throws kType "expected a value of type 'int', got 'str'" when it does not
// fit. A tensor never becomes a number here unless it has one element and the type asks for a
// number.
IValue to_ivalue(PyObject* object, const TypePtr& type);
// The same, asking whether it fits: false leaves `out` alone. Still throws if user code (an
// __index__, an iterator) throws.
bool try_to_ivalue(PyObject* object, const Type& type, IValue* out);
// By the object's own type: numbers, str, tensors, lists, tuples, dicts of such; anything else
// becomes a PyObjectBox.
IValue infer_ivalue(PyObject* object);
// A number of Python or NumPy, or a tensor of one element: false otherwise.
bool number_to_ivalue(PyObject* object, IValue* out);

// A new reference; throws PythonError.
PyObject* to_python(const IValue& value);
PyObject* to_python(IValue&& value);

// Any Python object inside an IValue. Compared and hashed by Python's rules only in Python.
class PyObjectBox final : public ObjectBase {
 public:
  explicit PyObjectBox(PyObject* borrowed) : object_(Py_NewRef(borrowed)) {}
  ~PyObjectBox() override;  // takes the GIL
  PyObject* get() const { return object_; }
  std::string describe() const override { return "a Python object"; }

 private:
  PyObject* object_;
};

// What the files that own a type put in, so that convert need not know them. Null: no such values.
struct Converters {
  PyObject* (*future_to_python)(const Ref<Future>& future) = nullptr;
  // True if `object` is a future whose value fits `element` (null: any).
  bool (*future_from_python)(PyObject* object, const Type* element, IValue* out) = nullptr;
  // Modules, instances of scripted classes, generators. Null without an error: not mine.
  PyObject* (*object_to_python)(ObjectBase* object) = nullptr;
  bool (*class_from_python)(PyObject* object, const Type& type, IValue* out) = nullptr;
  bool (*generator_from_python)(PyObject* object, IValue* out) = nullptr;
  PyObject* (*generator_to_python)(ObjectBase* object) = nullptr;  // null: no generator
};
Converters& converters();

// The Python class of a named tuple, by its qualified name; values of that type become instances.
void register_named_tuple(const std::string& qualified_name, PyObject* python_class);

// "Tensor", "int", "list": the name of an object's type in messages.
std::string type_name(PyObject* object);

}  // namespace prong::python
