// Tensors from Python data and back; see tensor_data.h.
#include "bindings/tensor_data.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "bindings/constants.h"
#include "bindings/convert.h"
#include "bindings/op_result.h"
#include "bindings/tensor_type.h"
#include "eager/batched.h"
#include "tensor/convert.h"

namespace prong::python {

namespace {

bool is_array(PyObject* o) {
  for (const PyTypeObject* type = Py_TYPE(o); type; type = type->tp_base)
    if (std::strcmp(type->tp_name, "numpy.ndarray") == 0) return true;
  return false;
}
// Zero-dim arrays have no length: they are numbers here.
bool is_sequence(PyObject* o) {
  if (PyList_Check(o) || PyTuple_Check(o)) return true;
  if (!PySequence_Check(o) || PyUnicode_Check(o) || PyBytes_Check(o) || PyDict_Check(o) ||
      is_tensor(o))
    return false;
  if (PySequence_Size(o) >= 0) return true;
  PyErr_Clear();
  return false;
}

// First walk: shape from the first item of each level, dtype from all numbers.
class Survey {
 public:
  void look(PyObject* data) {
    for (PyObject* level = data; is_sequence(level);) {
      const Py_ssize_t n = PySequence_Size(level);
      if (n < 0) throw PythonError();
      shape.push_back(n);
      if (shape.size() > 64)
        throw_error(ErrorKind::kValue,
                    "too many dimensions 'list' (nested deeper than 64, or a cycle)");
      if (n == 0) break;
      Owned first(checked(PySequence_GetItem(level, 0)));
      level = first.get();  // the sequence keeps it alive
      if (is_tensor(level))
        for (const int64_t size : tensor_of(level).sizes()) shape.push_back(size);
    }
    visit(data, 0);
  }
  DType dtype() const {
    std::optional<DType> all = given_;
    const auto join = [&](DType d) { all = all ? promote(*all, d) : d; };
    if (has_complex_) join(complex_dtype(default_dtype()));
    if (has_float_) join(default_dtype());
    if (has_int_) join(DType::kInt64);
    if (has_bool_) join(DType::kBool);
    return all.value_or(default_dtype());
  }
  Dims shape;

 private:
  void join(DType d) { given_ = given_ ? promote(*given_, d) : d; }

  void visit(PyObject* data, size_t depth) {
    if (PyFloat_Check(data)) {
      has_float_ = true;
      // An array item or a zero-dim tensor decides; plain numbers do not.
      return;
    }
    if (PyBool_Check(data)) {
      has_bool_ = true;
      return;
    }
    if (PyLong_Check(data)) {
      int overflow = 0;
      PyLong_AsLongLongAndOverflow(data, &overflow);
      PRONG_CHECK(!overflow, kValue, "Overflow when unpacking long long: it does not fit 64 bits");
      has_int_ = true;
      return;
    }
    if (is_tensor(data)) return join(tensor_of(data).dtype());
    if (is_array(data)) return join(from_buffer_object(data).dtype());
    if (std::strncmp(Py_TYPE(data)->tp_name, "numpy.", 6) ==
        0)  // a scalar of NumPy keeps its dtype
      if (const auto dtype = dtype_from_name(Py_TYPE(data)->tp_name + 6)) return join(*dtype);
    if (!is_sequence(data)) {
      IValue number;
      if (!number_to_ivalue(data, &number)) {
        throw_error(ErrorKind::kType,
                    depth == 0 ? cat("Could not infer dtype of ", type_name(data))
                               : cat("new(): invalid data type '", type_name(data), "'"));
      }
      has_complex_ |= number.is_complex();
      has_float_ |= number.is_float();
      has_int_ |= number.is_int();
      has_bool_ |= number.is_bool();
      return;
    }
    Owned items(checked(PySequence_Fast(data, "expected a sequence")));
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(items.get());
    if (depth >= shape.size())
      throw_error(ErrorKind::kValue, cat("too many dimensions '", type_name(data), "'"));
    if (n != shape[depth])
      throw_error(ErrorKind::kValue, cat("expected sequence of length ", shape[depth], " at dim ",
                                         depth, " (got ", n, ")"));
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(items.get(), i);
      if (depth + 1 < shape.size() && !is_sequence(item) && !is_tensor(item))
        throw_error(ErrorKind::kType, cat("not a sequence"));
      visit(item, depth + 1);
    }
  }

