// Arrays of NumPy and other objects that lend their memory may share it with tensors: what was put
// off and touches such memory is run before an instruction that may look there. Called by
// evaluator.cpp.
#include <cstring>

#include <opcode.h>

#include "capture/evaluator.h"
#include "capture/session.h"

namespace prong::capture {

namespace {

bool lends_memory(PyObject* o) {
  PyTypeObject* type = o ? Py_TYPE(o) : nullptr;
  if (!type || !type->tp_as_buffer || !type->tp_as_buffer->bf_getbuffer) return false;
  if (PyMemoryView_Check(o) || PyByteArray_Check(o)) return true;
  for (; type; type = type->tp_base)
    if (!std::strcmp(type->tp_name, "numpy.ndarray") || !std::strcmp(type->tp_name, "array.array"))
      return true;
  return false;
}

bool holds_arrays(PyObject* o) {
  if (!o) return false;
  if (lends_memory(o)) return true;
  if (PyCFunction_Check(o)) return lends_memory(PyCFunction_GET_SELF(o));
  if (!PyList_CheckExact(o) && !PyTuple_CheckExact(o)) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
    if (lends_memory(PySequence_Fast_GET_ITEM(o, i))) return true;
  return false;
}

// How many operands lie on the stack that the instruction hands to code that might look at arrays.
int operands_of(const Instruction& i) {
  switch (i.opcode) {
  case UNARY_POSITIVE:
  case UNARY_NEGATIVE:
  case UNARY_NOT:
  case UNARY_INVERT:
  case GET_ITER:
  case UNPACK_SEQUENCE:
  case UNPACK_EX:
  case FORMAT_VALUE:
  case POP_JUMP_FORWARD_IF_FALSE:
  case POP_JUMP_FORWARD_IF_TRUE:
    return 1;
  case BINARY_OP:
  case COMPARE_OP:
  case BINARY_SUBSCR:
  case CONTAINS_OP:
    return 2;
  case STORE_SUBSCR:
    return 3;
  case CALL:
    return i.arg + 2;
  case CALL_FUNCTION_EX:
    return 2 + (i.arg & 1);
  default:
    return 0;
  }
}

}  // namespace

void Evaluator::before_arrays(const Instruction& i) {
  Recorder& recorder = thread_recorder();
  if (!recorder.has_work()) return;
  for (int n = operands_of(i); n > 0; --n)
    if (holds_arrays(top(n))) {
      if (recorder.touches_lent_memory())
        recorder.settle("the memory of a tensor is read or written by other than an op");
      return;
    }
}

}  // namespace prong::capture
