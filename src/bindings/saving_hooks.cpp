// Hooks on what the tape saves, written in Python. Called by python/prong/autograd/graph.py and
// utils/checkpoint.py.
#include <nanobind/nanobind.h>

#include "bindings/convert.h"
#include "bindings/module.h"
#include "bindings/tensor_type.h"
#include "eager/engine.h"

namespace nb = nanobind;

namespace prong::python {

namespace {

class PySavingHooks final : public eager::SavingHooks {
 public:
  PySavingHooks(nb::handle pack, nb::handle unpack) : pack_(pack.ptr()), unpack_(unpack.ptr()) {}

  Ref<RefCounted> pack(const Tensor& t) override {
    const WithGil held;
    PRONG_CHECK(held.is_held(), kRuntime, "a hook on a saved tensor was called as Python ended");
    const Owned argument(wrap(t));
    const Owned packed(PyObject_CallOneArg(pack_.get(), argument.get()));
    if (!packed) throw PythonError();
    return make_ref<PyObjectBox>(packed.get());
  }
  Tensor unpack(RefCounted& packed) override {
    const WithGil held;
    PRONG_CHECK(held.is_held(), kRuntime, "a hook on a saved tensor was called as Python ended");
    const Owned result(PyObject_CallOneArg(unpack_.get(), static_cast<PyObjectBox&>(packed).get()));
    if (!result) throw PythonError();
    PRONG_CHECK(
        is_tensor(result.get()), kType,
        "Output of saved tensor unpack_hook expected to be a Tensor but got result of type ",
        type_name(result.get()));
    return tensor_of(result.get());
  }

 private:
  PyObjectBox pack_, unpack_;
};

}  // namespace

void bind_saving_hooks(nb::module_& m) {
  m.def("_push_saving_hooks", [](nb::object pack, nb::object unpack) {
    return eager::push_saving_hooks(make_ref<PySavingHooks>(pack, unpack));
  });
  m.def("_pop_saving_hooks", &eager::pop_saving_hooks);
  m.def("_backward_pass", &eager::backward_pass);
}

}  // namespace prong::python
