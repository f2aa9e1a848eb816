// Walking the tape backwards. Called by bindings and by C++ programs.
#pragma once

#include <span>
#include <vector>

#include "eager/node.h"

namespace prong::eager {

struct BackwardOptions {
  bool keep_graph = false;    // what nodes saved stays, for another pass
  bool create_graph = false;  // the pass itself is recorded
  // Gradients of `inputs` are returned (autograd.grad); otherwise they are added to .grad, of all
  // leaves if no inputs are given.
  bool returns = false;
  bool allow_unused = false;
};

// From the gradients of `roots` (undefined: ones, for a single number) back to the leaves, or to
// `inputs` only. Raises RuntimeError where PyTorch does: roots without gradients, a non-scalar root
// without one, a freed graph, a saved tensor that was written. Independent nodes may run in
// parallel; sums are taken in a fixed order, so that the bits do not depend on the number of
// threads.
std::vector<Tensor> run_backward(std::span<const Tensor> roots, std::span<const Tensor> gradients,
                                 std::span<const Tensor> inputs, const BackwardOptions& options);
// With the edges already known, for custom functions and graph objects.
std::vector<Tensor> run_backward_edges(std::vector<Edge> roots, std::vector<Tensor> gradients,
                                       const std::vector<Edge>& inputs,
                                       const BackwardOptions& options);

// The number of the pass that runs on this thread; 0 outside of one.
uint64_t backward_pass();

}  // namespace prong::eager
