// Python functions that the tape calls: hooks, the steps of autograd.Function, what stands for
// saved tensors. Called by bindings/; while a call is recorded, they are part of it.
#pragma once

#include "capture/python_door.h"
#include "eager/node.h"

namespace prong::capture {

// A new reference; null with an error set. The GIL is held. `is_from_outside`: a hook that is
// older than the call that is recorded.
PyObject* call_by_tape(PyObject* callable, PyObject* const* args, size_t count,
                       bool is_from_outside = false);

// Of the call that is recorded on this thread; 0: there is none.
uint64_t recording_number();

// Did the error that is set come from there, through the op that an instruction called? Asked once.
bool is_error_of_tape_call();

extern bool (*is_python_node)(const eager::Node& node);  // bindings/ fills it in

}  // namespace prong::capture
