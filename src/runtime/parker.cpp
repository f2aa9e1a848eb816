// Sleeping and waking of threads. Called by the pool, by blocked waits and by loops.
#include "runtime/parker.h"

#include <chrono>
#include <vector>

namespace prong {

void Parker::park() {
  std::unique_lock lock(mutex_);
  while (!token_) condition_.wait(lock);
  token_ = false;
}

bool Parker::park_for(int64_t ns) {
  std::unique_lock lock(mutex_);
  auto deadline = std::chrono::steady_clock::now() + std::chrono::nanoseconds(ns);
  while (!token_)
    if (condition_.wait_until(lock, deadline) == std::cv_status::timeout) break;
  bool had_token = token_;
  token_ = false;
  return had_token;
}

void Parker::unpark() {
  std::lock_guard lock(mutex_);
  token_ = true;
  condition_.notify_one();
}

namespace {

struct FreeParkers {
  std::mutex mutex;
  std::vector<Parker*> parkers;
};
// Replaced after a fork; never destroyed.
FreeParkers* free_parkers = new FreeParkers;

struct Lease {
  Parker* parker = nullptr;
  ~Lease() {
    if (!parker) return;
    std::lock_guard lock(free_parkers->mutex);
    free_parkers->parkers.push_back(parker);
  }
};
thread_local Lease lease;

}  // namespace

Parker& Parker::of_this_thread() {
  if (!lease.parker) [[unlikely]] {
    std::lock_guard lock(free_parkers->mutex);
    if (free_parkers->parkers.empty()) {
      lease.parker = new Parker;
    } else {
      lease.parker = free_parkers->parkers.back();
      free_parkers->parkers.pop_back();
    }
  }
  return *lease.parker;
}

void Parker::replace_after_fork() {
  free_parkers = new FreeParkers;
  lease.parker = nullptr;
}

}  // namespace prong
