// Runner: what runs a segment: the plain loop over its nodes, a compiled Program, or a back end's
// callable.
#pragma once

#include <mutex>
#include <unordered_map>

#include "capture/trace.h"

namespace prong {
class Function;
class Graph;
}  // namespace prong

namespace prong::capture {

class Runner : public RefCounted {
 public:
  // Inputs: the trace's tensors, then the numbers that are inputs. Results: one tensor for each
  // output.
  virtual std::vector<IValue> run(std::span<const IValue> inputs) = 0;
};

// Nodes that have written or drawn numbers on this thread: where it did not move, what failed may
// be run again (an op that refuses its arguments writes nothing).
extern thread_local uint64_t effects_done;

// Makes runners; one for each kind of back end.
class Backend : public RefCounted {
 public:
  virtual Ref<Runner> compile(std::shared_ptr<const Trace> trace, const NumberInputs& number_inputs,
                              std::span<const IValue> inputs) = 0;
  virtual bool is_python() const { return false; }
};

// Runs the nodes one by one through their kernels.
Ref<Backend> interpreter_backend();
// Through the pass pipeline: fused regions become native kernels.
Ref<Backend> native_backend();

// Runs the plain loop beside the back end's programs; a difference is an error, which `refuse`
// throws.
using Refuse = void (*)(const std::string& text);
Ref<Backend> checked_backend(Ref<Backend> checked, Refuse refuse);

// A runner for exactly the trace's outputs, views of inputs included. `taped`: through eager::run,
// so that gradients are recorded.
Ref<Runner> node_loop(std::shared_ptr<const Trace> trace, const NumberInputs& number_inputs,
                      bool taped);

// The same for a trace with forked bodies, which run as tasks where that pays; else `in_order`
// runs. `is_optimized`: through the pass pipeline.
Ref<Runner> with_tasks(std::shared_ptr<const Trace> trace, const NumberInputs& number_inputs,
                       Ref<Runner> in_order, bool is_optimized);
// A graph of trace_graph.h as something that exec/ runs.
Ref<Function> captured_function(std::unique_ptr<Graph> graph);

class SegmentObserver;  // recorder.h

// Programs of one compiled function, by the structure of their traces.
class ProgramCache : public RefCounted {
 public:
  struct Found {
    Ref<Runner> runner;
    NumberInputs number_inputs;
    bool is_new = false;
    int64_t compile_ns = 0;    // of a new one
    const char* why_new = "";  // of a new one, in words
  };
  explicit ProgramCache(Ref<Backend> backend) : backend_(std::move(backend)) {}
  // The program for this trace, compiled now if it isn't there, unless the observer throws.
  // `inputs`: its tensors.
  Found find(const std::shared_ptr<const Trace>& trace, std::span<const IValue> inputs,
             SegmentObserver* observer = nullptr);
  void clear();
  size_t size() const;
  const Backend& backend() const { return *backend_; }

 private:
  struct Variant {
    NumberInputs number_inputs;
    std::vector<IValue> numbers;
    std::vector<ValueId> outputs;
    Ref<Runner> runner;
  };
  struct Entry {
    std::vector<uint64_t> key;
    std::vector<Variant> variants;
  };
  Ref<Backend> backend_;
  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, std::vector<Entry>> entries_;
};

// The tensors of a call, then those of its numbers that are inputs.
std::vector<IValue> program_inputs(const Trace& trace, const NumberInputs& number_inputs,
                                   std::span<const IValue> tensors);

}  // namespace prong::capture
