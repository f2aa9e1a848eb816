// Exceptions across the border; see errors.h.
#include "bindings/errors.h"

#include <atomic>
#include <new>

#include <nanobind/nanobind.h>

namespace prong::python {

namespace {
std::atomic<bool> finalizing{false};
PyObject* out_of_memory_error = nullptr;
PyObject* linear_algebra_error = nullptr;

std::string text_of(PyObject* value) {
  std::string text = Py_TYPE(value)->tp_name;
  Owned str(PyObject_Str(value));
  const char* chars = str ? PyUnicode_AsUTF8(str.get()) : nullptr;
  if (chars && *chars) text.append(": ").append(chars);
  PyErr_Clear();
  return text;
}
}  // namespace

bool is_python_alive() {
  return !finalizing.load(std::memory_order_acquire) && Py_IsInitialized() && !_Py_IsFinalizing();
}
void mark_python_finalizing() { finalizing.store(true, std::memory_order_release); }

struct PythonError::Held {
  PyObject* value;
  PyObject* traceback;
  std::string text;
  ~Held() {
    WithGil gil;
    if (!gil.is_held()) return;
    Py_XDECREF(value);
    Py_XDECREF(traceback);
  }
};

PythonError::PythonError() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (!value) {
    Py_XDECREF(traceback);
    traceback = nullptr;
    value = PyObject_CallFunction(PyExc_SystemError, "s", "a call failed and set no exception");
  }
  if (traceback) PyException_SetTraceback(value, traceback);
  Py_XDECREF(type);
  held_.reset(new Held{value, traceback, text_of(value)});
}

PythonError::PythonError(PyObject* raised) {
  Py_INCREF(raised);
  held_.reset(new Held{raised, PyException_GetTraceback(raised), text_of(raised)});
}

const char* PythonError::what() const noexcept { return held_->text.c_str(); }
PyObject* PythonError::value() const { return held_->value; }

void PythonError::restore() const {
  PyObject* value = held_->value;
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(value));
  Py_INCREF(type);
  Py_INCREF(value);
  Py_XINCREF(held_->traceback);
  PyErr_Restore(type, value, held_->traceback);
}

PyObject* exception_type(ErrorKind kind) {
  switch (kind) {
  case ErrorKind::kType:
    return PyExc_TypeError;
  case ErrorKind::kValue:
    return PyExc_ValueError;
  case ErrorKind::kIndex:
    return PyExc_IndexError;
  case ErrorKind::kKey:
    return PyExc_KeyError;
  case ErrorKind::kAttribute:
    return PyExc_AttributeError;
  case ErrorKind::kNotImplemented:
    return PyExc_NotImplementedError;
  case ErrorKind::kAssertion:
    return PyExc_AssertionError;
  case ErrorKind::kZeroDivision:
    return PyExc_ZeroDivisionError;
  case ErrorKind::kOverflow:
    return PyExc_OverflowError;
  case ErrorKind::kOutOfMemory:
    return out_of_memory_error;
  case ErrorKind::kFileNotFound:
    return PyExc_FileNotFoundError;
  case ErrorKind::kOs:
    return PyExc_OSError;
  case ErrorKind::kImport:
    return PyExc_ImportError;
  case ErrorKind::kBuffer:
    return PyExc_BufferError;
  case ErrorKind::kLinAlg:
    return linear_algebra_error;
  case ErrorKind::kRuntime:
  case ErrorKind::kUnsupported:
  case ErrorKind::kInternal:
    return PyExc_RuntimeError;
  }
  return PyExc_RuntimeError;
}

void set_error_from_current_exception() noexcept {
  try {
    throw;
  } catch (const PythonError& e) {
    e.restore();
  } catch (nanobind::python_error& e) {
    e.restore();
  } catch (const Error& e) {
    if (!set_script_error(e)) PyErr_SetString(exception_type(e.kind()), e.what());
  } catch (const std::bad_alloc&) {
    PyErr_SetString(exception_type(ErrorKind::kOutOfMemory), "out of memory");
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "an exception of an unknown C++ type");
  }
}

PyObject* exception_instance(const std::exception_ptr& error) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (...) {
    set_error_from_current_exception();
  }
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  return value;
}

void init_errors(PyObject* module) {
  Owned bases(PyTuple_Pack(2, PyExc_RuntimeError, PyExc_MemoryError));
  out_of_memory_error = checked(PyErr_NewException("prong.OutOfMemoryError", bases.get(), nullptr));
  checked(PyModule_AddObjectRef(module, "OutOfMemoryError", out_of_memory_error));
  linear_algebra_error =
      checked(PyErr_NewException("prong.linalg.LinAlgError", PyExc_RuntimeError, nullptr));
  checked(PyModule_AddObjectRef(module, "LinAlgError", linear_algebra_error));
  nanobind::register_exception_translator([](const std::exception_ptr& error, void*) {
    try {
      std::rethrow_exception(error);
    } catch (const PythonError&) {
      set_error_from_current_exception();
    } catch (const Error&) {
      set_error_from_current_exception();
    }
  });
}

}  // namespace prong::python
