// Recording, sums and the Chrome trace.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "profile/chrome_trace.h"
#include "profile/profile.h"
#include "profile/table.h"

namespace prong::profile {
namespace {

void nap(int us) { std::this_thread::sleep_for(std::chrono::microseconds(us)); }

std::vector<std::string> names_of(const Session& session) {
  std::vector<std::string> names;
  for (const Event& e : session.events) names.push_back(e.name);
  return names;
}

TEST(Profile, RecordsNothingWhenOff) {
  { Scope scope("off", Category::kOp); }
  start();
  EXPECT_TRUE(stop().events.empty());
}

TEST(Profile, RecordsNestedSpans) {
  start();
  {
    Scope outer("outer", Category::kFunction);
    nap(100);
    { Scope inner("aten::mm", Category::kOp, "[2, 3]"); }
    EXPECT_STREQ(current_name(), "outer");
  }
  Session session = stop();
  EXPECT_EQ(names_of(session), (std::vector<std::string>{"outer", "aten::mm"}));
  const Event& outer = session.events[0];
  const Event& inner = session.events[1];
  EXPECT_LE(outer.start_ns, inner.start_ns);
  EXPECT_LE(inner.end_ns, outer.end_ns);
  EXPECT_GE(outer.end_ns - outer.start_ns, 100000);
  EXPECT_STREQ(inner.detail, "[2, 3]");
  EXPECT_EQ(session.threads.size(), 1u);
  EXPECT_LE(outer.end_ns, session.duration_ns);
}

TEST(Profile, ASpanThatIsStillOpenIsClipped) {
  start();
  OpenSpan span;
  span.begin("long", Category::kUser);
  Session session = stop();
  ASSERT_EQ(session.events.size(), 1u);
  EXPECT_TRUE(session.events[0].is_clipped);
  EXPECT_EQ(session.events[0].end_ns, session.duration_ns);
  start();
  { Scope other("other", Category::kOp); }
  span.end();  // of the session before: harms nothing
  session = stop();
  ASSERT_EQ(session.events.size(), 1u);
  EXPECT_FALSE(session.events[0].is_clipped);
}

TEST(Profile, OneSessionAtATime) {
  start();
  EXPECT_THROW(start(), Error);
  stop();
  EXPECT_THROW(stop(), Error);
}

TEST(Profile, SessionsDoNotMix) {
  start();
  for (int i = 0; i < 2000; ++i) Scope scope("first", Category::kOp);
  EXPECT_EQ(stop().events.size(), 2000u);
  start();
  { Scope scope("second", Category::kOp); }
  EXPECT_EQ(names_of(stop()), std::vector<std::string>{"second"});
}

TEST(Profile, EachThreadHasItsName) {
  start();
  std::thread other([] {
    set_thread_name("helper");
    Scope scope("there", Category::kOp);
  });
  other.join();
  { Scope scope("here", Category::kOp); }
  Session session = stop();
  ASSERT_EQ(session.threads.size(), 2u);
  EXPECT_EQ(session.threads[0].name, "main");
  EXPECT_EQ(session.threads[1].name, "helper");
}

TEST(Profile, ThreadsRecordWhileSessionsComeAndGo) {
  std::atomic<bool> end{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      while (!end) {
        Scope outer("outer", Category::kFunction);
        Scope inner("inner", Category::kOp);
      }
    });
  for (int i = 0; i < 50; ++i) {
    start();
    nap(200);
    for (const Event& e : stop().events) {
      EXPECT_LE(e.start_ns, e.end_ns);
      EXPECT_TRUE(e.name == std::string("outer") || e.name == std::string("inner"));
    }
  }
  end = true;
  for (auto& t : threads) t.join();
}

TEST(Profile, InternGivesOnePointer) {
  std::string a = "some name";
  EXPECT_EQ(intern(a), intern("some name"));
  EXPECT_STREQ(intern(a), "some name");
}

// ---- made by hand, so that times are exact

Event span(const char* name, Category category, int64_t start, int64_t end, uint32_t tid,
           uint64_t task = 0) {
  Event e;
  e.name = name;
  e.category = category;
  e.start_ns = start;
  e.end_ns = end;
  e.tid = tid;
  e.task = task;
  return e;
}

Session example() {
  Session s;
  s.duration_ns = 10000;
  s.threads = {{1, "main"}, {2, "worker 1"}};
  s.events = {span("f", Category::kFunction, 0, 10000, 1),
              span("aten::mm", Category::kOp, 1000, 4000, 1),
              span("aten::mm", Category::kOp, 2000, 3000, 1),
              span("<forked function>", Category::kTask, 1500, 3500, 2, 7),
              span("wait", Category::kWait, 5000, 6000, 1),
              span("<forked function>", Category::kTask, 5000, 6000, 2, 7)};
  s.events[5].is_resumed = true;
  Event fork;
  fork.kind = Event::Kind::kFork;
  fork.name = "fork";
  fork.start_ns = 500;
  fork.link = 7;
  fork.tid = 1;
  s.events.push_back(fork);
  Event resume = fork;
  resume.kind = Event::Kind::kResume;
  resume.start_ns = 6100;
  s.events.push_back(resume);
  return s;
}

TEST(Averages, SelfAndTotalTimes) {
  auto averages = key_averages(example());
  ASSERT_EQ(averages.size(), 4u);
  EXPECT_EQ(averages[0].key, "f");
  EXPECT_EQ(averages[0].total_ns, 10000);
  EXPECT_EQ(averages[0].self_ns, 10000 - 3000 - 1000);
  EXPECT_EQ(averages[1].key, "aten::mm");
  EXPECT_EQ(averages[1].count, 2);
  EXPECT_EQ(averages[1].total_ns, 3000);  // the inner one is inside
  EXPECT_EQ(averages[1].self_ns, 3000);
  EXPECT_EQ(averages[2].key, "<forked function>");
  EXPECT_EQ(averages[2].count, 1);  // suspended once in between
  EXPECT_EQ(averages[2].total_ns, 3000);
}

TEST(Averages, TableSortsAndCuts) {
  auto averages = key_averages(example());
  std::string all = table(averages, "self_cpu_time_total");
  EXPECT_LT(all.find("f "), all.find("aten::mm"));
  for (const char* text : {"Name", "Self CPU %", "CPU total", "# of Calls", "3.000us", "83.33%",
                           "Self CPU time total: 12.000us"})
    EXPECT_NE(all.find(text), std::string::npos) << text << "\n" << all;
  std::string cut = table(averages, "count", 1);
  EXPECT_NE(cut.find("aten::mm"), std::string::npos);
  EXPECT_EQ(cut.find("<forked"), std::string::npos);
  EXPECT_THROW(table(averages, "colour"), Error);
}

TEST(ChromeTrace, HasSpansNamesAndArrows) {
  std::string json = chrome_trace(example());
  EXPECT_NE(json.find("\"ph\":\"X\",\"name\":\"aten::mm\""), std::string::npos);
  EXPECT_NE(json.find("\"cat\":\"cpu_op\",\"ts\":1.000,\"dur\":3.000"), std::string::npos);
  EXPECT_NE(json.find("\\u003cforked function>"), std::string::npos);
  EXPECT_NE(json.find("\"thread_name\""), std::string::npos);
  // Fork at 0.5 to the task's start at 1.5; the task's end at 6 to the wait's at 6.1.
  EXPECT_NE(json.find("\"ph\":\"s\",\"name\":\"fork\""), std::string::npos);
  EXPECT_NE(json.find("\"ts\":1.500,\"bp\":\"e\""), std::string::npos);
  EXPECT_NE(json.find("\"ph\":\"f\",\"name\":\"wait\""), std::string::npos);
  EXPECT_NE(json.find("\"ts\":6.100,\"bp\":\"e\""), std::string::npos);
}

TEST(ChromeTrace, SaysWhyItCannotWrite) {
  try {
    write_chrome_trace(example(), "/nonexistent/trace.json");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kOs);
    EXPECT_NE(e.message().find("/nonexistent/trace.json"), std::string::npos);
  }
}

}  // namespace
}  // namespace prong::profile
