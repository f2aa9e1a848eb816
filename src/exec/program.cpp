// Programs: decoding, printing, and the cache of compiled functions.
#include "exec/program.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "base/log.h"

namespace prong::exec {

const OpcodeInfo& info(Opcode opcode) {
  static constexpr OpcodeInfo table[] = {
#define PRONG_INSTRUCTION(name, spelling, immediates, comment) \
  {spelling, immediates, sizeof(immediates) - 1},
#include "exec/instructions.def"
#undef PRONG_INSTRUCTION
  };
  return table[static_cast<size_t>(opcode)];
}

Instruction Program::at(uint32_t position) const { return instruction_at(code.data() + position); }

SourceRange Program::range_at(uint32_t position) const {
  const auto it = std::upper_bound(marks.begin(), marks.end(), position,
                                   [](uint32_t p, const Mark& m) { return p < m.position; });
  return it == marks.begin() ? SourceRange() : std::prev(it)->range;
}

namespace {

std::string immediate_text(const Program& p, char kind, uint32_t value) {
  switch (kind) {
  case 'o':
    return p.ops[value]->name();
  case 'h':
    return p.host_ops[value]->name();
  case 'c':
    return repr(p.constants[value]);
  case 'f':
    return p.functions[value]->name();
  case 's': {
    const ForkSite& site = *p.fork_sites[value];
    return site.function ? site.function->name() : site.program ? "<block>" : cat(".", site.method);
  }
  case 'y': {
    std::string out;
    for (const TypePtr& t : p.types[value]) out += cat(out.empty() ? "" : "|", t);
    return out;
  }
  default:
    return std::to_string(value);  // t, k, n
  }
}

std::string operand_text(const Program& p, uint32_t word) {
  const uint32_t index = word >> 2;
  switch (static_cast<Access>(word & 3)) {
  case Access::kCopy:
    return cat("r", index);
  case Access::kTake:
    return cat("r", index, "^");  // emptied
  default:
    break;
  }
  const IValue& v = p.constants[index];
  return v.is_tensor() || v.is_object() ? cat("c", index) : repr(v);
}

}  // namespace

std::string Program::str() const {
  std::string out =
      cat("program ", name, ": ", num_parameters, " parameters, ", num_registers, " registers\n");
  for (uint32_t position = 0; position < code.size();) {
    const Instruction i = at(position);
    const OpcodeInfo& about = info(i.opcode);
    std::string line = cat("  ", position, ": ");
    for (uint32_t k = 0; k < i.num_destinations; ++k)
      line += cat(k ? ", " : "",
                  i.destinations[k] == kDiscard ? std::string("_") : cat("r", i.destinations[k]));
    line += cat(i.num_destinations ? " = " : "", about.spelling);
    for (uint32_t k = 0; k < about.num_immediates; ++k)
      line += cat(" ", immediate_text(*this, about.immediates[k], i.immediates[k]));
    for (uint32_t k = 0; k < i.num_operands; ++k)
      line += cat(k ? ", " : " (", operand_text(*this, i.operands[k]));
    out += line + (i.num_operands ? ")\n" : "\n");
    position += i.length;
  }
  for (const Region& r : regions)
    out += cat("  errors in ", r.begin, "..", r.end, " go to ", r.handler, " with r",
               r.error_register, "\n");
  return out;
}

// ── the cache ──

namespace {

std::mutex compile_mutex;
Optimizer optimizer = nullptr;

Ref<Program> compiled(Function& function) {
  if (!optimizer) return assemble(function.graph(), function.name(), function.home());
  return assemble(*optimizer(function), function.name(), function.home());
}

}  // namespace

void set_optimizer(Optimizer o) { optimizer = o; }

const Program& program_of(Function& function) {
  if (RefCounted* p = function.program()) return *static_cast<Program*>(p);
  const std::lock_guard lock(compile_mutex);
  if (RefCounted* p = function.program()) return *static_cast<Program*>(p);
  PRONG_CHECK(
      function.is_defined(), kRuntime, "function '", function.name(),
      "' was declared but never defined, or what it belongs to (a text, an archive) is gone");
  Ref<Program> made = compiled(function);
  PRONG_LOG(kExec, made->str());
  return *static_cast<Program*>(function.try_set_program(std::move(made)));
}

}  // namespace prong::exec
