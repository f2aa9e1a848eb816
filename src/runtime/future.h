// A value that will be there later. `Future` in tensor/ivalue.h is BasicFuture<IValue>.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

#include "base/block_cache.h"
#include "base/ref.h"
#include "runtime/spin_lock.h"
#include "runtime/task.h"

namespace prong {

// Everything about a future but its value. All members may be called from any thread.
class FutureBase : public RefCounted, public Cached {
 public:
  FutureBase() = default;
  ~FutureBase() override;

  bool is_done() const { return state_.load(std::memory_order_acquire) == State::kDone; }
  // Done with an exception.
  bool has_error() const { return is_done() && error_ != nullptr; }
  // The exception, or null; only when done.
  std::exception_ptr error() const { return error_; }

  // Completes with an exception; raises RuntimeError if it was completed before.
  void set_error(std::exception_ptr error);
  bool try_set_error(std::exception_ptr error);  // false if it was completed before
  // The same as the last act of a task's run(): returns one of the waiting tasks to go on with.
  Ref<Task> finish_error(std::exception_ptr error);

  // Names the task that completes this future, once, before either is shared. The task keeps the
  // future alive from then on; the future does not keep the task. If the task dies without
  // completing it, the future gets an error.
  void set_producer(Task& task);

  // Calls f(FutureBase&) when done: here and now if it is, else on the completing thread. What f
  // throws is dropped; give the child future of a `then` its error in f.
  template <class F>
  void then(F&& f);

  // Blocks until done; see README.md for why that never deadlocks. Runs the producer here if nobody
  // started it. The interrupt hook may throw. Does not rethrow the future's error.
  void wait();
  // The same for a limited time; never starts work here. False if time ran out.
  bool wait_for(double seconds);

  // Ends a future whose task was not started: it gets `error`, and the task never runs. False if
  // it was started, is done, or has no task.
  bool cancel(std::exception_ptr error);

  // The task that produces it, if it was not started and nobody else claims it: the caller must run
  // it (return it from run()) or give it back with submit().
  Ref<Task> claim_producer();

  // Profile id of the producer, 0 if none.
  uint64_t profile_id() const { return profile_id_.load(std::memory_order_relaxed); }

 protected:
  // True for exactly one caller, who then writes the value.
  bool begin_completion() {
    State expected = State::kPending;
    return state_.compare_exchange_strong(expected, State::kCompleting, std::memory_order_acq_rel);
  }
  void end_completion(Ref<Task>* next);
  [[noreturn]] void throw_completed_twice() const;
  void check_value_ready() const;  // raises if not done; rethrows the error

 private:
  friend class Task;
  friend class Trampoline;
  enum class State : uint8_t { kPending, kCompleting, kDone };

  template <class F>
  struct Callback;

  bool add_waiter(Waiter* waiter);     // false if done; else the waiter is told later
  bool remove_waiter(Waiter* waiter);  // false if it is being told, or was
  Ref<Task> producer() const;
  bool block(double seconds);

  std::atomic<State> state_{State::kPending};
  mutable SpinLock lock_;
  Waiter* waiters_ = nullptr;  // newest first
  Task* producer_ = nullptr;   // weak: a task takes itself away from here when it dies
  std::atomic<uint64_t> profile_id_{0};
  std::exception_ptr error_;
};

template <class F>
struct FutureBase::Callback final : Waiter {
  template <class G>
  explicit Callback(G&& f) : Waiter(false), f_(std::forward<G>(f)) {}
  void on_done(FutureBase& future, Ref<Task>*) override {
    std::unique_ptr<Callback> self(this);
    try {
      f_(future);
    } catch (...) {  // nobody is there to take it
    }
  }
  void on_dropped() override { delete this; }
  F f_;
};

template <class F>
void FutureBase::then(F&& f) {
  using Stored = std::decay_t<F>;
  auto callback = std::make_unique<Callback<Stored>>(std::forward<F>(f));
  Ref<FutureBase> self(this);
  if (add_waiter(callback.get()))
    callback.release();
  else
    callback.release()->on_done(*this, nullptr);
}

template <class V>
class BasicFuture final : public FutureBase {
 public:
  BasicFuture() = default;
  static Ref<BasicFuture> done(V value) {
    auto future = make_ref<BasicFuture>();
    future->set_value(std::move(value));
    return future;
  }

  // Completes; raises RuntimeError if it was completed before.
  void set_value(V value) {
    if (!try_set_value(std::move(value))) throw_completed_twice();
  }
  bool try_set_value(V value) {
    if (!begin_completion()) return false;
    value_ = std::move(value);
    end_completion(nullptr);
    return true;
  }
  // Completes as the last act of a task's run(): return what it returns. Nothing if a cancel or
  // someone else came first.
  Ref<Task> finish_value(V value) {
    Ref<Task> next;
    if (begin_completion()) {
      value_ = std::move(value);
      end_completion(&next);
    }
    return next;
  }

  // The value; rethrows the error. Raises if not done: wait() first.
  const V& value() const {
    check_value_ready();
    return value_;
  }

 private:
  V value_{};
};

}  // namespace prong
