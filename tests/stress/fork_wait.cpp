// Many threads fork, wait, drop, cancel and fail at once, while the thread budget changes. What it
// finds are races, leaks and hangs, so it is run under the sanitizers too. PRONG_STRESS=n: n times
// as long.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <random>
#include <thread>

#include "compile/pipeline.h"
#include "exec/run.h"
#include "runtime/future.h"
#include "runtime/parallel.h"
#include "script/text_unit.h"

namespace prong {
namespace {

const char* const kPrograms = R"(
def fib(n: int) -> int:
    if n < 2:
        return n
    a = torch.jit.fork(fib, n - 1)
    b = fib(n - 2)
    return torch.jit.wait(a) + b

def layer(x: Tensor, k: int) -> Tensor:
    return torch.tanh(x * float(k)) + x

def ensemble(x: Tensor, members: int) -> Tensor:
    jobs: List[Future[Tensor]] = []
    for k in range(members):
        jobs.append(torch.jit.fork(layer, x, k))
    total = x
    for j in jobs:
        total = total + torch.jit.wait(j)
    return total

def fail_at(depth: int) -> int:
    if depth == 0:
        raise ValueError("at the bottom")
    f = torch.jit.fork(fail_at, depth - 1)
    return torch.jit.wait(f) + 1

def relay(given: Future[int], by: int) -> int:
    return torch.jit.wait(given) + by

def quiet(n: int) -> int:
    with torch.no_grad():
        f = torch.jit.fork(fib, n)
        return torch.jit.wait(f)

def forget(n: int) -> int:
    for k in range(n):
        torch.jit.fork(fib, 3)
    return n
)";

int rounds(int usual) {
  const char* times = std::getenv("PRONG_STRESS");
  return usual * (times ? std::max(1, std::atoi(times)) : 1);
}

struct Programs {
  Programs() { compile::install(); }

  script::TextUnit unit{kPrograms};
  Ref<Function> fib = unit.function("fib"), ensemble = unit.function("ensemble"),
                fail_at = unit.function("fail_at"), relay = unit.function("relay"),
                quiet = unit.function("quiet"), forget = unit.function("forget");
};

Tensor ones(int64_t n) {
  const Tensor t = Tensor::empty(Dims{n}, DType::kFloat32);
  std::fill_n(t.data<float>(), n, 1.0f);
  return t;
}

// A promise that another thread keeps, breaks or drops, with a chain of tasks behind it.
void promise(const Programs& p, std::mt19937& random) {
  auto given = make_ref<Future>();
  Ref<Future> last = given;
  const int length = static_cast<int>(random() % 6) + 1;
  for (int k = 0; k < length; ++k) last = exec::fork(*p.relay, {IValue(last), IValue(1)});
  const int fate = static_cast<int>(random() % 3);
  std::thread other([fate, given = std::move(given)]() mutable {
    if (fate == 0) given->set_value(IValue(100));
    if (fate == 1)
      given->set_error(std::make_exception_ptr(Error(ErrorKind::kRuntime, "broken promise")));
    given = {};
  });
  std::atomic<int> told{0};
  last->then([&told](FutureBase&) { ++told; });
  last->wait();
  if (fate == 0)
    EXPECT_EQ(last->value().to_int(), 100 + length);
  else
    EXPECT_THROW(last->value(), Error);
  other.join();
  while (told == 0) std::this_thread::yield();
}

void one_thing(const Programs& p, std::mt19937& random) {
  switch (random() % 7) {
  case 0:
    EXPECT_EQ(exec::run(*p.fib, {IValue(13)}).to_int(), 233);
    break;
  case 1: {
    const Tensor x = ones(random() % 2 ? 10 : 5000);
    const Tensor y = exec::run(*p.ensemble, {IValue(x), IValue(8)}).to_tensor();
    EXPECT_GT(y.data<float>()[0], 9.0f);
    break;
  }
  case 2:
    try {
      exec::run(*p.fail_at, {IValue(20)});
      ADD_FAILURE() << "no error";
    } catch (const Error& e) {
      EXPECT_EQ(e.message(), "at the bottom");
    }
    break;
  case 3:
    promise(p, random);
    break;
  case 4:
    EXPECT_EQ(exec::run(*p.quiet, {IValue(10)}).to_int(), 55);
    break;
  case 5:
    exec::run(*p.forget, {IValue(20)});
    break;
  case 6: {
    Ref<Future> f = exec::fork(*p.fib, {IValue(12)});
    if (!f->cancel(std::make_exception_ptr(Error(ErrorKind::kRuntime, "cancelled")))) {
      f->wait();
      EXPECT_EQ(f->value().to_int(), 144);
    }
    break;
  }
  }
}

TEST(ForkWait, ManyThreadsDoEverythingAtOnce) {
  const int before = num_threads();
  const Programs programs;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 6; ++t)
    threads.emplace_back([&programs, t] {
      std::mt19937 random(t);
      for (int i = 0; i < rounds(60); ++i) one_thing(programs, random);
    });
  std::mt19937 random(99);
  for (int i = 0; i < rounds(40); ++i) {
    set_num_threads(static_cast<int>(random() % 5) + 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (auto& t : threads) t.join();
  set_num_threads(before);
}

TEST(ForkWait, UnitsGoWhileTheirTasksRun) {
  for (int i = 0; i < rounds(30); ++i) {
    std::vector<Ref<Future>> futures;
    {
      const Programs programs;
      for (int k = 0; k < 8; ++k) futures.push_back(exec::fork(*programs.fib, {IValue(k)}));
    }
    const int fib[] = {0, 1, 1, 2, 3, 5, 8, 13};
    for (size_t k = 0; k < futures.size(); ++k) {
      futures[k]->wait();
      EXPECT_EQ(futures[k]->value().to_int(), fib[k]);
    }
  }
}

TEST(ForkWait, AHundredThousandInFlight) {
  const Programs programs;
  auto given = make_ref<Future>();
  std::vector<Ref<Future>> futures;
  const int n = 100'000;
  for (int k = 0; k < n; ++k)
    futures.push_back(exec::fork(*programs.relay, {IValue(given), IValue(k)}));
  given->set_value(IValue(1));
  int64_t sum = 0;
  for (const auto& f : futures) {
    f->wait();
    sum += f->value().to_int();
  }
  EXPECT_EQ(sum, int64_t{n} * (n - 1) / 2 + n);
}

TEST(ForkWait, ChildrenOfTheProcessForkToo) {
  const Programs programs;
  exec::run(*programs.fib, {IValue(10)});
  for (int i = 0; i < rounds(3); ++i) {
    const Ref<Future> running = exec::fork(*programs.fib, {IValue(15)});
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) _exit(exec::run(*programs.fib, {IValue(12)}).to_int() == 144 ? 0 : 1);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    running->wait();
    EXPECT_EQ(running->value().to_int(), 610);
  }
}

}  // namespace
}  // namespace prong
