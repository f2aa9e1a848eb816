// Recorder: stands in for kernels on a thread that runs a compiled function. Ops are put off and
// collected in a Segment; whoever touches the memory of their results (or of what they write) has
// the segment run first.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <unordered_set>

#include "capture/runner.h"
#include "capture/trace.h"
#include "capture/trial_runs.h"
#include "eager/dispatch.h"

namespace prong::capture {

class Recorder;
class ForkedBody;
class Tracker;
struct Proof;  // data_checks.h

// What an index tensor that lay in memory must hold for an op not to raise because of it.
struct IndexCheck {
  Ref<TensorImpl> tensor;
  int64_t low, high;
  std::optional<int64_t> ignored;
};

inline constexpr const char* kMemoryIsUsed =
    "the memory of a tensor is read or written by other than an op";
inline constexpr const char* kValueIsNeeded = "Python needs the value of a tensor";
inline constexpr const char* kShapeIsData = "the shape of an op's result depends on data";

// The tensor work between two points at which its values are needed.
class Segment final : public DeferredWork {
 public:
  explicit Segment(Recorder& recorder) : recorder_(recorder) {}
  ~Segment() override;
  // Memory that waits for this work is touched.
  void settle() override;
  void run_all();  // now, or wait for the thread that does
  bool is_running_here() const;
  bool is_closed() const { return is_closed_; }
  bool is_empty() const { return trace_->nodes.empty(); }

  const Trace& trace() const { return *trace_; }
  ValueId find_value(const IValue& tensor) const;  // -1: unknown here
  Tensor tensor(ValueId v) const { return Tensor(live_[static_cast<size_t>(v)].impl); }
  // Does an op of the segment write to it in place?
  bool is_written(const Storage& storage) const;

 private:
  friend class Recorder;
  friend class ForkedBody;
  friend class Retracing;
  struct Live {  // of a value
    Ref<TensorImpl> impl;
    Ref<Storage> storage;
    int64_t offset;
    bool is_deferred;  // its storage has no memory yet
  };

  struct Written {  // a visible storage, and what it counts after the writes
    Ref<Storage> storage;
    uint64_t version, writes_apart;
  };
  // What there was when a forked body began.
  struct Mark {
    size_t nodes, values, lists, constants, numbers, inputs, places, regions, key;
    std::map<size_t, int32_t> varying;
    bool has_writes, draws, inputs_overlap, may_raise, checks_data;
    size_t aliases, read, overwritten, undo;
    std::vector<Written> written;
  };
  struct Undone {
    std::vector<Live> values;
    std::vector<Ref<TensorImpl>> aliases;
  };
  Mark mark() const;
  Undone go_back_to(const Mark& m);  // as if what came after had not been recorded

  void note_proof(const Proof& proof);
  bool is_stale(ValueId v) const;  // the tensor's geometry or storage is another now
  ValueId add_input(const Tensor& t);
  ValueId add_value(const Tensor& t, int32_t producer, int32_t output, bool is_deferred);
  void note_write(const Tensor& target);
  bool cannot_run_twice() const { return trace_->has_writes || trace_->draws; }
  // Memory that was there before, which waits for writes of this work: any tensor over it may be an
  // input.
  bool is_visible(const Storage& storage) const;
  // Another tensor over memory that waits for this work (what gradients saved, a detached one):
  // true if it is a value of the segment under another name.
  bool adopt(const IValue& tensor);
  // The same for memory that is there: an input, or a view of one.
  bool adopt_input(const IValue& tensor);
  void note_step(TraceNode node, const IValue& result, std::span<const IValue> results);
  void run();
  void run_all_but_last();
  void choose_outputs();
  void fill(std::vector<IValue> results);
  void let_go();

  Recorder& recorder_;
  std::mutex mutex_;
  std::shared_ptr<Trace> trace_ = std::make_shared<Trace>();
  std::vector<Live> live_;
  std::unordered_map<const TensorImpl*, ValueId> by_impl_;
  std::vector<Ref<TensorImpl>> aliases_;  // adopted
  std::vector<IndexCheck> index_checks_;
  std::vector<Storage*> read_;               // with add_reader
  std::vector<const Storage*> overwritten_;  // by in-place ops; visible or not
  std::vector<Written> written_;
  std::vector<Written> before_writes_;  // while a forked body is tried: what a write found
  std::unordered_map<const Storage*, ValueId> by_storage_;
  std::atomic<std::thread::id> running_{};
  bool is_closed_ = false;
  bool reads_exposed_ = false;  // memory that others may use without a word
  int open_bodies_ = 0;  // forked bodies that may yet be dropped: no other thread runs it meanwhile
  std::condition_variable bodies_closed_;
  std::exception_ptr error_;
};

// What a compiled call wants to know of its segments.
class SegmentObserver {
 public:
  virtual ~SegmentObserver() = default;
  // A segment is about to end before the call does; may throw (fullgraph).
  virtual void on_break(const std::string& reason, bool has_work) = 0;
  // The value of a tensor is about to choose a branch; may throw (fullgraph).
  virtual void on_branch(bool has_work) = 0;
  // A program is about to be compiled; may throw (recompilation is an error).
  virtual void before_compile(const char* why) = 0;
  virtual void on_run(const std::shared_ptr<const Trace>& trace,
                      const ProgramCache::Found& program) = 0;
  // Of a new program: a back end may put off work until then.
  virtual void on_first_run(int64_t ns) = 0;
  virtual Place place() = 0;  // in the user's code
};

class Recorder final : public eager::KernelStandIn {
 public:
  // A dry one records and never runs: its inputs have no memory. What would need a value throws
  // DataNeeded (stand_ins.h).
  explicit Recorder(bool is_dry = false) : is_dry_(is_dry) {}
  bool is_dry() const { return is_dry_; }
  IValue run_kernel(const OpDef& op, std::span<const IValue> args) override;
  IValue run_composite(const OpDef& op, std::span<const IValue> args, KernelFn run) override;
  bool sums_spread(bool is_needed) override;
  std::vector<bool> take_spread_sums() { return std::exchange(spread_sums_, {}); }

