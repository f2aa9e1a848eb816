// Segment: how put-off work is run and its results are handed to the storages that wait for them.
// See recorder.h.
#include <algorithm>
#include <chrono>

#include "capture/data_checks.h"
#include "capture/forked_body.h"
#include "capture/recorder.h"
#include "capture/segment_lock.h"
#include "capture/stand_ins.h"
#include "capture/tracker.h"
#include "eager/engine.h"
#include "eager/modes.h"
#include "eager/node.h"

namespace prong::capture {

Segment::~Segment() { let_go(); }

ValueId Segment::find_value(const IValue& tensor) const {
  const auto it = by_impl_.find(tensor.tensor_impl());
  if (it == by_impl_.end() || is_stale(it->second)) return -1;
  return it->second;
}

bool Segment::is_stale(ValueId v) const {
  const Live& live = live_[static_cast<size_t>(v)];
  const TraceValue& value = trace_->values[static_cast<size_t>(v)];
  return live.impl->storage.get() != live.storage.get() || live.impl->offset != live.offset ||
         !(live.impl->sizes == value.meta.sizes);
}

bool Segment::is_written(const Storage& storage) const {
  return std::find(overwritten_.begin(), overwritten_.end(), &storage) != overwritten_.end();
}

// An op that is put off writes to the tensor, which is a value here.
void Segment::note_write(const Tensor& target) {
  Storage& storage = *target.storage();
  if (open_bodies_)
    before_writes_.push_back({Ref<Storage>(&storage), storage.version(), storage.writes_apart()});
  storage.bump_version(target.impl()->is_apart);
  overwritten_.push_back(&storage);
  trace_->has_writes = true;
  if (live_[static_cast<size_t>(find_value(IValue(target)))].is_deferred) return;
  const auto it = std::find_if(written_.begin(), written_.end(),
                               [&](const Written& w) { return w.storage.get() == &storage; });
  if (it == written_.end()) {
    written_.push_back({Ref<Storage>(&storage), storage.version(), storage.writes_apart()});
    storage.set_deferred(Ref<DeferredWork>(this));
  } else {
    it->version = storage.version();
    it->writes_apart = storage.writes_apart();
  }
}

bool Segment::is_visible(const Storage& storage) const {
  return std::any_of(written_.begin(), written_.end(),
                     [&](const Written& w) { return w.storage.get() == &storage; });
}

bool Segment::adopt(const IValue& tensor) {
  const TensorImpl& t = *tensor.tensor_impl();
  for (size_t v = live_.size(); v-- > 0;) {
    const TensorImpl& known = *live_[v].impl;
    if (live_[v].storage.get() != t.storage.get() || is_stale(static_cast<ValueId>(v)) ||
        !is_same_view(known, t))
      continue;
    aliases_.emplace_back(tensor.tensor_impl());
    by_impl_[tensor.tensor_impl()] = static_cast<ValueId>(v);
    return true;
  }
  return false;
}

bool Segment::adopt_input(const IValue& tensor) {
  const TensorImpl& t = *tensor.tensor_impl();
  if (!eager::backward_pass()) return false;
  if (const Tracker* tracker = recorder_.tracker(); tracker && tracker->knows(&t)) return false;
  if (std::find(read_.begin(), read_.end(), t.storage.get()) == read_.end()) return false;
  if (t.requires_grad || !adopt(tensor)) return false;  // a leaf is itself
  trace_->has_other_names = true;
  return true;
}

void Segment::note_proof(const Proof& proof) {
  trace_->checks_data |= !proof.holds || !proof.is_for_all;
  index_checks_.insert(index_checks_.end(), proof.checks.begin(), proof.checks.end());
}

ValueId Segment::add_value(const Tensor& t, int32_t producer, int32_t output, bool is_deferred) {
  const auto v = static_cast<ValueId>(live_.size());
  const auto storage = by_storage_.try_emplace(t.storage().get(), v).first->second;
  trace_->values.push_back({t.meta(), producer, output, {}, storage});
  live_.push_back({t.ref(), t.storage(), t.offset(), is_deferred});
  by_impl_[t.impl()] = v;
  return v;
}

ValueId Segment::add_input(const Tensor& t) {
  Trace& trace = *trace_;
  uint64_t alias = 0;
  for (size_t i = 0; i < trace.inputs.size(); ++i)
    if (live_[static_cast<size_t>(trace.inputs[i])].storage == t.storage()) alias = i + 1;
  trace.inputs_overlap |= alias != 0;
  const ValueId v = add_value(t, -1, 0, false);
  trace.inputs.push_back(v);
  trace.key.push_back(uint64_t{1} << 60 | static_cast<uint64_t>(t.dtype()) << 32 |
                      static_cast<uint64_t>(t.rank()) << 20 | alias);
  t.storage()->add_reader();
  reads_exposed_ |= t.storage()->is_exposed();
  read_.push_back(t.storage().get());  // kept alive by live_
  return v;
}

// What the program gives: for each storage without memory that someone else still holds, the value
// that made it.
void Segment::choose_outputs() {
  struct Seen {
    ValueId owner;
    uint32_t refs = 0;  // that live_ has
    bool is_needed = false;
  };
  std::unordered_map<const Storage*, Seen> seen;
  // A view that nobody else has keeps its base only for us.
  std::unordered_map<const TensorImpl*, uint32_t> held;
  const auto note_base = [&](const TensorImpl& t) {
    if (t.use_count() == 1 && eager::is_view(&t)) held[eager::meta_of(&t)->base.impl()] += 1;
  };
  for (const Live& live : live_) note_base(*live.impl);
  for (const Ref<TensorImpl>& alias : aliases_) note_base(*alias);
  const auto is_seen = [&](const TensorImpl& t) {
    const auto it = held.find(&t);
    return t.use_count() > 1 + (it == held.end() ? 0 : it->second);
  };
  for (size_t i = 0; i < live_.size(); ++i) {
    const Live& live = live_[i];
    if (!live.is_deferred) continue;
    Seen& s = seen.try_emplace(live.storage.get(), Seen{static_cast<ValueId>(i)}).first->second;
    s.refs += live.impl->storage == live.storage ? 2 : 1;
    s.is_needed |= is_seen(*live.impl);
  }
  for (const Ref<TensorImpl>& alias : aliases_) {
    const auto it = seen.find(alias->storage.get());
    if (it == seen.end()) continue;
    it->second.refs += 1;
    it->second.is_needed |= is_seen(*alias);
  }
  for (size_t i = 0; i < live_.size(); ++i) {
    if (!live_[i].is_deferred) continue;
    Seen& s = seen.at(live_[i].storage.get());
    if (s.owner != static_cast<ValueId>(i)) continue;
    if (s.is_needed || live_[i].storage->use_count() > s.refs) trace_->outputs.push_back(s.owner);
  }
}

void Segment::fill(std::vector<IValue> results) {
  const Trace& trace = *trace_;
  PRONG_CHECK(results.size() == trace.outputs.size(), kRuntime, "the back end's callable gave ",
              results.size(), results.size() == 1 ? " value" : " values", ", but the graph has ",
              trace.outputs.size(), trace.outputs.size() == 1 ? " output" : " outputs");
  for (size_t i = 0; i < results.size(); ++i) {
    const auto v = static_cast<size_t>(trace.outputs[i]);
    const TensorMeta& expected = trace.values[v].meta;
    PRONG_CHECK(results[i].is_tensor(), kType, "output ", i, " of the back end's callable is a ",
                name_of(results[i].tag()), ", not a Tensor");
    Tensor r = std::move(results[i]).to_tensor();
    PRONG_CHECK(r.sizes() == expected.sizes && r.dtype() == expected.dtype, kRuntime, "output ", i,
                " of the compiled graph has shape ", r.sizes(), " and dtype ", r.dtype(), ", but ",
                expected.sizes, " and ", expected.dtype, " were recorded for it");
    Storage& waiting = *live_[v].storage;
    // A few kernels lay their result out in another way than shape rules tell; a tensor without
    // views may follow.
    TensorImpl* owner = live_[v].impl.get();
    const auto shares = [&](const Live& l) { return l.storage.get() == &waiting; };
    const bool has_views =
        std::count_if(live_.begin(), live_.end(), shares) != 1 || owner->storage.get() != &waiting;
    const bool is_own = r.offset() == 0 && r.impl()->use_count() == 1 &&
                        r.storage()->use_count() == 1 && r.storage()->is_resizable() &&
                        r.storage()->bytes() == waiting.bytes();
    if (!is_own || (has_views && !r.is_contiguous())) {
      Tensor copy = Tensor::empty(r.sizes(), r.dtype());
      copy_into(copy, r);
      r = std::move(copy);
    } else if (!has_views) {
      owner->strides = r.strides();
      owner->is_contiguous = r.is_contiguous();
    }
    waiting.take_memory_of(*r.storage());
    waiting.set_deferred(nullptr);
  }
}

// Lets go of everything but the error that later readers are to see.
void Segment::let_go() {
  for (Storage* s : read_) s->remove_reader();
  read_.clear();
  for (const Written& w : written_) {
    w.storage->set_deferred(recorder_.is_dry() ? no_data() : Ref<DeferredWork>());
    // Versions were counted before the work was done: what was derived from the memory meanwhile
    // (packed weights) may be from before a write.
    w.storage->attach({});
    w.storage->set_version(w.version, w.writes_apart);
  }
  written_.clear();
  by_impl_.clear();
  by_storage_.clear();
  aliases_.clear();
  index_checks_.clear();
  live_.clear();
}

void Segment::run() {
  Trace& trace = *trace_;
  choose_outputs();
  trace.key.push_back(~uint64_t{0});
  for (const ValueId v : trace.outputs) trace.key.push_back(static_cast<uint64_t>(v));
  // Programs are compiled for it, where an op has no dtype of its own.
  trace.key.push_back(static_cast<uint64_t>(default_dtype()));
  std::vector<IValue> tensors;
  for (const ValueId v : trace.inputs) {
    const Live& live = live_[static_cast<size_t>(v)];
    // Its geometry may have been changed in place since (resize_, .data): the program reads it as
    // it was.
    PRONG_ASSERT(!is_stale(v), "an input of a recorded segment was changed in shape");
    tensors.emplace_back(Tensor(live.impl));
  }
  SegmentObserver* observer = recorder_.observer();
  const bool is_dead =
      trace.outputs.empty() && !trace.has_writes && !trace.may_raise && !trace.draws;
  if (Tracker* tracker = current_tracker()) {
    std::vector<TensorImpl*> impls;
    for (const Live& live : live_) impls.push_back(live.impl.get());
    tracker->foresee(trace, impls);
  }
  ProgramCache::Found found;
  if (!is_dead) {
    found = recorder_.cache()->find(trace_, tensors, observer);
    if (observer) observer->on_run(trace_, found);
    const auto start =
        found.is_new ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point();
    std::vector<IValue> results;
    try {
      results = found.runner->run(program_inputs(trace, found.number_inputs, tensors));
    } catch (...) {
      if (trace.may_raise) run_all_but_last();
      throw;
    }
    fill(std::move(results));
    if (observer && found.is_new) {
      const std::chrono::nanoseconds time = std::chrono::steady_clock::now() - start;
      observer->on_first_run(time.count());
    }
  }
  if (Tracker* tracker = current_tracker()) {
    std::vector<TensorImpl*> impls;
    for (const Live& live : live_) impls.push_back(live.impl.get());
    std::vector<std::pair<TensorImpl*, ValueId>> aliases;
    for (const Ref<TensorImpl>& alias : aliases_)
      aliases.emplace_back(alias.get(), by_impl_.at(alias.get()));
    tracker->on_segment({trace, impls, aliases, index_checks_, found.runner, found.number_inputs,
                         recorder_.cache()->backend().is_python()});
  } else {
    recorder_.spoil("a graph ended on another thread");
  }
}

// The last node has failed, and nothing before it writes: what came before it has its values all
// the same.
void Segment::run_all_but_last() {
  const TraceNode& failed = trace_->nodes.back();
  if (failed.num_outputs == 0) {  // its write does not count
    const Live& target = live_[static_cast<size_t>(failed.first_output)];
    const uint64_t apart = target.impl->is_apart ? 1 : 0;
    const auto is_target = [&](const Written& w) { return w.storage == target.storage; };
    const auto w = std::find_if(written_.begin(), written_.end(), is_target);
    if (w != written_.end()) {
      w->version -= 1;
      w->writes_apart -= apart;
    } else {
      target.storage->set_version(target.storage->version() - 1,
                                  target.storage->writes_apart() - apart);
    }
  }
  const auto last = static_cast<int32_t>(trace_->nodes.size()) - 1;
  auto rest = std::make_shared<Trace>(*trace_);
  rest->nodes.pop_back();
  std::erase_if(rest->outputs,
                [&](ValueId v) { return trace_->values[static_cast<size_t>(v)].producer == last; });
  std::vector<IValue> tensors;
  for (const ValueId v : rest->inputs)
    tensors.emplace_back(Tensor(live_[static_cast<size_t>(v)].impl));
  const Ref<Runner> runner = node_loop(rest, NumberInputs(rest->numbers.size(), false), false);
  // The program of the whole segment has the trace too, and may run again.
  trace_ = rest;
  fill(runner->run(tensors));
}

// By this thread, or by one that helps with it: tasks inherit the word.
bool Segment::is_running_here() const {
  return running_.load() == std::this_thread::get_id() ||
         context()[ContextWord::kSegment] == reinterpret_cast<uint64_t>(this);
}

void Segment::settle() {
  if (recorder_.is_dry()) throw DataNeeded{};
  if (is_running_here()) return;
  if (!is_closed_ && Recorder::current() == &recorder_)
    recorder_.settle(kValueIsNeeded);
  else
    run_all();
}

void Segment::run_all() {
  if (recorder_.is_dry()) throw DataNeeded{};
  if (is_running_here()) return;
  // References that go away here may be the last ones to Python objects: they die after the lock is
  // open again.
  std::vector<Live> dropped;
  std::vector<Ref<TensorImpl>> dropped_aliases;
  if (ForkedBody* body = ForkedBody::current()) body->refuse(kValueIsNeeded);
  const SegmentLock lock(mutex_, bodies_closed_, [this] { return open_bodies_ == 0; });
  if (is_closed_) {
    if (error_) std::rethrow_exception(error_);
    return;
  }
  is_closed_ = true;
  running_ = std::this_thread::get_id();
  {
    ContextGuard saved;
    context()[ContextWord::kKernels] = 0;
    context()[ContextWord::kInterceptor] = 0;
    eager::set_grad_enabled(false);  // the tape has seen these ops
    context()[ContextWord::kSegment] = reinterpret_cast<uint64_t>(this);
    try {
      if (!trace_->nodes.empty()) run();
    } catch (...) {
      error_ = std::current_exception();
    }
  }
  dropped = live_;
  dropped_aliases = aliases_;
  let_go();
  running_ = std::thread::id();
  if (error_) std::rethrow_exception(error_);
}

}  // namespace prong::capture
