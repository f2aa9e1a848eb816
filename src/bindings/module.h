// The parts of the module prong._core that are plain nanobind functions, by file.
#pragma once

#include <nanobind/nanobind.h>

namespace prong::python {

void bind_settings(
    nanobind::module_& m);  // threads, grad mode, default dtype, print options, interrupts, exit
void bind_registry(nanobind::module_& m);  // the ops as data: for tests, stubs and docs
void bind_dtype_rules(nanobind::module_& m);
void bind_generator(nanobind::module_& m);
void bind_autograd(nanobind::module_& m);
void bind_vmap(nanobind::module_& m);
void bind_profiler(nanobind::module_& m);
void bind_optimizer(nanobind::module_& m);  // gradients and state of many parameters at once
void bind_nn_module(nanobind::module_& m);
void bind_saving_hooks(nanobind::module_& m);

}  // namespace prong::python
