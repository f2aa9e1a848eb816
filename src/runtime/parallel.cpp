// The thread count and the loop behind parallel_for. Called through parallel.h.
#include "runtime/parallel.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "profile/profile.h"
#include "runtime/interrupt.h"
#include "runtime/loop.h"
#include "runtime/pool.h"
#include "runtime/task.h"

namespace prong {

namespace {
// Sleeping costs about this much; and the helper may need the CPU that the owner looks on with.
constexpr int64_t kSpinNs = 20'000;

int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }
}  // namespace

int num_threads() { return Pool::get().limit(); }

void set_num_threads(int n) {
  PRONG_CHECK(n >= 1, kRuntime, "set_num_threads expects a positive integer, got ", n);
  Pool::get().set_limit(n);
}

Loop::Loop(int64_t begin, int64_t end, int64_t chunk, detail::LoopBody body, void* body_context)
    : begin_(begin), end_(end), chunk_(chunk), pieces_((end - begin + chunk - 1) / chunk),
      body_(body), body_context_(body_context), task_(profile::current_task()),
      name_(profile::current_name()) {}

void Loop::fail(int64_t piece) {
  next_.store(pieces_, std::memory_order_relaxed);
  error_lock_.lock();
  if (piece < error_piece_) {
    error_piece_ = piece;
    error_ = std::current_exception();
  }
  error_lock_.unlock();
}

void Loop::work(bool is_owner) {
  for (;;) {
    int64_t piece = next_.fetch_add(1, std::memory_order_relaxed);
    if (piece >= pieces_) return;
    int64_t b = begin_ + piece * chunk_;
    try {
      if (is_owner) check_interrupt();
      body_(body_context_, b, std::min(end_, b + chunk_));
    } catch (...) {
      fail(piece);
    }
  }
}

void Loop::help_and_leave() {
  {
    ContextGuard guard(context_);
    uint64_t outer_task = profile::current_task();
    profile::set_current_task(task_);
    {
      profile::Scope scope("parallel_for", profile::Category::kKernel, name_);
      work(false);
    }
    profile::set_current_task(outer_task);
  }
  Parker& owner = owner_;
  if (helpers_.fetch_sub(1, std::memory_order_acq_rel) == (kOwnerSleeps | 1)) owner.unpark();
}

void Loop::wait_for_helpers() {
  if (!helpers_.load(std::memory_order_acquire)) return;
  int64_t deadline = now_ns() + kSpinNs;
  do {
    for (int i = 0; i < 16; ++i) spin_pause();
    if (!helpers_.load(std::memory_order_acquire)) return;
  } while (now_ns() < deadline);
  // A helper may wait for a future in its piece, which needs a worker in the place of this thread.
  BlockingScope blocking;
  if (!helpers_.fetch_or(kOwnerSleeps, std::memory_order_acq_rel)) return;
  while (helpers_.load(std::memory_order_acquire) != kOwnerSleeps) owner_.park();
}

namespace detail {

int64_t pick_chunk(int64_t range, int64_t grain) {
  int64_t chunk = std::max<int64_t>(grain, 1);
  int64_t pieces = 4 * static_cast<int64_t>(num_threads());
  int64_t multiple = (range + chunk * pieces - 1) / (chunk * pieces);
  return chunk * std::max<int64_t>(1, multiple);
}

void run_chunks(int64_t begin, int64_t end, int64_t chunk, LoopBody body, void* context) {
  Pool& pool = Pool::get();
  if (pool.limit() == 1) {
    for (int64_t b = begin; b < end; b += chunk) {
      check_interrupt();
      body(context, b, std::min(end, b + chunk));
    }
    return;
  }
  Loop loop(begin, end, chunk, body, context);
  pool.publish(loop);
  loop.work(true);
  pool.retract(loop);
  loop.wait_for_helpers();
  loop.rethrow_error();
}

}  // namespace detail

}  // namespace prong
