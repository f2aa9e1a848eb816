// Exceptions across the border: C++ errors become Python ones, and Python ones pass through C++.
#pragma once

#include <exception>
#include <memory>
#include <string>

#include "base/error.h"
#include "bindings/python.h"

namespace prong::python {

// A Python exception on its way through C++ frames. May be copied, stored in a future and raised
// more than once, on any thread.
class PythonError final : public std::exception {
 public:
  PythonError();                               // takes over the error that is set; the GIL is held
  explicit PythonError(PyObject* raised);      // an exception instance, borrowed
  const char* what() const noexcept override;  // "ValueError: text"
  void restore() const;                        // sets it again; the GIL is held
  PyObject* value() const;                     // the instance, borrowed

 private:
  struct Held;
  std::shared_ptr<const Held> held_;
};

// Inside a catch block: sets the Python error that stands for the exception.
void set_error_from_current_exception() noexcept;
// A new instance of the Python exception that stands for `error`; null only if making it fails.
PyObject* exception_instance(const std::exception_ptr& error) noexcept;
PyObject* exception_type(ErrorKind kind);  // borrowed
// Sets the exception of the class that a script raised; false if it has no class of its own.
bool set_script_error(const Error& error) noexcept;  // script_error.cpp

// Throws what Python has set if `object` is null; else returns it.
inline PyObject* checked(PyObject* object) {
  if (!object) [[unlikely]]
    throw PythonError();
  return object;
}
inline void checked(int status) {
  if (status < 0) [[unlikely]]
    throw PythonError();
}

// Calls f; an exception becomes a Python error and null (or -1).
template <class F>
auto guarded(F&& f) noexcept -> decltype(f()) {
  try {
    return f();
  } catch (...) {
    set_error_from_current_exception();
    if constexpr (std::is_pointer_v<decltype(f())>)
      return nullptr;
    else
      return -1;
  }
}

void init_errors(PyObject* module);  // exception types of our own, nanobind's translator

}  // namespace prong::python
