// Completing futures and waiting for them. Called by exec and bindings through future.h.
#include "runtime/future.h"

#include <chrono>

#include "base/error.h"
#include "profile/profile.h"
#include "runtime/interrupt.h"
#include "runtime/parker.h"
#include "runtime/pool.h"
#include "runtime/trampoline.h"

namespace prong {

namespace {

constexpr int64_t kSpinNs = 10'000;           // shorter than a sleep and a wake
constexpr int64_t kInterruptNs = 20'000'000;  // how often a blocked thread looks for Ctrl-C

int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

// On the stack of a blocked thread.
class BlockedThread final : public Waiter {
 public:
  BlockedThread() : Waiter(false), parker_(Parker::of_this_thread()) {}
  Parker& parker() { return parker_; }
  bool was_told() const { return was_told_.load(std::memory_order_acquire); }

 private:
  void on_done(FutureBase&, Ref<Task>*) override {
    Parker& parker = parker_;
    was_told_.store(true, std::memory_order_release);  // from here on this object may be gone
    parker.unpark();
  }
  void on_dropped() override {}

  Parker& parker_;
  std::atomic<bool> was_told_{false};
};

}  // namespace

FutureBase::~FutureBase() {
  while (Waiter* waiter = waiters_) {
    waiters_ = waiter->next_;
    waiter->on_dropped();
  }
}

void FutureBase::set_producer(Task& task) {
  producer_ = &task;
  task.result_ = Ref<FutureBase>(this);
  profile_id_.store(task.profile_id(), std::memory_order_relaxed);
}

Ref<Task> FutureBase::producer() const {
  lock_.lock();
  Task* task = producer_ && producer_->try_retain() ? producer_ : nullptr;
  lock_.unlock();
  return Ref<Task>::adopt(task);
}

Ref<Task> FutureBase::claim_producer() {
  Ref<Task> task = producer();
  return task && task->claim() ? std::move(task) : Ref<Task>();
}

bool FutureBase::cancel(std::exception_ptr error) {
  Ref<Task> task = claim_producer();
  if (!task) return false;
  task->state_.store(Task::State::kFinished, std::memory_order_release);
  return try_set_error(std::move(error));
}

// ---- completing

void FutureBase::end_completion(Ref<Task>* next) {
  lock_.lock();
  Waiter* newest = std::exchange(waiters_, nullptr);
  producer_ = nullptr;
  state_.store(State::kDone, std::memory_order_release);
  lock_.unlock();
  if (!newest) return;
  Ref<FutureBase> self(this);
  Waiter* tasks = nullptr;  // both lists oldest first
  Waiter* others = nullptr;
  while (newest) {
    Waiter* waiter = std::exchange(newest, newest->next_);
    Waiter*& list = waiter->is_task_ ? tasks : others;
    waiter->next_ = list;
    list = waiter;
  }
  // Callbacks may take long or block, so no task may be in this thread's hands meanwhile.
  if (others) next = nullptr;
  while (tasks) std::exchange(tasks, tasks->next_)->on_done(*this, next);
  while (others) std::exchange(others, others->next_)->on_done(*this, nullptr);
}

void FutureBase::throw_completed_twice() const {
  throw_error(ErrorKind::kRuntime, "Future can only be marked completed once");
}

bool FutureBase::try_set_error(std::exception_ptr error) {
  if (!begin_completion()) return false;
  error_ = std::move(error);
  end_completion(nullptr);
  return true;
}

void FutureBase::set_error(std::exception_ptr error) {
  if (!try_set_error(std::move(error))) throw_completed_twice();
}

Ref<Task> FutureBase::finish_error(std::exception_ptr error) {
  Ref<Task> next;
  if (begin_completion()) {
    error_ = std::move(error);
    end_completion(&next);
  }
  return next;
}

void FutureBase::check_value_ready() const {
  PRONG_CHECK(is_done(), kRuntime, "the value of a future was asked for before it was done");
  if (error_) std::rethrow_exception(error_);
}

// ---- waiting

bool FutureBase::add_waiter(Waiter* waiter) {
  lock_.lock();
  bool is_pending = state_.load(std::memory_order_relaxed) != State::kDone;
  if (is_pending) {
    waiter->next_ = waiters_;
    waiters_ = waiter;
  }
  lock_.unlock();
  return is_pending;
}

bool FutureBase::remove_waiter(Waiter* waiter) {
  lock_.lock();
  Waiter** at = &waiters_;
  while (*at && *at != waiter) at = &(*at)->next_;
  bool found = *at != nullptr;
  if (found) *at = waiter->next_;
  lock_.unlock();
  return found;
}

void FutureBase::wait() {
  Ref<FutureBase> self(this);
  if (!is_done()) Trampoline::run_needed(*this);
  if (!is_done()) block(-1);
  if (profile::is_on()) profile::mark_resume(profile_id());
}

bool FutureBase::wait_for(double seconds) {
  Ref<FutureBase> self(this);
  return is_done() || block(seconds);
}

// For as long as it takes if seconds < 0.
bool FutureBase::block(double seconds) {
  int64_t start = now_ns();
  int64_t deadline = seconds < 0 ? INT64_MAX : start + static_cast<int64_t>(seconds * 1e9);
  if (num_threads() > 1)
    while (now_ns() < std::min(start + kSpinNs, deadline)) {
      for (int i = 0; i < 16; ++i) spin_pause();
      if (is_done()) return true;
    }
  profile::Scope scope("wait", profile::Category::kWait, nullptr, profile_id());
  BlockingScope blocking;
  BlockedThread me;
  if (!add_waiter(&me)) return true;
  // Leaves only when nobody can touch `me` any more.
  struct Leave {
    FutureBase& future;
    BlockedThread& me;
    ~Leave() {
      if (!me.was_told() && !future.remove_waiter(&me))
        while (!me.was_told()) spin_pause();
    }
  } leave{*this, me};
  while (!me.was_told()) {
    int64_t left = deadline == INT64_MAX ? INT64_MAX : deadline - now_ns();
    if (left <= 0) return is_done();
    if (is_interruptible()) {
      check_interrupt();
      left = std::min(left, kInterruptNs);
    }
    if (left == INT64_MAX)
      me.parker().park();
    else
      me.parker().park_for(left);
  }
  return true;
}

}  // namespace prong
