// ErrorAside: puts the Python error that is set aside for a scope in which Python is asked things,
// which must not be done with an error set. Used by the evaluator.
#pragma once

#include <Python.h>

namespace prong::capture {

class ErrorAside {
 public:
  ErrorAside() { PyErr_Fetch(&kind_, &error_, &trace_); }
  ~ErrorAside() { PyErr_Restore(kind_, error_, trace_); }
  ErrorAside(const ErrorAside&) = delete;
  ErrorAside& operator=(const ErrorAside&) = delete;

 private:
  PyObject *kind_ = nullptr, *error_ = nullptr, *trace_ = nullptr;
};

}  // namespace prong::capture
