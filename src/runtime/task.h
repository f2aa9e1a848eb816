// A piece of work that runs on the pool and may be suspended. Subclassed by exec (frames) and
// bindings (Python calls).
#pragma once

#include <atomic>
#include <cstdint>

#include "base/ref.h"
#include "runtime/context.h"
#include "runtime/spin_lock.h"

namespace prong {

class FutureBase;
class Pool;
class Task;

// Something that is told, once, that a future is done.
class Waiter {
 public:
  virtual ~Waiter() = default;

 protected:
  // On the completing thread, outside of any lock. `next` may be given one task to go on with
  // there; leave it alone if it is already taken, and null if the thread cannot take one.
  virtual void on_done(FutureBase& future, Ref<Task>* next) = 0;

 private:
  friend class FutureBase;
  Waiter* next_ = nullptr;
};

class Task : public RefCounted, private Waiter {
 public:
  // Takes a copy of the context of the thread that makes it.
  Task() : context_(context()) {}
  ~Task() override;

  // Runs on until the task is finished or suspended. Called on any thread, by one at a time, with
  // the task's own context installed. Must not throw: an exception goes into the future.
  //  - Finished: complete the future as the last act:    return result_->finish_value(v);
  //  - Must wait for `f`:   Ref<Task> next; if (await(*f, next)) return next;   // else: f is done
  //    After await has returned true, the task may already be running on another thread: touch
  //    no member and return at once. Its run() is called again when f is done.
  // What is returned is run next on this thread, so stacks never grow however deep forks nest.
  virtual Ref<Task> run() = 0;

  // What profiles call it; null: no event of its own (the outermost frame of a call).
  virtual const char* name() const { return "<forked function>"; }

  uint64_t profile_id() const { return profile_id_; }

 protected:
  // False: `future` is done, go on. True: suspended until it is; `next` is then the task that
  // produces it, if nobody had started that yet, for this thread to run.
  bool await(FutureBase& future, Ref<Task>& next);

 private:
  friend class Pool;
  friend class FutureBase;
  friend class Trampoline;
  enum class State : uint8_t { kNew, kQueued, kRunning, kSuspended, kFinished };

  void on_done(FutureBase& future, Ref<Task>* next) override;
  bool claim();
  void follow(State& state, Ref<FutureBase>& awaited);  // a consistent look at both

  Context context_;
  std::atomic<State> state_{State::kNew};
  SpinLock lock_;  // state_ and awaited_ change together under it when suspending and resuming
  uint32_t process_ = 0;  // of the thread that runs it; see Pool::process
  Ref<FutureBase> awaited_;
  FutureBase* result_ = nullptr;  // the future that names this task as its producer
  Task* queue_prev_ = nullptr;
  Task* queue_next_ = nullptr;
  uint64_t queue_number_ = 0;
  uint64_t profile_id_ = 0;
};

// Puts a task that was not started yet on the pool's queue; it runs in the background from now on,
// or on the thread that first waits for its future. Never blocks. Dropped if somebody already
// started it.
void submit(Ref<Task> task);

// While it lives, this thread counts as blocked, so that another takes its place in the pool. For
// foreign calls of unknown length that wait for something (a lock, a socket).
class BlockingScope {
 public:
  BlockingScope();
  ~BlockingScope();
  BlockingScope(const BlockingScope&) = delete;
  BlockingScope& operator=(const BlockingScope&) = delete;
};

// Before the process goes: no task is started any more; those that run may finish, for at most
// `seconds`. Threads are left behind on purpose: they end with the process.
void shutdown_pool(double seconds);

}  // namespace prong
