// Graph to text and back. The text is Python-like SSA, made for golden tests, logs, the archive and
// people:
//
//   def f(x: Tensor, n: int) -> Tensor:
//     y: Tensor = mul(x, 2.0)
//     out: Tensor = loop(n, True, y) as (i: int, acc: Tensor):
//       z: Tensor = add(acc, x)
//       yield True, z
//     return out
//
// Constants that can be written as literals stand where they are used; others are numbered: $3, an
// index of a pool. Arguments that equal a schema's default are left out; keyword-only ones carry
// their names. What a node has beside its operands stands in brackets: get_attr[weight](self),
// call[f](x), tuple_get[1](t), raise[ValueError](text). Names of functions, methods and classes in
// brackets may hold dots. Host ops are spelled host.add.int(a, b).
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/function.h"
#include "graph/graph.h"

namespace prong {

// Names for what may share its own with others: in an archive all are told apart.
struct UniqueNames {
  std::unordered_map<const Function*, std::string> functions;
  std::unordered_map<const ClassInfo*, std::string> classes;
};
struct PrintOptions {
  bool ranges = false;  // "  # x.py:3:4-9" at the end of lines; read back by the parser
  int indent = 0;
  std::vector<IValue>* pool = nullptr;  // collects $n constants; null: they are printed as $n only
  const UniqueNames* names =
      nullptr;  // null: as they are; else Python classes of `raise` are left out, too
};
std::string print(const Graph& graph, std::string_view name = "graph",
                  const PrintOptions& options = {});
std::string print(const Function& function, const PrintOptions& options = {});

// What names in a text stand for, beyond ops and literals.
struct ParseScope {
  std::vector<Ref<Function>> functions;  // call(f, ...), fork(f, ...)
  std::vector<TypePtr> types;            // classes and named tuples, found by Type::name()
  std::vector<IValue> pool;
  std::vector<Ref<SourceText>> sources;  // for the ranges in comments, found by their file name
};
// One or more `def`s, which may call each other, and `declare name(x: int) -> int` for functions
// without a graph. kValue with line, column and a caret on bad text.
std::vector<Ref<Function>> parse_functions(std::string_view text, const ParseScope& scope = {},
                                           std::string_view file = "<text>");
std::string print_type(const Type& type, const UniqueNames* names = nullptr);
TypePtr parse_type(std::string_view text, const ParseScope& scope);
bool is_literal(const IValue& value);
std::string print_literal(const IValue& value);
// A literal: a number, string, dtype or a list or tuple of such; kValue otherwise.
IValue parse_literal(std::string_view text);

}  // namespace prong
