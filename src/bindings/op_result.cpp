// What is done with an op's result on the way to Python; see op_result.h.
#include "bindings/op_result.h"

#include <structseq.h>

#include "bindings/convert.h"
#include "bindings/tensor_type.h"
#include "capture/session.h"
#include "capture/tracker.h"
#include "eager/batched.h"
#include "eager/dispatch.h"
#include "eager/modes.h"
#include "eager/node.h"

namespace prong::python {

namespace {

void store_tensor(const char* name, const Tensor& result, PyObject* out) {
  if (!is_tensor(out))
    throw_error(ErrorKind::kType,
                cat(name, "(): argument 'out' must be Tensor, not ", type_name(out)));
  const Tensor target = tensor_of(out);
  if (eager::is_grad_enabled() &&
      (eager::requires_grad(result.impl()) || eager::requires_grad(target.impl())))
    throw_error(ErrorKind::kRuntime,
                cat(name,
                    "(): functions with out=... arguments don't support automatic "
                    "differentiation, but one of the arguments requires grad."));
  if (!can_cast(result.dtype(), target.dtype()))
    throw_error(ErrorKind::kRuntime, cat("result type ", scalar_type_name(result.dtype()),
                                         " can't be cast to the desired output type ",
                                         scalar_type_name(target.dtype())));
  if (!(target.sizes() == result.sizes())) {
    if (target.numel() != 0) warn_resized(name);
    if (capture::Tracker* tracker = capture::current_tracker())
      tracker->give_up("a tensor given as out= is resized");
    resize(target, result.sizes());
  }
  eager::check_not_batched(target.impl(), "out=");
  eager::check_not_batched(result.impl(), "out=");
  capture::note_sizes_matter();  // with others it might be resized
  WithoutGil released;
  if (context()[ContextWord::kKernels] != 0) {  // whoever stands in for kernels must see the write
    static const OpDef& copy = registry().get("copy_");
    const IValue args[] = {IValue(target), IValue(result), IValue(false)};
    eager::run(copy, args);
    return;
  }
  copy_into(target, result);
  target.bump_version();
}

PyObject* result_repr(PyObject* self) {
  const char* name = Py_TYPE(self)->tp_name;
  const char* dot = std::strrchr(name, '.');
  Owned text(PyUnicode_FromFormat("torch.return_types.%s(\n", dot ? dot + 1 : name));
  Owned fields(
      PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(self)), "__match_args__"));
  if (!text || !fields) return nullptr;
  const Py_ssize_t n = PyTuple_GET_SIZE(self);
  for (Py_ssize_t i = 0; i < n; ++i) {
    Owned more(PyUnicode_FromFormat("%U%U=%R%s", text.get(), PyTuple_GET_ITEM(fields.get(), i),
                                    PyTuple_GET_ITEM(self, i), i + 1 < n ? ",\n" : ")"));
    if (!more) return nullptr;
    text = std::move(more);
  }
  return text.release();
}

}  // namespace

void require_grad(const IValue& result) {
  if (!result.is_tensor()) return;
  const Tensor t = result.to_tensor();
  PRONG_CHECK(is_inexact(t.dtype()), kRuntime,
              "only Tensors of floating point dtype can require gradients");
  t.impl()->requires_grad = true;
}

void warn_resized(const char* name) {
  if (PyErr_WarnFormat(PyExc_UserWarning, 1,
                       "%s(): the tensor given as out= had another shape and was resized; "
                       "give an empty one (out.resize_(0)) to have no warning",
                       name) < 0)
    throw PythonError();
}

PyObject* store_out(const char* name, const IValue& result, PyObject* out) {
  if (result.is_tensor()) {
    store_tensor(name, result.to_tensor(), out);
    return Py_NewRef(out);
  }
  if (!result.is_tuple() && !result.is_list())
    throw_error(ErrorKind::kType, cat(name, "() got an unexpected keyword argument 'out'"));
  const auto& items = result.items();
  if ((!PyTuple_Check(out) && !PyList_Check(out)) ||
      static_cast<size_t>(PySequence_Fast_GET_SIZE(out)) != items.size())
    throw_error(ErrorKind::kType, cat(name, "(): argument 'out' must be tuple of ", items.size(),
                                      " Tensors, not ", type_name(out)));
  for (size_t i = 0; i < items.size(); ++i)
    store_tensor(name, items[i].to_tensor(), PySequence_Fast_ITEMS(out)[i]);
  return Py_NewRef(out);
}

PyObject* store_out(const char* name, PyObject* result, PyObject* out) {
  if (is_tensor(result)) return store_out(name, IValue(tensor_of(result)), out);
  std::vector<IValue> items;
  if (PyTuple_Check(result) || PyList_Check(result))
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(result); ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(result, i);
      if (!is_tensor(item)) break;
      items.emplace_back(tensor_of(item));
    }
  return store_out(name, items.empty() ? IValue() : IValue::tuple(std::move(items)), out);
}

PyTypeObject* result_type_of(Signature& signature) {
  if (signature.result_type) return signature.result_type;
  const Schema& schema = signature.op->schema();
  // Names and fields must live as long as the type: for ever.
  auto* name = new std::string(cat("prong.return_types.", signature.op->base_name()));
  auto* fields = new std::vector<PyStructSequence_Field>();
  for (const std::string& field : schema.result_names)
    fields->push_back({(new std::string(field))->c_str(), nullptr});
  fields->push_back({nullptr, nullptr});
  PyStructSequence_Desc description = {name->c_str(), nullptr, fields->data(),
                                       static_cast<int>(schema.result_names.size())};
  PyTypeObject* type = PyStructSequence_NewType(&description);
  if (!type) throw PythonError();
  type->tp_repr = result_repr;
  PyType_Modified(type);
  return signature.result_type = type;
}

PyObject* named_result(PyTypeObject* type, const IValue& result) {
  Owned self(checked(PyStructSequence_New(type)));
  const auto& items = result.items();
  for (size_t i = 0; i < items.size(); ++i)
    PyStructSequence_SET_ITEM(self.get(), static_cast<Py_ssize_t>(i), to_python(items[i]));
  return self.release();
}

void resize(const Tensor& tensor, DimsView sizes) {
  TensorImpl* impl = tensor.impl();
  impl->storage->data();  // recorded work that knows it in this shape comes first
  const int64_t numel = product(sizes);
  const size_t bytes = static_cast<size_t>(impl->offset + numel) * tensor.item_bytes();
  if (bytes > impl->storage->bytes()) {
    PRONG_CHECK(
        impl->storage->is_resizable(), kRuntime,
        "Trying to resize storage that is not resizable (it belongs to NumPy or another library)");
    impl->storage->resize(bytes);
  }
  impl->sizes = Dims(sizes);
  impl->strides = contiguous_strides(sizes);
  impl->numel = numel;
  impl->is_contiguous = true;
}

}  // namespace prong::python
