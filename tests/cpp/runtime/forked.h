// Tasks for the tests: a plain call, and a recursion that waits for its children by suspension.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "runtime/future.h"
#include "runtime/task.h"

namespace prong::testing {

using IntFuture = BasicFuture<int64_t>;

// Runs a function; a wait inside it blocks its thread, as an ignored Python function does.
class Call final : public Task {
 public:
  explicit Call(std::function<int64_t()> f) : f_(std::move(f)) {}
  Ref<IntFuture> result = make_ref<IntFuture>();

  Ref<Task> run() override {
    try {
      return result->finish_value(f_());
    } catch (...) {
      return result->finish_error(std::current_exception());
    }
  }

 private:
  std::function<int64_t()> f_;
};

inline Ref<IntFuture> prepare(std::function<int64_t()> f, Ref<Task>* task) {
  auto call = make_ref<Call>(std::move(f));
  call->result->set_producer(*call);
  *task = call;
  return call->result;
}

inline Ref<IntFuture> fork_call(std::function<int64_t()> f) {
  Ref<Task> task;
  auto future = prepare(std::move(f), &task);
  submit(std::move(task));
  return future;
}

// Forks `width` children of depth - 1 and waits for each by suspension; counts all tasks.
class Tree final : public Task {
 public:
  Tree(int depth, int width) : depth_(depth), width_(width) {}
  Ref<IntFuture> result = make_ref<IntFuture>();

  static Ref<IntFuture> prepare(int depth, int width, Ref<Task>* task) {
    auto tree = make_ref<Tree>(depth, width);
    tree->result->set_producer(*tree);
    *task = tree;
    return tree->result;
  }

  Ref<Task> run() override {
    if (!has_forked_) {
      has_forked_ = true;
      for (int i = 0; depth_ > 0 && i < width_; ++i) {
        Ref<Task> child;
        children_.push_back(prepare(depth_ - 1, width_, &child));
        submit(std::move(child));
      }
    }
    for (; at_ < children_.size(); ++at_) {
      Ref<Task> next;
      if (await(*children_[at_], next)) return next;
      if (auto error = children_[at_]->error()) return result->finish_error(error);
      sum_ += children_[at_]->value();
      children_[at_] = Ref<IntFuture>();
    }
    return result->finish_value(sum_);
  }

 private:
  int depth_, width_;
  bool has_forked_ = false;
  size_t at_ = 0;
  int64_t sum_ = 1;
  std::vector<Ref<IntFuture>> children_;
};

// For the length of a test.
class ThreadLimit {
 public:
  explicit ThreadLimit(int n);
  ~ThreadLimit();

 private:
  int before_;
};

}  // namespace prong::testing
