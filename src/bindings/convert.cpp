// Python objects to IValues and back; see convert.h.
#include "bindings/convert.h"

#include <cstring>
#include <unordered_map>

#include "bindings/constants.h"
#include "bindings/tensor_type.h"
#include "eager/batched.h"

namespace prong::python {

namespace {

bool is_numpy_scalar(PyObject* object) {
  const PyTypeObject* type = Py_TYPE(object);
  return std::strncmp(type->tp_name, "numpy.", 6) == 0 && type->tp_as_number &&
         type->tp_as_number->nb_float && std::strcmp(type->tp_name, "numpy.ndarray") != 0;
}

// bool, int or float of a numpy scalar.
bool numpy_to_ivalue(PyObject* object, IValue* out) {
  if (!is_numpy_scalar(object)) return false;
  const char* name = Py_TYPE(object)->tp_name + 6;
  if (std::strncmp(name, "bool", 4) == 0) {
    const int truth = PyObject_IsTrue(object);
    checked(truth);
    *out = IValue(truth == 1);
    return true;
  }
  if (PyIndex_Check(object)) {
    Owned whole(checked(PyNumber_Index(object)));
    const long long x = PyLong_AsLongLong(whole.get());
    if (x == -1 && PyErr_Occurred()) throw PythonError();
    *out = IValue(static_cast<int64_t>(x));
    return true;
  }
  if (std::strncmp(name, "complex", 7) == 0) {
    const Py_complex z = PyComplex_AsCComplex(object);
    if (PyErr_Occurred()) throw PythonError();
    *out = IValue(Complex128(z.real, z.imag));
    return true;
  }
  const double x = PyFloat_AsDouble(object);
  if (x == -1 && PyErr_Occurred()) throw PythonError();
  *out = IValue(x);
  return true;
}

// The element of a one-element tensor.
bool tensor_to_number(PyObject* object, IValue* out) {
  if (!is_tensor(object)) return false;
  const Tensor t = tensor_of(object);
  if (t.numel() != 1 || t.rank() != 0) return false;
  if (eager::may_be_batched() && eager::batched_of(t.impl())) return false;  // no one number
  if (is_complex(t.dtype()))
    *out = IValue(t.item_complex());
  else if (t.dtype() == DType::kBool)
    *out = IValue(t.item_int() != 0);
  else if (is_floating(t.dtype()))
    *out = IValue(t.item_double());
  else
    *out = IValue(t.item_int());
  return true;
}

bool int_to_ivalue(PyObject* object, IValue* out) {
  if (PyLong_Check(object)) {
    if (PyBool_Check(object)) return false;
    int overflow = 0;
    const long long x = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow)
      throw_error(ErrorKind::kOverflow, "int too big to convert: it does not fit 64 bits");
    *out = IValue(static_cast<int64_t>(x));
    return true;
  }
  if (PyFloat_Check(object) || PyUnicode_Check(object)) return false;
  IValue number;
  if (is_tensor(object)) {
    if (is_inexact(tensor_of(object).dtype()) || tensor_of(object).dtype() == DType::kBool)
      return false;
    return tensor_to_number(object, out);
  }
  if (numpy_to_ivalue(object, &number)) {
    if (!number.is_int()) return false;
    *out = number;
    return true;
  }
  if (!PyIndex_Check(object)) return false;
  Owned whole(PyNumber_Index(object));
  if (!whole.get()) {
    // A tensor of several elements has __index__ but is no int: another overload may take it.
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw PythonError();
    PyErr_Clear();
    return false;
  }
  return int_to_ivalue(whole.get(), out);
}

bool float_to_ivalue(PyObject* object, IValue* out) {
  if (PyFloat_CheckExact(object)) {
    *out = IValue(PyFloat_AS_DOUBLE(object));
    return true;
  }
  IValue number;
  if (PyBool_Check(object) || !number_to_ivalue(object, &number) || number.is_complex())
    return false;
  *out = IValue(number.to_double());
  return true;
}

// Lists and tuples (torch.Size too); other sequences only where PyTorch takes them: ranges, arrays.
bool is_list_like(PyObject* object) {
  return PyList_Check(object) || PyTuple_Check(object) || PyRange_Check(object);
}

bool list_to_ivalue(PyObject* object, const Type& element, IValue* out) {
  if (!is_list_like(object)) return false;
  Owned fast(checked(PySequence_Fast(object, "expected a sequence")));
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(fast.get());
  std::vector<IValue> items(static_cast<size_t>(n));
  for (Py_ssize_t i = 0; i < n && i < PySequence_Fast_GET_SIZE(fast.get()); ++i)
    if (!try_to_ivalue(PySequence_Fast_GET_ITEM(fast.get(), i), element,
                       &items[static_cast<size_t>(i)]))
      return false;
  *out = IValue::list(std::move(items));
  return true;
}

bool dict_to_ivalue(PyObject* object, const Type& type, IValue* out) {
  if (!PyDict_Check(object)) return false;
  auto dict = make_ref<DictBox>();
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(object, &position, &key, &value)) {
    IValue k, v;
    if (!try_to_ivalue(key, *type.elements()[0], &k) ||
        !try_to_ivalue(value, *type.elements()[1], &v))
      return false;
    dict->set(k, std::move(v));
  }
  *out = IValue(std::move(dict));
  return true;
}

