// Hooks on what the tape saves, written in Python. Called by python/prong/autograd/graph.py and
// utils/checkpoint.py.
#include <nanobind/nanobind.h>

#include "bindings/convert.h"
#include "bindings/module.h"
#include "bindings/tensor_type.h"
#include "capture/tape_calls.h"
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
    PyObject* const given = argument.get();
    const Owned packed(capture::call_by_tape(pack_.get(), &given, 1));
    if (!packed) throw PythonError();
    return make_ref<PyObjectBox>(packed.get());
  }
  Tensor unpack(RefCounted& packed) override {
    const WithGil held;
    PRONG_CHECK(held.is_held(), kRuntime, "a hook on a saved tensor was called as Python ended");
    PyObject* const given = static_cast<PyObjectBox&>(packed).get();
    const Owned result(capture::call_by_tape(unpack_.get(), &given, 1));
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

struct Pushed {
  uint64_t number;
};
struct Pass {
  uint64_t number;
};

}  // namespace

void bind_saving_hooks(nb::module_& m) {
  nb::class_<Pushed>(m, "_PushedHooks");
  nb::class_<Pass>(m, "_BackwardPass");
  m.def("_push_saving_hooks", [](nb::object pack, nb::object unpack) {
    return Pushed{eager::push_saving_hooks(make_ref<PySavingHooks>(pack, unpack))};
  });
  m.def("_pop_saving_hooks", [](const Pushed& p) { eager::pop_saving_hooks(p.number); });
  // The backward pass that runs on this thread, to be asked for again.
  m.def("_pass_now", [] { return Pass{eager::backward_pass()}; });
  m.def(
      "_is_pass_now",
      [](nb::handle pass) {
        return !pass.is_none() && nb::cast<Pass&>(pass).number == eager::backward_pass();
      },
      nb::arg("pass").none());
  m.def("_weakly", [](nb::handle object) {
    return nb::steal(checked(PyWeakref_NewRef(object.ptr(), nullptr)));
  });
}

}  // namespace prong::python