  bool has_complex_ = false, has_float_ = false, has_int_ = false, has_bool_ = false;
  std::optional<DType> given_;
};

template <class T>
T element(PyObject* item, DType dtype) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    if (PyFloat_CheckExact(item)) return static_cast<T>(PyFloat_AS_DOUBLE(item));
  }
  IValue number;
  if (!number_to_ivalue(item, &number))
    throw_error(ErrorKind::kType,
                cat("cannot store '", type_name(item), "' in a tensor of dtype ", dtype));
  if constexpr (is_complex_type<T>) {
    return T(number.to_complex());
  } else if constexpr (std::is_same_v<T, bool>) {
    return number.is_float() ? number.to_double() != 0 : number.to_int() != 0;
  } else if constexpr (std::is_integral_v<T>) {
    if (number.is_float()) return static_cast<T>(static_cast<int64_t>(number.to_double()));
    const int64_t x = number.to_int();
    if (!number.is_bool() && sizeof(T) < 8 &&
        (x < int64_t{std::numeric_limits<T>::min()} || x > int64_t{std::numeric_limits<T>::max()}))
      throw_error(ErrorKind::kRuntime,
                  cat("value cannot be converted to type ", dtype, " without overflow"));
    return static_cast<T>(x);
  } else if constexpr (std::is_same_v<T, double>) {
    return number.to_double();
  } else {
    return T(static_cast<float>(number.to_double()));
  }
}

template <class T>
class Filler {
 public:
  Filler(T* at, const Dims& shape, DType dtype) : at_(at), shape_(shape), dtype_(dtype) {}
  void fill(PyObject* data, size_t depth) {
    if (is_tensor(data) || is_array(data)) {
      const Tensor source = is_tensor(data) ? tensor_of(data) : from_buffer_object(data);
      const Tensor piece = source.to(dtype_).contiguous();
      if (!std::equal(piece.sizes().begin(), piece.sizes().end(), shape_.begin() + depth,
                      shape_.end()))
        throw_error(ErrorKind::kValue,
                    cat("expected items of shape ", DimsView(shape_.begin() + depth, shape_.end()),
                        " at dim ", depth, " (got ", piece.sizes(), ")"));
      std::memcpy(static_cast<void*>(at_), piece.raw(),
                  static_cast<size_t>(piece.numel()) * sizeof(T));
      at_ += piece.numel();
    } else if (depth == shape_.size()) {
      *at_++ = element<T>(data, dtype_);
    } else {
      Owned items(checked(PySequence_Fast(data, "expected a sequence")));
      const Py_ssize_t n = PySequence_Fast_GET_SIZE(items.get());
      if (n != shape_[depth])
        throw_error(ErrorKind::kRuntime, "the data changed while it was read");
      for (Py_ssize_t i = 0; i < n; ++i) fill(PySequence_Fast_GET_ITEM(items.get(), i), depth + 1);
    }
  }

 private:
  T* at_;
  const Dims& shape_;
  DType dtype_;
};

PyObject* number_at(const char* at, DType dtype) {
  return visit_any(dtype, [&](auto tag) -> PyObject* {
    using T = typename decltype(tag)::type;
    T x;
    std::memcpy(static_cast<void*>(&x), at, sizeof(T));
    if constexpr (std::is_same_v<T, bool>)
      return PyBool_FromLong(x);
    else if constexpr (is_complex_type<T>)
      return PyComplex_FromDoubles(x.real(), x.imag());
    else if constexpr (std::is_integral_v<T>)
      return PyLong_FromLongLong(x);
    else if constexpr (std::is_same_v<T, double>)
      return PyFloat_FromDouble(x);
    else
      return PyFloat_FromDouble(static_cast<float>(x));
  });
}

