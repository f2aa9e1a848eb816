// The passes; compile/pipeline.cpp calls them in its order.
#pragma once

#include "graph/graph.h"

namespace prong {

void fold(Graph& graph);
void cse(Graph& graph);
void dce(Graph& graph);
void fuse(Graph& graph);

}  // namespace prong
