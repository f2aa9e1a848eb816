// jit.trace in Python: a recorder as a context manager, and forks of a traced call.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/script.h"
#include "bindings/trace.h"
#include "script/trace.h"

namespace nb = nanobind;

namespace prong::python {

namespace {

struct PyTracer {
  std::unique_ptr<script::TraceRecorder> recorder;
  uint64_t outer = 0;  // who watched before
};

}  // namespace

bool is_tracing() { return script::TraceRecorder::current() != nullptr; }

IValue traced_call(Function& f, std::vector<IValue> args) {
  return script::TraceRecorder::current()->call(f, std::move(args));
}

nb::object traced_fork(const Ref<Future>& future, nb::handle function, nb::handle args,
                       nb::handle kwargs) {
  script::TraceRecorder& recorder = *script::TraceRecorder::current();
  recorder.begin_fork();
  nb::object result = nb::steal(PyObject_Call(function.ptr(), args.ptr(), kwargs.ptr()));
  if (!result.is_valid()) {
    PythonError error;
    recorder.abandon_fork();
    throw error;
  }
  recorder.end_fork(infer_ivalue(result.ptr()), future);
  return result;
}

void traced_wait(const Ref<Future>& future, nb::handle value) {
  if (auto* recorder = script::TraceRecorder::current())
    recorder->wait(future, infer_ivalue(value.ptr()));
}

void note_traced_read(const char* what) {
  if (auto* recorder = script::TraceRecorder::current()) recorder->note_read(what);
}

void bind_script_trace(nb::module_& m) {
  nb::class_<PyTracer>(m, "Tracer")
      .def(
          "__init__",
          [](PyTracer* self, std::string name, std::optional<PyScriptObject> module) {
            new (self) PyTracer{std::make_unique<script::TraceRecorder>(
                std::move(name), module ? module->object : Ref<Object>())};
          },
          nb::arg("name"), nb::arg("module").none() = nb::none())
      .def(
          "input",
          [](PyTracer& t, const std::string& name, nb::handle example) {
            return nb::steal(to_python(t.recorder->input(name, infer_ivalue(example.ptr()))));
          },
          nb::arg("name"), nb::arg("example").none(),
          "Declares the next argument; gives what to call with.")
      .def("__enter__",
           [](PyTracer& t) {
             uint64_t& word = context()[ContextWord::kInterceptor];
             t.outer = word;
             word = reinterpret_cast<uint64_t>(static_cast<eager::Interceptor*>(t.recorder.get()));
           })
      .def("__exit__",
           [](PyTracer& t, nb::args) { context()[ContextWord::kInterceptor] = t.outer; })
      .def(
          "finish",
          [](PyTracer& t, nb::handle result) {
            return PyFunction{t.recorder->finish(infer_ivalue(result.ptr()))};
          },
          nb::arg("result").none())
      .def_prop_ro("values_read", [](const PyTracer& t) { return t.recorder->values_read(); });
  m.def("is_tracing", &is_tracing);
}

}  // namespace prong::python
