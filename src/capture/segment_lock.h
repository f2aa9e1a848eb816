// The lock of a segment. Its holder may need the GIL (a Python back end), so whoever waits for it
// gives the GIL up.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <mutex>

namespace prong::capture {

class SegmentLock {
 public:
  explicit SegmentLock(std::mutex& m) : mutex_(m) {
    if (mutex_.try_lock()) return;
    if (!PyGILState_Check()) {
      mutex_.lock();
      return;
    }
    PyThreadState* state = PyEval_SaveThread();
    mutex_.lock();
    PyEval_RestoreThread(state);
  }
  ~SegmentLock() { mutex_.unlock(); }
  SegmentLock(const SegmentLock&) = delete;
  SegmentLock& operator=(const SegmentLock&) = delete;

 private:
  std::mutex& mutex_;
};

}  // namespace prong::capture
