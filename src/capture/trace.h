// Trace: the tensor work of one segment as flat lists. Written by recorder.cpp, run by runner.cpp,
// turned into a Graph by trace_graph.cpp and shown to Python back ends by bindings/.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ops/op_def.h"
#include "tensor/ivalue.h"

namespace prong::capture {

using ValueId = int32_t;

// What an argument of a node is; `index` counts in the trace's list of that kind.
struct Operand {
  enum class Kind : uint8_t { kValue, kConstant, kNumber, kList };
  Kind kind;
  int32_t index;
};

enum class ResultKind : uint8_t { kTensor, kTuple, kList };

struct TraceNode {
  const OpDef* op;
  std::vector<Operand> args;
  ResultKind result = ResultKind::kTensor;
  ValueId first_output = -1;  // in-place: the value written
  int32_t num_outputs = 1;
  int32_t place = -1;  // in Trace::places
  uint64_t modes = 0;  // grad and inference mode where it was recorded
};

struct Place {
  std::string file;
  int line = 0;
  std::string function;
};

struct TraceValue {
  TensorMeta meta;
  int32_t producer = -1;  // node; -1: an input
  int32_t output = 0;
  std::string name;      // of the Python variable, where known
  ValueId storage = -1;  // the first value over the same memory
};

// A forked body: the nodes from `first` up to `end`, those of bodies forked in it included. To run
// them where they stand is always right.
struct TraceRegion {
  int32_t parent = -1;  // in Trace::regions
  int32_t first = 0, end = -1;
  std::string name;  // of the function that was forked
  int32_t place = -1;
};

struct Trace {
  std::vector<TraceNode> nodes;
  std::vector<TraceValue> values;
  std::vector<std::vector<Operand>> lists;
  std::vector<IValue> constants;
  std::vector<IValue> numbers;        // ints and floats of this call
  std::map<size_t, int32_t> varying;  // numbers that are another at each call: number of the plan
  std::vector<size_t> sized;          // numbers that follow from sizes
  std::vector<ValueId> inputs;        // in the order of first use
  std::vector<ValueId> outputs;       // set when the segment closes
  std::vector<Place> places;
  std::vector<TraceRegion> regions;  // by first node; outer ones stand before inner ones
  std::vector<uint64_t> key;         // equal keys: the same program, save for numbers
  bool has_writes = false;
  bool draws = false;           // random numbers
  bool inputs_overlap = false;  // two inputs share a storage
  bool may_raise = false;       // the last node may raise because of its data
  bool checks_data = false;     // some node may raise with other data, whatever IndexChecks say
  bool has_other_names =
      false;  // an input is read under the name of another tensor over its memory
};

// Does the node write to memory that the trace was given? What it writes to its own is forgotten
// with it.
bool writes_outside(const Trace& trace, const TraceNode& node);

// Numbers of the trace that are inputs of the compiled program (they changed between calls); the
// others are constants.
using NumberInputs = std::vector<bool>;

// The word of a trace's key for an operand that is a value.
inline uint64_t operand_code(Operand::Kind kind, size_t index) {
  return uint64_t{2} << 60 | static_cast<uint64_t>(kind) << 56 | index;
}
inline bool is_value_code(uint64_t word) {
  return word >> 56 == operand_code(Operand::Kind::kValue, 0) >> 56;
}
inline size_t value_of_code(uint64_t word) { return word & ((uint64_t{1} << 56) - 1); }

bool same_number(const IValue& a, const IValue& b);  // of the same kind, too

// A node's name as people read it: "mul_1", "relu_2": the op's base name and its count among those.
std::vector<std::string> value_names(const Trace& trace);

}  // namespace prong::capture
