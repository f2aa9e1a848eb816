// What the forked bodies of a trace need of each other: which may run beside the rest, what they
// give, who must wait for whom. Used by trace_graph.cpp, runner.cpp and bindings/.
#pragma once

#include "capture/trace.h"

namespace prong::capture {

class TraceRegions {
 public:
  explicit TraceRegions(const Trace& trace);

  int32_t region_of(size_t node) const { return region_of_[node]; }
  // The region in which a value is made; -1: in none, or an input.
  int32_t region_of_value(ValueId v) const;
  bool contains(int32_t outer, int32_t region) const;  // -1 contains all

  // Values of the body, or of bodies in it, that are read elsewhere.
  const std::vector<ValueId>& outputs(int32_t region) const {
    return outputs_[static_cast<size_t>(region)];
  }
  // Nobody reads what it gives, and it writes and draws nothing.
  bool is_dead(int32_t region) const;
  // Must the node run after this earlier body, though it reads no value of it? One of them writes
  // what the other touches, or both draw random numbers.
  bool conflicts(int32_t region, size_t node) const;
  bool may_conflict() const { return has_effects_; }

  // About how much longer each body takes than it costs to run it as a task, with the recording's
  // sizes.
  std::vector<double> costs() const;

 private:
  struct Touched {
    std::vector<ValueId> read, written;  // storages
    bool draws = false;
  };
  static void touch(const Trace& trace, const TraceNode& n, Touched* t);
  void find_outputs();
  double cost(const TraceNode& n) const;

  const Trace& trace_;
  std::vector<int32_t> region_of_;
  std::vector<std::vector<ValueId>> outputs_;
  std::vector<Touched> touched_;  // by region, and by node where something is written or drawn
  std::vector<Touched> by_node_;
  bool has_effects_ = false;
};

// Values that an operand names, those in lists too.
template <class F>
void for_each_value(const Trace& trace, const Operand& o, F f) {
  if (o.kind == Operand::Kind::kValue) f(static_cast<ValueId>(o.index));
  if (o.kind == Operand::Kind::kList)
    for (const Operand& item : trace.lists[static_cast<size_t>(o.index)])
      for_each_value(trace, item, f);
}

}  // namespace prong::capture
