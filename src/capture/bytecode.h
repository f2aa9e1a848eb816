// The instructions of a code object, decoded once: extended arguments joined, caches skipped.
// Called by the evaluator.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstdint>
#include <vector>

namespace prong::capture {

struct Instruction {
  uint8_t opcode;
  int32_t arg;
  int32_t unit;   // of the instruction itself, after its EXTENDED_ARGs
  int32_t first;  // of its first EXTENDED_ARG, or `unit`
};

// Where an error in a range of units goes on: `depth` values stay on the stack, then come, if
// `keeps_position`, the unit it was raised at, and the exception.
struct ExceptionHandler {
  int32_t begin, end, target, depth;
  bool keeps_position;
};

struct Bytecode {
  std::vector<Instruction> instructions;
  std::vector<int32_t>
      at_unit;  // the instruction that starts at a unit (at its EXTENDED_ARGs too); -1: none
  std::vector<ExceptionHandler> handlers;
  const ExceptionHandler* handler_at(int32_t unit) const {  // null: none
    for (const ExceptionHandler& h : handlers)
      if (unit >= h.begin && unit < h.end) return &h;
    return nullptr;
  }
  int num_slots = 0;  // locals, cells and free variables
  int stack_size = 0;
  bool is_import = false;  // of the import system: what it does is no business of a graph
};

// Lives as long as the code object. Null with an error set.
const Bytecode* bytecode_of(PyCodeObject* code);

}  // namespace prong::capture
