// A piece of work that runs on the pool and may be suspended. Subclassed by exec (frames) and
// bindings (Python calls).
#pragma once

#include <atomic>
#include <cstdint>

#include "base/block_cache.h"
#include "base/ref.h"
#include "runtime/context.h"
#include "runtime/spin_lock.h"

namespace prong {

class FutureBase;
class Pool;
class Task;
class Trampoline;

// Something that is told, once, that a future is done.
class Waiter {
 public:
  explicit Waiter(bool is_task) : is_task_(is_task) {}
  virtual ~Waiter() = default;

 protected:
  // On the completing thread, outside of any lock. A task may put itself into an empty `*next`, to
  // be gone on with there; `next` is null where the thread cannot take one.
  virtual void on_done(FutureBase& future, Ref<Task>* next) = 0;
  // Instead of on_done, when the future goes away without ever being done.
  virtual void on_dropped() = 0;

 private:
  friend class FutureBase;
  Waiter* next_ = nullptr;
  const bool is_task_;
};

class Task : public RefCounted, public Cached, private Waiter {
 public:
  // Takes a copy of the context of the thread that makes it.
  Task();
  ~Task() override;

  // Runs on until the task is finished or suspended. Called on any thread, by one at a time, with
  // the task's own context installed. Must not throw: an exception goes into the future.
  //  - Finished: complete the future as the last act:    return result_->finish_value(v);
  //  - Must wait for `f`:   Ref<Task> next; if (await(*f, next)) return next;   // else: f is done
  //    After await has returned true, the task may already be running on another thread: touch
  //    no member and return at once. Its run() is called again when f is done. If f goes instead,
  //    the task goes too; it should keep no f for itself then, and take it back with arrived().
  // What is returned is run next on this thread, so stacks never grow however deep forks nest.
  virtual Ref<Task> run() = 0;

  // What profiles call it; null: no event of its own (the outermost frame of a call).
  virtual const char* name() const { return "<forked function>"; }

  uint64_t profile_id() const { return profile_id_; }

 protected:
  // False: `future` is done, go on. True: suspended until it is; `next` is then the task that
  // produces it, if nobody had started that yet, for this thread to run.
  bool await(FutureBase& future, Ref<Task>& next);
  // What it was resumed for; null the second time, and if it did not suspend.
  Ref<FutureBase> arrived();

 private:
  friend class FutureBase;
  friend class Pool;
  friend class Trampoline;
  enum class State : uint8_t { kNew, kQueued, kRunning, kSuspended, kFinished };

  void on_done(FutureBase& future, Ref<Task>* next) override;
  void on_dropped() override;
  bool claim();  // true: nobody else runs it, the caller must
  // A consistent look: the state, and what it waits for if suspended.
  State look(Ref<FutureBase>& awaited);
  void mark_suspended(FutureBase& future);
  void mark_running();

  Context context_;
  std::atomic<State> state_{State::kNew};
  bool was_resumed_ = false;
  SpinLock lock_;                             // guards awaited_ and state_ together
  std::atomic<const void*> runner_{nullptr};  // tag of the thread that runs it
  std::atomic<uint32_t> process_{0};          // and of that thread's process
  FutureBase* awaited_ = nullptr;             // weak: it tells us before it goes
  Ref<FutureBase> arrived_;
  Ref<FutureBase> result_;  // the future that names this task as its producer
  Task* queue_prev_ = nullptr;
  Task* queue_next_ = nullptr;
  int64_t queued_ns_ = 0;
  uint64_t profile_id_ = 0;
  uint64_t resumed_by_ = 0;  // profile id of what it waited for last
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

// Before the process goes: no task is started any more; waits for those that run, for at most
// `seconds`. False if some still run. Threads are left behind on purpose: they end with the
// process.
bool shutdown_pool(double seconds);

}  // namespace prong
