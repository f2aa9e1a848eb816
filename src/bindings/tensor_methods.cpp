// Methods of tensors that are not ops: what they answer is about the object, its memory or its
// Python type.
#include "bindings/constants.h"
#include "bindings/convert.h"
#include "bindings/op_function.h"
#include "bindings/op_result.h"
#include "bindings/tensor_data.h"
#include "bindings/tensor_type.h"
#include "bindings/trace.h"
#include "capture/session.h"
#include "eager/batched.h"
#include "eager/dispatch.h"
#include "eager/record.h"
#include "tensor/format.h"

namespace prong::python {

namespace {

PyCFunction with_keywords(PyObject* (*f)(PyObject*, PyObject*, PyObject*)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}
PyCFunction fast(PyObject* (*f)(PyObject*, PyObject* const*, Py_ssize_t)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

// ── sizes ──

// x.size(), x.size(1), x.size(dim=1); the same for stride.
PyObject* size_or_stride(PyObject* args, PyObject* kwargs, const Dims& all, bool is_size) {
  static const char* names[] = {"dim", nullptr};
  PyObject* dim = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, is_size ? "|O:size" : "|O:stride",
                                   const_cast<char**>(names), &dim))
    throw PythonError();
  if (!dim || dim == Py_None) {
    if (is_size) return new_size(all);
    Owned tuple(checked(PyTuple_New(static_cast<Py_ssize_t>(all.size()))));
    for (size_t i = 0; i < all.size(); ++i)
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                       checked(PyLong_FromLongLong(all[i])));
    return tuple.release();
  }
  IValue d;
  if (!try_to_ivalue(dim, *Type::int_(), &d))
    throw_error(ErrorKind::kType,
                cat(is_size ? "size" : "stride",
                    "(): argument 'dim' (position 1) must be int, not ", type_name(dim)));
  PRONG_CHECK(!all.empty(), kIndex, "Dimension specified as ", d.to_int(),
              " but tensor has no dimensions");
  const int64_t at = wrap_dim(d.to_int(), static_cast<int64_t>(all.size()));
  return PyLong_FromLongLong(all[static_cast<size_t>(at)]);
}
PyObject* method_size(PyObject* self, PyObject* args, PyObject* kwargs) {
  note_read("size");
  return guarded([&] { return size_or_stride(args, kwargs, impl_of(self)->sizes, true); });
}
PyObject* method_stride(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    impl_of(self)->storage->data();  // work that was put off decides how its result lies
    return size_or_stride(args, kwargs, impl_of(self)->strides, false);
  });
}
PyObject* method_dim(PyObject* self, PyObject*) {
  return PyLong_FromSize_t(impl_of(self)->sizes.size());
}
PyObject* method_numel(PyObject* self, PyObject*) {
  note_read("numel");
  return PyLong_FromLongLong(impl_of(self)->numel);
}
PyObject* method_element_size(PyObject* self, PyObject*) {
  return PyLong_FromSize_t(size_of(impl_of(self)->dtype));
}
PyObject* method_storage_offset(PyObject* self, PyObject*) {
  return PyLong_FromLongLong(impl_of(self)->offset);
}
void* address_of(PyObject* self) {
  const Tensor t = tensor_of(self);
  if (capture::is_recording() && t.storage()->deferred())
    capture::thread_recorder().settle(
        "the memory of a tensor is read or written by other than an op");
  return t.raw();
}
PyObject* method_data_ptr(PyObject* self, PyObject*) {
  return guarded([&] {
    impl_of(self)->storage->mark_exposed();  // whoever has the address may write there
    return PyLong_FromVoidPtr(address_of(self));
  });
}
PyObject* method_storage_ptr(PyObject* self, PyObject*) {
  return guarded([&] {
    address_of(self);
    return PyLong_FromVoidPtr(impl_of(self)->storage->data());
  });
}
PyObject* method_storage_bytes(PyObject* self, PyObject*) {
  return PyLong_FromSize_t(impl_of(self)->storage->bytes());
}
PyObject* method_use_count(PyObject* self, PyObject*) {
  return PyLong_FromUnsignedLong(impl_of(self)->storage->use_count());
}
PyObject* method_is_contiguous(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"memory_format", nullptr};
    PyObject* format = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:is_contiguous", const_cast<char**>(names),
                                     &format))
      throw PythonError();
    if (format && !is_memory_format(format))
      throw_error(ErrorKind::kType,
                  cat("is_contiguous(): argument 'memory_format' must be torch.memory_format, not ",
                      type_name(format)));
    impl_of(self)->storage->data();  // as in stride()
    return PyBool_FromLong(impl_of(self)->is_contiguous);
  });
}

