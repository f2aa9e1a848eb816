// ForkedBody: the body of a fork that a compiled call follows where it stands. Until it ends it is
// on trial: it does nothing that others can see, so that it can be dropped and run as a task
// instead. Made by evaluate_forks.cpp; asked by the recorder.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "capture/recorder.h"
#include "eager/modes.h"

namespace prong::capture {

class ForkedBody {
 public:
  // Opens a region of the segment. `num_made`: what the call had made up to here.
  ForkedBody(Recorder& recorder, size_t num_made);
  ~ForkedBody();  // dropped, unless kept
  ForkedBody(const ForkedBody&) = delete;
  ForkedBody& operator=(const ForkedBody&) = delete;

  // The innermost one on this thread, or null.
  static ForkedBody* current();

  // It goes no further: the first reason counts. Sets a Python error that no program catches.
  void drop(const std::string& reason);
  bool is_dropped() const { return !reason_.empty(); }
  const std::string& reason() const { return reason_; }
  // From C++ code that Python called.
  [[noreturn]] void refuse(const std::string& reason);
  // Before an op that writes: refuses what could not be undone.
  void check_write(const OpDef& op, std::span<const IValue> args, uint64_t written);

  // Did the body make it (a container, a cell, an iterator)? By its index in the tracker.
  bool has_made(int32_t index) const { return static_cast<size_t>(index) >= num_made_; }
  // A body that computes without end may wait for what its caller does later.
  bool is_too_long() { return ++steps_ > kMaxSteps; }

  void keep(std::string name, Place place);  // it ended well

 private:
  static constexpr int64_t kMaxSteps = 1'000'000;

  Recorder& recorder_;
  Ref<Segment> segment_;
  Segment::Mark mark_;
  ForkedBody* outer_;
  size_t num_made_;
  int32_t outer_region_;
  int64_t steps_ = 0;
  bool is_kept_ = false, stopped_collector_ = false;
  std::string reason_;
  PyObject* handled_ = nullptr;      // the exception that the caller handles; owned
  const Context saved_ = context();  // modes that it sets are its own
};

}  // namespace prong::capture
