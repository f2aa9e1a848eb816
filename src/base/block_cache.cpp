// Free blocks by size: a list in each thread, and a shared store that lists are filled from and
// emptied into by the batch. Called through block_cache.h.
#include "base/block_cache.h"

#include <pthread.h>

#include <cstdint>
#include <mutex>
#include <new>
#include <vector>

namespace prong {

namespace {

constexpr size_t kStep = 64;
constexpr size_t kClasses = 16;  // up to 1024 bytes
constexpr int kBatch = 32;
constexpr size_t kMostShared = size_t{128} << 20;  // bytes kept at most; beyond that they are freed

#ifdef __SANITIZE_ADDRESS__
constexpr bool kIsOn = false;  // or uses of freed objects would not be found
#else
constexpr bool kIsOn = true;
#endif

struct Block {
  Block* next;
};

// Never destroyed: threads free objects until the process ends.
struct Store {
  std::mutex mutex;
  std::vector<Block*> batches[kClasses];
  size_t bytes = 0;
};
Store* store() {
  static Store* s = [] {
    pthread_atfork([] { store()->mutex.lock(); }, [] { store()->mutex.unlock(); },
                   [] { store()->mutex.unlock(); });
    return new Store;
  }();
  return s;
}

void free_all(Block* block) {
  while (block) {
    Block* next = block->next;
    ::operator delete(block);
    block = next;
  }
}

// A batch of kBatch blocks, or null.
Block* take_batch(size_t size_class) {
  Store& s = *store();
  std::lock_guard lock(s.mutex);
  auto& batches = s.batches[size_class];
  if (batches.empty()) return nullptr;
  Block* batch = batches.back();
  batches.pop_back();
  s.bytes -= kBatch * (size_class + 1) * kStep;
  return batch;
}

void give_batch(size_t size_class, Block* batch) {
  Store& s = *store();
  {
    std::lock_guard lock(s.mutex);
    size_t bytes = kBatch * (size_class + 1) * kStep;
    if (s.bytes + bytes <= kMostShared) {
      s.batches[size_class].push_back(batch);
      s.bytes += bytes;
      return;
    }
  }
  free_all(batch);
}

struct FreeList {
  Block* first = nullptr;
  int count = 0;
};

struct ThreadCache {
  FreeList lists[kClasses];
  ~ThreadCache();
};
thread_local bool is_cache_gone = false;  // other objects of the thread may still be freed
thread_local ThreadCache cache;

ThreadCache::~ThreadCache() {
  for (FreeList& list : lists) free_all(list.first);
  is_cache_gone = true;
}

}  // namespace

void* cached_new(size_t bytes) {
  size_t size_class = (bytes - 1) / kStep;
  if (!kIsOn || size_class >= kClasses || is_cache_gone) return ::operator new(bytes);
  FreeList& list = cache.lists[size_class];
  if (!list.first) {
    list.first = take_batch(size_class);
    if (!list.first) return ::operator new((size_class + 1) * kStep);
    list.count = kBatch;
  }
  Block* block = list.first;
  list.first = block->next;
  --list.count;
  return block;
}

void cached_delete(void* p, size_t bytes) noexcept {
  size_t size_class = (bytes - 1) / kStep;
  if (!kIsOn || size_class >= kClasses || is_cache_gone) {
    ::operator delete(p);
    return;
  }
  FreeList& list = cache.lists[size_class];
  Block* block = static_cast<Block*>(p);
  if (list.count >= 2 * kBatch) {
    Block* last = list.first;
    for (int i = 1; i < kBatch; ++i) last = last->next;
    Block* rest = last->next;
    last->next = nullptr;
    give_batch(size_class, list.first);
    list.first = rest;
    list.count -= kBatch;
  }
  block->next = list.first;
  list.first = block;
  ++list.count;
}

}  // namespace prong
