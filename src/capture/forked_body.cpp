// Forked bodies on trial, and how what they recorded is undone. See forked_body.h.
#include "capture/forked_body.h"

#include "capture/segment_lock.h"
#include "eager/node.h"

namespace prong::capture {

namespace {

thread_local ForkedBody* body_of_thread = nullptr;

PyObject* drop_error() {
  static PyObject* error =
      PyErr_NewException("prong._core.BodyDropped", PyExc_BaseException, nullptr);
  return error ? error : PyExc_SystemError;
}

// Memory that only a dropped body had.
struct NeverWritten final : DeferredWork {
  void settle() override {
    throw Error(ErrorKind::kInternal, "a tensor of a forked body that was run again is read");
  }
};

constexpr uint64_t kRegionBegins = uint64_t{7} << 60, kRegionEnds = kRegionBegins | 1;

}  // namespace

ForkedBody* ForkedBody::current() { return body_of_thread; }

ForkedBody::ForkedBody(Recorder& recorder, size_t num_made)
    : recorder_(recorder), segment_(&recorder.open()), outer_(body_of_thread), num_made_(num_made) {
  {
    SegmentLock lock(segment_->mutex_);
    mark_ = segment_->mark();
    segment_->open_bodies_ += 1;
    Trace& trace = *segment_->trace_;
    outer_region_ = recorder.region_;
    recorder.region_ = static_cast<int32_t>(trace.regions.size());
    trace.regions.push_back({outer_region_, static_cast<int32_t>(trace.nodes.size()), -1, {}, -1});
    trace.key.push_back(kRegionBegins);
  }
  // Finalizers of other objects are no part of the body.
  stopped_collector_ = PyGC_Disable() != 0;
  handled_ = Py_XNewRef(PyThreadState_Get()->exc_info->exc_value);
  body_of_thread = this;
}

void ForkedBody::keep(std::string name, Place place) {
  SegmentLock lock(segment_->mutex_);
  Trace& trace = *segment_->trace_;
  is_kept_ = true;
  TraceRegion& region = trace.regions[static_cast<size_t>(recorder_.region_)];
  region.end = static_cast<int32_t>(trace.nodes.size());
  if (region.first == region.end) {
    trace.regions.resize(mark_.regions);
    trace.key.resize(mark_.key);
    return;
  }
  region.name = std::move(name);
  region.place = static_cast<int32_t>(trace.places.size());
  trace.places.push_back(std::move(place));
  trace.key.push_back(kRegionEnds);
}

ForkedBody::~ForkedBody() {
  Segment::Undone undone;  // goes after the lock: the last references to Python objects may be here
  {
    SegmentLock lock(segment_->mutex_);
    if (!is_kept_) undone = segment_->go_back_to(mark_);
    segment_->open_bodies_ -= 1;
    if (!segment_->open_bodies_) {
      segment_->before_writes_.clear();
      segment_->bodies_closed_.notify_all();
    }
    recorder_.region_ = outer_region_;
  }
  body_of_thread = outer_;
  PyObject* const left = std::exchange(PyThreadState_Get()->exc_info->exc_value, handled_);
  if (stopped_collector_) PyGC_Enable();
  // The count of the tape's nodes too: a task counts for itself, and sums of gradients go by it.
  context() = saved_;
  Py_XDECREF(left);
}

void ForkedBody::drop(const std::string& reason) {
  if (reason_.empty()) reason_ = reason;
  PyErr_SetString(drop_error(), reason_.c_str());
}

void ForkedBody::refuse(const std::string& reason) {
  if (reason_.empty()) reason_ = reason;
  throw Error(ErrorKind::kRuntime, reason_);
}

void ForkedBody::check_write(const OpDef& op, std::span<const IValue> args, uint64_t written) {
  if (!eager::is_grad_enabled() || !op.is_differentiable()) return;
  bool is_taped = false, is_outside = false;
  const auto look = [&](const IValue& t, bool is_written) {
    is_taped |= eager::requires_grad(t.tensor_impl());
    if (!is_written) return;
    const auto first = segment_->by_storage_.find(t.tensor_impl()->storage.get());
    is_outside |=
        first == segment_->by_storage_.end() || static_cast<size_t>(first->second) < mark_.values;
  };
  for (size_t i = 0; i < args.size(); ++i) {
    const bool is_written = written >> i & 1;
    if (args[i].is_tensor()) look(args[i], is_written);
    if (args[i].is_list())
      for (const IValue& item : args[i].items())
        if (item.is_tensor()) look(item, is_written);
  }
  if (is_taped && is_outside) refuse("a write that gradients see, to a tensor of the caller");
}

// ── the segment's side ──

Segment::Mark Segment::mark() const {
  const Trace& t = *trace_;
  return {t.nodes.size(),   t.values.size(),     t.lists.size(),        t.constants.size(),
          t.numbers.size(), t.inputs.size(),     t.places.size(),       t.regions.size(),
          t.key.size(),     t.varying,           t.has_writes,          t.draws,
          t.inputs_overlap, t.may_raise,         t.checks_data,         aliases_.size(),
          read_.size(),     overwritten_.size(), before_writes_.size(), written_};
}

Segment::Undone Segment::go_back_to(const Mark& m) {
  static const Ref<DeferredWork> never = make_ref<NeverWritten>();
  Trace& t = *trace_;
  while (before_writes_.size() > m.undo) {
    const Written& w = before_writes_.back();
    w.storage->set_version(w.version, w.writes_apart);
    before_writes_.pop_back();
  }
  for (size_t i = m.written.size(); i < written_.size(); ++i)
    written_[i].storage->set_deferred(nullptr);
  written_ = m.written;
  overwritten_.resize(m.overwritten);
  for (size_t i = m.read; i < read_.size(); ++i) read_[i]->remove_reader();
  read_.resize(m.read);
  std::erase_if(by_impl_, [&](const auto& e) { return static_cast<size_t>(e.second) >= m.values; });
  std::erase_if(by_storage_,
                [&](const auto& e) { return static_cast<size_t>(e.second) >= m.values; });
  for (size_t i = m.aliases; i < aliases_.size(); ++i) by_impl_.erase(aliases_[i].get());
  Undone undone;
  const auto first_alias = aliases_.begin() + static_cast<ptrdiff_t>(m.aliases);
  undone.aliases.assign(std::move_iterator(first_alias), std::move_iterator(aliases_.end()));
  aliases_.erase(first_alias, aliases_.end());
  for (size_t v = m.values; v < live_.size(); ++v)
    if (live_[v].is_deferred && live_[v].storage->deferred().get() == this &&
        !by_storage_.count(live_[v].storage.get()))
      live_[v].storage->set_deferred(never);
  const auto first_value = live_.begin() + static_cast<ptrdiff_t>(m.values);
  undone.values.assign(std::move_iterator(first_value), std::move_iterator(live_.end()));
  live_.erase(first_value, live_.end());
  t.nodes.resize(m.nodes, TraceNode{});
  t.values.resize(m.values);
  t.lists.resize(m.lists);
  t.constants.resize(m.constants);
  t.numbers.resize(m.numbers);
  t.inputs.resize(m.inputs);
  t.places.resize(m.places);
  t.regions.resize(m.regions);
  t.key.resize(m.key);
  t.varying = m.varying;
  t.has_writes = m.has_writes;
  t.draws = m.draws;
  t.inputs_overlap = m.inputs_overlap;
  t.may_raise = m.may_raise;
  t.checks_data = m.checks_data;
  return undone;
}

}  // namespace prong::capture
