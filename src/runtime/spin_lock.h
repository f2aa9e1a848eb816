// A one-byte lock for the few instructions that change a future or a queue. Used inside runtime/.
#pragma once

#include <atomic>
#include <cstdint>

namespace prong {

class SpinLock {
 public:
  void lock() noexcept {
    if (taken_.exchange(1, std::memory_order_acquire)) lock_slowly();
  }
  void unlock() noexcept { taken_.store(0, std::memory_order_release); }

 private:
  void lock_slowly() noexcept;  // spins, then yields: the holder may have lost its CPU

  std::atomic<uint8_t> taken_{0};
};

// Tells the CPU that this thread is only looking at a value until it changes.
inline void spin_pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace prong
