// Python.h with owned references and the GIL as scopes. Included by every file of bindings/.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <utility>

namespace prong::python {

// A reference that is owned: released at the end of its scope. Needs the GIL wherever it is
// touched.
class Owned {
 public:
  Owned() = default;
  explicit Owned(PyObject* stolen) : object_(stolen) {}
  Owned(Owned&& o) noexcept : object_(std::exchange(o.object_, nullptr)) {}
  Owned& operator=(Owned&& o) noexcept {
    std::swap(object_, o.object_);
    return *this;
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { Py_XDECREF(object_); }

  static Owned borrow(PyObject* object) {
    Py_XINCREF(object);
    return Owned(object);
  }
  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

// False once the interpreter has begun to finalize: then no thread may take the GIL any more.
bool is_python_alive();
void mark_python_finalizing();  // by the atexit hook of the package

// Gives the GIL up for the scope.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil() { PyEval_RestoreThread(state_); }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

// Takes the GIL for the scope, from any thread; re-entrant. Once Python finalizes it does nothing,
// and is_held() says so: whoever may run that late asks.
class WithGil {
 public:
  WithGil() : is_held_(is_python_alive()) {
    if (is_held_) state_ = PyGILState_Ensure();
  }
  ~WithGil() {
    if (is_held_) PyGILState_Release(state_);
  }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;
  bool is_held() const { return is_held_; }

 private:
  bool is_held_;
  PyGILState_STATE state_ = PyGILState_UNLOCKED;
};

}  // namespace prong::python
