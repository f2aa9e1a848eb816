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

// Whatever it walks over.
bool may_walk_array(PyObject* iterator) {
  return !PyGen_Check(iterator) && !Py_IS_TYPE(iterator, &PyListIter_Type) &&
         !Py_IS_TYPE(iterator, &PyTupleIter_Type) && !Py_IS_TYPE(iterator, &PyRangeIter_Type) &&
         !Py_IS_TYPE(iterator, &PyDictIterKey_Type) &&
         !Py_IS_TYPE(iterator, &PyDictIterValue_Type) &&
         !Py_IS_TYPE(iterator, &PyDictIterItem_Type);
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
  case LIST_EXTEND:
  case SET_UPDATE:
  case POP_JUMP_FORWARD_IF_FALSE:
  case POP_JUMP_FORWARD_IF_TRUE:
  case POP_JUMP_BACKWARD_IF_FALSE:
  case POP_JUMP_BACKWARD_IF_TRUE:
  case JUMP_IF_FALSE_OR_POP:
  case JUMP_IF_TRUE_OR_POP:
    return 1;
  case FORMAT_VALUE:
    return i.arg & 4 ? 2 : 1;
  case BINARY_OP:
  case COMPARE_OP:
  case BINARY_SUBSCR:
  case CONTAINS_OP:
  case DELETE_SUBSCR:
  case STORE_ATTR:
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

bool Evaluator::uses_arrays(const Instruction& i) {
  if (i.opcode == FOR_ITER) return may_walk_array(top());
  for (int n = operands_of(i); n > 0; --n)
    if (holds_arrays(top(n))) return true;
  return false;
}

}  // namespace prong::capture
