// Random graphs of tasks that suspend, block, fail, loop and complete each other's futures.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "forked.h"
#include "runtime/parallel.h"

namespace prong::testing {
namespace {

// Node i adds up the values of some earlier nodes and 1, one way or another.
struct Node {
  std::vector<int> inputs;
  enum Kind { kSuspends, kBlocks, kLoops, kCallback } kind;
};

class SuspendingSum final : public Task {
 public:
  SuspendingSum(std::vector<Ref<IntFuture>> inputs) : inputs_(std::move(inputs)) {}
  Ref<IntFuture> result = make_ref<IntFuture>();
  Ref<Task> run() override {
    for (; at_ < inputs_.size(); ++at_) {
      Ref<Task> next;
      if (await(*inputs_[at_], next)) return next;
      sum_ += inputs_[at_]->value();
    }
    return result->finish_value(sum_ % 1000003);
  }

 private:
  std::vector<Ref<IntFuture>> inputs_;
  size_t at_ = 0;
  int64_t sum_ = 1;
};

Ref<IntFuture> start(const Node& node, std::vector<Ref<IntFuture>> inputs) {
  switch (node.kind) {
  case Node::kSuspends: {
    auto task = make_ref<SuspendingSum>(std::move(inputs));
    auto result = task->result;
    result->set_producer(*task);
    submit(task);
    return result;
  }
  case Node::kBlocks:
    return fork_call([inputs] {
      int64_t sum = 1;
      for (auto& f : inputs) {
        f->wait();
        sum += f->value();
      }
      return sum % 1000003;
    });
  case Node::kLoops:
    return fork_call([inputs] {
      std::atomic<int64_t> sum{1};
      parallel_chunks(0, static_cast<int64_t>(inputs.size()), 1, [&](int64_t b, int64_t) {
        inputs[b]->wait();
        sum += inputs[b]->value();
      });
      return sum.load() % 1000003;
    });
  case Node::kCallback: {
    auto result = make_ref<IntFuture>();
    auto left = std::make_shared<std::atomic<size_t>>(inputs.size());
    auto finish = [inputs, result](FutureBase&) {
      int64_t sum = 1;
      for (auto& f : inputs) sum += f->value();
      result->set_value(sum % 1000003);
    };
    if (inputs.empty()) {
      result->set_value(1);
      return result;
    }
    for (auto& f : inputs)
      f->then([left, finish](FutureBase& done) {
        if (left->fetch_sub(1) == 1) finish(done);
      });
    return result;
  }
  }
  return {};
}

void run_random_graph(unsigned seed) {
  std::mt19937 random(seed);
  int n = 20 + static_cast<int>(random() % 60);
  std::vector<int64_t> expected(n);
  std::vector<Ref<IntFuture>> futures(n);
  for (int i = 0; i < n; ++i) {
    Node node;
    node.kind = static_cast<Node::Kind>(random() % 4);
    std::vector<Ref<IntFuture>> inputs;
    int64_t sum = 1;
    for (unsigned k = random() % 4; i > 0 && k > 0; --k) {
      int input = static_cast<int>(random() % i);
      inputs.push_back(futures[input]);
      sum += expected[input];
    }
    expected[i] = sum % 1000003;
    futures[i] = start(node, std::move(inputs));
  }
  for (int i = n - 1; i >= 0; --i) {
    futures[i]->wait();
    ASSERT_EQ(futures[i]->value(), expected[i]) << "seed " << seed;
  }
}

TEST(Stress, RandomGraphs) {
  for (int threads : {1, 2, 4}) {
    ThreadLimit limit(threads);
    for (unsigned seed = 0; seed < 150; ++seed) run_random_graph(seed);
  }
}

TEST(Stress, RandomGraphsFromManyThreads) {
  ThreadLimit limit(2);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (unsigned seed = 0; seed < 40; ++seed) run_random_graph(1000 * (t + 1) + seed);
    });
  for (auto& t : threads) t.join();
}

TEST(Stress, ForkAndWaitAtOnce) {
  ThreadLimit limit(2);
  for (int64_t i = 0; i < 50000; ++i) {
    auto f = fork_call([i] { return i; });
    f->wait();
    ASSERT_EQ(f->value(), i);
  }
}

TEST(Stress, CompletingRacesWithWaiting) {
  ThreadLimit limit(2);
  for (int i = 0; i < 2000; ++i) {
    auto f = make_ref<IntFuture>();
    std::atomic<int> told{0};
    auto setter = fork_call([f] {
      f->try_set_value(1);
      return 0;
    });
    f->then([&](FutureBase&) { ++told; });
    f->wait_for(0.00001);
    f->wait();
    setter->wait();
    EXPECT_EQ(told, 1);
  }
}

}  // namespace
}  // namespace prong::testing
