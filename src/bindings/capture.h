// Python's side of capture/: compiled functions, Python back ends, reports.
#pragma once

#include <nanobind/nanobind.h>

namespace prong::python {

// While a call runs ops without the GIL, they are recorded with the line that it is called from.
class PlaceScope {
 public:
  PlaceScope();
  ~PlaceScope();
  PlaceScope(const PlaceScope&) = delete;
  PlaceScope& operator=(const PlaceScope&) = delete;

 private:
  struct Held;
  Held* held_ = nullptr;
};

void bind_capture(nanobind::module_& m);

}  // namespace prong::python
