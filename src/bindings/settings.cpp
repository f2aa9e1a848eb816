// Settings of the process and of the running task: threads, grad mode, default dtype, printing,
// interrupts, exit.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "bindings/constants.h"
#include "bindings/errors.h"
#include "bindings/module.h"
#include "capture/session.h"
#include "compile/fused_kernels.h"
#include "eager/autocast.h"
#include "eager/modes.h"
#include "runtime/background.h"
#include "runtime/interrupt.h"
#include "runtime/parallel.h"
#include "runtime/task.h"
#include "tensor/format.h"
#include "tensor/storage.h"

namespace nb = nanobind;

namespace prong::python {

namespace {

// Runs Python's signal handlers on the main thread; Ctrl-C ends the op with KeyboardInterrupt.
void run_signal_handlers() {
  WithGil gil;
  if (gil.is_held() && PyErr_CheckSignals() < 0) throw PythonError();
}

void set_dtype(nb::handle object) {
  DType dtype;
  if (!dtype_from(object.ptr(), &dtype) || !is_floating(dtype))
    throw_error(ErrorKind::kType,
                cat("only floating-point types are supported as the default type, got ",
                    nb::repr(object).c_str()));
  // Ops that were put off ask for it when they run.
  if (capture::is_recording()) capture::thread_recorder().settle("calls set_default_dtype");
  set_default_dtype(dtype);
}

nb::dict printing() {
  const PrintOptions o = print_options();
  nb::dict d;
  d["precision"] = o.precision;
  d["threshold"] = o.threshold;
  d["edgeitems"] = o.edgeitems;
  d["linewidth"] = o.linewidth;
  d["sci_mode"] = o.sci_mode;
  return d;
}

void set_printing(std::optional<int> precision, std::optional<double> threshold,
                  std::optional<int> edgeitems, std::optional<int> linewidth,
                  std::optional<std::string> profile, std::optional<bool> sci_mode) {
  PrintOptions o = print_options();
  if (profile) o = PrintOptions::profile(*profile, o);
  if (precision) o.precision = *precision;
  if (threshold) o.threshold = *threshold;
  if (edgeitems) o.edgeitems = *edgeitems;
  if (linewidth) o.linewidth = *linewidth;
  o.sci_mode = sci_mode;
  set_print_options(o);
}

void set_autocast(bool enabled, nb::handle object, bool keeps_casts) {
  DType dtype;
  if (!dtype_from(object.ptr(), &dtype))
    throw_error(ErrorKind::kType, cat("expected a dtype, got ", nb::repr(object).c_str()));
  eager::set_autocast({.enabled = enabled, .dtype = dtype, .keeps_casts = keeps_casts});
}

nb::dict memory() {
  const MemoryStats s = memory_stats();
  nb::dict d;
  d["bytes_in_use"] = s.bytes_in_use;
  d["bytes_cached"] = s.bytes_cached;
  d["peak_bytes_in_use"] = s.peak_bytes_in_use;
  d["allocations"] = s.allocations;
  return d;
}

// Called at exit, before Python finalizes: running tasks may finish, nothing takes the GIL
// afterwards.
void shut_down() {
  {
    nb::gil_scoped_release released;
    stop_background();
    shutdown_pool(5.0);
  }
  mark_python_finalizing();
}

}  // namespace

void bind_settings(nb::module_& m) {
  compile::compile_in_background();  // shut_down() ends it
  m.def("get_num_threads", &num_threads);
  m.def("set_num_threads", [](int n) {
    nb::gil_scoped_release released;
    set_num_threads(n);
  });
  m.def("_wait_for_kernels", [] {
    nb::gil_scoped_release released;
    wait_for_background();
  });
  m.def("is_grad_enabled", &eager::is_grad_enabled);
  m.def("is_inference_mode_enabled", &eager::is_inference_mode);
  m.def("_set_grad_enabled", &eager::set_grad_enabled);
  m.def("_enter_inference_mode", &eager::enter_inference_mode);
  m.def("_get_modes", [] { return context()[ContextWord::kModes]; });
  m.def("_set_modes", [](uint64_t word) { context()[ContextWord::kModes] = word; });
  m.def("_get_autocast", [] {
    const eager::Autocast state = eager::autocast();
    return nb::make_tuple(state.enabled, nb::borrow(dtype_object(state.dtype)), state.keeps_casts);
  });
  m.def("_set_autocast", &set_autocast);
  m.def("get_default_dtype", [] { return nb::borrow(dtype_object(default_dtype())); });
  m.def("set_default_dtype", &set_dtype, nb::arg("d"));
  m.def("_print_options", &printing);
  m.def("_set_print_options", &set_printing, nb::arg("precision").none(),
        nb::arg("threshold").none(), nb::arg("edgeitems").none(), nb::arg("linewidth").none(),
        nb::arg("profile").none(), nb::arg("sci_mode").none());
  m.def("memory_stats", &memory);
  m.def("reset_peak_memory", &reset_peak_memory);
  m.def("empty_memory_cache", &empty_memory_cache);
  m.def("_shut_down", &shut_down);
  m.def("_watch_interrupts", [] { set_interrupt_hook(&run_signal_handlers); });
}

}  // namespace prong::python
