// Graph to text and back. The text is Python-like SSA, made for golden tests, logs, the archive and people:
//
//   def f(x: Tensor, n: int) -> Tensor:
//     y: Tensor = mul(x, 2.0)
//     out: Tensor = loop(n, True, acc = y) as i:
//       z: Tensor = add(acc, x)
//       yield True, z
//     return out
//
// Constants that can be written as literals stand where they are used; others are numbered: $3, an index of a pool.
// Arguments that equal a schema's default are left out; keyword-only ones carry their names.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/function.h"
#include "graph/graph.h"

namespace prong {

struct PrintOptions {
  bool ranges = false;                   // "  # x.py:3" at the end of lines
  std::vector<IValue>* pool = nullptr;   // collects $n constants; null: they are printed as $n only
};
std::string print(const Graph& graph, std::string_view name = "graph", const PrintOptions& options = {});
std::string print(const Function& function, const PrintOptions& options = {});

// What names in a text stand for, beyond ops and literals.
struct ParseScope {
  std::vector<Ref<Function>> functions;   // call(f, ...), fork(f, ...)
  std::vector<Ref<ClassType>> classes;
  std::vector<IValue> pool;
};
// One or more `def`s, which may call each other. kValue with line, column and a caret on bad text.
std::vector<Ref<Function>> parse_functions(std::string_view text, const ParseScope& scope = {},
                                           std::string_view file = "<text>");
std::unique_ptr<Graph> parse_graph(std::string_view text, const ParseScope& scope = {});

}  // namespace prong
