// The interrupt check. Called between pieces of loops and while a thread is blocked.
#include "runtime/interrupt.h"

#include <atomic>
#include <chrono>
#include <cstdint>

namespace prong {

namespace {
constexpr int64_t kPeriodNs = 20'000'000;
thread_local void (*thread_hook)() = nullptr;
thread_local int64_t next_check_ns = 0;
}  // namespace

void set_interrupt_hook(void (*hook)()) { thread_hook = hook; }

bool is_interruptible() { return thread_hook != nullptr; }

void check_interrupt() {
  if (!thread_hook) return;
  int64_t now = std::chrono::steady_clock::now().time_since_epoch().count();
  if (now < next_check_ns) return;
  next_check_ns = now + kPeriodNs;
  thread_hook();
}

}  // namespace prong
