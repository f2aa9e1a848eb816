// Kept: a Python object that a plan or a recording keeps. Included by plan.h and number_steps.h.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <utility>

namespace prong::capture {

// The GIL is held wherever plans are made, run or dropped.
class Kept {
 public:
  Kept() = default;
  explicit Kept(PyObject* borrowed) : object_(Py_XNewRef(borrowed)) {}
  Kept(Kept&& o) noexcept : object_(std::exchange(o.object_, nullptr)) {}
  Kept& operator=(Kept&& o) noexcept {
    std::swap(object_, o.object_);
    return *this;
  }
  ~Kept() { Py_XDECREF(object_); }
  static Kept steal(PyObject* owned) {
    Kept k;
    k.object_ = owned;
    return k;
  }
  PyObject* get() const { return object_; }
  // From now on it is borrowed; forget() has to come before the end.
  void lend() { Py_DECREF(object_); }
  void forget() { object_ = nullptr; }

 private:
  PyObject* object_ = nullptr;
};

}  // namespace prong::capture
