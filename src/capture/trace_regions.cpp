// What forked bodies of a trace need of each other. See trace_regions.h.
#include "capture/trace_regions.h"

#include <algorithm>
#include <cmath>

namespace prong::capture {

namespace {

// What a task costs beside its body, in nanoseconds: fork, wait, a worker that wakes.
constexpr double kTaskNs = 12'000;
constexpr double kOpNs = 400, kElementNs = 0.4, kMultiplyNs = 0.05;

bool share(const std::vector<ValueId>& a, const std::vector<ValueId>& b) {
  return std::any_of(a.begin(), a.end(),
                     [&](ValueId v) { return std::find(b.begin(), b.end(), v) != b.end(); });
}

void add_once(std::vector<ValueId>* to, ValueId v) {
  if (std::find(to->begin(), to->end(), v) == to->end()) to->push_back(v);
}

double elements(const TensorMeta& m) {
  double n = 1;
  for (const int64_t size : m.sizes) n *= static_cast<double>(size);
  return n;
}

}  // namespace

TraceRegions::TraceRegions(const Trace& trace)
    : trace_(trace), region_of_(trace.nodes.size(), -1), outputs_(trace.regions.size()) {
  for (size_t r = 0; r < trace.regions.size(); ++r)  // inner ones come later
    std::fill(region_of_.begin() + trace.regions[r].first,
              region_of_.begin() + trace.regions[r].end, static_cast<int32_t>(r));
  has_effects_ = !trace.regions.empty() && (trace.has_writes || trace.draws);
  if (has_effects_) {
    touched_.resize(trace.regions.size());
    by_node_.resize(trace.nodes.size());
    for (size_t i = 0; i < trace.nodes.size(); ++i) {
      touch(trace, trace.nodes[i], &by_node_[i]);
      for (int32_t r = region_of_[i]; r >= 0; r = trace.regions[static_cast<size_t>(r)].parent)
        touch(trace, trace.nodes[i], &touched_[static_cast<size_t>(r)]);
    }
  }
  find_outputs();
}

void TraceRegions::touch(const Trace& trace, const TraceNode& n, Touched* t) {
  t->draws |= n.op->is_random();
  const uint64_t written = n.op->written_arguments();
  for (size_t i = 0; i < n.args.size(); ++i)
    for_each_value(trace, n.args[i], [&](ValueId v) {
      const ValueId storage = trace.values[static_cast<size_t>(v)].storage;
      add_once(written >> i & 1 ? &t->written : &t->read, storage);
    });
  for (int32_t k = 0; k < n.num_outputs; ++k)  // its memory is new, or that of an argument
    add_once(&t->read, trace.values[static_cast<size_t>(n.first_output + k)].storage);
}

int32_t TraceRegions::region_of_value(ValueId v) const {
  const int32_t producer = trace_.values[static_cast<size_t>(v)].producer;
  return producer < 0 ? -1 : region_of_[static_cast<size_t>(producer)];
}

bool TraceRegions::contains(int32_t outer, int32_t region) const {
  for (; region >= 0; region = trace_.regions[static_cast<size_t>(region)].parent)
    if (region == outer) return true;
  return outer < 0;
}

void TraceRegions::find_outputs() {
  const auto read = [&](ValueId v, int32_t by) {
    for (int32_t r = region_of_value(v); r >= 0 && !contains(r, by);
         r = trace_.regions[static_cast<size_t>(r)].parent)
      add_once(&outputs_[static_cast<size_t>(r)], v);
  };
  for (size_t i = 0; i < trace_.nodes.size(); ++i) {
    const TraceNode& n = trace_.nodes[i];
    for (const Operand& o : n.args)
      for_each_value(trace_, o, [&](ValueId v) { read(v, region_of_[i]); });
  }
  for (const ValueId v : trace_.outputs) read(v, -1);
}

bool TraceRegions::is_dead(int32_t region) const {
  const auto r = static_cast<size_t>(region);
  return outputs_[r].empty() &&
         (!has_effects_ || (touched_[r].written.empty() && !touched_[r].draws));
}

bool TraceRegions::conflicts(int32_t region, size_t node) const {
  if (!has_effects_) return false;
  const Touched &a = touched_[static_cast<size_t>(region)], &b = by_node_[node];
  return (a.draws && b.draws) || share(a.written, b.written) || share(a.written, b.read) ||
         share(a.read, b.written);
}

double TraceRegions::cost(const TraceNode& n) const {
  double largest = 0;
  double product = 1, factors = 0;
  const auto look = [&](ValueId v) {
    const TensorMeta& m = trace_.values[static_cast<size_t>(v)].meta;
    largest = std::max(largest, elements(m));
    if (m.sizes.size() < 2) return;
    product *= elements(m);
    factors += 1;
  };
  for (const Operand& o : n.args) for_each_value(trace_, o, look);
  for (int32_t k = 0; k < n.num_outputs; ++k) look(n.first_output + k);
  double ns = kOpNs + largest * kElementNs;
  // Products of matrices: m·k, k·n and m·n elements make m·k·n multiplications.
  if ((n.op->family() == Family::kMatmul || n.op->family() == Family::kOpaque) && factors >= 3)
    ns += std::sqrt(product) * kMultiplyNs;
  return ns;
}

std::vector<double> TraceRegions::costs() const {
  std::vector<double> costs(trace_.regions.size(), 0);
  for (size_t i = 0; i < trace_.nodes.size(); ++i) {
    const double ns = cost(trace_.nodes[i]);
    for (int32_t r = region_of_[i]; r >= 0; r = trace_.regions[static_cast<size_t>(r)].parent)
      costs[static_cast<size_t>(r)] += ns / kTaskNs;
  }
  return costs;
}

}  // namespace prong::capture
