// The Graph of a Trace, for the pass pipeline and for people. Called by runner.cpp and bindings/.
#pragma once

#include "capture/runner.h"
#include "graph/graph.h"

namespace prong::capture {

// Inputs: the trace's tensors, then the numbers that are inputs; one output, a tuple of the trace's
// outputs.
// `tasks`: by region, whether its body is forked; else it runs where it stands.
std::unique_ptr<Graph> to_graph(const Trace& trace, const NumberInputs& number_inputs,
                                const std::vector<bool>& tasks);
// For people: all bodies are forked.
std::unique_ptr<Graph> to_graph(const Trace& trace, const NumberInputs& number_inputs);

}  // namespace prong::capture
