// One thread for work that nobody waits for. Called by codegen/, without whose kernels a program
// can do for a while, and at exit.
#pragma once

#include "base/ref.h"

namespace prong {

struct BackgroundJob : RefCounted {
  virtual void run() noexcept = 0;
};

// Jobs run in order, one at a time. Never waits for one. After stop_background the job is dropped.
void run_in_background(Ref<BackgroundJob> job);

// In a child of fork(2), which has the jobs but not the thread: starts another one if any are left.
// For whoever finds that something is not done yet.
void keep_background_going();

// Until no job is left.
void wait_for_background();

// Waits for the job at hand and drops the others. To be called before the process exits, whose end
// destroys what jobs use.
void stop_background();

}  // namespace prong
