// Python's side of capture/: compiled functions, Python back ends, reports.
#pragma once

#include <nanobind/nanobind.h>

namespace prong::python {

void bind_capture(nanobind::module_& m);

}  // namespace prong::python
