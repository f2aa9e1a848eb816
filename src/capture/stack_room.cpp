// Bounds of the thread's stack. See stack_room.h.
#include "capture/stack_room.h"

#include <algorithm>
#include <cstdint>

#ifdef __linux__
#include <pthread.h>
#endif

namespace prong::capture {

namespace {

struct Bounds {
  uintptr_t little = 0, none = 0;  // addresses; the stack grows downwards
};

Bounds bounds_of_thread() {
  Bounds b;
#ifdef __linux__
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return b;
  void* low = nullptr;
  size_t size = 0;
  if (pthread_attr_getstack(&attributes, &low, &size) == 0) {
    const auto bottom = reinterpret_cast<uintptr_t>(low);
    b.little = bottom + std::min(size / 2, size_t{3} << 20);
    b.none = bottom + std::min(size / 8, size_t{1} << 18);
  }
  pthread_attr_destroy(&attributes);
#endif
  return b;
}

}  // namespace

StackRoom stack_room() {
  static thread_local const Bounds bounds = bounds_of_thread();
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return here > bounds.little ? StackRoom::kEnough
         : here > bounds.none ? StackRoom::kLittle
                              : StackRoom::kNone;
}

}  // namespace prong::capture
