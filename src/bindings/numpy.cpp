// NumPy arrays and tensors over the same memory, both ways, through Python's buffer protocol: no
// NumPy headers, and NumPy is imported only when an array is asked for.
#include <cstring>
#include <memory>

#include "bindings/constants.h"
#include "bindings/tensor_data.h"
#include "bindings/tensor_type.h"

namespace prong::python {

namespace {

// ── a tensor's memory as a buffer ──

struct BufferObject {
  PyObject_HEAD TensorImpl* impl;  // owned
};
PyTypeObject* buffer_type = nullptr;

const char* format_of(DType dtype) {
  switch (dtype) {
  case DType::kBool:
    return "?";
  case DType::kUInt8:
    return "B";
  case DType::kInt8:
    return "b";
  case DType::kInt16:
    return "h";
  case DType::kInt32:
    return "i";
  case DType::kInt64:
    return "q";
  case DType::kFloat16:
    return "e";
  case DType::kFloat32:
    return "f";
  case DType::kFloat64:
    return "d";
  case DType::kComplex64:
    return "Zf";
  case DType::kComplex128:
    return "Zd";
  case DType::kBFloat16:
    break;
  }
  throw_error(ErrorKind::kType, "Got unsupported ScalarType BFloat16");
}

int get_buffer(PyObject* self, Py_buffer* view, int) {
  return guarded([&]() -> int {
    TensorImpl* impl = reinterpret_cast<BufferObject*>(self)->impl;
    const Tensor t{Ref<TensorImpl>(impl)};
    const auto rank = impl->sizes.size();
    // Sizes, then strides in bytes; released with the view.
    auto numbers = std::make_unique<Py_ssize_t[]>(2 * rank + 1);
    for (size_t d = 0; d < rank; ++d) {
      numbers[d] = static_cast<Py_ssize_t>(impl->sizes[d]);
      numbers[rank + d] =
          static_cast<Py_ssize_t>(impl->strides[d]) * static_cast<Py_ssize_t>(t.item_bytes());
    }
    view->buf = t.raw();
    view->obj = Py_NewRef(self);
    view->len = static_cast<Py_ssize_t>(impl->numel) * static_cast<Py_ssize_t>(t.item_bytes());
    view->itemsize = static_cast<Py_ssize_t>(t.item_bytes());
    view->readonly = 0;
    view->ndim = static_cast<int>(rank);
    view->format = const_cast<char*>(format_of(impl->dtype));
    view->shape = numbers.get();
    view->strides = numbers.get() + rank;
    view->suboffsets = nullptr;
    view->internal = numbers.release();
    return 0;
  });
}
void release_buffer(PyObject*, Py_buffer* view) {
  delete[] static_cast<Py_ssize_t*>(view->internal);
}

void buffer_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  reinterpret_cast<BufferObject*>(self)->impl->release();
  type->tp_free(self);
  Py_DECREF(type);
}

PyType_Slot buffer_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
                              {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
                              {Py_tp_dealloc, reinterpret_cast<void*>(buffer_dealloc)},
                              {0, nullptr}};
PyType_Spec buffer_spec = {"prong._TensorBuffer", sizeof(BufferObject), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, buffer_slots};

// ── a buffer's memory as a tensor ──

void free_view(void* context) {
  WithGil gil;
  if (!gil.is_held()) return;  // the process is going; so does the memory
  auto* view = static_cast<Py_buffer*>(context);
  PyBuffer_Release(view);
  delete view;
}

DType dtype_from_format(const Py_buffer& view) {
  const char* f = view.format ? view.format : "B";
  const bool is_swapped = *f == '>' || *f == '!';
  if (*f == '@' || *f == '=' || *f == '<' || *f == '>' || *f == '!') ++f;
  PRONG_CHECK(
      !is_swapped || view.itemsize == 1, kValue,
      "given numpy array has byte order different from the native byte order. Conversion between "
      "byte orders is currently not supported.");
  const size_t n = static_cast<size_t>(view.itemsize);
  if (std::strcmp(f, "Zf") == 0) return DType::kComplex64;
  if (std::strcmp(f, "Zd") == 0) return DType::kComplex128;
  if (f[0] && !f[1]) {
    switch (*f) {
    case '?':
      return DType::kBool;
    case 'e':
      return DType::kFloat16;
    case 'f':
      return DType::kFloat32;
    case 'd':
      return DType::kFloat64;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
      return n == 1   ? DType::kInt8
             : n == 2 ? DType::kInt16
             : n == 4 ? DType::kInt32
                      : DType::kInt64;
    case 'B':
      return DType::kUInt8;
    default:
      break;
    }
  }
  throw_error(ErrorKind::kType,
              cat("can't convert np.ndarray of format '", f,
                  "'. The only supported types are: "
                  "float64, float32, float16, int64, int32, int16, int8, uint8, and bool."));
}

void warn_read_only(const char* what) {
  if (PyErr_WarnFormat(
          PyExc_UserWarning, 1,
          "The given %s is not writable, and PyTorch does not support non-writable tensors. "
          "This means writing to this tensor will result in undefined behavior. You may want to "
          "copy "
          "the %s to protect its data or make it writable before converting it to a tensor.",
          what, what) < 0)
    throw PythonError();
}

}  // namespace

