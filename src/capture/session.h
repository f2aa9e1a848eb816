// A compiled call on this thread: who records, for which back end. Called by bindings/capture.cpp
// and by the frame hook.
#pragma once

#include "capture/number_memory.h"
#include "capture/recorder.h"

namespace prong::capture {

// Where recorded work goes: one for each compiled function.
struct CallTarget : RefCounted {
  Ref<ProgramCache> cache;
  const void* backend = nullptr;  // calls of one back end share their segments
  bool is_whole = false;          // fullgraph: a break is an error
  bool is_static = false;         // sizes and numbers are facts
  NumberMemory numbers;           // under the GIL
};

// The recorder of this thread, recording or not. It lives as long as the process.
Recorder& thread_recorder();
// What is done now would be another thing for other sizes.
void note_sizes_matter();
inline bool is_recording() { return Recorder::current() != nullptr; }

// Records on this thread until finish(). Inside another call of the same back end it changes
// nothing.
class CallScope {
 public:
  CallScope(CallTarget& target, SegmentObserver* observer);
  ~CallScope();  // without finish(): after an error; what was put off is run, and its own errors
                 // are kept for readers
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;
  void finish();  // runs what was put off; throws what that throws
  bool is_outermost() const { return is_own_; }

 private:
  void leave();
  bool is_own_ = false;
  uint64_t saved_stand_in_ = 0;
  Ref<CallTarget> saved_target_;
  SegmentObserver* saved_observer_ = nullptr;
};

// Stops recording for a while (disabled functions); what was put off runs first.
class Pause {
 public:
  explicit Pause(const char* reason);
  ~Pause();

 private:
  uint64_t saved_;
};

}  // namespace prong::capture
