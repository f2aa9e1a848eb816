// One running parallel_for: the pieces that are left, and who helps. Used by parallel.cpp and
// pool.cpp.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>

#include "runtime/context.h"
#include "runtime/parallel.h"
#include "runtime/parker.h"
#include "runtime/spin_lock.h"

namespace prong {

// Lives on the stack of the thread that called parallel_for, its owner. Pieces are taken in order,
// so all pieces below a taken one are taken too.
class Loop {
 public:
  Loop(int64_t begin, int64_t end, int64_t chunk, detail::LoopBody body, void* body_context);

  int64_t pieces() const { return pieces_; }
  bool has_work() const { return next_.load(std::memory_order_relaxed) < pieces_; }

  // Takes pieces until none is left. The owner checks for interrupts in between.
  void work(bool is_owner);

  // A helper joins under the pool's lock, while the loop is listed there; it may not touch the loop
  // once it has left.
  void join() { helpers_.fetch_add(1, std::memory_order_relaxed); }
  void help_and_leave();
  // The owner, after the loop was taken off the list.
  void wait_for_helpers();
  void rethrow_error() {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  friend class Pool;
  static constexpr uint32_t kOwnerSleeps = 1u << 31;

  void fail(int64_t piece);

  const int64_t begin_, end_, chunk_, pieces_;
  const detail::LoopBody body_;
  void* const body_context_;
  const Context context_ = context();
  const uint64_t task_;
  const char* const name_;  // of the span that the owner is in
  Parker& owner_ = Parker::of_this_thread();

  SpinLock error_lock_;
  int64_t error_piece_ = INT64_MAX;
  std::exception_ptr error_;

  // Guarded by the pool's lock.
  Loop* list_prev_ = nullptr;
  Loop* list_next_ = nullptr;
  int free_seats_ = 0;  // how many more helpers may join

  alignas(64) std::atomic<int64_t> next_{0};
  alignas(64) std::atomic<uint32_t> helpers_{0};  // plus kOwnerSleeps
};

}  // namespace prong
