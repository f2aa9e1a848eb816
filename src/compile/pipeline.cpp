// The one ordered list of passes.
#include "compile/pipeline.h"

#include "base/flags.h"
#include "base/log.h"
#include "compile/fused_kernels.h"
#include "exec/program.h"
#include "graph/printer.h"
#include "graph/verify.h"
#include "passes/passes.h"
#include "profile/profile.h"

namespace prong::compile {

namespace {

// Times, logs and checks each pass; leaves out those that PRONG_SKIP names.
class Pipeline {
 public:
  Pipeline(Graph& graph, std::string_view name) : graph_(graph), name_(name) {
    if (is_logged(LogTopic::kPasses)) {
      before_ = print(graph_, name_);
      write_log(LogTopic::kPasses, cat("before the passes:\n", before_));
    }
  }

  void run(const char* pass, void (*f)(Graph&)) {
    if (env_has("PRONG_SKIP", pass)) {
      PRONG_LOG(kPasses, "skipped ", pass);
      return;
    }
    {
      const profile::Scope scope(pass, profile::Category::kFunction);
      f(graph_);
    }
    log(pass);
#ifndef NDEBUG
    verify(graph_);
#endif
  }

 private:
  void log(const char* pass) {
    if (!is_logged(LogTopic::kPasses)) return;
    std::string after = print(graph_, name_);
    write_log(LogTopic::kPasses, after == before_ ? cat("after ", pass, ": (unchanged)")
                                                  : cat("after ", pass, ":\n", after));
    before_ = std::move(after);
  }

  Graph& graph_;
  std::string_view name_;
  std::string before_;
};

std::unique_ptr<Graph> optimized(const Function& function) {
  std::unique_ptr<Graph> graph = function.graph().copy();
  optimize(*graph, function.name());
  return graph;
}

}  // namespace

void optimize(Graph& graph, std::string_view name) {
  Pipeline p(graph, name);
  p.run("fold", fold);  // decided branches and tuples first: they hide what the others look for
  p.run("cse", cse);    // equal subexpressions become one, so that a fused group computes them once
  p.run("dce", dce);    // what the two left unread is no output of a group
  p.run("fuse", fuse);  // last of the rewrites: later passes would have to look into groups
  p.run("attach_kernels",
        attach_kernels);  // made when the group first runs, for the arguments it gets
}

void install() { exec::set_optimizer(&optimized); }

}  // namespace prong::compile
