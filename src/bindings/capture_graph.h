// A trace as Python data, for prong.fx to build its Graph from; and back ends that are Python
// callables.
#pragma once

#include "bindings/python.h"
#include "capture/runner.h"

namespace prong::python {

// (inputs, nodes, outputs, bodies): names of inputs; for each node (op, args, kwargs, output names,
// result kind, place); names of outputs; forked bodies (body around it, first node, end, name,
// place), none where the order of all nodes must be kept. Inside args a value is a Reference:
// ("%", name). A new reference.
PyObject* describe_trace(const capture::Trace& trace, const capture::NumberInputs& number_inputs);

// Calls `compiler(description, example_inputs)`, which gives the callable to run.
Ref<capture::Backend> python_backend(PyObject* compiler);

}  // namespace prong::python
