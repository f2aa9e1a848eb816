// The timeline page. PRONG_KEEP_TIMELINE=path.html keeps the example, to look at in a browser.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>
#include <string>

#include "profile/profile.h"
#include "profile/timeline.h"

namespace prong::profile {
namespace {

// Four models of two directions each on two threads, with layers and products in them.
class Example {
 public:
  Session make() {
    session_.threads = {{1, "main"}, {2, "worker 1"}};
    session_.num_threads = 2;
    session_.started_unix_ns = 1790000000'000000000;
    int64_t clock[2] = {200000, 230000};
    for (uint64_t model = 0; model < 4; ++model) {
      uint64_t task = 10 + model;
      mark(Event::Kind::kFork, 20000 + 15000 * static_cast<int64_t>(model), 1, 0, task);
      int lane = clock[0] <= clock[1] ? 0 : 1;
      clock[lane] = run_model(lane, clock[lane], task) + 8000;
    }
    session_.duration_ns = std::max(clock[0], clock[1]) + 60000;
    int64_t end = session_.duration_ns;
    add(1, "forward", Category::kFunction, 5000, end - 20000, 0);
    add(1, "batch of 50", Category::kUser, 0, end - 4000, 0);
    if (clock[0] < clock[1]) add(1, "wait", Category::kWait, clock[0], clock[1], 0, 13);
    for (uint64_t model = 0; model < 4; ++model)
      mark(Event::Kind::kResume, std::max(clock[0], clock[1]) + 1000 * static_cast<int64_t>(model),
           1, 0, 10 + model);
    std::stable_sort(
        session_.events.begin(), session_.events.end(), [](const Event& a, const Event& b) {
          return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
        });
    return session_;
  }

 private:
  int64_t run_model(int lane, int64_t at, uint64_t task) {
    int64_t start = at;
    at += 9000;
    for (const char* direction : {"lstm_forward", "lstm_backward"}) {
      int64_t begin = at;
      for (int step = 0; step < 12; ++step) {
        int64_t long_one = 24000 + static_cast<int64_t>(random_() % 9000);
        add(lane + 1, "aten::mm", Category::kOp, at, at + long_one, task, 0,
            "[48, 1024] x [1024, 4096]");
        at += long_one + 600;
        add(lane + 1, "lstm_gates", Category::kKernel, at, at + 5000, task);
        at += 5400;
      }
      add(lane + 1, direction, Category::kFunction, begin, at, task);
      at += 2500;
    }
    add(lane + 1, "aten::cat", Category::kOp, at, at + 9000, task);
    at += 10000;
    add(lane + 1, "<forked function>", Category::kTask, start, at, task);
    return at;
  }
  void add(uint32_t tid, const char* name, Category category, int64_t start, int64_t end,
           uint64_t task, uint64_t link = 0, const char* detail = nullptr) {
    Event e;
    e.name = name;
    e.detail = detail;
    e.category = category;
    e.start_ns = start;
    e.end_ns = end;
    e.task = task;
    e.link = link;
    e.tid = tid;
    session_.events.push_back(e);
  }
  void mark(Event::Kind kind, int64_t at, uint32_t tid, uint64_t task, uint64_t link) {
    Event e;
    e.kind = kind;
    e.name = "mark";
    e.start_ns = e.end_ns = at;
    e.task = task;
    e.link = link;
    e.tid = tid;
    session_.events.push_back(e);
  }
  Session session_;
  std::mt19937 random_{7};
};

TEST(Timeline, HoldsTheSessionAndNeedsNoNetwork) {
  std::string page = timeline_page(Example().make(), "LSTM </script> ensemble");
  EXPECT_EQ(page.find("PRONG_SESSION<"), std::string::npos);
  EXPECT_NE(page.find("\"aten::mm\""), std::string::npos);
  EXPECT_NE(page.find("[48, 1024] x [1024, 4096]"), std::string::npos);
  EXPECT_NE(page.find("LSTM \\u003c/script> ensemble"),
            std::string::npos);  // cannot end the script
  EXPECT_EQ(page.find("http://"), std::string::npos);
  EXPECT_EQ(page.find("https://"), std::string::npos);
}

TEST(Timeline, IsWrittenToAFile) {
  const char* keep = std::getenv("PRONG_KEEP_TIMELINE");
  std::string path = keep ? keep : ::testing::TempDir() + "prong_timeline.html";
  write_timeline(Example().make(), "LSTM ensemble", path);
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), timeline_page(Example().make(), "LSTM ensemble"));
  if (!keep) std::remove(path.c_str());
}

TEST(Timeline, AnEmptySessionIsAPageToo) {
  EXPECT_NE(timeline_page(Session(), "nothing").find("\"spans\":[]"), std::string::npos);
}

}  // namespace
}  // namespace prong::profile