Tensor from_bytes(PyObject* bytes, DType dtype, int64_t offset, int64_t count) {
  auto view = std::make_unique<Py_buffer>();
  checked(PyObject_GetBuffer(bytes, view.get(), PyBUF_SIMPLE));
  const bool is_read_only = view->readonly;
  const size_t size = static_cast<size_t>(count) * size_of(dtype);
  void* data = static_cast<char*>(view->buf) + offset;
  auto storage = make_ref<Storage>(data, size, &free_view, view.release());
  if (is_read_only) warn_read_only("buffer");
  const int64_t sizes[] = {count}, strides[] = {1};
  return Tensor::view_of(std::move(storage), 0, sizes, strides, dtype);
}

Tensor from_buffer_object(PyObject* array) {
  auto view = std::make_unique<Py_buffer>();
  bool is_read_only = false;
  if (PyObject_GetBuffer(array, view.get(), PyBUF_FULL) < 0) {
    PyErr_Clear();
    is_read_only = true;
    if (PyObject_GetBuffer(array, view.get(), PyBUF_FULL_RO) < 0) throw PythonError();
  }
  is_read_only = is_read_only || view->readonly;
  struct Releaser {  // until the storage has taken the view over
    Py_buffer* held;
    ~Releaser() {
      if (held) PyBuffer_Release(held);
    }
  } releaser{view.get()};
  const DType dtype = dtype_from_format(*view);
  const auto item = static_cast<int64_t>(size_of(dtype));
  Dims sizes, strides;
  int64_t last = 0;
  bool is_empty = false;
  for (int d = 0; d < view->ndim; ++d) {
    const int64_t stride = view->strides[d];
    PRONG_CHECK(stride >= 0, kValue,
                "At least one stride in the given numpy array is negative, and tensors with "
                "negative strides are "
                "not currently supported. (You can probably work around this by making a copy of "
                "your array "
                " with array.copy().) ");
    PRONG_CHECK(stride % item == 0, kValue,
                "given numpy array strides not a multiple of the element byte size. Copy the numpy "
                "array to "
                "reallocate the memory.");
    sizes.push_back(view->shape[d]);
    strides.push_back(stride / item);
    is_empty = is_empty || view->shape[d] == 0;
    last += (view->shape[d] - 1) * stride;
  }
  if (is_read_only) warn_read_only("NumPy array");
  const size_t bytes = is_empty ? 0 : static_cast<size_t>(last + item);
  void* data = view->buf;
  releaser.held = nullptr;
  auto storage = make_ref<Storage>(data, bytes, &free_view, view.release());
  return Tensor::view_of(std::move(storage), 0, sizes, strides, dtype);
}

PyObject* to_numpy(const Tensor& t) {
  format_of(t.dtype());
  if (!buffer_type)
    buffer_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&buffer_spec)));
  static PyObject* asarray = nullptr;
  if (!asarray) {
    Owned numpy(checked(PyImport_ImportModule("numpy")));
    asarray = checked(PyObject_GetAttrString(numpy.get(), "asarray"));
  }
  t.storage()->mark_exposed();
  Owned buffer(checked(PyType_GenericAlloc(buffer_type, 0)));
  t.impl()->retain();
  reinterpret_cast<BufferObject*>(buffer.get())->impl = t.impl();
  return checked(PyObject_CallOneArg(asarray, buffer.get()));
}

}  // namespace prong::python
