// Compiled functions: the Python type CompiledFunction, its reports, and pausing. See capture.h.
#include "bindings/capture.h"

#include <nanobind/stl/string.h>
#include <structmember.h>

#include "base/log.h"
#include "bindings/capture_graph.h"
#include "bindings/convert.h"
#include "bindings/errors.h"
#include "capture/frame_311.h"
#include "capture/session.h"

namespace nb = nanobind;

namespace prong::python {

namespace {

using namespace capture;

PyTypeObject* compiled_type = nullptr;
PyObject* unsupported_error = nullptr;  // prong._dynamo.exc.Unsupported
std::string* own_folder = nullptr;      // frames of files in it are not the user's

struct Target final : CallTarget {
  std::string name;
  // What explain() and the counters ask for; under the GIL.
  int64_t graphs = 0, breaks = 0, ops = 0, compiled = 0;
};

struct CompiledFunction {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* function;
  PyObject* dict;
  PyObject* weakrefs;
  PyObject* listener;  // called with ("break", reason, place) and ("graph", description, is_new); or null
  Target* target;      // owned
};

CompiledFunction* as_compiled(PyObject* o) { return reinterpret_cast<CompiledFunction*>(o); }

Place user_place() {
  Place p;
  int line = 0;
  if (!PyGILState_Check()) return p;
  if (PyCodeObject* code = prong_user_frame(own_folder ? own_folder->c_str() : "", &line)) {
    p.file = PyUnicode_AsUTF8(code->co_filename);
    p.function = PyUnicode_AsUTF8(code->co_qualname);
    p.line = line;
  }
  return p;
}

class Observer final : public SegmentObserver {
 public:
  Observer(Target& target, PyObject* listener) : target_(target), listener_(listener) {}

  void on_break(const std::string& reason, bool has_work) override {
    if (!has_work && !had_work_) return;  // nothing was interrupted
    const Place place = user_place();
    if (target_.is_whole && has_work) refuse(reason, place);
    pending_ = {reason, place};
    is_pending_ = true;
  }

  void on_run(const std::shared_ptr<const Trace>& trace, bool is_new) override {
    had_work_ = true;
    target_.graphs += 1;
    target_.ops += static_cast<int64_t>(trace->nodes.size());
    target_.compiled += is_new;
    if (is_new) {
      PRONG_LOG(kCapture, target_.name, ": compiled a graph of ", trace->nodes.size(), " ops with ", trace->inputs.size(),
                " inputs and ", trace->outputs.size(), " outputs");
    }
    if (!listener_) return;
    WithGil gil;
    Owned description(describe_trace(*trace, NumberInputs(trace->numbers.size(), false)));
    Owned done(checked(PyObject_CallFunction(listener_, "sOi", "graph", description.get(), int{is_new})));
  }

  Place place() override {
    if (is_pending_) confirm();
    return user_place();
  }

 private:
  struct Break {
    std::string reason;
    Place place;
  };

  // Tensor work follows: it was a break, and not the end.
  void confirm() {
    is_pending_ = false;
    if (!had_work_) return;
    if (target_.is_whole) refuse(pending_.reason, pending_.place);
    target_.breaks += 1;
    PRONG_LOG(kCapture, target_.name, ": break ", target_.breaks, " at ", pending_.place.file, ":", pending_.place.line, ": ",
              pending_.reason);
    if (!listener_) return;
    WithGil gil;
    Owned done(checked(PyObject_CallFunction(listener_, "ss(si)", "break", pending_.reason.c_str(), pending_.place.file.c_str(),
                                             pending_.place.line)));
  }

  [[noreturn]] void refuse(const std::string& reason, const Place& place) {
    WithGil gil;
    const std::string text = cat("fullgraph=True, but the graph breaks at ", place.file, ":", place.line, ": ", reason);
    PyErr_SetString(unsupported_error ? unsupported_error : PyExc_RuntimeError, text.c_str());
    throw PythonError();
  }

