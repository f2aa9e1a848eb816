// The small immutable Python types; see constants.h.
#include "bindings/constants.h"

#include <cstring>

#include "bindings/errors.h"

namespace prong::python {

namespace {

// ── dtype ──

struct DTypeObject {
  PyObject_HEAD DType value;
};

PyTypeObject* dtype_type = nullptr;
PyObject* dtypes[kNumDTypes];

DType value_of(PyObject* self) { return reinterpret_cast<DTypeObject*>(self)->value; }

PyObject* dtype_repr(PyObject* self) {
  return PyUnicode_FromFormat("torch.%s", std::string(name_of(value_of(self))).c_str());
}
// copy and pickle: by name, so that the one object comes back.
PyObject* dtype_reduce(PyObject* self, PyObject*) {
  return PyUnicode_FromString(std::string(name_of(value_of(self))).c_str());
}
PyObject* dtype_module(PyObject*, void*) { return PyUnicode_FromString("prong"); }
PyObject* dtype_itemsize(PyObject* self, void*) {
  return PyLong_FromSize_t(size_of(value_of(self)));
}
PyObject* dtype_is_floating(PyObject* self, void*) {
  return PyBool_FromLong(is_floating(value_of(self)));
}
PyObject* dtype_is_complex(PyObject* self, void*) {
  return PyBool_FromLong(is_complex(value_of(self)));
}
PyObject* dtype_is_signed(PyObject* self, void*) {
  return PyBool_FromLong(is_signed(value_of(self)));
}
PyObject* dtype_to_real(PyObject* self, PyObject*) {
  return Py_NewRef(dtypes[static_cast<int>(real_dtype(value_of(self)))]);
}
PyObject* dtype_to_complex(PyObject* self, PyObject*) {
  return Py_NewRef(dtypes[static_cast<int>(complex_dtype(value_of(self)))]);
}

PyGetSetDef dtype_getset[] = {
    {"__module__", dtype_module, nullptr, nullptr, nullptr},
    {"itemsize", dtype_itemsize, nullptr, "Bytes of one element.", nullptr},
    {"is_floating_point", dtype_is_floating, nullptr, nullptr, nullptr},
    {"is_complex", dtype_is_complex, nullptr, nullptr, nullptr},
    {"is_signed", dtype_is_signed, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef dtype_methods[] = {{"__reduce__", dtype_reduce, METH_NOARGS, nullptr},
                               {"to_real", dtype_to_real, METH_NOARGS, nullptr},
                               {"to_complex", dtype_to_complex, METH_NOARGS, nullptr},
                               {nullptr, nullptr, 0, nullptr}};
PyType_Slot dtype_slots[] = {{Py_tp_repr, reinterpret_cast<void*>(dtype_repr)},
                             {Py_tp_getset, dtype_getset},
                             {Py_tp_methods, dtype_methods},
                             {0, nullptr}};
PyType_Spec dtype_spec = {"prong.dtype", sizeof(DTypeObject), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, dtype_slots};

// ── device ──

struct DeviceObject {
  PyObject_HEAD PyObject* kind;  // str
  long index;                    // -1: none
};

PyTypeObject* device_type = nullptr;
PyObject* the_cpu = nullptr;
constexpr const char* kDeviceKinds[] = {"cpu",  "cuda", "mps",  "xpu",
                                        "meta", "hpu",  "mtia", "vulkan"};

DeviceObject* device_of(PyObject* o) { return reinterpret_cast<DeviceObject*>(o); }

PyObject* make_device(PyTypeObject* type, const std::string& kind, long index) {
  bool is_known = false;
  for (const char* k : kDeviceKinds) is_known = is_known || kind == k;
  if (!is_known)
    throw_error(ErrorKind::kRuntime,
                cat("Expected one of cpu, cuda, mps, xpu, meta device type at start of device "
                    "string: ",
                    kind));
  Owned name(checked(PyUnicode_InternFromString(kind.c_str())));
  PyObject* self = checked(type->tp_alloc(type, 0));
  device_of(self)->kind = name.release();
  device_of(self)->index = index;
  return self;
}

// "cuda:1" → ("cuda", 1)
PyObject* device_from_text(PyTypeObject* type, PyObject* text) {
  const char* chars = PyUnicode_AsUTF8(text);
  if (!chars) throw PythonError();
  const char* colon = std::strchr(chars, ':');
  if (!colon) return make_device(type, chars, -1);
  char* end = nullptr;
  const long index = std::strtol(colon + 1, &end, 10);
  if (end == colon + 1 || *end || index < 0)
    throw_error(ErrorKind::kRuntime, cat("Invalid device string: '", chars, "'"));
  return make_device(type, std::string(chars, colon), index);
}

PyObject* device_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"type", "index", nullptr};
    PyObject *what, *index = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:device", const_cast<char**>(names), &what,
                                     &index))
      throw PythonError();
    if (is_device(what) && !index) return Py_NewRef(what);
    if (PyLong_Check(what) && !index) return make_device(type, "cuda", PyLong_AsLong(what));
    if (!PyUnicode_Check(what))
      throw_error(ErrorKind::kType, cat("device(): argument 'type' (position 1) must be str, not ",
                                        Py_TYPE(what)->tp_name));
    if (!index || index == Py_None) return device_from_text(type, what);
    const long i = PyLong_AsLong(index);
    if (i == -1 && PyErr_Occurred()) throw PythonError();
    return make_device(type, PyUnicode_AsUTF8(what), i);
  });
}
void device_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Py_XDECREF(device_of(self)->kind);
  type->tp_free(self);
  Py_DECREF(type);
}
PyObject* device_str(PyObject* self) {
  if (device_of(self)->index < 0) return Py_NewRef(device_of(self)->kind);
  return PyUnicode_FromFormat("%U:%ld", device_of(self)->kind, device_of(self)->index);
}
PyObject* device_repr(PyObject* self) {
  if (device_of(self)->index < 0)
    return PyUnicode_FromFormat("device(type='%U')", device_of(self)->kind);
  return PyUnicode_FromFormat("device(type='%U', index=%ld)", device_of(self)->kind,
                              device_of(self)->index);
}
Py_hash_t device_hash(PyObject* self) {
  const Py_hash_t h = PyObject_Hash(device_of(self)->kind) * 31 + device_of(self)->index + 1;
  return h == -1 ? -2 : h;
}
PyObject* device_compare(PyObject* a, PyObject* b, int op) {
  if ((op != Py_EQ && op != Py_NE) || !is_device(a) || !is_device(b)) Py_RETURN_NOTIMPLEMENTED;
  const int kinds = PyUnicode_Compare(device_of(a)->kind, device_of(b)->kind);
  const bool same = kinds == 0 && device_of(a)->index == device_of(b)->index;
  return PyBool_FromLong(same == (op == Py_EQ));
}
PyObject* device_reduce(PyObject* self, PyObject*) {
  Owned text(device_str(self));
  return Py_BuildValue("O(O)", Py_TYPE(self), text.get());
}
PyObject* device_kind(PyObject* self, void*) { return Py_NewRef(device_of(self)->kind); }
PyObject* device_index(PyObject* self, void*) {
  if (device_of(self)->index < 0) Py_RETURN_NONE;
  return PyLong_FromLong(device_of(self)->index);
}
// `with torch.device("cpu"):` makes factories use it; here they do anyway.
PyObject* device_enter(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    check_cpu_device(self);
    return Py_NewRef(self);
  });
}
PyObject* device_exit(PyObject*, PyObject*) { Py_RETURN_NONE; }