  // Runs what was put off. The reason is for reports; null: the end of the call.
  void settle(const char* reason);
  bool has_work() const { return segment_ && !segment_->is_closed() && !segment_->is_empty(); }

  void set_target(Ref<ProgramCache> cache, SegmentObserver* observer) {
    cache_ = std::move(cache);
    observer_ = observer;
  }
  ProgramCache* cache() const { return cache_.get(); }
  SegmentObserver* observer() const { return observer_; }
  // Nodes so far, and what the next one joins (null: nothing is put off).
  uint64_t num_recorded() const { return num_recorded_; }
  Trace* open_trace() {
    return segment_ && !segment_->is_closed() ? segment_->trace_.get() : nullptr;
  }
  // Is it a value of the segment that is open?
  bool has_recorded(const Tensor& t) const {
    return segment_ && !segment_->is_closed() && segment_->find_value(IValue(t)) >= 0;
  }
  // Another name of a value there; from now on it has recorded that too.
  bool adopt(const Tensor& t) {
    return segment_ && !segment_->is_closed() && segment_->adopt(IValue(t));
  }
  // The value that a tensor is there; -1: none.
  ValueId open_value(const TensorImpl* impl) const;
  // The recorder that is in charge on this thread, or null.
  static Recorder* current();
  void reading(const Storage& storage);  // memory of an input is touched

  // ── memory that NumPy and others may use without a word ──
  bool reads_exposed() const {
    return segment_ && segment_->reads_exposed_ && !segment_->is_closed();
  }
  // From now on, Python code runs that is not evaluated: ops over such memory run at once.
  void lose_sight();
  void regain_sight() { is_blind_ = false; }

  // Who follows the call, on the thread that runs it; ops of a backward pass may be recorded on
  // others, which can only say why there will be no plan.
  void set_tracker(Tracker* tracker) {
    tracker_ = tracker;
    spoiled_ = nullptr;
    spread_sums_.clear();
  }
  const Tracker* tracker() const { return tracker_; }
  void spoil(const char* why);
  const char* why_spoiled() const { return spoiled_; }

 private:
  friend class Segment;
  friend class ForkedBody;
  friend class Retracing;
  Segment& open();
  bool expects(const OpDef& op, const Tensor& of) const;
  // The same; what it gives is known to the tracker.
  IValue run_step(const OpDef& op, std::span<const IValue> args, const char* reason);
  IValue run_refused(const OpDef& op, std::span<const IValue> args);
  IValue run_host(const OpDef& op, std::span<const IValue> args);
  IValue run_now(const OpDef& op, std::span<const IValue> args, const char* reason);
  IValue record_view(Segment& s, const OpDef& op, std::span<const IValue> args);
  IValue record_write(Segment& s, const OpDef& op, std::span<const IValue> args, bool runs_at_once);
  IValue record_writes(Segment& s, const OpDef& op, std::span<const IValue> args, uint64_t written);
  IValue record_call(Segment& s, const OpDef& op, std::span<const IValue> args, bool runs_at_once);
  TraceNode make_node(Segment& s, const OpDef& op, std::span<const IValue> args);
  Operand operand(Segment& s, const IValue& v);
  IValue deferred(Segment& s, const IValue& meta, TraceNode& node);

  Ref<Segment> segment_;
  Ref<ProgramCache> cache_;
  SegmentObserver* observer_ = nullptr;
  uint64_t num_recorded_ = 0;
  int32_t region_ = -1;  // of the forked body that is tried, in the open trace
  std::atomic<Tracker*> tracker_{nullptr};
  std::atomic<const char*> spoiled_{nullptr};
  TrialRuns trials_;
  std::unordered_set<std::string> reads_data_;  // calls that are no views, see record_view
  const bool is_dry_;
  bool is_blind_ = false;
  bool is_composing_ = false, has_composed_shortcut_ = false;
  // Of each gradient that was passed on: is it summed over what was spread?
  std::vector<bool> spread_sums_;
  const Trace* again_ = nullptr;  // it is recorded once more
  size_t next_spread_ = 0;
};

// Turns recording off for a scope: what runs inside runs kernels.
class RecordingOff {
 public:
  RecordingOff() { context()[ContextWord::kKernels] = 0; }

 private:
  ContextGuard saved_;
};

}  // namespace prong::capture
