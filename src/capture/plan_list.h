// The plans of one compiled function. Held by bindings/capture.cpp.
#pragma once

#include <memory>
#include <vector>

#include "capture/plan.h"

namespace prong::capture {

// The one used last stands first. A plan only borrows the objects that have a life of their own
// (instances of the program's classes, functions): when one of them dies no call can fit the plan
// any more, and it is dropped with all that it keeps. The GIL is held.
class PlanList {
 public:
  // `replays`: how many there were of the function so far.
  explicit PlanList(const int64_t* replays) : replays_(replays) {}
  ~PlanList();
  PlanList(const PlanList&) = delete;
  PlanList& operator=(const PlanList&) = delete;

  size_t size() const { return plans_.size(); }
  bool empty() const { return plans_.empty(); }
  auto begin() const { return plans_.begin(); }
  auto end() const { return plans_.end(); }
  const std::shared_ptr<Plan>& operator[](size_t i) const { return plans_[i]; }
  void move_up(size_t i) { std::swap(plans_[i], plans_[i - 1]); }
  void add(std::unique_ptr<Plan> plan);
  void clear();
  // So many plans in a row died before any was replayed.
  size_t num_useless() const { return num_useless_; }
  void died(Plan* plan);

  // While somebody walks over the list or runs one of its plans, none is taken out.
  class Use {
   public:
    explicit Use(PlanList& list) : list_(list) { ++list_.num_users_; }
    ~Use() {
      if (--list_.num_users_ == 0 && list_.has_dead_) list_.drop_dead();
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    PlanList& list_;
  };

 private:
  void drop_dead();

  std::vector<std::shared_ptr<Plan>> plans_;
  int num_users_ = 0;
  bool has_dead_ = false;
  size_t num_useless_ = 0;
  const int64_t* replays_;
};

}  // namespace prong::capture
