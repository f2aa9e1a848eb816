// Gives fused nodes their kernels; without LLVM there are none.
#include "compile/fused_kernels.h"

#ifdef PRONG_HAVE_LLVM
#include <atomic>

#include "base/flags.h"
#include "base/log.h"
#include "codegen/fused_region.h"
#endif

namespace prong::compile {

#ifdef PRONG_HAVE_LLVM

namespace {

std::string name_of(const Graph& region) {
  std::string name = "fused";
  for (const Node* n : *region.top())
    if (n->is(NodeKind::kOp)) name += cat(name.size() == 5 ? " " : "+", n->op().base_name());
  return name;
}

std::atomic<codegen::Compile> where{codegen::Compile::kInPlace};

void attach(Block& b) {
  const codegen::Compile compile = where.load(std::memory_order_relaxed);
  for (Node* n : b) {
    if (n->is(NodeKind::kFused))
      n->set_attachment(
          codegen::make_fused_region(n->subgraph_ref(), name_of(n->subgraph()), compile));
    for (Block* inner : n->blocks()) attach(*inner);
  }
}

}  // namespace

void attach_kernels(Graph& graph) { attach(*graph.top()); }

void compile_in_background() {
  // Who reads the log wants all of it, in the order of the program.
  if (env_has("PRONG_SKIP", "background") || is_logged(LogTopic::kCodegen)) return;
  where = codegen::Compile::kBackground;
}

#else

void attach_kernels(Graph&) {}
void compile_in_background() {}

#endif

}  // namespace prong::compile
