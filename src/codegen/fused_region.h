// A fused node's native code: one kernel for each combination of dtypes and layouts that it meets.
// Made by compile/.
#pragma once

#include <cstdint>
#include <memory>

#include "exec/program.h"
#include "graph/graph.h"

namespace prong::codegen {

// Where a kernel is compiled that a call lacks.
enum class Compile : uint8_t {
  kInPlace,     // by the call, which then runs it
  kBackground,  // by the background thread (runtime/background.h): calls run the ops until it is
                // there
};

// `region`: a graph of pointwise op nodes and constants only (passes/fuse makes such). The graph
// must not change any more.
Ref<exec::FusedKernel> make_fused_region(std::shared_ptr<const Graph> region, std::string name,
                                         Compile compile);

}  // namespace prong::codegen
