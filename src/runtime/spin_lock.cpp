// The slow way into a SpinLock.
#include "runtime/spin_lock.h"

#include <sched.h>

namespace prong {

void SpinLock::lock_slowly() noexcept {
  for (int round = 0;; ++round) {
    for (int i = 0; i < 64; ++i) {
      if (!taken_.load(std::memory_order_relaxed) && !taken_.exchange(1, std::memory_order_acquire))
        return;
      spin_pause();
    }
    sched_yield();
  }
}

}  // namespace prong
