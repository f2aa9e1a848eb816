// The background thread. See background.h.
#include "runtime/background.h"

#include <pthread.h>
#include <signal.h>
#ifdef __linux__
#include <sys/resource.h>
#endif

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

namespace prong {

namespace {

constexpr int kNiceness = 5;  // threads that compute what the program waits for come first

class Background {
 public:
  static Background& get() {
    static Background& instance = *new Background;  // its thread may outlive all static objects
    return instance;
  }

  void add(Ref<BackgroundJob> job) {
    const std::lock_guard lock(mutex_);
    if (is_stopped_) return;
    queue_.push_back(std::move(job));
    start_thread();
    changed_->notify_all();
  }

  void keep_going() {
    const std::lock_guard lock(mutex_);
    if (!queue_.empty()) start_thread();
  }

  void wait() {
    std::unique_lock lock(mutex_);
    if (!queue_.empty()) start_thread();
    changed_->wait(lock, [this] { return (queue_.empty() && !is_running_) || !has_thread_; });
  }

  void stop() {
    std::deque<Ref<BackgroundJob>> dropped;
    std::unique_lock lock(mutex_);
    is_stopped_ = true;
    dropped.swap(queue_);
    changed_->wait(lock, [this] { return !is_running_; });
    lock.unlock();
  }

 private:
  Background() {
    pthread_atfork([] { get().before_fork(); }, [] { get().after_fork(false); },
                   [] { get().after_fork(true); });
  }

  // Not in the middle of a job, whose locks the child could never take.
  void before_fork() {
    job_.lock();
    mutex_.lock();
  }
  void after_fork(bool in_child) {
    if (in_child) {
      has_thread_ = false;
      changed_.release();  // it counts on a thread that is gone
      changed_ = std::make_unique<std::condition_variable>();
    }
    mutex_.unlock();
    job_.unlock();
  }

  void start_thread() {  // under mutex_
    if (has_thread_) return;
    sigset_t all, before;  // signals are for the threads of the program
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      std::thread([this] { work(); }).detach();
      has_thread_ = true;
    } catch (const std::system_error&) {
      // The jobs wait for the next call.
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void work() {
#ifdef __linux__
    setpriority(PRIO_PROCESS, 0, kNiceness);  // of this thread alone
#endif
    while (true) {
      {
        std::unique_lock lock(mutex_);
        changed_->wait(lock, [this] { return !queue_.empty(); });
      }
      const std::lock_guard one_job(job_);
      Ref<BackgroundJob> job;
      {
        const std::lock_guard lock(mutex_);
        if (queue_.empty()) continue;
        job = std::move(queue_.front());
        queue_.pop_front();
        is_running_ = true;
      }
      job->run();
      job = {};
      const std::lock_guard lock(mutex_);
      is_running_ = false;
      changed_->notify_all();
    }
  }

  std::mutex job_;    // held while a job runs
  std::mutex mutex_;  // taken after job_; guards what follows
  std::deque<Ref<BackgroundJob>> queue_;
  std::unique_ptr<std::condition_variable> changed_ = std::make_unique<std::condition_variable>();
  bool has_thread_ = false, is_running_ = false, is_stopped_ = false;
};

}  // namespace

void run_in_background(Ref<BackgroundJob> job) { Background::get().add(std::move(job)); }
void keep_background_going() { Background::get().keep_going(); }
void wait_for_background() { Background::get().wait(); }
void stop_background() { Background::get().stop(); }

}  // namespace prong