bool tuple_to_ivalue(PyObject* object, const Type& type, IValue* out) {
  if (!PyTuple_Check(object)) return false;
  const size_t n = type.elements().size();
  if (static_cast<size_t>(PyTuple_GET_SIZE(object)) != n) return false;
  std::vector<IValue> items(n);
  for (size_t i = 0; i < n; ++i)
    if (!try_to_ivalue(PyTuple_GET_ITEM(object, static_cast<Py_ssize_t>(i)), *type.elements()[i],
                       &items[i]))
      return false;
  Ref<TupleNames> names;
  if (!type.fields().empty()) {
    names = make_ref<TupleNames>();
    names->type_name = type.name();
    names->fields = type.fields();
  }
  *out = IValue(make_ref<TupleBox>(std::move(items), std::move(names)));
  return true;
}

std::unordered_map<std::string, PyObject*>& named_tuples() {
  static auto* map = new std::unordered_map<std::string, PyObject*>();  // lives as long as Python
  return *map;
}

PyObject* tuple_to_python(const TupleBox& box) {
  const auto n = static_cast<Py_ssize_t>(box.items.size());
  Owned tuple(checked(PyTuple_New(n)));
  for (Py_ssize_t i = 0; i < n; ++i)
    PyTuple_SET_ITEM(tuple.get(), i, to_python(box.items[static_cast<size_t>(i)]));
  if (!box.names) return tuple.release();
  PyObject*& python_class = named_tuples()[box.names->type_name];
  if (!python_class) {
    Owned collections(checked(PyImport_ImportModule("collections")));
    Owned fields(checked(PyList_New(0)));
    for (const std::string& field : box.names->fields) {
      Owned name(checked(PyUnicode_FromString(field.c_str())));
      checked(PyList_Append(fields.get(), name.get()));
    }
    const std::string& full = box.names->type_name;
    const std::string last = full.substr(full.rfind('.') + 1);
    python_class = checked(
        PyObject_CallMethod(collections.get(), "namedtuple", "sO", last.c_str(), fields.get()));
  }
  return checked(PyObject_CallObject(python_class, tuple.get()));
}

PyObject* list_to_python(const std::vector<IValue>& items) {
  const auto n = static_cast<Py_ssize_t>(items.size());
  Owned list(checked(PyList_New(n)));
  for (Py_ssize_t i = 0; i < n; ++i)
    PyList_SET_ITEM(list.get(), i, to_python(items[static_cast<size_t>(i)]));
  return list.release();
}

PyObject* dict_to_python(const DictBox& box) {
  Owned dict(checked(PyDict_New()));
  for (size_t i = 0; i < box.size(); ++i) {
    Owned key(to_python(box.entry(i).first)), value(to_python(box.entry(i).second));
    checked(PyDict_SetItem(dict.get(), key.get(), value.get()));
  }
  return dict.release();
}

PyObject* object_to_python(ObjectBase* object) {
  if (auto* box = dynamic_cast<PyObjectBox*>(object)) return Py_NewRef(box->get());
  if (converters().generator_to_python)
    if (PyObject* made = converters().generator_to_python(object)) return made;
  if (converters().object_to_python)
    if (PyObject* made = converters().object_to_python(object)) return made;
  if (PyErr_Occurred()) throw PythonError();
  throw_error(ErrorKind::kRuntime, cat("cannot give ", object->describe(), " to Python"));
}

}  // namespace

