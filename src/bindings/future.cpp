// Futures in Python: the class, and fork of a Python call as a task of the pool.
#include "bindings/future.h"

#include <nanobind/stl/optional.h>

#include "bindings/module.h"
#include "bindings/trace.h"
#include "capture/session.h"
#include "runtime/task.h"

namespace nb = nanobind;

namespace prong::python {

namespace {

// What Python holds. A future made in Python keeps objects as they are; one from a script holds
// values of it.
struct PyFuture {
  Ref<Future> future;
  bool holds_objects = true;
};

IValue boxed(nb::handle object) {
  return IValue(Ref<ObjectBase>(make_ref<PyObjectBox>(object.ptr())));
}

nb::object value_of(const PyFuture& f) {
  nb::object value = nb::steal(to_python(f.future->value()));
  if (context()[ContextWord::kInterceptor]) traced_wait(f.future, value);
  return value;
}

// Blocks without the GIL. A future whose task nobody started is run here.
void block_until_done(const PyFuture& f) {
  if (f.future->is_done()) return;
  if (capture::is_recording()) capture::thread_recorder().settle(nullptr);  // while the task runs
  WithoutGil released;
  f.future->wait();
}

void require_future_done(const PyFuture& f) {
  PRONG_CHECK(f.future->is_done(), kRuntime, "the future is not done yet: wait() for it first");
}

nb::object wait(const PyFuture& f, std::optional<double> timeout) {
  if (timeout && !f.future->is_done()) {
    bool done;
    {
      WithoutGil released;
      done = f.future->wait_for(*timeout);
    }
    if (!done) {
      PyErr_Format(PyExc_TimeoutError, "the future was not done after %s seconds",
                   format_double(*timeout).c_str());
      throw nb::python_error();
    }
  }
  block_until_done(f);
  return value_of(f);
}

// A task that goes on may write what put-off work reads.
void settle_before_waking() {
  if (capture::is_recording() && capture::thread_recorder().has_work())
    capture::thread_recorder().settle("calls Future.set_result");
}

std::exception_ptr exception_from(nb::handle error) {
  if (!PyExceptionInstance_Check(error.ptr()))
    throw_error(ErrorKind::kType,
                cat("set_exception() needs an exception instance, got ", type_name(error.ptr())));
  return std::make_exception_ptr(PythonError(error.ptr()));
}

// Runs `call` when `f` is done, with the GIL; its own errors are the callback's business.
template <class F>
void when_done(const PyFuture& f, nb::handle callback, F call) {
  auto held = make_ref<PyObjectBox>(callback.ptr());
  const bool holds_objects = f.holds_objects;
  Ref<Future> future = f.future;
  f.future->then([held, future, holds_objects, call](FutureBase&) {
    WithGil gil;
    if (!gil.is_held()) return;
    call(nb::handle(held->get()), nb::steal(wrap_future(future, holds_objects)));
  });
}

PyFuture then(const PyFuture& f, nb::object callback) {
  PRONG_CHECK(PyCallable_Check(callback.ptr()), kType, "then() needs something to call, got ",
              type_name(callback.ptr()));
  PyFuture child{make_ref<Future>(), true};
  Ref<Future> promise = child.future;
  when_done(f, callback, [promise](nb::handle call, nb::object done) {
    PyObject* result = PyObject_CallOneArg(call.ptr(), done.ptr());
    if (!result) {
      promise->try_set_error(std::make_exception_ptr(PythonError()));
      return;
    }
    promise->try_set_value(boxed(result));
    Py_DECREF(result);
  });
  return child;
}

void add_done_callback(const PyFuture& f, nb::object callback) {
  PRONG_CHECK(PyCallable_Check(callback.ptr()), kType,
              "add_done_callback() needs something to call, got ", type_name(callback.ptr()));
  when_done(f, callback, [](nb::handle call, nb::object done) {
    PyObject* result = PyObject_CallOneArg(call.ptr(), done.ptr());
    if (!result) PyErr_WriteUnraisable(call.ptr());  // as Python's own futures do
    Py_XDECREF(result);
  });
}

// The exception that the code inside handles (null: none), whatever the thread was handling: a
// thread that waits runs tasks in between.
class Handling {
 public:
  explicit Handling(PyObject* exception)
      : thread_(PyThreadState_Get()),
        outer_(thread_->exc_info), own_{Py_XNewRef(exception), nullptr} {
    thread_->exc_info = &own_;
  }
  ~Handling() {
    thread_->exc_info = outer_;
    Py_XDECREF(own_.exc_value);
  }
  Handling(const Handling&) = delete;
  Handling& operator=(const Handling&) = delete;

