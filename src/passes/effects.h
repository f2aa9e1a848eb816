// What a node may do beside giving its outputs; asked by all passes that move, merge or drop nodes.
#pragma once

#include "graph/graph.h"

namespace prong {

// Nobody can tell whether it ran, but for its outputs: it may be dropped if they are not read.
bool is_droppable(const Node& n);

// May change a tensor, list, dict or object that others see (blocks inside included): reads may not
// move across it.
bool may_write(const Node& n);

// The same inputs give an equal output each time, unless something that may_write stands in
// between.
bool is_repeatable(const Node& n);

// No two names can be told apart through it: the value goes into ops that neither change it nor
// keep it, so that nobody sees which object it is. Numbers and strings always are.
bool is_private(const Value& v);

}  // namespace prong
