// Workers: what they do next, when they are woken, when they sleep. See README.md for the rules.
#include "runtime/pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <algorithm>
#include <chrono>
#include <system_error>
#include <thread>

#include "base/error.h"
#include "base/flags.h"
#include "base/str.h"
#include "profile/profile.h"
#include "runtime/trampoline.h"

namespace prong {

namespace {

// A worker leaves a task alone for this long, since the thread that forked it is about to wait for
// it and run it without any hand-over.
constexpr int64_t kRipeNs = 5'000;
// The same where the limit is one thread and that one is at work.
constexpr int64_t kRipeAloneNs = 1'000'000;
// While such young tasks come and go, a worker looks this often; nobody needs to wake it.
constexpr int64_t kNapNs = 25'000;
constexpr int kNapsWithoutWork = 3;
// How long a worker looks for more after its last work, since work comes in rows.
constexpr int64_t kLingerNs = 50'000;
// Workers beyond the budget, made while others were blocked, end after this.
constexpr int64_t kSurplusNs = 2'000'000'000;

int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

int default_limit() {
  for (const char* name : {"PRONG_NUM_THREADS", "OMP_NUM_THREADS"})
    if (int64_t n = env_number(name, 0); n >= 1) return static_cast<int>(n);
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace

// Held by its thread and by whoever is about to wake it.
struct Pool::Worker : RefCounted {
  Parker* parker = nullptr;
  bool has_thread = false;
  bool is_napping = false;
  int empty_naps = 0;
  uint64_t seen_submitted = 0;
  int64_t linger_until_ns = 0;
  int64_t now_ns = 0;  // when it last looked at the clock
};

namespace {
thread_local bool is_worker = false;
thread_local int blocked_depth = 0;
}  // namespace

Pool& Pool::get() {
  static Pool& pool = *new Pool;
  return pool;
}

Pool::Pool() : limit_(default_limit()) {
  pthread_atfork([] { get().before_fork(); }, [] { get().after_fork_in_parent(); },
                 [] { get().after_fork_in_child(); });
}

// ---- the budget

int Pool::allowed() const {
  // A thread from outside that is not blocked is one of the limit; with a limit of one, tasks that
  // nobody waits for must go on all the same.
  int n = limit();
  return std::min(n, std::max(1, n - 1) + blocked_outsiders_);
}

void Pool::set_limit(int n) {
  lock_.lock();
  limit_.store(n, std::memory_order_relaxed);
  Worker* worker = queue_size_ || loop_count_ ? pick_worker_to_wake(true) : nullptr;
  lock_.unlock();
  wake(worker);
}

void Pool::begin_blocked() {
  if (blocked_depth++) return;
  lock_.lock();
  if (is_worker)
    --awake_;
  else
    ++blocked_outsiders_;
  Worker* worker = queue_size_ || loop_count_ ? pick_worker_to_wake(true) : nullptr;
  lock_.unlock();
  wake(worker);
}

void Pool::end_blocked() {
  if (--blocked_depth) return;
  lock_.lock();
  if (is_worker)
    ++awake_;  // perhaps one too many now: the next worker that is done with its work goes to sleep
  else
    --blocked_outsiders_;
  lock_.unlock();
}

// With `is_urgent`, one that naps is woken too: there is more to do than the young tasks it waits
// for.
Pool::Worker* Pool::pick_worker_to_wake(bool is_urgent) {
  if (is_stopping_) return nullptr;
  if (is_urgent && !nappers_.empty()) {
    Worker* worker = nappers_.back();  // counted as awake and searching already
    nappers_.pop_back();
    worker->is_napping = false;
    worker->retain();
    return worker;
  }
  if (searching_ > 0 || awake_ >= allowed()) return nullptr;
  Worker* worker;
  if (sleepers_.empty()) {
    worker = new Worker;
    worker->retain();  // for its thread
  } else {
    worker = sleepers_.back();
    sleepers_.pop_back();
  }
  ++awake_;
  ++searching_;
  worker->retain();
  return worker;
}

void Pool::wake(Worker* worker) {
  if (!worker) return;
  const auto held = Ref<Worker>::adopt(worker);
  if (worker->has_thread)
    worker->parker->unpark();
  else
    start_thread(worker);
}

void Pool::start_thread(Worker* worker) {
  worker->has_thread = true;
  // Signals are for the threads of the program.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool failed = false;
  try {
    std::thread([this, worker] { work(*worker); }).detach();
  } catch (const std::system_error&) {
    failed = true;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!failed) return;
  lock_.lock();
  --awake_;
  --searching_;
  bool nobody_works = awake_ == 0;
  lock_.unlock();
  worker->release();
  // With other workers awake things go on, only slower.
  PRONG_CHECK(!nobody_works, kRuntime,
              "cannot start a thread for forked tasks: the system refuses");
}

// ---- the queue

void Pool::push(Ref<Task> task, bool is_first) {
  Task* t = task.detach();
  lock_.lock();
  t->state_.store(Task::State::kQueued, std::memory_order_release);
  t->queue_prev_ = is_first ? nullptr : last_task_;
  t->queue_next_ = is_first ? first_task_ : nullptr;
  (t->queue_prev_ ? t->queue_prev_->queue_next_ : first_task_) = t;
  (t->queue_next_ ? t->queue_next_->queue_prev_ : last_task_) = t;
  queue_size_.store(queue_size_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  ++submitted_;
  Worker* worker = pick_worker_to_wake(false);
  lock_.unlock();
  wake(worker);
}

void Pool::unlink(Task& task) {
  (task.queue_prev_ ? task.queue_prev_->queue_next_ : first_task_) = task.queue_next_;
  (task.queue_next_ ? task.queue_next_->queue_prev_ : last_task_) = task.queue_prev_;
  queue_size_.store(queue_size_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  task.process_.store(process(), std::memory_order_relaxed);
  task.state_.store(Task::State::kRunning, std::memory_order_release);
}

void Pool::submit(Ref<Task> task) {
  // Claimed while new: somebody waits for it already and runs it.
  auto expected = Task::State::kNew;
  if (!task->state_.compare_exchange_strong(expected, Task::State::kRunning)) return;
  task->queued_ns_ = now_ns();
  push(std::move(task), false);
}

// In front of what was not begun yet, and ripe.
void Pool::requeue(Ref<Task> task) {
  task->queued_ns_ = 0;
  push(std::move(task), true);
}

bool Pool::claim_queued(Task& task) {
  lock_.lock();
  bool is_queued = task.state_.load(std::memory_order_relaxed) == Task::State::kQueued;
  if (is_queued) unlink(task);
  lock_.unlock();
  if (is_queued) task.release();  // the queue's reference; the caller holds its own
  return is_queued;
}

Task* Pool::ripe_task(Worker& worker) const {
  if (!first_task_ || is_stopping_) return nullptr;
  int64_t ripe_ns = limit() == 1 && blocked_outsiders_ == 0 ? kRipeAloneNs : kRipeNs;
  int64_t since_ns = first_task_->queued_ns_ + ripe_ns;
  if (worker.now_ns < since_ns) worker.now_ns = now_ns();  // most are long since ripe
  return worker.now_ns >= since_ns ? first_task_ : nullptr;
}

// ---- loops

void Pool::publish(Loop& loop) {
  lock_.lock();
  loop.free_seats_ = static_cast<int>(std::min<int64_t>(loop.pieces(), limit())) - 1;
  loop.list_prev_ = last_loop_;
  (last_loop_ ? last_loop_->list_next_ : first_loop_) = &loop;
  last_loop_ = &loop;
  loop_count_.store(loop_count_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  Worker* worker = pick_worker_to_wake(true);
  lock_.unlock();
  wake(worker);
}

void Pool::retract(Loop& loop) {
  lock_.lock();
  (loop.list_prev_ ? loop.list_prev_->list_next_ : first_loop_) = loop.list_next_;
  (loop.list_next_ ? loop.list_next_->list_prev_ : last_loop_) = loop.list_prev_;
  loop_count_.store(loop_count_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  lock_.unlock();
}

Loop* Pool::open_loop() const {
  for (Loop* loop = first_loop_; loop; loop = loop->list_next_)
    if (loop->free_seats_ > 0 && loop->has_work()) return loop;
  return nullptr;
}

// ---- workers

void Pool::work(Worker& worker) {
  static std::atomic<int> counter{0};
  int number = ++counter;
  is_worker = true;
  worker.parker = &Parker::of_this_thread();
  std::string name = cat("prong ", number);
  pthread_setname_np(pthread_self(), name.c_str());
#ifdef __linux__
  prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0);  // naps of 25 us would last 80
#endif
  profile::set_thread_name(cat("worker ", number));
  lock_.lock();
  for (;;) {
    if (awake_ <= allowed()) {
      if (run_something(worker)) continue;
      if (stay_awake(worker)) continue;
    }
    if (!sleep(worker)) break;
  }
  lock_.unlock();
  worker.release();
}

void Pool::stop_searching(Worker& worker) {
  --searching_;
  ++busy_;
  worker.empty_naps = 0;
  // What is left is for others, if the budget has room for one.
  Worker* other = queue_size_ || open_loop() ? pick_worker_to_wake(false) : nullptr;
  lock_.unlock();
  wake(other);
}

bool Pool::run_something(Worker& worker) {
  // Tasks first: whole tasks side by side need less coordination than pieces of one.
  if (Task* task = ripe_task(worker)) {
    unlink(*task);
    stop_searching(worker);
    Trampoline::run_all(Ref<Task>::adopt(task));
  } else if (Loop* loop = is_stopping_ ? nullptr : open_loop()) {
    --loop->free_seats_;
    loop->join();
    stop_searching(worker);
    loop->help_and_leave();
  } else {
    return false;
  }
  worker.now_ns = now_ns();
  worker.linger_until_ns = worker.now_ns + kLingerNs;
  lock_.lock();
  --busy_;
  ++searching_;
  return true;
}

bool Pool::stay_awake(Worker& worker) {
  if (is_stopping_) return false;
  if (now_ns() < worker.linger_until_ns) {
    bool has_young_task = queue_size_ > 0;
    lock_.unlock();
    // Looks at two counters, and not too often: others write next to them.
    do {
      for (int i = 0; i < 16; ++i) spin_pause();
    } while (!has_young_task && !queue_size_.load(std::memory_order_relaxed) &&
             !loop_count_.load(std::memory_order_relaxed) && now_ns() < worker.linger_until_ns);
    lock_.lock();
    return true;
  }
  bool news = submitted_ != worker.seen_submitted;
  worker.seen_submitted = submitted_;
  worker.empty_naps = news || queue_size_ ? 0 : worker.empty_naps + 1;
  if (worker.empty_naps >= kNapsWithoutWork) return false;
  worker.is_napping = true;
  nappers_.push_back(&worker);
  lock_.unlock();
  worker.parker->park_for(limit() == 1 ? kRipeAloneNs : kNapNs);
  lock_.lock();
  if (worker.is_napping) {
    worker.is_napping = false;
    nappers_.erase(std::find(nappers_.begin(), nappers_.end(), &worker));
  }
  return true;
}

bool Pool::sleep(Worker& worker) {
  --awake_;
  --searching_;
  sleepers_.push_back(&worker);
  worker.empty_naps = 0;
  worker.linger_until_ns = 0;
  for (;;) {
    bool is_surplus = static_cast<int>(sleepers_.size()) > limit();
    lock_.unlock();
    bool was_woken = true;
    if (is_surplus)
      was_woken = worker.parker->park_for(kSurplusNs);
    else
      worker.parker->park();
    lock_.lock();
    auto at = std::find(sleepers_.begin(), sleepers_.end(), &worker);
    if (at == sleepers_.end()) return true;  // whoever woke it counted it as awake
    if (!was_woken) {
      sleepers_.erase(at);
      return false;
    }
  }
}

// ---- the end, and forks of the process

bool Pool::shutdown(double seconds) {
  int64_t deadline = now_ns() + static_cast<int64_t>(seconds * 1e9);
  for (;;) {
    lock_.lock();
    is_stopping_ = true;
    bool is_idle = busy_ == 0;
    lock_.unlock();
    if (is_idle) return true;
    if (now_ns() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

void Pool::before_fork() { lock_.lock(); }

void Pool::after_fork_in_parent() { lock_.unlock(); }

// Only this thread lives on. What was queued is still there and can be run; loops and tasks of
// other threads are not: the memory of their workers is given up.
void Pool::after_fork_in_child() {
  Parker::replace_after_fork();
  process_.fetch_add(1, std::memory_order_relaxed);
  first_loop_ = last_loop_ = nullptr;
  loop_count_ = 0;
  awake_ = is_worker && !blocked_depth ? 1 : 0;
  busy_ = is_worker ? 1 : 0;
  searching_ = 0;
  blocked_outsiders_ = blocked_depth && !is_worker ? 1 : 0;
  sleepers_.clear();
  nappers_.clear();
  lock_.unlock();
}

}  // namespace prong
