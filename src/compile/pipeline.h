// What happens between a front end's graph and its first run. Called by exec/ through install(), by
// front ends and tests.
#pragma once

#include <memory>

#include "graph/function.h"

namespace prong::compile {

// Runs all passes on a graph; `name` is for logs.
void optimize(Graph& graph, std::string_view name);

// exec/ compiles functions through optimize() from now on. Once, before the first run; again does
// nothing.
void install();

}  // namespace prong::compile
