// A fused node's native code: one kernel for each combination of dtypes and layouts that it meets.
// Made by compile/.
#pragma once

#include <memory>

#include "exec/program.h"
#include "graph/graph.h"

namespace prong::codegen {

// `region`: a graph of pointwise op nodes and constants only (passes/fuse makes such). The graph
// must not change any more.
Ref<exec::FusedKernel> make_fused_region(std::shared_ptr<const Graph> region, std::string name);

}  // namespace prong::codegen
