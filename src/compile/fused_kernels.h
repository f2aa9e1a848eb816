// Kernels of fused nodes: made by codegen at the first run, for each kind of arguments that comes.
#pragma once

#include "graph/graph.h"

namespace prong::compile {

// Gives every fused node of the graph a kernel (exec::FusedKernel). Where this build has no LLVM it
// does nothing, and the ops run one by one.
void attach_kernels(Graph& graph);

// From now on kernels are compiled in the background, unless PRONG_SKIP=background or the log of
// codegen is wanted. For programs that call stop_background() before they exit: the end of a
// process destroys what LLVM uses. Others compile in place.
void compile_in_background();

}  // namespace prong::compile