PyObjectBox::~PyObjectBox() {
  WithGil gil;
  if (gil.is_held()) Py_DECREF(object_);
}

Converters& converters() {
  static Converters the_converters;
  return the_converters;
}

void register_named_tuple(const std::string& qualified_name, PyObject* python_class) {
  PyObject*& entry = named_tuples()[qualified_name];
  Py_XDECREF(entry);
  entry = Py_NewRef(python_class);
}

std::string type_name(PyObject* object) {
  if (object == Py_None) return "NoneType";
  if (is_tensor(object) && Py_TYPE(object) == tensor_type) return "Tensor";
  const char* name = Py_TYPE(object)->tp_name;
  const char* dot = std::strrchr(name, '.');
  return std::strncmp(name, "prong.", 6) == 0 && dot ? cat("torch.", dot + 1) : name;
}

bool number_to_ivalue(PyObject* object, IValue* out) {
  if (PyFloat_Check(object)) {
    *out = IValue(PyFloat_AS_DOUBLE(object));
    return true;
  }
  if (PyBool_Check(object)) {
    *out = IValue(object == Py_True);
    return true;
  }
  if (PyComplex_Check(object)) {
    const Py_complex z = PyComplex_AsCComplex(object);
    *out = IValue(Complex128(z.real, z.imag));
    return true;
  }
  return int_to_ivalue(object, out) || tensor_to_number(object, out) ||
         numpy_to_ivalue(object, out);
}

bool try_to_ivalue(PyObject* object, const Type& type, IValue* out) {
  switch (type.kind()) {
  case TypeKind::kTensor:
    if (!is_tensor(object)) return false;
    *out = IValue(tensor_of(object));
    return true;
  case TypeKind::kOptional:
    if (object == Py_None) {
      *out = IValue();
      return true;
    }
    return try_to_ivalue(object, *type.element(), out);
  case TypeKind::kInt:
    return int_to_ivalue(object, out);
  case TypeKind::kFloat:
    return float_to_ivalue(object, out);
  case TypeKind::kNumber:
    return number_to_ivalue(object, out);
  case TypeKind::kBool: {
    if (PyBool_Check(object)) {
      *out = IValue(object == Py_True);
      return true;
    }
    IValue number;
    if (!numpy_to_ivalue(object, &number) || !number.is_bool()) return false;
    *out = number;
    return true;
  }
  case TypeKind::kStr: {
    if (!PyUnicode_Check(object)) return false;
    Py_ssize_t size = 0;
    const char* chars = PyUnicode_AsUTF8AndSize(object, &size);
    if (!chars) throw PythonError();
    *out = IValue(std::string(chars, static_cast<size_t>(size)));
    return true;
  }
  case TypeKind::kNone:
    if (object != Py_None) return false;
    *out = IValue();
    return true;
  case TypeKind::kDType: {
    DType dtype;
    if (!dtype_from(object, &dtype)) return false;
    *out = IValue(dtype);
    return true;
  }
  case TypeKind::kDevice:
    if (!check_cpu_device(object)) return false;
    *out = IValue("cpu");
    return true;
  case TypeKind::kLayout:
    if (!is_layout(object)) return false;
    check_layout(object);
    *out = IValue("strided");
    return true;
  case TypeKind::kGenerator:
    return converters().generator_from_python && converters().generator_from_python(object, out);
  case TypeKind::kList:
    return list_to_ivalue(object, *type.element(), out);
  case TypeKind::kDict:
    return dict_to_ivalue(object, type, out);
  case TypeKind::kTuple:
    return tuple_to_ivalue(object, type, out);
  case TypeKind::kFuture:
    return converters().future_from_python &&
           converters().future_from_python(object, type.element().get(), out);
  case TypeKind::kClass:
    return converters().class_from_python && converters().class_from_python(object, type, out);
  case TypeKind::kPyObject:
    *out = IValue(Ref<ObjectBase>(make_ref<PyObjectBox>(object)));
    return true;
  case TypeKind::kAny:
  case TypeKind::kVar:
    *out = infer_ivalue(object);
    return true;
  case TypeKind::kFunction:
    return false;
  }
  return false;
}

IValue to_ivalue(PyObject* object, const TypePtr& type) {
  IValue value;
  if (!try_to_ivalue(object, *type, &value))
    throw_error(ErrorKind::kType, cat("expected a value of type '", type->str_(), "', but got '",
                                      type_name(object), "'"));
  return value;
}