 private:
  PyThreadState* thread_;
  _PyErr_StackItem* outer_;
  _PyErr_StackItem own_;
};

// A Python call as a task. Takes the GIL to run; ops give it up.
class PythonCall final : public Task {
 public:
  PythonCall(PyObject* f, PyObject* args, PyObject* kwargs, Ref<Future> result)
      : function_(make_ref<PyObjectBox>(f)), args_(make_ref<PyObjectBox>(args)),
        result_(std::move(result)) {
    if (kwargs) kwargs_ = make_ref<PyObjectBox>(kwargs);
    if (const Owned handled(PyErr_GetHandledException()); handled.get())
      handled_ = make_ref<PyObjectBox>(handled.get());
    // Where it was forked, for the notes of an exception.
    if (PyFrameObject* frame = PyEval_GetFrame()) {
      PyCodeObject* code = PyFrame_GetCode(frame);
      forked_in_ = make_ref<PyObjectBox>(reinterpret_cast<PyObject*>(code));
      Py_DECREF(code);
      forked_at_ = PyFrame_GetLineNumber(frame);
    }
  }

  Ref<Task> run() override {
    std::exception_ptr error;
    IValue value;
    {
      WithGil gil;
      if (!gil.is_held()) {
        error = std::make_exception_ptr(Error(ErrorKind::kRuntime, "Python has ended"));
      } else {
        const Handling handling(handled_ ? handled_->get() : nullptr);
        PyObject* result =
            PyObject_Call(function_->get(), args_->get(), kwargs_ ? kwargs_->get() : nullptr);
        if (result) {
          value = boxed(result);
          Py_DECREF(result);
        } else {
          PythonError raised;
          add_note(raised.value());
          error = std::make_exception_ptr(raised);
        }
        function_ = {};
        args_ = {};
        kwargs_ = {};
        handled_ = {};
      }
    }
    return error ? result_->finish_error(error) : result_->finish_value(std::move(value));
  }

 private:
  void add_note(PyObject* exception) const {
    if (!forked_in_) return;
    auto* code = reinterpret_cast<PyCodeObject*>(forked_in_->get());
    PyObject* note = PyUnicode_FromFormat("in a task forked at %U:%d in %U", code->co_filename,
                                          forked_at_, code->co_name);
    PyObject* done = note ? PyObject_CallMethod(exception, "add_note", "O", note) : nullptr;
    if (!done) PyErr_Clear();
    Py_XDECREF(note);
    Py_XDECREF(done);
  }

