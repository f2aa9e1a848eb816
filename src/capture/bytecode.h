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

struct Bytecode {
  std::vector<Instruction> instructions;
  std::vector<int32_t>
      at_unit;        // the instruction that starts at a unit (at its EXTENDED_ARGs too); -1: none
  int num_slots = 0;  // locals, cells and free variables
  int stack_size = 0;
  bool is_import = false;  // of the import system: what it does is no business of a graph
};

// Lives as long as the code object. Null with an error set.
const Bytecode* bytecode_of(PyCodeObject* code);

}  // namespace prong::capture