PyObject* list_of(const char* at, const Tensor& t, size_t dim) {
  if (dim == t.sizes().size()) return checked(number_at(at, t.dtype()));
  const auto n = static_cast<Py_ssize_t>(t.sizes()[dim]);
  Owned list(checked(PyList_New(n)));
  const int64_t step = t.strides()[dim] * static_cast<int64_t>(t.item_bytes());
  for (Py_ssize_t i = 0; i < n; ++i)
    PyList_SET_ITEM(list.get(), i, list_of(at + i * step, t, dim + 1));
  return list.release();
}

// ── module functions ──

struct FactoryOptions {
  std::optional<DType> dtype;
  bool requires_grad = false;
  bool copy = false;
};

FactoryOptions read_options(const char* function, PyObject* dtype, PyObject* device,
                            PyObject* requires_grad) {
  FactoryOptions options;
  if (dtype && dtype != Py_None) {
    DType d;
    if (!dtype_from(dtype, &d))
      throw_error(ErrorKind::kType, cat(function, "(): argument 'dtype' must be torch.dtype, not ",
                                        type_name(dtype)));
    options.dtype = d;
  }
  if (device && device != Py_None && !check_cpu_device(device))
    throw_error(ErrorKind::kType, cat(function, "(): argument 'device' must be torch.device, not ",
                                      type_name(device)));
  options.requires_grad = requires_grad && PyObject_IsTrue(requires_grad) == 1;
  return options;
}

PyObject* core_tensor(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"data",          "dtype",      "device",
                                  "requires_grad", "pin_memory", nullptr};
    PyObject *data, *dtype = nullptr, *device = nullptr, *requires_grad = nullptr, *pin = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OOOO:tensor", const_cast<char**>(names),
                                     &data, &dtype, &device, &requires_grad, &pin))
      throw PythonError();
    const FactoryOptions options = read_options("tensor", dtype, device, requires_grad);
    if (is_tensor(data) &&
        PyErr_WarnEx(PyExc_UserWarning,
                     "To copy construct from a tensor, it is recommended to use "
                     "sourceTensor.detach().clone() "
                     "or sourceTensor.detach().clone().requires_grad_(True), rather than "
                     "torch.tensor(sourceTensor).",
                     1) < 0)
      throw PythonError();
    Tensor t = tensor_from_data(data, options.dtype);
    if (options.requires_grad) require_grad(IValue(t));
    return wrap(std::move(t));
  });
}

PyObject* core_as_tensor(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"data", "dtype", "device", nullptr};
    PyObject *data, *dtype = nullptr, *device = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OO:as_tensor", const_cast<char**>(names),
                                     &data, &dtype, &device))
      throw PythonError();
    const FactoryOptions options = read_options("as_tensor", dtype, device, nullptr);
    if (is_tensor(data)) {
      const Tensor t = tensor_of(data);
      return wrap(options.dtype ? t.to(*options.dtype) : t);
    }
    if (is_array(data)) {
      const Tensor t = from_buffer_object(data);
      return wrap(options.dtype ? t.to(*options.dtype) : t);
    }
    return wrap(tensor_from_data(data, options.dtype));
  });
}

PyObject* core_from_numpy(PyObject*, PyObject* array) {
  return guarded([&]() -> PyObject* {
    PRONG_CHECK(is_array(array), kType, "expected np.ndarray (got ", type_name(array), ")");
    return wrap(from_buffer_object(array));
  });
}

PyObject* core_from_dlpack_capsule(PyObject*, PyObject* capsule) {
  return guarded([&]() -> PyObject* { return wrap(from_dlpack(capsule)); });
}

PyObject* core_from_buffer(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *bytes, *dtype;
    long long offset, count;
    if (!PyArg_ParseTuple(args, "OOLL:_from_buffer", &bytes, &dtype, &offset, &count))
      throw PythonError();
    DType d;
    PRONG_CHECK(dtype_from(dtype, &d), kType,
                "frombuffer(): argument 'dtype' must be torch.dtype, not ", type_name(dtype));
    return wrap(from_bytes(bytes, d, offset, count));
  });
}

