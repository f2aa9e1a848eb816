// Whether this thread holds the GIL; code that pool threads run, too, asks.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace prong::capture {

// PyGILState_Check says yes to every thread once the process has had a subinterpreter.
inline bool holds_gil() {
  PyThreadState* const mine = PyGILState_GetThisThreadState();
  return mine && mine == _PyThreadState_UncheckedGet();
}

}  // namespace prong::capture
