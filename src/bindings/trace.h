// While a call is traced (jit.trace): what goes into its graph instead of, or beside, what usually
// happens. Called by the files that call functions, wait for futures and look into tensors.
#pragma once

#include <nanobind/nanobind.h>

#include "eager/dispatch.h"
#include "tensor/ivalue.h"

namespace prong {
class Function;
}

namespace prong::python {

bool is_tracing();
IValue traced_call(Function& f, std::vector<IValue> args);
nanobind::object traced_fork(const Ref<Future>& future, nanobind::handle function,
                             nanobind::handle args, nanobind::handle kwargs);
void traced_wait(const Ref<Future>& future, nanobind::handle value);

void note_traced_read(const char* what);
// Python looks at something of a tensor that is a constant in the graph.
inline void note_read(const char* what) {
  if (context()[ContextWord::kInterceptor]) [[unlikely]]
    note_traced_read(what);
}

}  // namespace prong::python