IValue infer_ivalue(PyObject* object) {
  IValue value;
  if (object == Py_None) return value;
  if (is_tensor(object)) return IValue(tensor_of(object));
  if (PyBool_Check(object) || PyFloat_CheckExact(object) || PyLong_CheckExact(object) ||
      PyComplex_CheckExact(object)) {
    number_to_ivalue(object, &value);
    return value;
  }
  if (PyUnicode_CheckExact(object)) return to_ivalue(object, Type::str());
  if (is_dtype(object)) return IValue(dtype_of(object));
  if (PyList_CheckExact(object) || PyTuple_Check(object)) {
    std::vector<IValue> items;
    Owned fast(checked(PySequence_Fast(object, "expected a sequence")));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.get()); ++i)
      items.push_back(infer_ivalue(PySequence_Fast_GET_ITEM(fast.get(), i)));
    if (PyTuple_CheckExact(object)) return IValue::tuple(std::move(items));
    if (PyList_CheckExact(object)) return IValue::list(std::move(items));
    Owned fields(PyObject_GetAttrString(object, "_fields"));
    if (fields && PyTuple_Check(fields.get())) {
      auto names = make_ref<TupleNames>();
      names->type_name = Py_TYPE(object)->tp_name;
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(fields.get()); ++i)
        names->fields.emplace_back(PyUnicode_AsUTF8(PyTuple_GET_ITEM(fields.get(), i)));
      register_named_tuple(names->type_name, reinterpret_cast<PyObject*>(Py_TYPE(object)));
      return IValue(make_ref<TupleBox>(std::move(items), std::move(names)));
    }
    PyErr_Clear();
  }
  if (PyDict_CheckExact(object)) {
    auto dict = make_ref<DictBox>();
    PyObject *key, *item;
    Py_ssize_t position = 0;
    bool is_plain = true;
    while (is_plain && PyDict_Next(object, &position, &key, &item)) {
      is_plain = PyUnicode_CheckExact(key) || PyLong_CheckExact(key) || PyFloat_CheckExact(key);
      if (is_plain) dict->set(infer_ivalue(key), infer_ivalue(item));
    }
    if (is_plain) return IValue(std::move(dict));
  }
  if (converters().future_from_python && converters().future_from_python(object, nullptr, &value))
    return value;
  if (numpy_to_ivalue(object, &value)) return value;
  return IValue(Ref<ObjectBase>(make_ref<PyObjectBox>(object)));
}

PyObject* to_python(IValue&& value) {
  if (value.is_tensor()) return wrap(std::move(value).to_tensor());
  return to_python(static_cast<const IValue&>(value));
}

PyObject* to_python(const IValue& value) {
  switch (value.tag()) {
  case IValue::Tag::kNone:
    return Py_NewRef(Py_None);
  case IValue::Tag::kBool:
    return PyBool_FromLong(value.to_bool());
  case IValue::Tag::kInt:
    return checked(PyLong_FromLongLong(value.to_int()));
  case IValue::Tag::kFloat:
    return checked(PyFloat_FromDouble(value.to_double()));
  case IValue::Tag::kComplex:
    return checked(PyComplex_FromDoubles(value.to_complex().real(), value.to_complex().imag()));
  case IValue::Tag::kDType:
    return Py_NewRef(dtype_object(value.to_dtype()));
  case IValue::Tag::kTensor:
    return wrap(value.to_tensor());
  case IValue::Tag::kString:
    return checked(PyUnicode_DecodeUTF8(
        value.to_string().data(), static_cast<Py_ssize_t>(value.to_string().size()), nullptr));
  case IValue::Tag::kList:
    return list_to_python(value.items());
  case IValue::Tag::kTuple:
    return tuple_to_python(*value.tuple());
  case IValue::Tag::kDict:
    return dict_to_python(*value.dict());
  case IValue::Tag::kFuture:
    PRONG_ASSERT(converters().future_to_python,
                 "a future came to Python before its type was set up");
    return checked(converters().future_to_python(Ref<Future>(value.future())));
  case IValue::Tag::kObject:
    return object_to_python(value.object());
  case IValue::Tag::kMeta:
    throw_error(ErrorKind::kInternal, "an abstract tensor has no Python object");
  }
  return nullptr;
}

}  // namespace prong::python
