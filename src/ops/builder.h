// Builder: "apply this op to these values", abstractly. Composite rules, gradients and batching
// rules are written against it once; eager/ implements it by running, graph/ by appending a node.
#pragma once

#include <initializer_list>
#include <string_view>

#include "ops/op_def.h"

namespace prong {

// In eager mode an IValue holds the tensor itself; in a graph builder it holds an ObjectBase that
// stands for a graph value.
class Builder {
 public:
  virtual ~Builder() = default;
  // Trailing arguments with defaults may be left out.
  virtual IValue apply(const OpDef& op, std::span<const IValue> args) = 0;
  virtual TensorMeta
  meta(const IValue& tensor) = 0;  // shape (may be symbolic-free only in eager) and dtype

  IValue operator()(std::string_view op, std::initializer_list<IValue> args) {
    return apply(registry().get(op), std::span<const IValue>(args.begin(), args.size()));
  }
};

}  // namespace prong
