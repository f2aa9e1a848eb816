// A scope in which Python runs that is no part of the call that is recorded: neither evaluated nor
// put off. Used where the evaluator takes a step, or loads what is loaded once.
#pragma once

#include <cstdint>

namespace prong::capture {

class Evaluator;
class Tracker;

class Outside {
 public:
  Outside();
  ~Outside();
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;

 private:
  Tracker* tracker_;
  Evaluator* frame_;
  uint64_t stand_in_;
};

}  // namespace prong::capture
