// Python's operators on tensors: each is the op of that meaning. Slots of the Tensor type.
#include "bindings/convert.h"
#include "bindings/op_function.h"
#include "bindings/tensor_type.h"
#include "bindings/trace.h"
#include "eager/batched.h"

namespace prong::python {

namespace {

bool is_operand(PyObject* object) {
  if (is_tensor(object) || PyFloat_Check(object) || PyLong_Check(object)) return true;
  IValue ignored;
  return number_to_ivalue(object, &ignored);
}

// Found on first use: the registry may not have every op yet, and says which it lacks.
struct LazyGroup {
  const char* name;
  OpGroup* group = nullptr;
  OpGroup& get() {
    if (!group) group = &group_named(name);
    return *group;
  }
};

PyObject* binary(LazyGroup& op, PyObject* a, PyObject* b) {
  return guarded([&]() -> PyObject* {
    if (!is_operand(a) || !is_operand(b)) Py_RETURN_NOTIMPLEMENTED;
    PyObject* const args[] = {a, b};
    return call_group(op.get(), nullptr, args, 2, nullptr);
  });
}
PyObject* inplace(LazyGroup& op, PyObject* self, PyObject* other) {
  return guarded([&]() -> PyObject* {
    if (!is_operand(other)) Py_RETURN_NOTIMPLEMENTED;
    PyObject* const args[] = {other};
    return call_group(op.get(), self, args, 1, nullptr);
  });
}
PyObject* unary(LazyGroup& op, PyObject* self) {
  return guarded([&] { return call_group(op.get(), self, nullptr, 0, nullptr); });
}

#define PRONG_BINARY(slot, op)               \
  PyObject* slot(PyObject* a, PyObject* b) { \
    static LazyGroup group{op};              \
    return binary(group, a, b);              \
  }
#define PRONG_INPLACE(slot, op)              \
  PyObject* slot(PyObject* a, PyObject* b) { \
    static LazyGroup group{op};              \
    return inplace(group, a, b);             \
  }
#define PRONG_UNARY(slot, op)   \
  PyObject* slot(PyObject* a) { \
    static LazyGroup group{op}; \
    return unary(group, a);     \
  }
PRONG_BINARY(slot_add, "add")
PRONG_BINARY(slot_subtract, "sub")
PRONG_BINARY(slot_multiply, "mul")
PRONG_BINARY(slot_true_divide, "div")
PRONG_BINARY(slot_floor_divide, "floor_divide")
PRONG_BINARY(slot_remainder, "remainder")
PRONG_BINARY(slot_matrix_multiply, "matmul")
PRONG_BINARY(slot_and, "bitwise_and")
PRONG_BINARY(slot_or, "bitwise_or")
PRONG_BINARY(slot_xor, "bitwise_xor")
PRONG_BINARY(slot_lshift, "bitwise_left_shift")
PRONG_BINARY(slot_rshift, "bitwise_right_shift")
PRONG_BINARY(pow_of_two, "pow")
PRONG_INPLACE(slot_iadd, "add_")
PRONG_INPLACE(slot_isubtract, "sub_")
PRONG_INPLACE(slot_imultiply, "mul_")
PRONG_INPLACE(slot_itrue_divide, "div_")
PRONG_INPLACE(slot_ifloor_divide, "floor_divide_")
PRONG_INPLACE(slot_iremainder, "remainder_")
PRONG_INPLACE(slot_iand, "bitwise_and_")
PRONG_INPLACE(slot_ior, "bitwise_or_")
PRONG_INPLACE(slot_ixor, "bitwise_xor_")
PRONG_INPLACE(slot_ilshift, "bitwise_left_shift_")
PRONG_INPLACE(slot_irshift, "bitwise_right_shift_")
PRONG_INPLACE(ipow_of_two, "pow_")
PRONG_UNARY(slot_negative, "neg")
PRONG_UNARY(slot_positive, "positive")
PRONG_UNARY(slot_absolute, "abs")
PRONG_UNARY(slot_invert, "bitwise_not")
PRONG_BINARY(compare_eq, "eq")
PRONG_BINARY(compare_ne, "ne")
PRONG_BINARY(compare_lt, "lt")
PRONG_BINARY(compare_le, "le")
PRONG_BINARY(compare_gt, "gt")
PRONG_BINARY(compare_ge, "ge")
#undef PRONG_BINARY
#undef PRONG_INPLACE
#undef PRONG_UNARY

PyObject* slot_power(PyObject* a, PyObject* b, PyObject*) { return pow_of_two(a, b); }
PyObject* slot_ipower(PyObject* a, PyObject* b, PyObject*) { return ipow_of_two(a, b); }

PyObject* slot_compare(PyObject* a, PyObject* b, int op) {
  switch (op) {
  case Py_EQ:
    return compare_eq(a, b);
  case Py_NE:
    return compare_ne(a, b);
  case Py_LT:
    return compare_lt(a, b);
  case Py_LE:
    return compare_le(a, b);
  case Py_GT:
    return compare_gt(a, b);
  default:
    return compare_ge(a, b);
  }
}

int slot_bool(PyObject* self) {
  note_read("bool");
  return guarded([&]() -> int {
    const Tensor t = tensor_of(self);
    if (eager::may_be_batched() && eager::batched_of(t.impl())) eager::throw_control_flow();
    PRONG_CHECK(t.numel() != 0, kRuntime, "Boolean value of Tensor with no values is ambiguous");
    PRONG_CHECK(t.numel() == 1, kRuntime,
                "Boolean value of Tensor with more than one value is ambiguous");
    if (is_complex(t.dtype())) return t.item_complex() != Complex128(0);
    return is_floating(t.dtype()) ? t.item_double() != 0 : t.item_int() != 0;
  });
}

// int(t) and float(t).
Tensor one_element(PyObject* self) {
  const Tensor t = tensor_of(self);
  if (eager::may_be_batched() && eager::batched_of(t.impl())) eager::throw_item();
  PRONG_CHECK(t.numel() == 1, kValue,
              "only one element tensors can be converted to Python scalars");
  return t;
}

PyObject* slot_float(PyObject* self) {
  note_read("float");
  return guarded([&] { return PyFloat_FromDouble(one_element(self).item_double()); });
}
PyObject* slot_int(PyObject* self) {
  note_read("int");
  return guarded([&]() -> PyObject* {
    const Tensor t = one_element(self);
    if (is_inexact(t.dtype())) return PyLong_FromDouble(t.item_double());
    return PyLong_FromLongLong(t.item_int());
  });
}
PyObject* slot_index(PyObject* self) {
  note_read("index");
  return guarded([&]() -> PyObject* {
    const Tensor t = tensor_of(self);
    if (eager::may_be_batched() && eager::batched_of(t.impl())) eager::throw_item();
    PRONG_CHECK(t.numel() == 1 && !is_inexact(t.dtype()), kType,
                "only integer tensors of a single element can be converted to an index");
    return PyLong_FromLongLong(t.item_int());
  });
}

}  // namespace

PyType_Slot* tensor_number_slots() {
#define PRONG_SLOT(id, f) \
  { id, reinterpret_cast<void*>(f) }
  static PyType_Slot slots[] = {PRONG_SLOT(Py_nb_add, slot_add),
                                PRONG_SLOT(Py_nb_subtract, slot_subtract),
                                PRONG_SLOT(Py_nb_multiply, slot_multiply),
                                PRONG_SLOT(Py_nb_true_divide, slot_true_divide),
                                PRONG_SLOT(Py_nb_floor_divide, slot_floor_divide),
                                PRONG_SLOT(Py_nb_remainder, slot_remainder),
                                PRONG_SLOT(Py_nb_power, slot_power),
                                PRONG_SLOT(Py_nb_matrix_multiply, slot_matrix_multiply),
                                PRONG_SLOT(Py_nb_and, slot_and),
                                PRONG_SLOT(Py_nb_or, slot_or),
                                PRONG_SLOT(Py_nb_xor, slot_xor),
                                PRONG_SLOT(Py_nb_lshift, slot_lshift),
                                PRONG_SLOT(Py_nb_rshift, slot_rshift),
                                PRONG_SLOT(Py_nb_inplace_add, slot_iadd),
                                PRONG_SLOT(Py_nb_inplace_subtract, slot_isubtract),
                                PRONG_SLOT(Py_nb_inplace_multiply, slot_imultiply),
                                PRONG_SLOT(Py_nb_inplace_true_divide, slot_itrue_divide),
                                PRONG_SLOT(Py_nb_inplace_floor_divide, slot_ifloor_divide),
                                PRONG_SLOT(Py_nb_inplace_remainder, slot_iremainder),
                                PRONG_SLOT(Py_nb_inplace_power, slot_ipower),
                                PRONG_SLOT(Py_nb_inplace_and, slot_iand),
                                PRONG_SLOT(Py_nb_inplace_or, slot_ior),
                                PRONG_SLOT(Py_nb_inplace_xor, slot_ixor),
                                PRONG_SLOT(Py_nb_inplace_lshift, slot_ilshift),
                                PRONG_SLOT(Py_nb_inplace_rshift, slot_irshift),
                                PRONG_SLOT(Py_nb_negative, slot_negative),
                                PRONG_SLOT(Py_nb_positive, slot_positive),
                                PRONG_SLOT(Py_nb_absolute, slot_absolute),
                                PRONG_SLOT(Py_nb_invert, slot_invert),
                                PRONG_SLOT(Py_nb_bool, slot_bool),
                                PRONG_SLOT(Py_nb_float, slot_float),
                                PRONG_SLOT(Py_nb_int, slot_int),
                                PRONG_SLOT(Py_nb_index, slot_index),
                                PRONG_SLOT(Py_tp_richcompare, slot_compare),
                                {0, nullptr}};
#undef PRONG_SLOT
  return slots;
}

}  // namespace prong::python
