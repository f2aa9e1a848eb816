// Kernels of fused nodes: made by codegen at the first run, for each kind of arguments that comes.
#pragma once

#include "graph/graph.h"

namespace prong::compile {

// Gives every fused node of the graph a kernel (exec::FusedKernel). Where this build has no LLVM it
// does nothing, and the ops run one by one.
void attach_kernels(Graph& graph);

}  // namespace prong::compile