PyGetSetDef device_getset[] = {{"type", device_kind, nullptr, nullptr, nullptr},
                               {"index", device_index, nullptr, nullptr, nullptr},
                               {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef device_methods[] = {{"__reduce__", device_reduce, METH_NOARGS, nullptr},
                                {"__enter__", device_enter, METH_NOARGS, nullptr},
                                {"__exit__", device_exit, METH_VARARGS, nullptr},
                                {nullptr, nullptr, 0, nullptr}};
PyType_Slot device_slots[] = {{Py_tp_new, reinterpret_cast<void*>(device_new)},
                              {Py_tp_dealloc, reinterpret_cast<void*>(device_dealloc)},
                              {Py_tp_repr, reinterpret_cast<void*>(device_repr)},
                              {Py_tp_str, reinterpret_cast<void*>(device_str)},
                              {Py_tp_hash, reinterpret_cast<void*>(device_hash)},
                              {Py_tp_richcompare, reinterpret_cast<void*>(device_compare)},
                              {Py_tp_getset, device_getset},
                              {Py_tp_methods, device_methods},
                              {0, nullptr}};
PyType_Spec device_spec = {"prong.device", sizeof(DeviceObject), 0, Py_TPFLAGS_DEFAULT,
                           device_slots};

// ── layout and memory_format: named constants ──

struct NamedObject {
  PyObject_HEAD const char* name;
};
PyTypeObject *layout_type = nullptr, *memory_format_type = nullptr;
PyObject* the_strided = nullptr;

const char* name_of_constant(PyObject* o) { return reinterpret_cast<NamedObject*>(o)->name; }
PyObject* named_repr(PyObject* self) {
  return PyUnicode_FromFormat("torch.%s", name_of_constant(self));
}
PyObject* named_reduce(PyObject* self, PyObject*) {
  return PyUnicode_FromString(name_of_constant(self));
}
PyObject* named_module(PyObject*, void*) { return PyUnicode_FromString("prong"); }
PyGetSetDef named_getset[] = {{"__module__", named_module, nullptr, nullptr, nullptr},
                              {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef named_methods[] = {{"__reduce__", named_reduce, METH_NOARGS, nullptr},
                               {nullptr, nullptr, 0, nullptr}};
PyType_Slot named_slots[] = {{Py_tp_repr, reinterpret_cast<void*>(named_repr)},
                             {Py_tp_getset, named_getset},
                             {Py_tp_methods, named_methods},
                             {0, nullptr}};
PyType_Spec layout_spec = {"prong.layout", sizeof(NamedObject), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, named_slots};
PyType_Spec memory_format_spec = {"prong.memory_format", sizeof(NamedObject), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                  named_slots};

PyObject* add_named(PyObject* module, PyTypeObject* type, const char* name) {
  PyObject* self = checked(PyType_GenericAlloc(type, 0));
  reinterpret_cast<NamedObject*>(self)->name = name;
  checked(PyModule_AddObjectRef(module, name, self));
  return self;
}

// ── Size ──

PyTypeObject* size_type = nullptr;

PyObject* size_from_tuple(PyObject* tuple) {  // steals; passes other objects and null through
  if (!tuple || !PyTuple_CheckExact(tuple)) return tuple;
  const Py_ssize_t n = PyTuple_GET_SIZE(tuple);
  PyObject* self = size_type->tp_alloc(size_type, n);
  for (Py_ssize_t i = 0; self && i < n; ++i)
    PyTuple_SET_ITEM(self, i, Py_NewRef(PyTuple_GET_ITEM(tuple, i)));
  Py_DECREF(tuple);
  return self;
}
PyObject* size_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject* self = PyTuple_Type.tp_new(type, args, kwargs);
  if (!self) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i) {
    PyObject* item = PyTuple_GET_ITEM(self, i);
    if (PyLong_Check(item)) continue;
    PyObject* whole = PyNumber_Index(item);
    if (!whole) {
      PyErr_Format(PyExc_TypeError, "torch.Size() takes an iterable of 'int' (item %zd is '%s')", i,
                   Py_TYPE(item)->tp_name);
      Py_DECREF(self);
      return nullptr;
    }
    PyTuple_SET_ITEM(self, i, whole);
    Py_DECREF(item);
  }
  return self;
}
PyObject* size_repr(PyObject* self) {
  Owned list(PySequence_List(self));
  if (!list) return nullptr;
  return PyUnicode_FromFormat("torch.Size(%R)", list.get());
}
PyObject* size_numel(PyObject* self, PyObject*) {
  int64_t n = 1;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i)
    n *= PyLong_AsLongLong(PyTuple_GET_ITEM(self, i));
  return PyLong_FromLongLong(n);
}
PyObject* size_reduce(PyObject* self, PyObject*) {
  Owned plain(PySequence_List(self));
  Owned items(plain ? PyList_AsTuple(plain.get()) : nullptr);
  if (!items) return nullptr;
  return Py_BuildValue("O(O)", size_type, items.get());
}
PyObject* size_concat(PyObject* a, PyObject* b) {
  return size_from_tuple(PyTuple_Type.tp_as_sequence->sq_concat(a, b));
}
PyObject* size_add(PyObject* a, PyObject* b) {
  if (!PyTuple_Check(a) || !PyTuple_Check(b)) Py_RETURN_NOTIMPLEMENTED;
  return size_concat(a, b);
}
PyObject* size_repeat(PyObject* a, Py_ssize_t n) {
  return size_from_tuple(PyTuple_Type.tp_as_sequence->sq_repeat(a, n));
}
PyObject* size_subscript(PyObject* self, PyObject* key) {
  return size_from_tuple(PyTuple_Type.tp_as_mapping->mp_subscript(self, key));
}
PyMethodDef size_methods[] = {{"numel", size_numel, METH_NOARGS, "The product of the sizes."},
                              {"__reduce__", size_reduce, METH_NOARGS, nullptr},
                              {nullptr, nullptr, 0, nullptr}};
PyType_Slot size_slots[] = {{Py_tp_new, reinterpret_cast<void*>(size_new)},
                            {Py_tp_repr, reinterpret_cast<void*>(size_repr)},
                            {Py_tp_methods, size_methods},
                            {Py_nb_add, reinterpret_cast<void*>(size_add)},
                            {Py_sq_concat, reinterpret_cast<void*>(size_concat)},
                            {Py_sq_repeat, reinterpret_cast<void*>(size_repeat)},
                            {Py_mp_subscript, reinterpret_cast<void*>(size_subscript)},
                            {0, nullptr}};
PyType_Spec size_spec = {"prong.Size", 0, 0, Py_TPFLAGS_DEFAULT, size_slots};

PyTypeObject* add_type(PyObject* module, PyType_Spec* spec, PyObject* bases = nullptr) {
  auto* type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpecWithBases(spec, bases)));
  checked(PyModule_AddType(module, type));
  return type;
}

}  // namespace