// ── data ──

PyObject* method_item(PyObject* self, PyObject*) {
  note_read("item");
  return guarded([&] { return to_number(tensor_of(self)); });
}
PyObject* method_tolist(PyObject* self, PyObject*) {
  note_read("tolist");
  return guarded([&] { return to_list(tensor_of(self)); });
}
PyObject* method_numpy(PyObject* self, PyObject* args, PyObject* kwargs) {
  note_read("numpy");
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"force", nullptr};
    int force = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$p:numpy", const_cast<char**>(names), &force))
      throw PythonError();
    const Tensor t = tensor_of(self);
    PRONG_CHECK(
        force || !t.requires_grad() || !eager::is_grad_enabled(), kRuntime,
        "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.");
    eager::check_not_batched(t.impl(), "numpy");
    return to_numpy(t);
  });
}
PyObject* method_dlpack_capsule(PyObject* self, PyObject* versioned) {
  return guarded([&] {
    eager::check_not_batched(impl_of(self), "dlpack");
    return to_dlpack(tensor_of(self), PyObject_IsTrue(versioned) == 1);
  });
}

PyObject* method_complex(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    if (eager::may_be_batched() && eager::batched_of(impl_of(self))) eager::throw_item();
    const Complex128 z = tensor_of(self).item_complex();
    return PyComplex_FromDoubles(z.real(), z.imag());
  });
}

// ── conversions ──

// The op of x.to(dtype), whatever else it takes; null before it is written.
const OpDef* conversion_op() {
  static const OpDef* found = [] {
    for (const OpDef* op : registry().overloads("to")) {
      const auto& arguments = op->schema().arguments;
      if (arguments.size() < 2) continue;
      const Type& second = *arguments[1].type;
      if (second.is(TypeKind::kDType) ||
          (second.is(TypeKind::kOptional) && second.element()->is(TypeKind::kDType)))
        return op;
    }
    return static_cast<const OpDef*>(nullptr);
  }();
  return found;
}

PyObject* converted(PyObject* self, DType dtype, bool copy) {
  const Tensor t = tensor_of(self);
  if (t.dtype() == dtype) return copy ? wrap(run_named("clone", t).to_tensor()) : Py_NewRef(self);
  const OpDef* op = conversion_op();
  PRONG_CHECK(op, kAttribute, "prong has no op 'to' yet");
  return wrap(run_named(op->name().c_str(), t, dtype).to_tensor());
}

// to(dtype), to(device), to(device, dtype), to(other), each with non_blocking, copy, memory_format.
PyObject* method_to(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    DType dtype = impl_of(self)->dtype;
    bool copy = false;
    int flags = 0;  // positional: non_blocking, then copy
    const auto take = [&](PyObject* value) {
      if (value == Py_None || dtype_from(value, &dtype)) return true;
      if (is_tensor(value)) {
        dtype = impl_of(value)->dtype;
        return true;
      }
      if (PyBool_Check(value)) {
        if (++flags == 2) copy = value == Py_True;
        return flags <= 2;
      }
      return is_memory_format(value) || check_cpu_device(value);
    };
    const Py_ssize_t n = PyTuple_GET_SIZE(args);
    for (Py_ssize_t i = 0; i < n; ++i)
      if (!take(PyTuple_GET_ITEM(args, i)))
        throw_error(ErrorKind::kType,
                    cat("to() received an invalid combination of arguments - got ",
                        type_name(PyTuple_GET_ITEM(args, i)), " at position ", i + 1,
                        ", but expected a dtype, a device or a Tensor, then bools"));
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (kwargs && PyDict_Next(kwargs, &position, &key, &value)) {
      const std::string name = PyUnicode_AsUTF8(key);
      if (name == "copy")
        copy = PyObject_IsTrue(value) == 1;
      else if (name == "dtype" || name == "device" || name == "other" || name == "memory_format") {
        if (!take(value) || PyBool_Check(value))
          throw_error(ErrorKind::kType,
                      cat("to(): argument '", name, "' cannot be ", type_name(value)));
      } else if (name != "non_blocking") {
        throw_error(ErrorKind::kType, cat("to() got an unexpected keyword argument '", name, "'"));
      }
    }
    if (n == 0 && (!kwargs || PyDict_Size(kwargs) == 0))
      throw_error(ErrorKind::kType, "to() takes a dtype, a device or a Tensor");
    return converted(self, dtype, copy);
  });
}
template <DType kDType>
PyObject* method_as(PyObject* self, PyObject*, PyObject*) {
  return guarded([&] { return converted(self, kDType, false); });
}
PyObject* method_type_as(PyObject* self, PyObject* other) {
  return guarded([&] {
    PRONG_CHECK(is_tensor(other), kType,
                "type_as(): argument 'other' (position 1) must be Tensor, not ", type_name(other));
    return converted(self, impl_of(other)->dtype, false);
  });
}
PyObject* method_cpu(PyObject* self, PyObject*, PyObject*) { return Py_NewRef(self); }

