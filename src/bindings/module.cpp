// The Python module prong._core; imported by python/prong.
#include <nanobind/nanobind.h>

#include "bindings/capture.h"
#include "bindings/constants.h"
#include "bindings/errors.h"
#include "bindings/future.h"
#include "bindings/module.h"
#include "bindings/op_function.h"
#include "bindings/script.h"
#include "bindings/tensor_data.h"
#include "bindings/tensor_type.h"

NB_MODULE(_core, m) {
  using namespace prong::python;
  m.attr("__version__") = PRONG_VERSION;
  nanobind::set_leak_warnings(false);  // scripts live as long as the process
  PyObject* module = m.ptr();
  try {
    init_errors(module);
    init_constants(module);
    init_tensor_type(module);
    init_tensor_data(module);
    init_op_functions(module);
  } catch (const PythonError& e) {
    e.restore();
    throw nanobind::python_error();
  }
  bind_settings(m);
  bind_dtype_rules(m);
  bind_generator(m);
  bind_registry(m);
  bind_autograd(m);
  bind_vmap(m);
  bind_profiler(m);
  bind_optimizer(m);
  bind_nn_module(m);
  bind_saving_hooks(m);
  bind_futures(m);
  bind_script_types(m);
  bind_script(m);
  bind_script_classes(m);
  bind_script_archive(m);
  bind_script_trace(m);
  bind_capture(m);
}