PyObject* dtype_object(DType dtype) { return dtypes[static_cast<int>(dtype)]; }
bool is_dtype(PyObject* object) { return Py_TYPE(object) == dtype_type; }
DType dtype_of(PyObject* object) { return value_of(object); }
bool dtype_from(PyObject* object, DType* out) {
  if (is_dtype(object))
    *out = dtype_of(object);
  else if (object == reinterpret_cast<PyObject*>(&PyFloat_Type))
    *out = DType::kFloat64;
  else if (object == reinterpret_cast<PyObject*>(&PyLong_Type))
    *out = DType::kInt64;
  else if (object == reinterpret_cast<PyObject*>(&PyComplex_Type))
    *out = DType::kComplex128;
  else if (object == reinterpret_cast<PyObject*>(&PyBool_Type))
    *out = DType::kBool;
  else
    return false;
  return true;
}

bool is_device(PyObject* object) { return Py_TYPE(object) == device_type; }
PyObject* cpu_device() { return the_cpu; }
bool check_cpu_device(PyObject* object) {
  if (object == the_cpu) return true;
  Owned made;
  if (PyUnicode_Check(object)) {
    made = Owned(device_from_text(device_type, object));
    object = made.get();
  } else if (PyLong_Check(object) && !PyBool_Check(object)) {
    made = Owned(make_device(device_type, "cuda", PyLong_AsLong(object)));
    object = made.get();
  } else if (!is_device(object)) {
    return false;
  }
  if (PyUnicode_CompareWithASCIIString(device_of(object)->kind, "cpu") == 0) return true;
  if (PyUnicode_CompareWithASCIIString(device_of(object)->kind, "cuda") == 0)
    throw_error(ErrorKind::kAssertion,
                "Torch not compiled with CUDA enabled (prong computes on the CPU only)");
  throw_error(ErrorKind::kRuntime, cat("prong computes on the CPU only; there is no device '",
                                       PyUnicode_AsUTF8(device_of(object)->kind), "'"));
}

