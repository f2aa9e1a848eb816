// HostOp: an operation of the language on run-time values other than tensors: int addition,
// list.append, str.format, ... One table (host/*.cpp). The script type checker resolves overloads
// on it, exec runs it, passes fold it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/schema.h"
#include "tensor/ivalue.h"

namespace prong {

// May move out of args.
using HostFn = IValue (*)(std::span<IValue> args);

enum class Effect : uint8_t {
  kPure,      // same arguments, same result, never raises: may be folded, merged, dropped
  kMayRaise,  // pure but for errors (division by zero, int("x")): may be folded and merged, not
              // dropped
  kReads,     // looks into a list, dict or other thing that may change (len, getitem); may raise
  kMutates,   // changes argument 0
  kEffect,    // output, global state
};

struct HostOp {
  Schema schema;  // name is unique: "add.int"; type variables are lower-case letters: t, k, v
  std::string base_name;  // "add": how overloads are found
  HostFn fn = nullptr;
  Effect effect = Effect::kPure;
  const std::string& name() const { return schema.name; }
};

// Names follow Python:
//  - operators by their method's name without underscores: add sub mul truediv floordiv mod pow neg
//  pos lshift rshift
//    and or xor invert eq ne lt le gt ge is is_not contains getitem setitem delitem getslice
//  - methods by their name; the first argument is `self`: append, pop, split, keys, ...
//  - builtins by their name: len int float bool str ord chr abs min max sum round sorted
//  range_length enumerate zip ...
//  - functions of the math module with the prefix math_: math_sqrt
class HostRegistry {
 public:
  const HostOp* find(std::string_view name) const;  // exact name, null when absent
  const HostOp& get(std::string_view name) const;
  std::span<const HostOp* const>
  overloads(std::string_view base_name) const;  // best first: int before float before t
  std::span<const std::unique_ptr<HostOp>> all() const { return ops_; }

  // For host/*.cpp: schema as in op schemas, with Python types: "append(self: List[t], el: t) ->
  // None".
  void add(Effect effect, std::string_view schema, HostFn fn);

 private:
  struct Index;
  std::vector<std::unique_ptr<HostOp>> ops_;
  std::shared_ptr<Index> index_;
};

const HostRegistry& host_registry();

// Matches an argument's type against a schema type with variables: binds (name, type) pairs in
// `bindings`, true if it fits. int fits float (the caller inserts a conversion, host op float.int)
// only with allow_conversion.
using TypeBindings = std::vector<std::pair<std::string, TypePtr>>;
bool match_type(const TypePtr& formal, const TypePtr& actual, TypeBindings& bindings,
                bool allow_conversion = false);
// The type with its variables replaced; null if one is unbound.
TypePtr substitute(const TypePtr& type, const TypeBindings& bindings);

// Where print() of scripts goes; bindings/ send it to sys.stdout. Null: the process's stdout.
void set_print_hook(void (*hook)(std::string_view text));

}  // namespace prong
