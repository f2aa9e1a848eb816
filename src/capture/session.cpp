// Compiled calls on a thread. See session.h.
#include "capture/session.h"

#include "capture/tracker.h"
#include "eager/record.h"
#include "tensor/item_read.h"

namespace prong::capture {

namespace {

thread_local Ref<CallTarget> current_target;

void check_reader(const Storage& storage) {
  if (Recorder* r = Recorder::current()) r->reading(storage);
}

}  // namespace

Recorder& thread_recorder() {
  // Never freed: a storage may hold a finished segment, which names its recorder, longer than the
  // thread lives.
  thread_local Recorder* recorder = [] {
    Storage::set_reader_check(&check_reader);
    set_item_read_hook([] {
      if (Tracker* tracker = is_recording() ? current_tracker() : nullptr;
          tracker && !tracker->is_reading())
        tracker->give_up("the value of a tensor is read");
    });
    eager::before_accumulate = [](const Tensor& leaf) {
      if (Tracker* tracker = current_tracker()) tracker->accumulating(leaf);
    };
    return new Recorder;
  }();
  return *recorder;
}

void note_sizes_matter() {
  if (Tracker* tracker = current_tracker()) tracker->looked_at_sizes();
}

CallScope::CallScope(CallTarget& target, SegmentObserver* observer) {
  Recorder& r = thread_recorder();
  saved_stand_in_ = context()[ContextWord::kKernels];
  const bool is_nested = saved_stand_in_ != 0;
  if (!is_nested) r.regain_sight();
  if (is_nested && current_target && current_target->backend == target.backend && !target.is_whole)
    return;
  if (is_nested) r.settle("a function compiled with other settings is called");
  is_own_ = true;
  saved_target_ = std::exchange(current_target, Ref<CallTarget>(&target));
  saved_observer_ = r.observer();
  r.set_target(target.cache, observer);
  context()[ContextWord::kKernels] =
      reinterpret_cast<uint64_t>(static_cast<eager::KernelStandIn*>(&r));
}

void CallScope::leave() {
  is_own_ = false;
  current_target = std::move(saved_target_);
  thread_recorder().set_target(current_target ? current_target->cache : Ref<ProgramCache>(),
                               saved_observer_);
  context()[ContextWord::kKernels] = saved_stand_in_;
}

void CallScope::finish() {
  if (!is_own_) return;
  try {
    thread_recorder().settle(nullptr);
  } catch (...) {
    leave();
    throw;
  }
  leave();
}

CallScope::~CallScope() {
  if (!is_own_) return;
  try {
    finish();
  } catch (...) {
    // The error that ended the call is the one to tell; who reads a result of this work gets its
    // error then.
  }
}

Pause::Pause(const char* reason) : saved_(context()[ContextWord::kKernels]) {
  if (!saved_) return;
  thread_recorder().settle(reason);
  context()[ContextWord::kKernels] = 0;
}

Pause::~Pause() { context()[ContextWord::kKernels] = saved_; }

}  // namespace prong::capture
