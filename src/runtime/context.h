// State that belongs to a line of execution, not to a thread: grad mode, autocast.
// A forked task inherits it; a task that was suspended finds its own again. Used by eager, tensor.
#pragma once

#include <cstdint>

namespace prong {

// One word for each upper folder that has such state. All zero is the state of a new thread, so
// encode defaults as zero. Words are copied bit by bit: no owning pointers.
enum class ContextWord : int {
  kModes,        // eager: no-grad, inference mode and the like, as bits
  kAutocast,     // eager
  kInterceptor,  // eager: who sees each op before it runs (tracing); a borrowed pointer
  kSequence,     // eager: counts the nodes of the tape that this line of execution made
  kKernels,      // eager: who stands in for kernels (capture); a borrowed pointer, not inherited by
                 // tasks
  kSavingHooks,  // eager: the number of the hooks on saving that are on top
  kSegment,      // capture: the put-off work that runs here, which may touch the memory that waits
                 // for it; a borrowed pointer
  kCount,
};

struct Context {
  uint64_t words[static_cast<int>(ContextWord::kCount)] = {};

  uint64_t& operator[](ContextWord w) { return words[static_cast<int>(w)]; }
  uint64_t operator[](ContextWord w) const { return words[static_cast<int>(w)]; }
};

namespace detail {
inline thread_local constinit Context thread_context{};
}

// The state of what runs on this thread now. The reference is good until the task suspends.
inline Context& context() { return detail::thread_context; }

// Puts the thread's state back when it goes.
class ContextGuard {
 public:
  ContextGuard() : saved_(context()) {}
  explicit ContextGuard(const Context& installed) : saved_(context()) { context() = installed; }
  ~ContextGuard() { context() = saved_; }
  ContextGuard(const ContextGuard&) = delete;
  ContextGuard& operator=(const ContextGuard&) = delete;

 private:
  Context saved_;
};

}  // namespace prong
