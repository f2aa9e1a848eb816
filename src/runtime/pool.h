// The one thread pool: its queue of tasks, its list of running loops, its workers and their number.
// Used by task.cpp, future.cpp and parallel.cpp.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/ref.h"
#include "runtime/loop.h"
#include "runtime/spin_lock.h"
#include "runtime/task.h"

namespace prong {

// README.md tells the rules: the thread budget, who is woken when, why nothing waits for ever.
class Pool {
 public:
  static Pool& get();  // made at first use, never destroyed

  int limit() const { return limit_.load(std::memory_order_relaxed); }
  void set_limit(int n);

  // Queues a task that is new; one that this thread has claimed or must resume.
  void submit(Ref<Task> task);
  void requeue(Ref<Task> task);
  // Takes a task off the queue if it still is there.
  bool claim_queued(Task& task);

  // Lists a loop so that idle workers join it; takes it off again.
  void publish(Loop& loop);
  void retract(Loop& loop);

  // Around a wait of the calling thread for another one.
  void begin_blocked();
  void end_blocked();

  bool shutdown(double seconds);

  // Counts the forks of the process up to here; tasks of another number run nowhere.
  uint32_t process() const { return process_.load(std::memory_order_relaxed); }

 private:
  struct Worker;
  Pool();

  int allowed() const;  // how many workers may be awake and not blocked
  void push(Ref<Task> task, bool is_first);
  void unlink(Task& task);
  Worker* pick_worker_to_wake(bool is_urgent);  // under the lock; then wake(it) outside of it
  void wake(Worker* worker);
  void start_thread(Worker* worker);

  void work(Worker& worker);
  bool run_something(Worker& worker);  // under the lock, which it lets go meanwhile
  bool stay_awake(Worker& worker);     // under the lock; false: nothing to wait for, go to sleep
  bool sleep(Worker& worker);          // under the lock; false: this thread is not needed any more
  Task* ripe_task(Worker& worker) const;
  Loop* open_loop() const;
  void stop_searching(Worker& worker);

  void before_fork();
  void after_fork_in_parent();
  void after_fork_in_child();

  std::atomic<int> limit_;
  std::atomic<uint32_t> process_{1};

  alignas(64) SpinLock lock_;  // guards all below; the atomics are also looked at without it
  Task* first_task_ = nullptr;
  Task* last_task_ = nullptr;
  Loop* first_loop_ = nullptr;
  Loop* last_loop_ = nullptr;
  std::atomic<int> queue_size_{0};
  std::atomic<int> loop_count_{0};
  uint64_t submitted_ = 0;
  int awake_ = 0;      // workers that are neither asleep nor blocked
  int searching_ = 0;  // those of them that look for work
  int busy_ = 0;       // workers inside a task or a loop, blocked or not
  int blocked_outsiders_ = 0;
  bool is_stopping_ = false;
  std::vector<Worker*> sleepers_;
  std::vector<Worker*> nappers_;
};

}  // namespace prong
