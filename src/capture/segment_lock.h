// The lock of a segment. Its holder may need the GIL (a Python back end), so whoever waits for it
// gives the GIL up.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <chrono>
#include <mutex>
#include <thread>

namespace prong::capture {

class SegmentLock {
 public:
  explicit SegmentLock(std::mutex& m) : mutex_(m) { lock(); }
  // And `must_wait`, asked under the lock, says no. What it waits for never waits for this thread.
  template <class F>
  SegmentLock(std::mutex& m, F must_wait) : SegmentLock(m) {
    while (must_wait()) {
      mutex_.unlock();
      PyThreadState* state = PyGILState_Check() ? PyEval_SaveThread() : nullptr;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      if (state) PyEval_RestoreThread(state);
      lock();
    }
  }
  ~SegmentLock() { mutex_.unlock(); }
  SegmentLock(const SegmentLock&) = delete;
  SegmentLock& operator=(const SegmentLock&) = delete;

 private:
  void lock() {
    if (mutex_.try_lock()) return;
    if (!PyGILState_Check()) {
      mutex_.lock();
      return;
    }
    PyThreadState* state = PyEval_SaveThread();
    mutex_.lock();
    PyEval_RestoreThread(state);
  }

  std::mutex& mutex_;
};

}  // namespace prong::capture