PyMethodDef functions[] = {
    {"tensor", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(core_tensor)),
     METH_VARARGS | METH_KEYWORDS,
     "tensor(data, *, dtype=None, device=None, requires_grad=False): a copy."},
    {"as_tensor", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(core_as_tensor)),
     METH_VARARGS | METH_KEYWORDS,
     "as_tensor(data, dtype=None, device=None): shares memory where it can."},
    {"from_numpy", core_from_numpy, METH_O, "from_numpy(array): shares the array's memory."},
    {"_from_buffer", core_from_buffer, METH_VARARGS, nullptr},
    {"_from_dlpack_capsule", core_from_dlpack_capsule, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

Tensor tensor_from_data(PyObject* data, std::optional<DType> dtype) {
  if (is_tensor(data)) {
    const Tensor t = tensor_of(data);
    return dtype && *dtype != t.dtype() ? t.to(*dtype) : t.clone();
  }
  if (is_array(data)) {
    const Tensor t = from_buffer_object(data);
    return dtype && *dtype != t.dtype() ? t.to(*dtype) : t.clone();
  }
  Survey survey;
  survey.look(data);
  const DType chosen = dtype.value_or(survey.dtype());
  Tensor t = Tensor::empty(survey.shape, chosen);
  visit_any(chosen, [&](auto tag) {
    using T = typename decltype(tag)::type;
    Filler<T>(static_cast<T*>(t.raw()), survey.shape, chosen).fill(data, 0);
  });
  return t;
}

PyObject* to_list(const Tensor& t) {
  eager::check_not_batched(t.impl(), "tolist");
  return list_of(static_cast<const char*>(t.raw()), t, 0);
}

PyObject* to_number(const Tensor& t) {
  if (eager::may_be_batched() && eager::batched_of(t.impl())) eager::throw_item();
  PRONG_CHECK(t.numel() == 1, kRuntime, "a Tensor with ", t.numel(),
              " elements cannot be converted to Scalar");
  return checked(number_at(static_cast<const char*>(t.raw()), t.dtype()));
}

// Tensor(...): the old constructor. Sizes, or data, as float32.
PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    if (kwargs && PyDict_Size(kwargs)) {
      PyObject* device = PyDict_GetItemString(kwargs, "device");
      if (!device || PyDict_Size(kwargs) != 1)
        throw_error(ErrorKind::kType,
                    "Tensor() takes sizes or one sequence or tensor; use torch.tensor(data, "
                    "dtype=...) for options");
      check_cpu_device(device);
    }
    const Py_ssize_t n = PyTuple_GET_SIZE(args);
    PyObject* first = n ? PyTuple_GET_ITEM(args, 0) : nullptr;
    const DType dtype = default_dtype();
    Tensor t;
    if (n == 1 && is_tensor(first)) {
      t = tensor_of(first).as_strided(tensor_of(first).sizes(), tensor_of(first).strides(),
                                      tensor_of(first).offset());
    } else if (n == 1 && Py_TYPE(first) != &PyLong_Type && is_sequence(first) &&
               std::strcmp(Py_TYPE(first)->tp_name, "prong.Size") != 0) {
      t = tensor_from_data(first, dtype);
    } else {
      PyObject* sizes = n == 1 && PyTuple_Check(first) ? first : args;
      IValue dims;
      if (!try_to_ivalue(sizes, *Type::list(Type::int_()), &dims))
        throw_error(ErrorKind::kType, cat("new(): data must be a sequence (got ",
                                          first ? type_name(first) : "nothing", ")"));
      Dims d = dims.to_dims();
      if (n == 0) d = {0};
      t = Tensor::empty(d, dtype);
    }
    return type == tensor_type ? wrap(std::move(t)) : wrap_as(std::move(t), type);
  });
}

void init_tensor_data(PyObject* module) { checked(PyModule_AddFunctions(module, functions)); }

}  // namespace prong::python
