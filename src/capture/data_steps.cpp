// Ops that run where they stand, because the shapes of their results depend on data (masks as
// indices, nonzero, unique): each is a program of its own in the plan. Called by recorder.cpp.
#include <algorithm>

#include "base/str.h"
#include "capture/forked_body.h"
#include "capture/recorder.h"
#include "capture/segment_lock.h"
#include "capture/stand_ins.h"
#include "capture/tracker.h"
#include "eager/engine.h"

namespace prong::capture {

namespace {

// New tensors, and nothing else?
bool are_fresh(std::span<const IValue> results, std::span<const IValue> args) {
  return std::all_of(results.begin(), results.end(), [&](const IValue& r) {
    return r.is_tensor() && std::none_of(args.begin(), args.end(),
                                         [&](const IValue& a) { return shares_memory(r, a); });
  });
}

std::span<const IValue> results_of(const IValue& result) {
  return result.is_list() || result.is_tuple() ? std::span<const IValue>(result.items())
                                               : std::span<const IValue>(&result, 1);
}

}  // namespace

IValue Recorder::run_step(const OpDef& op, std::span<const IValue> args, const char* reason) {
  Tracker* const tracker = current_tracker();
  if (!tracker || ForkedBody::current() || eager::backward_pass()) return run_now(op, args, reason);
  settle(cat(reason, " (", op.base_name(), ")").c_str());
  IValue result;
  try {
    RecordingOff off;
    result = op.kernel()(op, args);
  } catch (...) {
    spoil(reason);
    throw;
  }
  const std::span<const IValue> results = results_of(result);
  if (results.empty() || !are_fresh(results, args)) {
    spoil(reason);
    return result;
  }
  open().note_step(make_node(open(), op, args), result, results);
  segment_ = {};
  return result;
}

// The segment has this one node, which has run.
void Segment::note_step(TraceNode node, const IValue& result, std::span<const IValue> results) {
  const SegmentLock lock(mutex_);
  is_closed_ = true;
  node.result = result.is_tensor()  ? ResultKind::kTensor
                : result.is_tuple() ? ResultKind::kTuple
                                    : ResultKind::kList;
  node.first_output = static_cast<ValueId>(live_.size());
  node.num_outputs = static_cast<int32_t>(results.size());
  Trace& trace = *trace_;
  trace.may_raise = trace.checks_data = true;
  std::vector<TensorImpl*> impls;
  for (size_t i = 0; i < results.size(); ++i)
    trace.outputs.push_back(add_value(results[i].to_tensor(), 0, static_cast<int32_t>(i), false));
  trace.nodes.push_back(std::move(node));
  for (const Live& live : live_) impls.push_back(live.impl.get());
  const NumberInputs constants(trace.numbers.size(), false);
  if (Tracker* tracker = current_tracker()) {
    Tracker::SegmentEnd end{trace,     impls, {}, {}, node_loop(trace_, constants, false),
                            constants, false};
    end.is_step = true;
    tracker->on_segment(end);
  }
  let_go();
}

}  // namespace prong::capture
