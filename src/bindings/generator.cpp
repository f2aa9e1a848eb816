// prong.Generator: the source of random numbers as a Python object.
#include "ops/random.h"

#include <nanobind/nanobind.h>

#include "bindings/constants.h"
#include "bindings/convert.h"
#include "bindings/module.h"
#include "bindings/tensor_type.h"
#include "capture/session.h"

namespace nb = nanobind;

namespace prong::python {

namespace {

struct Handle {
  Ref<Generator> generator;
};

bool from_python(PyObject* object, IValue* out) {
  if (!nb::isinstance<Handle>(nb::handle(object))) return false;
  *out = IValue(Ref<ObjectBase>(nb::cast<Handle&>(nb::handle(object)).generator));
  return true;
}

PyObject* to_python_object(ObjectBase* object) {
  auto* generator = dynamic_cast<Generator*>(object);
  return generator ? nb::cast(Handle{Ref<Generator>(generator)}).release().ptr() : nullptr;
}

// As PyTorch: any int that fits 64 bits, negative ones counted from 2^64.
uint64_t seed_from(nb::handle seed) {
  Owned whole(PyNumber_Index(seed.ptr()));
  if (!whole) throw PythonError();
  int overflow = 0;
  const long long small = PyLong_AsLongLongAndOverflow(whole.get(), &overflow);
  if (overflow == 0) return static_cast<uint64_t>(small);
  const unsigned long long large = overflow > 0 ? PyLong_AsUnsignedLongLong(whole.get()) : 0;
  if (overflow < 0 || PyErr_Occurred()) {
    PyErr_Clear();
    throw_error(ErrorKind::kRuntime,
                "Overflow when unpacking long: the seed must be in [-0x8000_0000_0000_0000, "
                "0xffff_ffff_ffff_ffff]");
  }
  return large;
}

struct RandomState {
  Tensor state;
};

// What was put off draws first.
Generator& drawn(Handle& h) {
  if (capture::is_recording())
    capture::thread_recorder().settle("the random generator is used by other than an op");
  return *h.generator;
}

}  // namespace

void bind_generator(nb::module_& m) {
  nb::class_<Handle>(m, "Generator")
      .def(
          "__init__",
          [](Handle* self, nb::handle device) {
            if (!device.is_none() && !check_cpu_device(device.ptr()))
              throw_error(ErrorKind::kType, "Generator(): argument 'device' must be torch.device");
            new (self) Handle{make_ref<Generator>()};
          },
          nb::arg("device") = nb::none())
      .def(
          "manual_seed",
          [](nb::handle self, nb::handle seed) {
            drawn(nb::cast<Handle&>(self)).manual_seed(seed_from(seed));
            return nb::borrow(self);
          },
          nb::arg("seed"))
      .def("seed", [](Handle& self) { return drawn(self).seed(); })
      .def("initial_seed", [](Handle& self) { return self.generator->initial_seed(); })
      .def("get_state", [](Handle& self) { return drawn(self).state(); })
      .def(
          "set_state",
          [](nb::handle self, const Tensor& state) {
            drawn(nb::cast<Handle&>(self)).set_state(state);
            return nb::borrow(self);
          },
          nb::arg("new_state"))
      .def("clone_state", [](Handle& self) { return Handle{drawn(self).clone()}; })
      .def("__getstate__", [](Handle& self) { return drawn(self).state(); })
      .def("__setstate__",
           [](Handle& self, const Tensor& state) {
             new (&self) Handle{make_ref<Generator>()};
             self.generator->set_state(state);
           })
      .def_prop_ro("device", [](Handle&) { return nb::borrow(cpu_device()); });
  // The state of the default generator; what was put off draws first, if it does.
  nb::class_<RandomState>(m, "_RandomState");
  const auto default_now = []() -> Generator& {
    Handle h{Generator::default_generator()};
    const capture::Trace* put_off =
        capture::is_recording() ? capture::thread_recorder().open_trace() : nullptr;
    return put_off && !put_off->draws ? *h.generator : drawn(h);
  };
  m.def("_keep_random_state", [default_now] { return RandomState{default_now().state()}; });
  m.def("_put_random_state",
        [default_now](const RandomState& s) { default_now().set_state(s.state); });
  m.attr("default_generator") = Handle{Generator::default_generator()};
  converters().generator_from_python = &from_python;
  converters().generator_to_python = &to_python_object;
}

}  // namespace prong::python
