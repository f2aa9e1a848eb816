// Runs a trace with forked bodies: as tasks of the pool where they are worth it, else one after the
// other. See runner.h.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <map>

#include "base/flags.h"
#include "capture/gil.h"
#include "capture/runner.h"
#include "capture/trace_graph.h"
#include "capture/trace_regions.h"
#include "exec/run.h"
#include "graph/function.h"

namespace prong::capture {

namespace {

// A task may need the GIL (hooks of gradients); who waits for it does not keep it.
class GilReleased {
 public:
  GilReleased() : state_(holds_gil() ? PyEval_SaveThread() : nullptr) {}
  ~GilReleased() {
    if (state_) PyEval_RestoreThread(state_);
  }
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;

 private:
  PyThreadState* state_;
};

class RegionProgram final : public Runner {
 public:
  RegionProgram(std::shared_ptr<const Trace> trace, const NumberInputs& number_inputs,
                Ref<Runner> in_order, bool is_optimized)
      : trace_(std::move(trace)), number_inputs_(number_inputs), in_order_(std::move(in_order)),
        is_optimized_(is_optimized), costs_(TraceRegions(*trace_).costs()) {
    for (const ValueId v : trace_->inputs) {
      double n = 1;
      for (const int64_t size : trace_->values[static_cast<size_t>(v)].meta.sizes)
        n *= static_cast<double>(size);
      recorded_elements_ += n;
    }
  }

  std::vector<IValue> run(std::span<const IValue> inputs) override {
    Function* function = function_for(inputs);
    if (!function) return in_order_->run(inputs);
    if (trace_->has_writes || trace_->draws) ++effects_done;  // how far a task came is not known
    std::vector<IValue> args(inputs.begin(), inputs.end());
    const GilReleased released;
    return exec::run(*function, std::move(args)).items();
  }

 private:
  // Null: no body is worth a task.
  Function* function_for(std::span<const IValue> inputs) {
    double elements = 0;
    for (const IValue& v : inputs)
      if (v.is_tensor()) elements += static_cast<double>(v.tensor_impl()->numel);
    static const bool forks_all = env_has("PRONG_SKIP", "task_costs");
    const double scale = elements / std::max(recorded_elements_, 1.0);
    std::vector<bool> tasks(costs_.size());
    bool has_tasks = false;
    for (size_t r = 0; r < costs_.size(); ++r) {
      tasks[r] = costs_[r] * scale > 1 || forks_all;
      has_tasks |= tasks[r];
    }
    if (!has_tasks) return nullptr;
    std::lock_guard lock(mutex_);
    Ref<Function>& f = functions_[tasks];
    if (!f) f = build(tasks);
    return f.get();
  }

  Ref<Function> build(const std::vector<bool>& tasks) const {
    Ref<Function> f = captured_function(to_graph(*trace_, number_inputs_, tasks));
    if (!is_optimized_) f->try_set_program(exec::assemble(f->graph(), f->name(), f->home()));
    return f;
  }

  const std::shared_ptr<const Trace> trace_;
  const NumberInputs number_inputs_;
  const Ref<Runner> in_order_;
  const bool is_optimized_;
  const std::vector<double> costs_;
  double recorded_elements_ = 0;
  std::mutex mutex_;
  std::map<std::vector<bool>, Ref<Function>> functions_;  // by the bodies that are tasks
};

}  // namespace

Ref<Function> captured_function(std::unique_ptr<Graph> graph) {
  Schema schema;
  schema.name = "captured";
  for (size_t i = 0; i < graph->inputs().size(); ++i) {
    Argument a;
    a.name = cat("arg_", i);
    a.type = graph->inputs()[i]->type();
    schema.arguments.push_back(std::move(a));
  }
  schema.results = {graph->outputs()[0]->type()};
  auto function = make_ref<Function>("captured", std::move(schema));
  function->define(std::move(graph));
  return function;
}

Ref<Runner> with_tasks(std::shared_ptr<const Trace> trace, const NumberInputs& number_inputs,
                       Ref<Runner> in_order, bool is_optimized) {
  // The passes take tensors with different names for different memory where something is written;
  // an error of the last op must be the kernel's own.
  if (trace->regions.empty() || (trace->has_writes && trace->inputs_overlap) || trace->may_raise)
    return in_order;
  return make_ref<RegionProgram>(std::move(trace), number_inputs, std::move(in_order),
                                 is_optimized);
}

}  // namespace prong::capture
