// Futures: completing, waiting, callbacks, errors, cancelling, time limits.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/error.h"
#include "forked.h"
#include "runtime/interrupt.h"

namespace prong::testing {
namespace {

std::exception_ptr error_of(const char* text) {
  return std::make_exception_ptr(std::runtime_error(text));
}

TEST(Future, HoldsAValue) {
  auto f = make_ref<IntFuture>();
  EXPECT_FALSE(f->is_done());
  EXPECT_THROW(f->value(), Error);
  f->set_value(3);
  EXPECT_TRUE(f->is_done());
  EXPECT_FALSE(f->has_error());
  f->wait();
  f->wait();
  EXPECT_EQ(f->value(), 3);
  EXPECT_EQ(IntFuture::done(4)->value(), 4);
}

TEST(Future, IsCompletedOnce) {
  auto f = IntFuture::done(1);
  EXPECT_THROW(f->set_value(2), Error);
  EXPECT_THROW(f->set_error(error_of("x")), Error);
  EXPECT_FALSE(f->try_set_value(2));
  EXPECT_EQ(f->value(), 1);
}

TEST(Future, RethrowsItsErrorEachTime) {
  auto f = fork_call([]() -> int64_t { throw std::runtime_error("boom"); });
  f->wait();
  EXPECT_TRUE(f->has_error());
  for (int i = 0; i < 2; ++i) {
    try {
      f->value();
      FAIL();
    } catch (const std::runtime_error& e) {
      EXPECT_STREQ(e.what(), "boom");
    }
  }
}

TEST(Future, CallbacksRunInOrderOnceDone) {
  auto f = make_ref<IntFuture>();
  std::vector<int> order;
  f->then([&](FutureBase&) { order.push_back(1); });
  f->then([&](FutureBase&) { throw std::runtime_error("dropped"); });
  f->then([&](FutureBase& done) {
    order.push_back(static_cast<int>(static_cast<IntFuture&>(done).value()));
  });
  f->set_value(2);
  f->then([&](FutureBase&) { order.push_back(3); });
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(Future, ACallbackThatNeverRunsIsFreed) {
  auto token = make_ref<IntFuture>();
  {
    auto f = make_ref<IntFuture>();
    f->then([token](FutureBase&) {});
    EXPECT_EQ(token->use_count(), 2u);
  }
  EXPECT_EQ(token->use_count(), 1u);
}

TEST(Future, IsCompletedByAnotherThread) {
  auto f = make_ref<IntFuture>();
  std::thread other([f] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    f->set_value(7);
  });
  f->wait();
  EXPECT_EQ(f->value(), 7);
  other.join();
}

TEST(Future, ALimitedWaitEnds) {
  auto f = make_ref<IntFuture>();
  EXPECT_FALSE(f->wait_for(0));
  EXPECT_FALSE(f->wait_for(0.003));
  f->set_value(1);
  EXPECT_TRUE(f->wait_for(0));
}

TEST(Future, ALimitedWaitLetsAWorkerDoTheWork) {
  auto self = std::this_thread::get_id();
  auto f = fork_call([self] { return std::this_thread::get_id() != self; });
  EXPECT_TRUE(f->wait_for(10));
  EXPECT_EQ(f->value(), 1);
}

TEST(Future, AnInterruptEndsAWait) {
  auto f = make_ref<IntFuture>();
  set_interrupt_hook([] { throw std::runtime_error("interrupt"); });
  EXPECT_THROW(f->wait(), std::runtime_error);
  EXPECT_THROW(f->wait(), std::runtime_error);
  set_interrupt_hook(nullptr);
  f->set_value(1);  // nobody is left on its list
}

TEST(Future, CancelStopsWhatWasNotStarted) {
  std::atomic<bool> has_begun{false}, go{false}, ran{false};
  auto busy = fork_call([&] {
    has_begun = true;
    while (!go) std::this_thread::yield();
    return 0;
  });
  while (!has_begun) std::this_thread::yield();
  EXPECT_FALSE(busy->cancel(error_of("late")));
  go = true;
  busy->wait();
  EXPECT_FALSE(busy->has_error());

  Ref<Task> task;
  auto f = prepare(
      [&] {
        ran = true;
        return 0;
      },
      &task);
  EXPECT_TRUE(f->cancel(error_of("cancelled")));
  EXPECT_FALSE(f->cancel(error_of("again")));
  submit(std::move(task));
  EXPECT_TRUE(f->has_error());
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_FALSE(ran);
}

TEST(Future, OfADroppedTaskFails) {
  Ref<Task> task;
  auto f = prepare([] { return 1; }, &task);
  task = Ref<Task>();
  EXPECT_TRUE(f->has_error());
}

TEST(Future, ATaskThatWasNeverSubmittedRunsOnTheWaitingThread) {
  auto self = std::this_thread::get_id();
  Ref<Task> task;
  auto f = prepare([&] { return std::this_thread::get_id() == self; }, &task);
  f->wait();
  EXPECT_EQ(f->value(), 1);
}

TEST(Future, LetsGoOfTheTaskWhenClaimed) {
  auto token = make_ref<IntFuture>();
  auto f = fork_call([token] { return 1; });
  f->wait();
  for (int i = 0; i < 1000 && token->use_count() > 1; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(token->use_count(), 1u);
}

}  // namespace
}  // namespace prong::testing
