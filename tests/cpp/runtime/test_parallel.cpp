// parallel_for and parallel_chunks: coverage, pieces, nesting, exceptions, interrupts, context.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/error.h"
#include "forked.h"
#include "runtime/context.h"
#include "runtime/interrupt.h"
#include "runtime/parallel.h"

namespace prong::testing {
namespace {

using Piece = std::pair<int64_t, int64_t>;

std::set<Piece> pieces_of(int threads, int64_t begin, int64_t end, int64_t chunk) {
  ThreadLimit limit(threads);
  std::mutex mutex;
  std::set<Piece> pieces;
  parallel_chunks(begin, end, chunk, [&](int64_t b, int64_t e) {
    std::lock_guard lock(mutex);
    pieces.insert({b, e});
  });
  return pieces;
}

TEST(ParallelFor, CoversEachIndexOnce) {
  for (int threads : {1, 2, 5})
    for (int64_t n : {0, 1, 7, 1000, 4097}) {
      ThreadLimit limit(threads);
      std::vector<std::atomic<int>> seen(n);
      parallel_for(0, n, 16, [&](int64_t b, int64_t e) {
        for (; b < e; ++b) ++seen[b];
      });
      for (auto& s : seen) EXPECT_EQ(s, 1);
    }
}

TEST(ParallelFor, AnEmptyRangeCallsNothing) {
  parallel_for(5, 5, 1, [](int64_t, int64_t) { FAIL(); });
  parallel_for(5, 3, 1, [](int64_t, int64_t) { FAIL(); });
}

TEST(ParallelFor, ASmallRangeIsOnePieceOnThisThread) {
  auto self = std::this_thread::get_id();
  int calls = 0;
  parallel_for(10, 20, 10, [&](int64_t b, int64_t e) {
    EXPECT_EQ(b, 10);
    EXPECT_EQ(e, 20);
    EXPECT_EQ(std::this_thread::get_id(), self);
    ++calls;
  });
  EXPECT_EQ(calls, 1);
}

TEST(ParallelFor, PiecesAreNotBelowTheGrain) {
  ThreadLimit limit(3);
  parallel_for(0, 1003, 100, [](int64_t b, int64_t e) {
    if (e != 1003) {
      EXPECT_GE(e - b, 100);
    }
  });
}

TEST(ParallelChunks, PiecesDependOnRangeAndChunkOnly) {
  auto one = pieces_of(1, 3, 1000, 64);
  EXPECT_EQ(one.size(), 16u);
  EXPECT_EQ(*one.begin(), Piece(3, 67));
  EXPECT_EQ(*one.rbegin(), Piece(963, 1000));
  EXPECT_EQ(pieces_of(2, 3, 1000, 64), one);
  EXPECT_EQ(pieces_of(7, 3, 1000, 64), one);
}

TEST(ParallelFor, Nests) {
  ThreadLimit limit(4);
  std::atomic<int64_t> sum{0};
  parallel_for(0, 20, 1, [&](int64_t b, int64_t e) {
    for (; b < e; ++b) parallel_for(0, 100, 3, [&](int64_t bb, int64_t ee) { sum += ee - bb; });
  });
  EXPECT_EQ(sum, 2000);
}

TEST(ParallelFor, TheLowestExceptionWins) {
  for (int threads : {1, 2, 4})
    for (int round = 0; round < 50; ++round) {
      ThreadLimit limit(threads);
      try {
        parallel_chunks(0, 100, 1, [](int64_t b, int64_t) {
          if (b >= 17) throw std::runtime_error(std::to_string(b));
        });
        FAIL();
      } catch (const std::runtime_error& e) {
        EXPECT_STREQ(e.what(), "17");
      }
    }
}

TEST(ParallelFor, SkipsWhatIsLeftAfterAnException) {
  ThreadLimit limit(2);
  std::atomic<int> calls{0};
  EXPECT_THROW(parallel_chunks(0, 1000000, 1,
                               [&](int64_t, int64_t) {
                                 ++calls;
                                 throw std::runtime_error("x");
                               }),
               std::runtime_error);
  EXPECT_LT(calls, 10);
}

TEST(ParallelFor, AnInterruptEndsIt) {
  for (int threads : {1, 2}) {
    ThreadLimit limit(threads);
    std::atomic<int> calls{0};
    set_interrupt_hook([] { throw std::runtime_error("interrupt"); });
    EXPECT_THROW(parallel_chunks(0, 100000, 1,
                                 [&](int64_t, int64_t) {
                                   ++calls;
                                   std::this_thread::sleep_for(std::chrono::milliseconds(1));
                                 }),
                 std::runtime_error);
    set_interrupt_hook(nullptr);
    EXPECT_LT(calls, 10000);
  }
}

TEST(ParallelFor, HelpersHaveTheCallersContext) {
  ThreadLimit limit(4);
  ContextGuard guard;
  context()[ContextWord::kModes] = 5;
  parallel_chunks(0, 200, 1, [](int64_t, int64_t) {
    EXPECT_EQ(context()[ContextWord::kModes], 5u);
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  });
}

TEST(ParallelFor, AnotherThreadHelps) {
  ThreadLimit limit(2);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  parallel_chunks(0, 100, 1, [&](int64_t, int64_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(threads.size(), 2u);
}

TEST(ParallelFor, IsolatedFromForkedTasks) {
  ThreadLimit limit(4);
  static thread_local bool is_in_loop = false;
  std::atomic<bool> was_inside{false};
  std::vector<Ref<IntFuture>> futures;
  for (int i = 0; i < 200; ++i)
    futures.push_back(fork_call([&] {
      if (is_in_loop) was_inside = true;
      return 0;
    }));
  parallel_chunks(0, 200, 1, [](int64_t, int64_t) {
    is_in_loop = true;
    parallel_chunks(0, 8, 1, [](int64_t, int64_t) {});
    is_in_loop = false;
  });
  for (auto& f : futures) f->wait();
  EXPECT_FALSE(was_inside);
}

TEST(ParallelFor, ForkAndWaitInside) {
  ThreadLimit limit(2);
  std::atomic<int64_t> sum{0};
  parallel_chunks(0, 100, 1, [&](int64_t b, int64_t) {
    auto f = fork_call([b] { return b; });
    f->wait();
    sum += f->value();
  });
  EXPECT_EQ(sum, 4950);
}

TEST(NumThreads, RejectsLessThanOne) {
  EXPECT_THROW(set_num_threads(0), Error);
  EXPECT_THROW(set_num_threads(-3), Error);
}

TEST(NumThreads, MayChangeWhileWorkRuns) {
  ThreadLimit limit(2);
  std::atomic<bool> stop{false};
  std::thread changer([&] {
    for (int n = 1; !stop; n = n % 5 + 1) {
      set_num_threads(n);
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  });
  for (int i = 0; i < 200; ++i) {
    std::atomic<int64_t> sum{0};
    parallel_for(0, 1000, 10, [&](int64_t b, int64_t e) { sum += e - b; });
    EXPECT_EQ(sum, 1000);
    Ref<Task> root;
    auto result = Tree::prepare(4, 3, &root);
    submit(std::move(root));
    result->wait();
    EXPECT_EQ(result->value(), 121);
  }
  stop = true;
  changer.join();
}

}  // namespace
}  // namespace prong::testing