  Ref<PyObjectBox> function_, args_, kwargs_, forked_in_;
  Ref<PyObjectBox> handled_;  // what the program handled where it forked, as for a plain call there
  int forked_at_ = 0;
  Ref<Future> result_;
};

PyFuture fork(nb::args given, nb::kwargs kwargs) {
  PRONG_CHECK(given.size() > 0, kType, "fork() needs a function to call");
  PyObject* f = given[0].ptr();
  PRONG_CHECK(PyCallable_Check(f), kType, "cannot call a value of type '", type_name(f),
              "': fork() needs something that can be called");
  Owned rest(checked(PyTuple_GetSlice(given.ptr(), 1, PyTuple_GET_SIZE(given.ptr()))));
  PyFuture out{make_ref<Future>(), true};
  if (is_tracing()) {  // here and now, into the graph
    out.future->set_value(boxed(traced_fork(out.future, f, rest.get(), kwargs)));
    return out;
  }
  if (capture::is_recording() && capture::thread_recorder().has_work())
    capture::thread_recorder().settle(cat("forks ", type_name(f)).c_str());
  auto task =
      make_ref<PythonCall>(f, rest.get(), kwargs.size() ? kwargs.ptr() : nullptr, out.future);
  out.future->set_producer(*task);
  submit(std::move(task));
  return out;
}

// A future of Python given to a script: its object becomes a value of the declared type when it is
// there.
bool future_from_python(PyObject* object, const Type* element, IValue* out) {
  if (!nb::isinstance<PyFuture>(nb::handle(object))) return false;
  const PyFuture& f = *nb::inst_ptr<PyFuture>(nb::handle(object));
  if (!f.holds_objects || !element) {
    *out = IValue(f.future);
    return true;
  }
  auto typed = make_ref<Future>();
  const TypePtr type(element);
  f.future->then([typed, type](FutureBase& done) {
    if (std::exception_ptr error = done.error()) {
      typed->try_set_error(error);
      return;
    }
    WithGil gil;
    if (!gil.is_held()) return;
    try {
      const IValue& value = static_cast<Future&>(done).value();
      auto* box = value.is_object() ? dynamic_cast<PyObjectBox*>(value.object()) : nullptr;
      IValue converted;
      if (!box)
        converted = value;
      else if (!try_to_ivalue(box->get(), *type, &converted))
        throw_error(ErrorKind::kRuntime,
                    cat("a Future[", type->str_(), "] was completed with a value of type '",
                        type_name(box->get()), "'"));
      typed->try_set_value(std::move(converted));
    } catch (...) {
      typed->try_set_error(std::current_exception());
    }
  });
  *out = IValue(std::move(typed));
  return true;
}

PyObject* future_to_python(const Ref<Future>& future) { return wrap_future(future, false); }

}  // namespace

PyObject* future_of_object(PyObject* value) {
  return guarded([&] { return wrap_future(Future::done(boxed(value)), true); });
}

PyObject* wrap_future(const Ref<Future>& future, bool holds_objects) {
  return nb::cast(PyFuture{future, holds_objects}).release().ptr();
}

void bind_futures(nb::module_& m) {
  nb::class_<PyFuture>(m, "Future", nb::is_weak_referenceable(), nb::dynamic_attr())
      .def(
          "__init__",
          [](PyFuture* self, nb::handle) {
            new (self) PyFuture{make_ref<Future>(), true};
          },
          nb::kw_only(), nb::arg("devices").none() = nb::none())
      .def("wait", &wait, nb::arg("timeout").none() = nb::none(),
           "The value; blocks until it is there and raises what the task raised. TimeoutError "
           "after `timeout` seconds.")
      .def("done", [](const PyFuture& f) { return f.future->is_done(); })
      .def("value",
           [](const PyFuture& f) {
             require_future_done(f);
             return value_of(f);
           })
      .def("exception",
           [](const PyFuture& f) -> nb::object {
             block_until_done(f);
             if (!f.future->has_error()) return nb::none();
             return nb::steal(exception_instance(f.future->error()));
           })
      .def("then", &then, nb::arg("callback"),
           "A future of callback(self), which runs when this one is done.")
      .def("add_done_callback", &add_done_callback, nb::arg("callback"))
      .def(
          "set_result",
          [](const PyFuture& f, nb::object result) {
            settle_before_waking();
            f.future->set_value(boxed(result));
          },
          nb::arg("result").none())
      .def(
          "set_exception",
          [](const PyFuture& f, nb::object error) {
            settle_before_waking();
            f.future->set_error(exception_from(error));
          },
          nb::arg("result"))
      .def(
          "cancel",
          [](const PyFuture& f) {
            Owned module(checked(PyImport_ImportModule("concurrent.futures")));
            Owned type(checked(PyObject_GetAttrString(module.get(), "CancelledError")));
            Owned error(checked(PyObject_CallNoArgs(type.get())));
            return f.future->cancel(std::make_exception_ptr(PythonError(error.get())));
          },
          "Ends a task that was not started yet: waiting for it then raises CancelledError. False "
          "if it was started.")
      .def("_is_same", [](const PyFuture& a, const PyFuture& b) { return a.future == b.future; });
  m.def("fork", &fork, "Starts f(*args, **kwargs) in the background and returns its Future.");
  converters().future_to_python = &future_to_python;
  converters().future_from_python = &future_from_python;
}

}  // namespace prong::python
