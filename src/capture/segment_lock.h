// The lock of a segment. Its holder may need the GIL (a Python back end), so whoever waits for it
// gives the GIL up.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <condition_variable>
#include <mutex>

#include "capture/gil.h"

namespace prong::capture {

class SegmentLock {
 public:
  explicit SegmentLock(std::mutex& m) : mutex_(m) {
    if (mutex_.try_lock()) return;
    without_gil([this] { mutex_.lock(); });
  }
  // And `may_go`, asked under the lock, says yes; `changed` is notified when it may say otherwise.
  // What it waits for never waits for this thread.
  template <class F>
  SegmentLock(std::mutex& m, std::condition_variable& changed, F may_go) : SegmentLock(m) {
    if (may_go()) return;
    without_gil([&] {
      std::unique_lock held(mutex_, std::adopt_lock);
      changed.wait(held, may_go);
      held.release();
    });
  }
  ~SegmentLock() { mutex_.unlock(); }
  SegmentLock(const SegmentLock&) = delete;
  SegmentLock& operator=(const SegmentLock&) = delete;

 private:
  // The lock may be held while the GIL is taken again: nobody who has the GIL waits for the lock.
  template <class F>
  static void without_gil(F&& wait) {
    PyThreadState* const state = holds_gil() ? PyEval_SaveThread() : nullptr;
    wait();
    if (state) PyEval_RestoreThread(state);
  }

  std::mutex& mutex_;
};

}  // namespace prong::capture
