// What profiles see of tasks: spans, forks, resumes, waits, parents.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "forked.h"
#include "profile/profile.h"
#include "runtime/parallel.h"

namespace prong::testing {
namespace {

using profile::Category;
using profile::Event;
using profile::Session;

int64_t count(const Session& session, std::string_view name, Event::Kind kind) {
  return std::count_if(session.events.begin(), session.events.end(), [&](const Event& e) {
    return e.name == name && e.kind == kind && !e.is_resumed;
  });
}

TEST(Recording, ATaskIsASpanWithItsFork) {
  profile::start();
  auto f = fork_call([] {
    profile::Scope scope("inside", Category::kOp);
    return 1;
  });
  f->wait();
  Session session = profile::stop();
  EXPECT_EQ(count(session, "<forked function>", Event::Kind::kSpan), 1);
  EXPECT_EQ(count(session, "fork", Event::Kind::kFork), 1);
  EXPECT_EQ(count(session, "resume", Event::Kind::kResume), 1);
  uint64_t task = 0;
  for (const Event& e : session.events)
    if (e.category == Category::kTask) task = e.task;
  EXPECT_NE(task, 0u);
  for (const Event& e : session.events) {
    if (e.name == std::string("inside")) {
      EXPECT_EQ(e.task, task);
    }
    if (e.kind != Event::Kind::kSpan) {
      EXPECT_EQ(e.link, task);
      EXPECT_EQ(e.task, 0u);
    }
  }
}

TEST(Recording, EachTaskOfATreeOnce) {
  ThreadLimit limit(2);
  profile::start();
  Ref<Task> root;
  auto result = Tree::prepare(5, 3, &root);
  submit(root);
  result->wait();
  Session session = profile::stop();
  EXPECT_EQ(count(session, "<forked function>", Event::Kind::kSpan), 364);
  EXPECT_EQ(count(session, "fork", Event::Kind::kFork), 364);
}

TEST(Recording, ABlockedThreadIsASpan) {
  auto gate = make_ref<IntFuture>();
  std::atomic<bool> is_waiting{false};
  profile::start();
  std::thread opener([gate, &is_waiting] {
    // From the flag to the wait is a step; a loaded machine may take its time over it.
    while (!is_waiting) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    gate->set_value(1);
  });
  is_waiting = true;
  gate->wait();
  Session session = profile::stop();
  opener.join();
  EXPECT_EQ(count(session, "wait", Event::Kind::kSpan), 1);
}

TEST(Recording, AHelperOfALoopNamesTheOp) {
  ThreadLimit limit(2);
  profile::start();
  {
    profile::Scope scope("aten::mm", Category::kOp);
    parallel_chunks(0, 50, 1, [](int64_t, int64_t) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    });
  }
  Session session = profile::stop();
  bool is_named = false;
  for (const Event& e : session.events)
    is_named |= e.category == Category::kKernel && e.detail && e.detail == std::string("aten::mm");
  EXPECT_TRUE(is_named);
}

TEST(Recording, ATaskThatStillRunsIsClipped) {
  ThreadLimit limit(2);
  std::atomic<bool> has_begun{false}, stop{false};
  profile::start();
  auto f = fork_call([&] {
    has_begun = true;
    while (!stop) std::this_thread::yield();
    return 0;
  });
  while (!has_begun) std::this_thread::yield();
  Session session = profile::stop();
  stop = true;
  f->wait();
  bool is_clipped = false;
  for (const Event& e : session.events) is_clipped |= e.category == Category::kTask && e.is_clipped;
  EXPECT_TRUE(is_clipped);
}

}  // namespace
}  // namespace prong::testing