// ── Python side ──

PyObject* method_requires_grad_(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  PyObject* value = n ? args[0] : Py_True;
  if (PyObject_SetAttrString(self, "requires_grad", value) < 0) return nullptr;
  return Py_NewRef(self);
}
PyObject* method_repr_text(PyObject* self, PyObject* prefix) {
  return guarded([&]() -> PyObject* {
    const Tensor t = tensor_of(self);
    std::vector<std::string> suffixes;
    if (const std::string made_by = eager::grad_fn_name(t); !made_by.empty())
      suffixes.push_back(cat("grad_fn=<", made_by, ">"));
    else if (t.requires_grad())
      suffixes.push_back("requires_grad=True");
    const char* opening = PyUnicode_AsUTF8(prefix);
    if (!opening) throw PythonError();
    const std::string text = format_tensor(t, opening, suffixes, print_options());
    return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
  });
}
Tensor alias_of(PyObject* object) {
  const Tensor t = tensor_of(object);
  return t.as_strided(t.sizes(), t.strides(), t.offset());
}
PyTypeObject* tensor_subclass(PyObject* cls) {
  PRONG_CHECK(PyType_Check(cls) &&
                  PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), tensor_type),
              kType, "cls must be a subclass of Tensor");
  return reinterpret_cast<PyTypeObject*>(cls);
}
// Tensor._make_subclass(cls, data, requires_grad=False): the memory of data as an object of cls.
PyObject* make_subclass(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&] {
    PRONG_CHECK(n >= 2 && is_tensor(args[1]), kType,
                "_make_subclass(cls, data, requires_grad=False): data must be "
                "a Tensor");
    Tensor t = alias_of(args[1]);
    if (n > 2 && PyObject_IsTrue(args[2]) == 1) require_grad(IValue(t));
    return wrap_as(std::move(t), tensor_subclass(args[0]));
  });
}
PyObject* method_as_subclass(PyObject* self, PyObject* cls) {
  return guarded([&] {
    Tensor t = alias_of(self);
    t.impl()->requires_grad = impl_of(self)->requires_grad;
    t.impl()->grad_fn = Ref<RefCounted>(eager::grad_fn(tensor_of(self)));
    t.impl()->output_nr = impl_of(self)->output_nr;
    return wrap_as(std::move(t), tensor_subclass(cls));
  });
}
// Tensor._on_storage(owner, offset, sizes, strides, dtype): another view of the owner's memory.
PyObject* on_storage(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&] {
    PRONG_CHECK(n == 5 && is_tensor(args[0]) && is_dtype(args[4]), kType,
                "_on_storage(owner, offset, sizes, strides, dtype)");
    const IValue offset = to_ivalue(args[1], Type::int_());
    const IValue sizes = to_ivalue(args[2], Type::list(Type::int_()));
    const IValue strides = to_ivalue(args[3], Type::list(Type::int_()));
    return wrap(Tensor::view_of(impl_of(args[0])->storage, offset.to_int(), sizes.to_dims(),
                                strides.to_dims(), dtype_of(args[4])));
  });
}
PyObject* method_resize_(PyObject* self, PyObject* args) {
  return guarded([&] {
    PyObject* sizes = PyTuple_GET_SIZE(args) == 1 && PySequence_Check(PyTuple_GET_ITEM(args, 0))
                          ? PyTuple_GET_ITEM(args, 0)
                          : args;
    resize(tensor_of(self), to_ivalue(sizes, Type::list(Type::int_())).to_dims());
    return Py_NewRef(self);
  });
}
PyObject* method_is_set_to(PyObject* self, PyObject* other) {
  return guarded([&] {
    PRONG_CHECK(is_tensor(other), kType, "is_set_to(): argument 'tensor' must be Tensor, not ",
                type_name(other));
    const TensorImpl *a = impl_of(self), *b = impl_of(other);
    return PyBool_FromLong(a->storage == b->storage && a->offset == b->offset &&
                           a->sizes == b->sizes && a->strides == b->strides);
  });
}

