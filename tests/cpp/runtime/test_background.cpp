// The background thread: order, waiting, fork(2), the end.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "runtime/background.h"

namespace prong {
namespace {

class Call final : public BackgroundJob {
 public:
  explicit Call(std::function<void()> f) : f_(std::move(f)) {}
  void run() noexcept override { f_(); }

 private:
  std::function<void()> f_;
};

void later(std::function<void()> f) { run_in_background(make_ref<Call>(std::move(f))); }

// What a forked child says of itself, by its exit status.
template <class F>
int status_of_child(F body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // a child that hangs fails the test
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST(Background, RunsJobsInOrderOnOneOtherThread) {
  std::vector<int> order;
  std::vector<std::thread::id> threads;
  for (int i = 0; i < 50; ++i)
    later([&, i] {
      order.push_back(i);
      threads.push_back(std::this_thread::get_id());
    });
  wait_for_background();
  ASSERT_EQ(order.size(), 50u);
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(order[static_cast<size_t>(i)], i);
    EXPECT_EQ(threads[static_cast<size_t>(i)], threads[0]);
  }
  EXPECT_NE(threads[0], std::this_thread::get_id());
}

TEST(Background, TakesJobsOfManyThreadsAndOfJobs) {
  std::atomic<int> count{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i)
        later([&] {
          ++count;
          later([&] { ++count; });
        });
    });
  for (std::thread& t : threads) t.join();
  wait_for_background();
  EXPECT_EQ(count, 800);
}

TEST(Background, WaitsForNothingWhereThereIsNothing) { wait_for_background(); }

TEST(Background, AChildOfForkGoesOnWithWhatWasLeft) {
  static std::atomic<int> done{0};
  std::atomic<bool> has_begun{false};
  done = 0;
  later([&] {
    has_begun = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ++done;
  });
  for (int i = 0; i < 3; ++i) later([] { ++done; });
  while (!has_begun) std::this_thread::yield();
  // The job at hand is not cut in two: the child has it done, and some of the others to do.
  EXPECT_EQ(status_of_child([] {
              if (done < 1) return 1;
              keep_background_going();
              wait_for_background();
              return done == 4 ? 0 : 2;
            }),
            0);
  wait_for_background();
  EXPECT_EQ(done, 4);
}

TEST(Background, StopsAfterTheJobAtHand) {
  EXPECT_EQ(status_of_child([] {
              static std::atomic<int> begun{0}, ended{0};
              for (int i = 0; i < 100; ++i)
                later([] {
                  ++begun;
                  std::this_thread::sleep_for(std::chrono::milliseconds(20));
                  ++ended;
                });
              while (begun == 0) std::this_thread::yield();
              stop_background();
              if (begun != ended || ended > 50) return 1;
              later([] { ++begun; });
              wait_for_background();
              return begun == ended ? 0 : 2;
            }),
            0);
}

}  // namespace
}  // namespace prong
