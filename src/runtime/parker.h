// Where a thread sleeps until another wakes it. Used inside runtime/.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace prong {

// Holds one token. Never destroyed, so that a waker may come late. A sleeper may wake for a token
// that was left for something earlier: it must look again whether what it waits for is there.
class Parker {
 public:
  void park();
  bool park_for(int64_t ns);  // false if time ran out
  void unpark();

  // The one of this thread; handed on to a new thread when this one ends.
  static Parker& of_this_thread();
  // In the child of a fork: the old one may be locked by a thread that is gone.
  static void replace_after_fork();

 private:
  std::mutex mutex_;
  std::condition_variable condition_;
  bool token_ = false;
};

}  // namespace prong
