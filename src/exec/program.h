// Program: the bytecode of one function. Made by assemble.cpp, run by interpreter.cpp, printed for
// PRONG_LOG=exec.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "graph/function.h"
#include "graph/host_op.h"

namespace prong::exec {

enum class Opcode : uint8_t {
#define PRONG_INSTRUCTION(name, spelling, immediates, comment) k##name,
#include "exec/instructions.def"
#undef PRONG_INSTRUCTION
};
struct OpcodeInfo {
  const char* spelling;
  const char* immediates;
  uint32_t num_immediates;
};
const OpcodeInfo& info(Opcode opcode);

constexpr uint32_t kDiscard = 0xffffffff;  // a destination that nobody reads

// An operand word: what to do in the low two bits, then the number of a register or constant.
enum class Access : uint32_t { kCopy = 0, kTake = 1, kConstant = 2 };
constexpr uint32_t encode(Access access, uint32_t index) {
  return index << 2 | static_cast<uint32_t>(access);
}

// One decoded look at an instruction.
struct Instruction {
  Opcode opcode;
  uint32_t num_destinations, num_operands;
  const uint32_t *immediates, *destinations, *operands;
  uint32_t length;  // words
};
inline Instruction instruction_at(const uint32_t* word) {
  Instruction i;
  i.opcode = static_cast<Opcode>(word[0] & 0xff);
  i.num_destinations = word[0] >> 8;
  i.num_operands = word[1];
  i.immediates = word + 2;
  i.destinations = i.immediates + info(i.opcode).num_immediates;
  i.operands = i.destinations + i.num_destinations;
  i.length = static_cast<uint32_t>(i.operands + i.num_operands - word);
  return i;
}

struct Program;

// A place that starts tasks: what they run, and where it stands, for tracebacks of errors in them.
struct ForkSite final : RefCounted {
  Ref<Function> function;   // null: a method or a block
  std::string method;       // of operand 0
  Ref<Program> program;     // of a block
  std::string in_function;  // that forks
  SourceRange range;
};

// What codegen/ makes of a fused node; compile/ attaches it to the node. `run` false: not now (not
// compiled yet, or arguments of a kind that it does not take), so that the ops run one by one.
struct FusedKernel : RefCounted {
  virtual bool run(std::span<const IValue> args, std::span<IValue> results) = 0;
};
struct FusedSite {
  Ref<Program> ops;         // the subgraph
  Ref<FusedKernel> kernel;  // may be null
};

struct Program final : RefCounted {
  std::string name;  // of the function
  const char* profile_name = nullptr;
  bool is_fused = false;  // a subgraph: it has no line of its own in tracebacks
  uint32_t num_parameters = 0;
  uint32_t num_registers = 0;
  std::vector<uint32_t> code;

  std::vector<IValue> constants;
  std::vector<const OpDef*> ops;
  std::vector<const HostOp*> host_ops;
  std::vector<Ref<Function>> functions;
  std::vector<Ref<ForkSite>> fork_sites;
  std::vector<std::vector<TypePtr>> types;
  std::vector<Ref<TupleNames>> tuple_names;  // parallel to types, for named tuples
  std::vector<FusedSite> fused_sites;
  Definitions* home = nullptr;                 // of its function
  std::vector<Ref<Definitions>> called_homes;  // of functions that it calls, but its own

  // What a task that runs it holds, so that it, and all that it calls, stays.
  Ref<RefCounted> keeper() const {
    if (home) return Ref<RefCounted>(home);
    return Ref<RefCounted>(const_cast<Program*>(this));
  }

  // From code position on: the source of what follows. Sorted.
  struct Mark {
    uint32_t position;
    SourceRange range;
  };
  std::vector<Mark> marks;
  // An error between begin and end goes to `handler`, with the exception in `error_register`. Inner
  // ones first.
  struct Region {
    uint32_t begin, end, handler, error_register;
  };
  std::vector<Region> regions;

  Instruction at(uint32_t position) const;
  SourceRange range_at(uint32_t position) const;
  std::string str() const;
};

// The optimizer takes a function and gives the graph that is to run, a changed copy; compile/
// installs it.
using Optimizer = std::unique_ptr<Graph> (*)(const Function& function);
void set_optimizer(Optimizer optimizer);

// The program of a function, compiled at the first call. Thread-safe.
const Program& program_of(Function& function);
// Without optimizer and cache. The home is that of the graph's function.
Ref<Program> assemble(const Graph& graph, std::string name, Definitions* home = nullptr);

}  // namespace prong::exec