  Target& target_;
  PyObject* listener_;
  Break pending_;
  bool is_pending_ = false, had_work_ = false;
};

PyObject* call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  CompiledFunction* f = as_compiled(self);
  return guarded([&]() -> PyObject* {
    const Ref<Target> target(f->target);  // the function may be dropped by what it calls
    Owned function = Owned::borrow(f->function), listener = Owned::borrow(f->listener);
    Observer observer(*target, listener.get());
    CallScope scope(*target, &observer);
    Owned result(PyObject_Vectorcall(function.get(), args, nargsf, kwnames));
    if (!result) {
      PythonError error;  // told to the caller, whatever the rest of the work says
      throw error;
    }
    scope.finish();
    return result.release();
  });
}

PyObject* bind(PyObject* self, PyObject* object, PyObject*) {
  if (!object || object == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, object);
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(as_compiled(self)->function);
  Py_VISIT(as_compiled(self)->dict);
  Py_VISIT(as_compiled(self)->listener);
  return 0;
}
int clear(PyObject* self) {
  Py_CLEAR(as_compiled(self)->function);
  Py_CLEAR(as_compiled(self)->dict);
  Py_CLEAR(as_compiled(self)->listener);
  return 0;
}
void dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (as_compiled(self)->weakrefs) PyObject_ClearWeakRefs(self);
  clear(self);
  if (as_compiled(self)->target) as_compiled(self)->target->release();
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* repr(PyObject* self) { return PyUnicode_FromFormat("<compiled %R>", as_compiled(self)->function); }

// What the instance's dict lacks is the function's: __name__ is set there, __code__ and __defaults__ are not.
PyObject* get_attribute(PyObject* self, PyObject* name) {
  PyObject* own = PyObject_GenericGetAttr(self, name);
  if (own || !PyErr_ExceptionMatches(PyExc_AttributeError)) return own;
  PyErr_Clear();
  return PyObject_GetAttr(as_compiled(self)->function, name);
}

PyObject* counters(PyObject* self, PyObject*) {
  const Target& t = *as_compiled(self)->target;
  return Py_BuildValue("{sLsLsLsLsn}", "graphs", (long long)t.graphs, "breaks", (long long)t.breaks, "ops", (long long)t.ops,
                       "compiled", (long long)t.compiled, "programs", (Py_ssize_t)t.cache->size());
}
PyObject* forget(PyObject* self, PyObject*) {
  as_compiled(self)->target->cache->clear();
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {{"_counters", counters, METH_NOARGS, "Graphs run, breaks, ops and graphs compiled so far."},
                         {"_forget", forget, METH_NOARGS, "Drops what was compiled."},
                         {nullptr, nullptr, 0, nullptr}};
PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(CompiledFunction, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(CompiledFunction, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(CompiledFunction, weakrefs), READONLY, nullptr},
    {"__wrapped__", T_OBJECT, offsetof(CompiledFunction, function), READONLY, nullptr},
    {"_listener", T_OBJECT, offsetof(CompiledFunction, listener), 0, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyGetSetDef getset[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                        {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
                       {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(clear)},
                       {Py_tp_repr, reinterpret_cast<void*>(repr)},
                       {Py_tp_descr_get, reinterpret_cast<void*>(bind)},
                       {Py_tp_getattro, reinterpret_cast<void*>(get_attribute)},
                       {Py_tp_methods, methods},
                       {Py_tp_members, members},
                       {Py_tp_getset, getset},
                       {0, nullptr}};
PyType_Spec spec = {"prong.CompiledFunction", sizeof(CompiledFunction), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR |
                        Py_TPFLAGS_DISALLOW_INSTANTIATION,
                    slots};

// backend: "interpreter", "llvm", or the callable of python_backend.
nb::object compile(nb::handle function, nb::handle backend, nb::handle identity, bool is_whole, const std::string& name) {
  auto target = make_ref<Target>();
  Ref<Backend> maker;
  if (nb::isinstance<nb::str>(backend)) {
    const std::string word = nb::cast<std::string>(backend);
    PRONG_CHECK(word == "interpreter" || word == "llvm", kValue, "no back end named '", word, "'");
    maker = word == "llvm" ? native_backend() : interpreter_backend();
  } else {
    maker = python_backend(backend.ptr());
  }
  target->cache = make_ref<ProgramCache>(std::move(maker));
  target->backend = identity.ptr();
  target->is_whole = is_whole;
  target->name = name;
  PyObject* self = checked(compiled_type->tp_alloc(compiled_type, 0));
  as_compiled(self)->vectorcall = call;
  as_compiled(self)->function = Py_NewRef(function.ptr());
  target->retain();
  as_compiled(self)->target = target.get();
  return nb::steal(self);
}

}  // namespace

void bind_capture(nb::module_& m) {
  compiled_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
  checked(PyModule_AddType(m.ptr(), compiled_type));
  m.def("capture_compile", &compile, nb::arg("function"), nb::arg("backend"), nb::arg("identity"), nb::arg("is_whole"), nb::arg("name"));
  m.def("capture_set_up", [](const std::string& folder, nb::handle unsupported) {
    own_folder = new std::string(folder);
    unsupported_error = Py_NewRef(unsupported.ptr());
  });
  m.def("capture_is_recording", &is_recording);
  m.def("capture_settle", [](const std::string& reason) {
    if (is_recording()) thread_recorder().settle(reason.c_str());
  });
  m.def("capture_call_plainly", [](const std::string& reason, nb::handle function, nb::args args, nb::kwargs kwargs) {
    const Pause pause(reason.c_str());
    return nb::steal(checked(PyObject_Call(function.ptr(), args.ptr(), kwargs.ptr())));
  });
}

}  // namespace prong::python
