// Tasks: suspension at any depth, blocking waits that need the pool, context, self-waits, forks of
// the process.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/error.h"
#include "forked.h"
#include "runtime/context.h"
#include "runtime/parallel.h"

// Asked by LeakSanitizer at exit. What threads of the parent held looks lost in a forked child.
static bool is_forked_child = false;
extern "C" __attribute__((visibility("default"))) int __lsan_is_turned_off();
extern "C" int __lsan_is_turned_off() { return is_forked_child; }

namespace prong::testing {
namespace {

int64_t run_tree(int depth, int width, bool is_submitted) {
  Ref<Task> root;
  auto result = Tree::prepare(depth, width, &root);
  if (is_submitted) submit(root);
  result->wait();
  return result->value();
}

class Tasks : public ::testing::TestWithParam<int> {
  void SetUp() override { set_num_threads(GetParam()); }
  void TearDown() override { set_num_threads(2); }
};
INSTANTIATE_TEST_SUITE_P(Threads, Tasks, ::testing::Values(1, 2, 4));

TEST_P(Tasks, NestTenThousandDeep) {
  EXPECT_EQ(run_tree(10000, 1, false), 10001);
  EXPECT_EQ(run_tree(10000, 1, true), 10001);
}

TEST_P(Tasks, NestWide) { EXPECT_EQ(run_tree(9, 3, true), 29524); }

TEST_P(Tasks, ManyInFlight) {
  std::vector<Ref<IntFuture>> futures;
  for (int64_t i = 0; i < 20000; ++i) futures.push_back(fork_call([i] { return i; }));
  int64_t sum = 0;
  for (auto& f : futures) {
    f->wait();
    sum += f->value();
  }
  EXPECT_EQ(sum, 19999 * 10000);
}

TEST_P(Tasks, RunWithoutAWait) {
  std::atomic<int> ran{0};
  for (int i = 0; i < 100; ++i) fork_call([&] { return ++ran; });
  while (ran < 100) std::this_thread::yield();
}

// Tasks that block their threads in a nested run, as many as there are threads and more: the shape
// of an ignored Python function that calls a forking script.
TEST_P(Tasks, BlockedTasksDoNotStopTheirChildren) {
  std::vector<Ref<IntFuture>> futures;
  for (int i = 0; i < 12; ++i) futures.push_back(fork_call([] { return run_tree(3, 3, true); }));
  for (auto& f : futures) {
    f->wait();
    EXPECT_EQ(f->value(), 40);
  }
}

// All wait for a future that no task is known to produce, and that one more task completes.
TEST_P(Tasks, BlockedTasksDoNotStopTheOneTheyWaitFor) {
  auto gate = make_ref<IntFuture>();
  std::vector<Ref<IntFuture>> futures;
  for (int i = 0; i < 40; ++i)
    futures.push_back(fork_call([gate] {
      gate->wait();
      return gate->value();
    }));
  auto opener = fork_call([gate] {
    gate->set_value(5);
    return 0;
  });
  for (auto& f : futures) {
    f->wait();
    EXPECT_EQ(f->value(), 5);
  }
}

// The same inside pieces of loops: owners of loops then wait for helpers that are blocked.
TEST_P(Tasks, BlockedPiecesOfLoopsDoNotStopTheOneTheyWaitFor) {
  for (int round = 0; round < 20; ++round) {
    auto gate = make_ref<IntFuture>();
    std::vector<Ref<IntFuture>> futures;
    for (int i = 0; i < 6; ++i)
      futures.push_back(fork_call([gate] {
        parallel_chunks(0, 4, 1, [&](int64_t b, int64_t) {
          if (b == 3) gate->wait();
        });
        return gate->is_done();
      }));
    futures.push_back(fork_call([gate] { return gate->try_set_value(1); }));
    for (auto& f : futures) {
      f->wait();
      EXPECT_EQ(f->value(), 1);
    }
  }
}

// A thread that waits inside a task must not take up work that waits for that very task.
TEST_P(Tasks, AWaitDoesNotBuryWhatOthersNeed) {
  for (int round = 0; round < 20; ++round) {
    auto gate = make_ref<IntFuture>();
    std::atomic<bool> has_begun{false};
    Ref<IntFuture> outer = fork_call([&] {
      has_begun = true;
      gate->wait();
      return int64_t{1};
    });
    while (!has_begun) std::this_thread::yield();
    std::vector<Ref<IntFuture>> others;
    for (int i = 0; i < 8; ++i)
      others.push_back(fork_call([outer] {
        outer->wait();
        return outer->value();
      }));
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    gate->set_value(1);
    for (auto& f : others) {
      f->wait();
      EXPECT_EQ(f->value(), 1);
    }
  }
}

// Completing a future in the middle of a task, then waiting for what depended on it.
TEST_P(Tasks, ATaskMayWaitForWhatItHasResumed) {
  class Follower final : public Task {
   public:
    explicit Follower(Ref<IntFuture> of) : of_(std::move(of)) {}
    Ref<IntFuture> result = make_ref<IntFuture>();
    Ref<Task> run() override {
      Ref<Task> next;
      if (await(*of_, next)) return next;
      return result->finish_value(of_->value() + 1);
    }

   private:
    Ref<IntFuture> of_;
  };
  auto gate = make_ref<IntFuture>();
  auto follower = make_ref<Follower>(gate);
  auto result = follower->result;
  result->set_producer(*follower);
  submit(follower);
  auto f = fork_call([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    gate->set_value(1);
    result->wait();
    return result->value();
  });
  f->wait();
  EXPECT_EQ(f->value(), 2);
}

TEST_P(Tasks, AWaitForItselfIsAnError) {
  Ref<IntFuture> self;
  Ref<Task> task;
  self = prepare(
      [&] {
        self->wait();
        return 0;
      },
      &task);
  submit(task);
  self->wait();
  try {
    self->value();
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("deadlock"), std::string::npos);
  }
}

TEST_P(Tasks, AnErrorReachesTheOutermostWait) {
  class Chain final : public Task {
   public:
    explicit Chain(int depth) : depth_(depth) {}
    Ref<IntFuture> result = make_ref<IntFuture>();
    Ref<Task> run() override {
      if (depth_ == 0)
        return result->finish_error(std::make_exception_ptr(std::runtime_error("deep")));
      if (!child_) {
        auto task = make_ref<Chain>(depth_ - 1);
        child_ = task->result;
        child_->set_producer(*task);
        submit(task);
      }
      Ref<Task> next;
      if (await(*child_, next)) return next;
      return result->finish_error(child_->error());
    }

   private:
    int depth_;
    Ref<IntFuture> child_;
  };
  auto root = make_ref<Chain>(100);
  auto result = root->result;
  result->set_producer(*root);
  result->wait();
  EXPECT_THROW(result->value(), std::runtime_error);
}

TEST_P(Tasks, ManyThreadsWaitForOneFuture) {
  auto f = fork_call([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    return 9;
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([f] {
      f->wait();
      EXPECT_EQ(f->value(), 9);
    });
  for (auto& t : threads) t.join();
}

// ---- context

class SetsModes final : public Task {
 public:
  explicit SetsModes(Ref<IntFuture> gate) : gate_(std::move(gate)) {}
  Ref<IntFuture> result = make_ref<IntFuture>();
  Ref<Task> run() override {
    if (!has_begun_) {
      has_begun_ = true;
      seen_at_start_ = context()[ContextWord::kModes];
      context()[ContextWord::kModes] = 77;
    }
    Ref<Task> next;
    if (await(*gate_, next)) return next;
    bool is_kept = context()[ContextWord::kModes] == 77 && seen_at_start_ == 5;
    return result->finish_value(is_kept);
  }

 private:
  Ref<IntFuture> gate_;
  bool has_begun_ = false;
  uint64_t seen_at_start_ = 0;
};

TEST_P(Tasks, ContextTravelsAndDoesNotLeak) {
  ContextGuard guard;
  context()[ContextWord::kModes] = 5;
  auto gate = make_ref<IntFuture>();
  auto task = make_ref<SetsModes>(gate);
  auto result = task->result;
  result->set_producer(*task);
  submit(task);
  context()[ContextWord::kModes] = 6;
  EXPECT_FALSE(result->wait_for(0.002));
  EXPECT_EQ(context()[ContextWord::kModes], 6u);
  std::thread([gate] { gate->set_value(1); }).join();
  result->wait();
  EXPECT_EQ(result->value(), 1);
  EXPECT_EQ(context()[ContextWord::kModes], 6u);
  auto other = fork_call([] { return static_cast<int64_t>(context()[ContextWord::kModes]); });
  other->wait();
  EXPECT_EQ(other->value(), 6);
}

// ---- os.fork

// Runs f in a forked child; its answer is the exit code.
template <class F>
int in_child(F f) {
  pid_t pid = fork();
  if (pid == 0) {
    is_forked_child = true;
    alarm(20);
    int code = 1;
    try {
      code = f() ? 0 : 2;
    } catch (...) {
      code = 3;
    }
    _exit(code);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

bool pool_works() {
  if (run_tree(5, 3, true) != 364) return false;
  std::atomic<int64_t> sum{0};
  parallel_chunks(0, 1000, 1, [&](int64_t b, int64_t e) { sum += e - b; });
  auto f = fork_call([] { return 3; });
  return sum == 1000 && f->wait_for(10) && f->value() == 3;
}

TEST_P(Tasks, WorkInAForkedChild) {
  EXPECT_TRUE(pool_works());
  EXPECT_EQ(in_child(pool_works), 0);
}

TEST_P(Tasks, WorkInAChildForkedWhileOthersRun) {
  std::atomic<bool> stop{false};
  std::atomic<bool> has_begun{false};
  auto running = fork_call([&] {
    has_begun = true;
    while (!stop) std::this_thread::yield();
    return 1;
  });
  while (!has_begun) std::this_thread::yield();
  std::vector<Ref<IntFuture>> queued;
  for (int i = 0; i < 10; ++i) queued.push_back(fork_call([i] { return i; }));
  int code = in_child([&] {
    for (auto& f : queued) {  // those not begun are run here; those begun are lost, which is said
      f->wait();
      if (!f->has_error() && f->value() > 9) return false;
    }
    running->wait();
    return running->has_error() && pool_works();
  });
  EXPECT_EQ(code, 0);
  stop = true;
  running->wait();
  EXPECT_EQ(running->value(), 1);
}

TEST_P(Tasks, AThreadInAForkedChildHelps) {
  EXPECT_EQ(in_child([] {
              auto self = std::this_thread::get_id();
              auto f = fork_call([self] { return std::this_thread::get_id() != self; });
              return f->wait_for(10) && f->value() == 1;
            }),
            0);
}

// In a process of its own, started anew.
TEST(Exit, NoAbortWhileTasksRun) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto leave_with_tasks = [] {
    for (int i = 0; i < 100; ++i)
      fork_call([] {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        return 0;
      });
    shutdown_pool(0.001);
    exit(0);  // static destructors run under the feet of the workers
  };
  EXPECT_EXIT(leave_with_tasks(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace prong::testing