PyObject* strided_layout() { return the_strided; }
bool is_layout(PyObject* object) { return Py_TYPE(object) == layout_type; }
bool is_memory_format(PyObject* object) { return Py_TYPE(object) == memory_format_type; }
void check_layout(PyObject* object) {
  if (object == the_strided || object == Py_None) return;
  if (!is_layout(object))
    throw_error(ErrorKind::kType,
                cat("argument 'layout' must be torch.layout, not ", Py_TYPE(object)->tp_name));
  throw_error(ErrorKind::kNotImplemented, cat("prong has no torch.", name_of_constant(object),
                                              " tensors yet; only strided ones"));
}

PyObject* size_type_object() { return reinterpret_cast<PyObject*>(size_type); }
PyObject* new_size(DimsView dims) {
  PyObject* self = checked(size_type->tp_alloc(size_type, static_cast<Py_ssize_t>(dims.size())));
  for (size_t i = 0; i < dims.size(); ++i)
    PyTuple_SET_ITEM(self, static_cast<Py_ssize_t>(i), checked(PyLong_FromLongLong(dims[i])));
  return self;
}

void init_constants(PyObject* module) {
  dtype_type = add_type(module, &dtype_spec);
  for (int i = 0; i < kNumDTypes; ++i) {
    dtypes[i] = checked(PyType_GenericAlloc(dtype_type, 0));
    reinterpret_cast<DTypeObject*>(dtypes[i])->value = static_cast<DType>(i);
    const std::string name(name_of(static_cast<DType>(i)));
    checked(PyModule_AddObjectRef(module, name.c_str(), dtypes[i]));
  }
  constexpr std::pair<const char*, DType> kAliases[] = {
      {"half", DType::kFloat16},     {"float", DType::kFloat32},     {"double", DType::kFloat64},
      {"short", DType::kInt16},      {"int", DType::kInt32},         {"long", DType::kInt64},
      {"cfloat", DType::kComplex64}, {"cdouble", DType::kComplex128}};
  for (const auto& [name, dtype] : kAliases)
    checked(PyModule_AddObjectRef(module, name, dtype_object(dtype)));

  device_type = add_type(module, &device_spec);
  the_cpu = make_device(device_type, "cpu", -1);

  layout_type = add_type(module, &layout_spec);
  the_strided = add_named(module, layout_type, "strided");
  for (const char* name : {"sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"})
    add_named(module, layout_type, name);
  memory_format_type = add_type(module, &memory_format_spec);
  for (const char* name :
       {"contiguous_format", "preserve_format", "channels_last", "channels_last_3d"})
    add_named(module, memory_format_type, name);

  Owned bases(PyTuple_Pack(1, &PyTuple_Type));
  size_type = add_type(module, &size_spec, bases.get());
}

}  // namespace prong::python
