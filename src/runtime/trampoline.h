// Runs tasks one after the other on this thread, with a flat stack. Used by the pool and by waits.
#pragma once

#include <vector>

#include "base/ref.h"
#include "runtime/task.h"

namespace prong {

class Trampoline {
 public:
  // For a worker with nothing else on its stack: runs a claimed task and whatever is handed on.
  static void run_all(Ref<Task> task);
  // For a thread that needs `target`: runs what target waits for as far as nobody else does.
  // Returns when target is done, or when there is nothing of that kind left to run here.
  static void run_needed(FutureBase& target);

 private:
  friend class Task;
  using Path = std::vector<Ref<Task>>;

  static Ref<Task> run_once(Task& task, bool& is_suspended);
  static void run_top(Path& path);
  static bool look_further(FutureBase& target, Path& path);
};

}  // namespace prong
