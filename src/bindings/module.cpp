// The Python module prong._core; imported by python/prong.
#include <nanobind/nanobind.h>

NB_MODULE(_core, m) { m.attr("__version__") = PRONG_VERSION; }
