// Gives fused nodes their kernels; without LLVM there are none.
#include "compile/fused_kernels.h"

#ifdef PRONG_HAVE_LLVM
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

void attach(Block& b) {
  // Who reads the log wants all of it, in the order of the program.
  static const bool in_place = env_has("PRONG_SKIP", "background") || is_logged(LogTopic::kCodegen);
  const codegen::Compile compile =
      in_place ? codegen::Compile::kInPlace : codegen::Compile::kBackground;
  for (Node* n : b) {
    if (n->is(NodeKind::kFused))
      n->set_attachment(
          codegen::make_fused_region(n->subgraph_ref(), name_of(n->subgraph()), compile));
    for (Block* inner : n->blocks()) attach(*inner);
  }
}

}  // namespace

void attach_kernels(Graph& graph) { attach(*graph.top()); }

#else

void attach_kernels(Graph&) {}

#endif

}  // namespace prong::compile
