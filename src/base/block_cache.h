// Memory for small objects that one thread makes and another frees: tasks, futures, frames. malloc
// makes such threads wait for each other. Used through `Cached`.
#pragma once

#include <cstddef>

namespace prong {

void* cached_new(size_t bytes);
void cached_delete(void* p, size_t bytes) noexcept;

// Base of classes whose objects come from the cache. Not for classes aligned to more than 16 bytes.
struct Cached {
  static void* operator new(size_t bytes) { return cached_new(bytes); }
  static void operator delete(void* p, size_t bytes) noexcept { cached_delete(p, bytes); }
  // For classes that bring their memory along (and their own operator delete).
  static void* operator new(size_t, void* place) noexcept { return place; }
  static void operator delete(void*, void*) noexcept {}
};

}  // namespace prong
