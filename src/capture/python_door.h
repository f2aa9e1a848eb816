// What capture/ must know of Python's tensor and op objects; bindings/, which owns them, fills it
// in.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "capture/trace.h"
#include "tensor/tensor.h"

namespace prong::capture {

// Functions of prong._core that the evaluator knows.
enum class CoreFunction : uint8_t {
  kOther,
  kRunBackward,
  kClearGradients,
  kGradientsOf,
  kGatherState,
  kGetMode,  // grad mode and inference mode
  kSetMode,
  kGetAutocast,
  kSetAutocast,
  kTapeStep,     // a node, hook or saved tensor is made or asked
  kTapeWrite,    // and the first argument is changed
  kRandomState,  // is kept, or put back
  kRuleOfTypes,  // answers by dtypes alone
  kProfileIsOn,
  kMakeTensor,  // of Python data
};

struct PythonDoor {
  CoreFunction (*core_function)(PyObject* callable) = nullptr;
  PyTypeObject* tensor_type = nullptr;
  bool (*is_tensor)(PyObject* object) = nullptr;
  bool (*is_exact_tensor)(PyObject* object) = nullptr;
  TensorImpl* (*impl_of)(PyObject* tensor) = nullptr;
  PyObject* (*wrap)(Tensor tensor) = nullptr;           // a new reference; throws
  bool (*is_op)(PyObject* callable) = nullptr;          // a function or method of ops
  PyObject* fork = nullptr;                             // the function of that name; owned
  PyObject* (*make_future)(PyObject* value) = nullptr;  // that has it; a new reference or null
  void (*set_error)() = nullptr;                        // inside a catch block
  PyCFunction module_getattr = nullptr;                 // nn.Module.__getattr__
  PyObject* module_setattr = nullptr;                   // nn.Module.__setattr__; owned
  // Element `index` of a tensor of one dimension, -1: the only one, as item() gives it: a new
  // reference; null, with or without an error: there is none.
  PyObject* (*number_at)(const Tensor& tensor, int64_t index) = nullptr;
  // The tensor that a list, tuple or range among an index stands for: a new reference, or null with
  // an error set.
  PyObject* (*index_tensor)(PyObject* item) = nullptr;
  PyObject* (*full)() = nullptr;    // the op
  PyObject* size_type = nullptr;    // prong.Size; owned
  Place (*user_place)() = nullptr;  // the line of the program that runs on this thread
};
PythonDoor& door();

}  // namespace prong::capture
