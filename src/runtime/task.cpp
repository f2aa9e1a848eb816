// Tasks: claiming, running, suspending, resuming. Called by exec and bindings through task.h.
#include "runtime/task.h"

#include <thread>

#include "base/error.h"
#include "profile/profile.h"
#include "runtime/future.h"
#include "runtime/interrupt.h"
#include "runtime/pool.h"
#include "runtime/trampoline.h"

namespace prong {

namespace {
// Set by await for the trampoline below it; its address also names the thread.
thread_local bool has_suspended = false;
}  // namespace

Task::Task() : Waiter(true), context_(context()) {
  // Who captures a function sees its own line of execution only.
  context_[ContextWord::kKernels] = 0;
  if (profile::is_on()) profile_id_ = profile::new_task_id();
}

Task::~Task() {
  if (!result_) return;
  result_->lock_.lock();
  result_->producer_ = nullptr;
  result_->lock_.unlock();
  if (!result_->is_done() && result_->use_count() > 1)
    result_->try_set_error(std::make_exception_ptr(
        Error(ErrorKind::kRuntime, "the task of this future was dropped before it was finished")));
}

bool Task::claim() {
  State state = state_.load(std::memory_order_acquire);
  if (state == State::kNew) {
    process_.store(Pool::get().process(), std::memory_order_relaxed);
    return state_.compare_exchange_strong(state, State::kRunning, std::memory_order_acq_rel);
  }
  return state == State::kQueued && Pool::get().claim_queued(*this);
}

Task::State Task::look(Ref<FutureBase>& awaited) {
  lock_.lock();
  awaited = Ref<FutureBase>::adopt(awaited_ && awaited_->try_retain() ? awaited_ : nullptr);
  State state = state_.load(std::memory_order_acquire);
  lock_.unlock();
  return state;
}

void Task::mark_suspended(FutureBase& future) {
  runner_.store(nullptr, std::memory_order_relaxed);
  lock_.lock();
  awaited_ = &future;
  state_.store(State::kSuspended, std::memory_order_release);
  lock_.unlock();
}

void Task::mark_running() {
  process_.store(Pool::get().process(), std::memory_order_relaxed);
  lock_.lock();
  awaited_ = nullptr;
  state_.store(State::kRunning, std::memory_order_release);
  lock_.unlock();
}

bool Task::await(FutureBase& future, Ref<Task>& next) {
  if (future.is_done()) {
    if (profile::is_on()) profile::mark_resume(future.profile_id());
    return false;
  }
  next = future.claim_producer();
  context_ = context();
  mark_suspended(future);
  retain();  // for the future's list of waiters
  has_suspended = true;
  if (future.add_waiter(this)) return true;
  has_suspended = false;  // done in between
  mark_running();
  runner_.store(&has_suspended, std::memory_order_relaxed);
  release();
  if (next) Pool::get().requeue(std::move(next));
  return false;
}

void Task::on_done(FutureBase& future, Ref<Task>* next) {
  resumed_by_ = future.profile_id();
  was_resumed_ = true;
  arrived_ = Ref<FutureBase>(&future);
  Ref<Task> self = Ref<Task>::adopt(this);
  mark_running();
  if (next && !*next)
    *next = std::move(self);
  else
    Pool::get().requeue(std::move(self));
}

Ref<FutureBase> Task::arrived() { return std::move(arrived_); }

void Task::on_dropped() {
  lock_.lock();
  awaited_ = nullptr;
  state_.store(State::kFinished, std::memory_order_release);
  lock_.unlock();
  if (result_)
    result_->try_set_error(std::make_exception_ptr(Error(
        ErrorKind::kRuntime, "a task waited for a future that was dropped before it was done")));
  release();
}

void submit(Ref<Task> task) {
  if (profile::is_on()) profile::mark_fork(task->profile_id());
  Pool::get().submit(std::move(task));
}

BlockingScope::BlockingScope() { Pool::get().begin_blocked(); }
BlockingScope::~BlockingScope() { Pool::get().end_blocked(); }

bool shutdown_pool(double seconds) { return Pool::get().shutdown(seconds); }

// ---- Trampoline

Ref<Task> Trampoline::run_once(Task& task, bool& is_suspended) {
  task.runner_.store(&has_suspended, std::memory_order_relaxed);
  uint64_t outer_task = profile::current_task();
  profile::set_current_task(task.profile_id_);
  if (profile::is_on() && task.was_resumed_) profile::mark_resume(task.resumed_by_);
  has_suspended = false;
  Ref<Task> next;
  {
    ContextGuard guard(task.context_);
    profile::Scope scope(profile::is_on() ? task.name() : nullptr, profile::Category::kTask,
                         nullptr, 0, task.was_resumed_);
    try {
      next = task.run();
    } catch (...) {  // against the rules; but the future must not stay open
      if (task.result_) task.result_->try_set_error(std::current_exception());
    }
  }
  profile::set_current_task(outer_task);
  is_suspended = has_suspended;
  has_suspended = false;          // it is the flag of the task below this one on the stack
  if (is_suspended) return next;  // no word about `task`: it may run elsewhere already
  task.runner_.store(nullptr, std::memory_order_relaxed);
  task.state_.store(Task::State::kFinished, std::memory_order_release);
  if (task.result_ && !task.result_->is_done())
    task.result_->try_set_error(std::make_exception_ptr(
        Error(ErrorKind::kInternal, "a task ended without completing its future")));
  return next;
}

void Trampoline::run_all(Ref<Task> task) {
  bool is_suspended;
  while (task) task = run_once(*task, is_suspended);
}

// path.back() is claimed. Runs it, what it then waits for, and what waited for it, as long as that
// belongs to the path.
void Trampoline::run_top(Path& path) {
  for (;;) {
    bool is_suspended;
    Ref<Task> next = run_once(*path.back(), is_suspended);
    if (is_suspended) {
      if (!next) return;
      path.push_back(std::move(next));
      continue;
    }
    path.pop_back();
    if (!next) return;
    if (!path.empty() && path.back() == next) continue;
    // It needs nothing of ours, and so could wait for what is below us on this stack: not here.
    Pool::get().requeue(std::move(next));
    return;
  }
}

// Follows the chain of waits from path.back(). False if there is nothing to run here.
bool Trampoline::look_further(FutureBase& target, Path& path) {
  Ref<FutureBase> awaited;
  switch (path.back()->look(awaited)) {
  case Task::State::kNew:
  case Task::State::kQueued:
    return true;  // somebody was quicker or slower than us; look again
  case Task::State::kFinished:
    path.pop_back();
    return true;
  case Task::State::kSuspended: {
    if (!awaited || awaited->is_done()) {  // about to be dropped or resumed
      std::this_thread::yield();
      return true;
    }
    Ref<Task> producer = awaited->producer();
    if (!producer) return awaited->is_done();
    path.push_back(std::move(producer));
    return true;
  }
  case Task::State::kRunning:
    break;
  }
  Task& task = *path.back();
  if (task.process_.load(std::memory_order_relaxed) != Pool::get().process() && task.result_) {
    task.result_->try_set_error(std::make_exception_ptr(
        Error(ErrorKind::kRuntime,
              "the task of this future was running in another thread when the process forked; "
              "its result exists only in the parent process")));
    return !target.is_done();
  }
  if (task.runner_.load(std::memory_order_relaxed) == &has_suspended &&
      task.state_.load(std::memory_order_acquire) == Task::State::kRunning)
    throw_error(ErrorKind::kRuntime,
                "deadlock: a task waits for a future that needs the task itself to go on");
  return false;
}

void Trampoline::run_needed(FutureBase& target) {
  Path path;
  while (!target.is_done()) {
    if (path.empty()) {
      Ref<Task> producer = target.producer();
      if (!producer) return;
      path.push_back(std::move(producer));
    }
    if (path.back()->claim()) {
      run_top(path);
      check_interrupt();
    } else if (!look_further(target, path)) {
      return;
    }
  }
}

}  // namespace prong
