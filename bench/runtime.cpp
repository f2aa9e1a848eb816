// What do fork, wait and parallel_for cost, next to oneTBB? Run by hand: build target
// bench_runtime. Prints one line a question: our time, the peer's, their ratio. Medians of
// interleaved rounds.
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_group.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "runtime/future.h"
#include "runtime/parallel.h"
#include "runtime/task.h"

namespace {

using namespace prong;
using IntFuture = BasicFuture<int64_t>;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

template <class F>
class Call final : public Task {
 public:
  explicit Call(F f) : f_(std::move(f)) {}
  Ref<IntFuture> result = make_ref<IntFuture>();
  Ref<Task> run() override { return result->finish_value(f_()); }

 private:
  F f_;
};

template <class F>
Ref<IntFuture> fork_call(F f) {
  auto call = make_ref<Call<F>>(std::move(f));
  auto result = call->result;
  result->set_producer(*call);
  submit(std::move(call));
  return result;
}

// Median seconds of each of two functions, run in turns.
template <class A, class B>
void compare(const char* question, const char* unit, double scale, int rounds, A ours, B peer) {
  std::vector<double> a, b;
  for (int i = 0; i < rounds; ++i) {
    a.push_back(ours());
    b.push_back(peer());
  }
  auto median = [](std::vector<double>& v) {
    std::nth_element(v.begin(), v.begin() + v.size() / 2, v.end());
    return v[v.size() / 2];
  };
  double x = median(a) * scale, y = median(b) * scale;
  std::printf("%-58s %9.3f %s   oneTBB %9.3f %s   ratio %.2f\n", question, x, unit, y, unit, x / y);
}

template <class F>
double timed(F f) {
  auto start = Clock::now();
  f();
  return seconds_since(start);
}

void spin_us(double us) {
  auto end = Clock::now() + std::chrono::nanoseconds(static_cast<int64_t>(us * 1000));
  while (Clock::now() < end) {
  }
}

void fork_and_wait() {
  constexpr int kTimes = 100000;
  compare(
      "fork + wait of an empty task, in a row", "us", 1e6 / kTimes, 9,
      [] {
        return timed([] {
          for (int64_t i = 0; i < kTimes; ++i) fork_call([i] { return i; })->wait();
        });
      },
      [] {
        return timed([] {
          std::atomic<int64_t> sink{0};
          for (int64_t i = 0; i < kTimes; ++i) {
            tbb::task_group group;
            group.run([&, i] { sink.store(i, std::memory_order_relaxed); });
            group.wait();
          }
        });
      });
}

void many_in_flight() {
  constexpr int64_t kTasks = 1000000;
  compare(
      "1,000,000 tasks in flight, all waited for", "s ", 1, 3,
      [] {
        return timed([] {
          std::vector<Ref<IntFuture>> futures;
          futures.reserve(kTasks);
          for (int64_t i = 0; i < kTasks; ++i) futures.push_back(fork_call([i] { return i; }));
          for (auto& f : futures) f->wait();
        });
      },
      [] {
        return timed([] {
          std::vector<int64_t> results(kTasks);
          tbb::task_group group;
          for (int64_t i = 0; i < kTasks; ++i) group.run([&results, i] { results[i] = i; });
          group.wait();
        });
      });
}

// From fork, with the caller busy, to the first instruction of the task on another thread.
void start_latency(const char* question, double pause_us) {
  auto once = [pause_us](auto fork_it) {
    std::vector<double> times;
    for (int i = 0; i < 60; ++i) {
      std::atomic<int64_t> started{0};
      std::this_thread::sleep_for(std::chrono::microseconds(static_cast<int>(pause_us)));
      auto start = Clock::now();
      fork_it(started, start);
      times.push_back(started.load() * 1e-9);
    }
    std::nth_element(times.begin(), times.begin() + 30, times.end());
    return times[30];
  };
  compare(
      question, "us", 1e6, 5,
      [&] {
        return once([](std::atomic<int64_t>& started, Clock::time_point start) {
          auto f = fork_call([&started, start] {
            started = (Clock::now() - start).count();
            return 0;
          });
          while (!started) {
          }
          f->wait();
        });
      },
      [&] {
        return once([](std::atomic<int64_t>& started, Clock::time_point start) {
          tbb::task_group group;
          group.run([&started, start] { started = (Clock::now() - start).count(); });
          while (!started) {
          }
          group.wait();
        });
      });
}

void loop_overhead(const char* question, double work_us, double pause_us) {
  constexpr int kTimes = 200;
  auto body = [work_us](int64_t b, int64_t e) {
    for (; b < e; ++b) spin_us(work_us / 16);
  };
  compare(
      question, "us", 1e6 / kTimes, 7,
      [&] {
        double total = 0;
        for (int i = 0; i < kTimes; ++i) {
          spin_us(pause_us);
          total += timed([&] { parallel_for(0, 16, 1, body); });
        }
        return total;
      },
      [&] {
        double total = 0;
        for (int i = 0; i < kTimes; ++i) {
          spin_us(pause_us);
          total += timed([&] {
            tbb::parallel_for(tbb::blocked_range<int64_t>(0, 16, 1),
                              [&](const auto& r) { body(r.begin(), r.end()); });
          });
        }
        return total;
      });
}

int64_t fib(int64_t n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

int64_t forked_fib(int64_t n) {
  if (n < 18) return fib(n);
  auto a = fork_call([n] { return forked_fib(n - 1); });
  int64_t b = forked_fib(n - 2);
  a->wait();
  return a->value() + b;
}

int64_t tbb_fib(int64_t n) {
  if (n < 18) return fib(n);
  int64_t a = 0;
  tbb::task_group group;
  group.run([&a, n] { a = tbb_fib(n - 1); });
  int64_t b = tbb_fib(n - 2);
  group.wait();
  return a + b;
}

void recursive_forks() {
  compare(
      "fib(32), forks down to fib(18)", "ms", 1e3, 7, [] { return timed([] { forked_fib(32); }); },
      [] { return timed([] { tbb_fib(32); }); });
}

// How much slower another thread computes while this one forks and waits.
void disturbance() {
  auto other_thread = [](auto fork_and_wait) {
    std::atomic<bool> stop{false};
    std::atomic<int64_t> done{0};
    std::thread other([&] {
      while (!stop) {
        fib(15);
        done.fetch_add(1, std::memory_order_relaxed);
      }
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    done = 0;
    auto start = Clock::now();
    while (seconds_since(start) < 0.1) fork_and_wait();
    double rate = done / seconds_since(start);
    stop = true;
    other.join();
    return 1 / rate;
  };
  compare(
      "fib(15) on another thread during forks in a row", "us", 1e6, 5,
      [&] { return other_thread([] { fork_call([] { return 0; })->wait(); }); },
      [&] {
        return other_thread([] {
          tbb::task_group group;
          group.run([] {});
          group.wait();
        });
      });
}

}  // namespace

int main() {
  tbb::global_control control(tbb::global_control::max_allowed_parallelism, num_threads());
  std::printf("%d threads\n", num_threads());
  fork_and_wait();
  many_in_flight();
  start_latency("start of a forked task, caller busy, pool asleep (5 ms)", 5000);
  start_latency("start of a forked task, caller busy, after 20 us", 20);
  loop_overhead("parallel_for, 16 us of work, in a row", 16, 0);
  loop_overhead("parallel_for, 100 us of work, in a row", 100, 0);
  loop_overhead("parallel_for, 100 us of work, after 30 us", 100, 30);
  loop_overhead("parallel_for, 100 us of work, after 2 ms", 100, 2000);
  recursive_forks();
  disturbance();
}
