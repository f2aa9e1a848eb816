// Checks the invariants of README.md; run after every pass in debug builds and by tests.
#pragma once

#include "graph/graph.h"

namespace prong {

// kInternal with what is wrong, the node and the graph.
void verify(const Graph& graph);

}  // namespace prong
