// Signatures of ops, written in PyTorch's spelling and parsed once at registration:
//   "add(input: Tensor, other: Tensor, *, alpha: Scalar = 1) -> Tensor"
// Argument types: Tensor, Tensor?, Tensor[], int, int?, int[], int[]?, int[2] (an int stands for
// [n, n]), float, float?, bool, bool?, str, str?, Scalar, Scalar?, dtype?, device?, Generator?. A
// "Tensor" also accepts a Python number (it becomes a wrapped zero-dim tensor). Results: Tensor,
// Tensor[], int, bool, float, Scalar, (Tensor values, Tensor indices), None.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/type.h"
#include "tensor/ivalue.h"

namespace prong {

struct Argument {
  std::string name;
  TypePtr type;
  int fixed_list_size = 0;  // int[2]: 2; a single int is repeated
  bool is_keyword_only = false;
  bool has_default = false;
  IValue default_value;
};

struct Schema {
  std::string name;
  std::vector<Argument> arguments;
  std::vector<TypePtr> results;           // one entry; several for a tuple of results
  std::vector<std::string> result_names;  // "values", "indices"; empty strings when unnamed

  static Schema parse(
      std::string_view text);  // kValue with a caret text on a mistake (found at start-up by tests)
  std::string str() const;     // parses back to the same schema
  int find(std::string_view argument_name) const;  // -1 when absent
  // The leading arguments that are given, and the defaults of the rest; an internal error where
  // there is none.
  std::vector<IValue> with_defaults(std::span<const IValue> given) const;
  // Number of leading arguments that may be given by position.
  int num_positional() const;
  // PyTorch's varargs form: x.permute(0, 2, 1), torch.zeros(2, 3): true when the only positional
  // argument after `skip` ones (1 for a method's self) is a list of ints.
  bool takes_varargs_ints(int skip) const;
};

}  // namespace prong
