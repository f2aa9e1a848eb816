// Term: what an expression denotes while a function is compiled: a value of the graph, or something
// that exists only then (a function, a module of Python, a bound method, a tuple of such).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/builder.h"
#include "script/resolver.h"
#include "script/types.h"

namespace prong::script {

class Emitter;
struct Iterable;

struct Term {
  enum class Kind : uint8_t {
    kNothing,
    kValue,
    kTuple,      // items: written out, (a, b)
    kNamed,      // named
    kMethod,     // self.name of a built-in type or an interface
    kBound,      // a compiled or ignored method: named, with self as its first argument
    kIterable,   // range(...), enumerate(...), zip(...), reversed(...), d.items()
    kGenerator,  // comprehension, not run yet
    kSuper,      // super(); self
  };
  Kind kind = Kind::kNothing;
  Value* value = nullptr;  // kValue; self of kMethod, kBound, kSuper
  std::vector<Term> items;
  Named named;
  std::string name;
  std::shared_ptr<const Iterable> iterable;
  ExprPtr expression;  // of kGenerator
  Range range;         // where it was written

  Term() = default;
  Term(Value* v) : kind(Kind::kValue), value(v) {}
  static Term tuple(std::vector<Term> items);
  static Term of(Named named);
  static Term method(Value* self, std::string name);
  static Term bound(Value* self, Named named);
  bool is_value() const { return kind == Kind::kValue; }
};

// An argument of a call after evaluation.
struct Given {
  std::string keyword;  // empty: positional
  Term term;
  Range range;
};
using GivenList = std::vector<Given>;

// Something that a loop can go over: its length and its item number i.
struct Iterable {
  virtual ~Iterable() = default;
  virtual std::optional<int64_t> known_length() const { return std::nullopt; }
  virtual Value* length(Emitter& e) const = 0;
  virtual Term item(Emitter& e, Value* index) const = 0;
  // Items differ in kind or type, so that the loop must be written out once for each.
  virtual bool must_unroll() const { return false; }
};
using IterablePtr = std::shared_ptr<const Iterable>;

struct Variable {
  Term term;         // kNothing: not usable, see `problem`
  TypePtr declared;  // of an annotation; null: none
  std::string problem;
};
using Environment = std::map<std::string, Variable>;

// What a condition tells of variables: "x" or "self.bias" has this type.
using Facts = std::vector<std::pair<std::string, TypePtr>>;
struct Condition {
  std::optional<bool> known;  // decided while compiling
  Value* value = nullptr;     // bool; also where known
  Facts if_true, if_false;
};

// How a list of statements ends.
enum class Flow : uint8_t {
  kFalls,   // goes on with what follows
  kMaybe,   // may have been left by return, break or continue: the variable "$skip" tells
  kExits,   // was left so for certain
  kRaises,  // never gets to its end
};

}  // namespace prong::script
