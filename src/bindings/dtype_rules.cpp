// PyTorch's type promotion, asked from Python: promote_types, can_cast, result_type.
#include <nanobind/nanobind.h>

#include "bindings/constants.h"
#include "bindings/convert.h"
#include "bindings/module.h"
#include "bindings/tensor_type.h"

namespace nb = nanobind;

namespace prong::python {

namespace {

DType dtype_argument(nb::handle object, const char* function, int position) {
  DType dtype;
  if (!dtype_from(object.ptr(), &dtype))
    throw_error(ErrorKind::kType, cat(function, "(): argument (position ", position,
                                      ") must be torch.dtype, not ", type_name(object.ptr())));
  return dtype;
}

void add_operand(ResultType& type, nb::handle object) {
  IValue number;
  if (is_tensor(object.ptr()))
    type.add(tensor_of(object.ptr()));
  else if (!number_to_ivalue(object.ptr(), &number))
    throw_error(ErrorKind::kType,
                cat("result_type(): expected a Tensor or a number, not ", type_name(object.ptr())));
  else
    type.add(number.is_complex() ? complex_dtype(default_dtype())
             : number.is_float() ? default_dtype()
             : number.is_bool()  ? DType::kBool
                                 : DType::kInt64,
             0, true);
}

nb::object object_of(DType d) { return nb::borrow(dtype_object(d)); }

}  // namespace

void bind_dtype_rules(nb::module_& m) {
  m.def("_promote", [](nb::handle a, nb::handle b) {
    return object_of(
        promote(dtype_argument(a, "promote_types", 1), dtype_argument(b, "promote_types", 2)));
  });
  m.def("_can_cast", [](nb::handle from, nb::handle to) {
    return can_cast(dtype_argument(from, "can_cast", 1), dtype_argument(to, "can_cast", 2));
  });
  m.def("_result_type", [](nb::handle a, nb::handle b) {
    ResultType type;
    add_operand(type, a);
    add_operand(type, b);
    return object_of(type.get());
  });
}

}  // namespace prong::python