// x._become(view): sizes, strides, memory and history of another tensor, for the in-place forms of
// views.
PyObject* method_become(PyObject* self, PyObject* other) {
  return guarded([&]() -> PyObject* {
    PRONG_CHECK(is_tensor(other), kType, "_become(): argument must be Tensor, not ",
                type_name(other));
    TensorImpl *to = impl_of(self), *from = impl_of(other);
    PRONG_CHECK(to->dtype == from->dtype, kRuntime, "_become(): dtype ", from->dtype, " is not ",
                to->dtype);
    const bool is_leaf = to->requires_grad && !to->grad_fn;
    PRONG_CHECK(!is_leaf || !eager::is_grad_enabled() || to->storage != from->storage, kRuntime,
                eager::kWritesViewOfLeaf);
    // Recorded work that knows it in this shape comes first.
    if (capture::is_recording() && (to->storage->deferred() || from->storage->deferred()))
      capture::thread_recorder().settle(
          "the op changes the shape or the history of a tensor in place");
    to->storage->data();
    from->storage->data();
    to->storage = from->storage;
    to->offset = from->offset;
    to->sizes = from->sizes;
    to->strides = from->strides;
    to->numel = from->numel;
    to->is_contiguous = from->is_contiguous;
    if (!is_leaf) {
      to->requires_grad = from->requires_grad;
      to->grad_fn = from->grad_fn;
      to->output_nr = from->output_nr;
      to->autograd = from->autograd;
    }
    return Py_NewRef(self);
  });
}

PyMethodDef methods[] = {
    {"size", with_keywords(method_size), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"stride", with_keywords(method_stride), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"dim", method_dim, METH_NOARGS, nullptr},
    {"ndimension", method_dim, METH_NOARGS, nullptr},
    {"numel", method_numel, METH_NOARGS, nullptr},
    {"nelement", method_numel, METH_NOARGS, nullptr},
    {"element_size", method_element_size, METH_NOARGS, nullptr},
    {"storage_offset", method_storage_offset, METH_NOARGS, nullptr},
    {"data_ptr", method_data_ptr, METH_NOARGS, nullptr},
    {"_storage_ptr", method_storage_ptr, METH_NOARGS, nullptr},
    {"_storage_bytes", method_storage_bytes, METH_NOARGS, nullptr},
    {"_storage_use_count", method_use_count, METH_NOARGS, nullptr},
    {"is_contiguous", with_keywords(method_is_contiguous), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"is_set_to", method_is_set_to, METH_O, nullptr},
    {"item", method_item, METH_NOARGS, "The number that a tensor of one element holds."},
    {"tolist", method_tolist, METH_NOARGS, "Numbers in nested lists."},
    {"numpy", with_keywords(method_numpy), METH_VARARGS | METH_KEYWORDS,
     "An array over the same memory."},
    {"__complex__", method_complex, METH_NOARGS, nullptr},
    {"_dlpack_capsule", method_dlpack_capsule, METH_O, nullptr},
    {"to", with_keywords(method_to), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"bool", with_keywords(method_as<DType::kBool>), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"byte", with_keywords(method_as<DType::kUInt8>), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"char", with_keywords(method_as<DType::kInt8>), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"short", with_keywords(method_as<DType::kInt16>), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"int", with_keywords(method_as<DType::kInt32>), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"long", with_keywords(method_as<DType::kInt64>), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"half", with_keywords(method_as<DType::kFloat16>), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"bfloat16", with_keywords(method_as<DType::kBFloat16>), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"float", with_keywords(method_as<DType::kFloat32>), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"double", with_keywords(method_as<DType::kFloat64>), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"cfloat", with_keywords(method_as<DType::kComplex64>), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"cdouble", with_keywords(method_as<DType::kComplex128>), METH_VARARGS | METH_KEYWORDS,
     nullptr},
    {"type_as", method_type_as, METH_O, nullptr},
    {"cpu", with_keywords(method_cpu), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"requires_grad_", fast(method_requires_grad_), METH_FASTCALL, nullptr},
    {"_repr_text", method_repr_text, METH_O, nullptr},
    {"_make_subclass", fast(make_subclass), METH_FASTCALL | METH_STATIC, nullptr},
    {"_on_storage", fast(on_storage), METH_FASTCALL | METH_STATIC, nullptr},
    {"as_subclass", method_as_subclass, METH_O, nullptr},
    {"resize_", method_resize_, METH_VARARGS, nullptr},
    {"_become", method_become, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyMethodDef* tensor_methods() { return methods; }

}  // namespace prong::python
