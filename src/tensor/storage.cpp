// The caching allocator and Storage. Called by Tensor::empty for every result of every op.
//
// Blocks belong to size classes (steps of 64 bytes up to 1 KiB, then four steps a doubling). Each
// thread keeps a few free blocks of the small classes and needs no lock for them; larger blocks,
// and what a thread has too many of, go to the pool that all threads share. Blocks above 1 MiB have
// no classes: what the pool has of them is cut and joined (large_blocks.h).
#include "tensor/storage.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "tensor/large_blocks.h"

namespace prong {

namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kKeepFreedBlocks = false;  // so that the sanitizer sees every use after free
#else
constexpr bool kKeepFreedBlocks = true;
#endif

constexpr size_t kAlignment = 64;
constexpr size_t kFineLimit = 1024;  // up to here one class per 64 bytes
constexpr int kFineClasses = kFineLimit / kAlignment;
constexpr size_t kThreadLimit = 64 * 1024;  // larger blocks are not kept by threads
constexpr int kThreadClasses = kFineClasses + 4 * 6;
constexpr int kClasses = kFineClasses + 4 * 10;
constexpr size_t kClassLimit = size_t{1} << 20;  // what is larger has no class
constexpr int kLarge = -1;
constexpr size_t kLargeGrain = 64 * 1024;
constexpr size_t kThreadBytesPerClass = 256 * 1024;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kHugeLimit = size_t{4}
                              << 20;  // from here blocks are aligned to huge pages and ask for them

struct SizeClass {
  int index;
  size_t bytes;
};

SizeClass size_class(size_t bytes) {
  if (bytes <= kFineLimit) {
    const size_t index = (bytes + kAlignment - 1) / kAlignment - 1;
    return {static_cast<int>(index), (index + 1) * kAlignment};
  }
  if (bytes > kClassLimit) return {kLarge, (bytes + kLargeGrain - 1) / kLargeGrain * kLargeGrain};
  const int exponent = std::bit_width(bytes - 1) - 1;    // bytes - 1 lies in [2^e, 2^(e+1))
  const size_t quarter = (bytes - 1) >> (exponent - 2);  // 4 to 7
  return {kFineClasses + (exponent - 10) * 4 + static_cast<int>(quarter - 4),
          (quarter + 1) << (exponent - 2)};
}

// Free blocks are linked through their own memory.
struct FreeBlock {
  FreeBlock* next;
};
struct FreeList {
  FreeBlock* head = nullptr;
  uint32_t count = 0;
  void push(void* block) {
    head = new (block) FreeBlock{head};
    ++count;
  }
  void* pop() {
    FreeBlock* block = head;
    head = block->next;
    --count;
    return block;
  }
};

// How many blocks of a class a thread keeps; half of that moves to or from the shared pool at a
// time.
uint32_t thread_capacity(size_t class_bytes) {
  return static_cast<uint32_t>(std::clamp<size_t>(kThreadBytesPerClass / class_bytes, 4, 256));
}

class SharedPool {
 public:
  SharedPool() {
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGE_SIZE);
    if (pages > 0 && page > 0) cache_limit_ = static_cast<int64_t>(pages) * page / 4;
  }

  void* take(SizeClass c) {
    if (c.index == kLarge) return take_large(c.bytes);
    {
      std::lock_guard lock(mutex_);
      if (lists_[c.index].head) {
        cached_.fetch_sub(static_cast<int64_t>(c.bytes), std::memory_order_relaxed);
        return lists_[c.index].pop();
      }
    }
    return fresh(c.bytes);
  }

  void give(void* block, SizeClass c) noexcept {
    if (kKeepFreedBlocks && c.index == kLarge) return give_large(block);
    if (!kKeepFreedBlocks || cached_.load(std::memory_order_relaxed) > cache_limit_) {
      std::free(block);
      return;
    }
    std::lock_guard lock(mutex_);
    lists_[c.index].push(block);
    cached_.fetch_add(static_cast<int64_t>(c.bytes), std::memory_order_relaxed);
  }

  // Moves up to `count` blocks of a small class into `list` (at least one).
  void refill(FreeList& list, SizeClass c, uint32_t count) {
    {
      std::lock_guard lock(mutex_);
      FreeList& mine = lists_[c.index];
      while (mine.head && list.count < count) list.push(mine.pop());
      cached_.fetch_sub(static_cast<int64_t>(c.bytes) * list.count, std::memory_order_relaxed);
    }
    if (list.count == 0) list.push(fresh(c.bytes));
  }

  void drain(FreeList& list, SizeClass c, uint32_t keep) noexcept {
    while (list.count > keep) give(list.pop(), c);
  }

  void empty() noexcept {
    std::lock_guard lock(mutex_);
    for (FreeList& list : lists_)
      while (list.head) std::free(list.pop());
    cached_.store(0, std::memory_order_relaxed);
    large_.trim(0);
    count_large();
  }

  int64_t cached() const {
    return cached_.load(std::memory_order_relaxed) + large_cached_.load(std::memory_order_relaxed);
  }
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

  // Changes of the thread's own counters, added up now and then.
  std::atomic<int64_t> in_use{0}, peak{0}, allocations{0};
  void raise_peak(int64_t now) {
    int64_t seen = peak.load(std::memory_order_relaxed);
    while (now > seen && !peak.compare_exchange_weak(seen, now, std::memory_order_relaxed)) {
    }
  }

 private:
  void* take_large(size_t bytes) {
    if (!kKeepFreedBlocks) return fresh(bytes);
    {
      std::lock_guard lock(mutex_);
      void* block = large_.take(bytes);
      count_large();
      if (block) return block;
    }
    void* segment = fresh(bytes);
    std::lock_guard lock(mutex_);
    large_.add(segment, bytes);
    return segment;
  }

  void give_large(void* block) noexcept {
    std::lock_guard lock(mutex_);
    large_.give(block);
    if (static_cast<int64_t>(large_.free_bytes()) > cache_limit_)
      large_.trim(static_cast<size_t>(cache_limit_));
    count_large();
  }
  void count_large() {
    large_cached_.store(static_cast<int64_t>(large_.free_bytes()), std::memory_order_relaxed);
  }

  void* fresh(size_t bytes) {
    const bool huge = bytes >= kHugeLimit;
    void* block = nullptr;
    if (posix_memalign(&block, huge ? kHugePage : kAlignment, bytes) != 0) {
      empty();  // what is kept for later may be what is missing now
      PRONG_CHECK(posix_memalign(&block, kAlignment, bytes) == 0, kOutOfMemory,
                  "can't allocate memory: you tried to allocate ", bytes, " bytes");
    }
    if (huge) madvise(block, bytes & ~(kHugePage - 1), MADV_HUGEPAGE);
    return block;
  }

  std::mutex mutex_;
  FreeList lists_[kClasses];
  LargeBlocks large_;
  std::atomic<int64_t> cached_{0};        // of the classes
  std::atomic<int64_t> large_cached_{0};  // of large_; written under the lock
  int64_t cache_limit_ = int64_t{1} << 30;
};

// Never destroyed: tensors in static objects and threads that end late still need it.
SharedPool& shared_pool() {
  static SharedPool* pool = [] {
    static SharedPool* made = new SharedPool;
    // A child of os.fork must not inherit a lock that a thread of the parent holds.
    pthread_atfork([] { made->lock(); }, [] { made->unlock(); }, [] { made->unlock(); });
    return made;
  }();
  return *pool;
}

struct ThreadCache {
  FreeList lists[kThreadClasses];
  int64_t in_use = 0;  // not yet added to the pool's counters
  int64_t allocations = 0;

  void count(int64_t bytes) {
    in_use += bytes;
    allocations += bytes > 0;
    // Counters are added up every 64 KiB, so the peak is exact to that much a thread.
    if (in_use >= int64_t{64} * 1024 || in_use <= -int64_t{64} * 1024) publish();
  }
  void publish() {
    SharedPool& pool = shared_pool();
    const int64_t now = pool.in_use.fetch_add(in_use, std::memory_order_relaxed) + in_use;
    pool.allocations.fetch_add(allocations, std::memory_order_relaxed);
    in_use = allocations = 0;
    pool.raise_peak(now);
  }
  ~ThreadCache() {
    for (int i = 0; i < kThreadClasses; ++i) {
      const size_t bytes = i < kFineClasses ? (i + 1) * kAlignment
                                            : size_t(4 + (i - kFineClasses) % 4 + 1)
                                                  << ((i - kFineClasses) / 4 + 8);
      shared_pool().drain(lists[i], {i, bytes}, 0);
    }
    publish();
  }
};

// The cache of this thread; null before the first use and after the thread's end (then the pool
// serves directly).
thread_local ThreadCache* thread_cache = nullptr;
thread_local bool thread_ended = false;

ThreadCache* make_thread_cache() {
  if (thread_ended) return nullptr;
  struct Owner {
    ThreadCache cache;
    ~Owner() {
      thread_cache = nullptr;
      thread_ended = true;
    }
  };
  thread_local Owner owner;
  thread_cache = &owner.cache;
  return thread_cache;
}

inline ThreadCache* this_thread_cache() {
  return thread_cache ? thread_cache : make_thread_cache();
}

}  // namespace

void* allocate(size_t bytes) {
  if (bytes == 0) return nullptr;
  // More than a process can address is not worth asking for.
  PRONG_CHECK(bytes < size_t{1} << 47, kOutOfMemory,
              "can't allocate memory: you tried to allocate ", bytes, " bytes");
  const SizeClass c = size_class(bytes);
  ThreadCache* cache = this_thread_cache();
  void* block;
  if (cache && c.bytes <= kThreadLimit) {
    FreeList& list = cache->lists[c.index];
    if (!list.head) shared_pool().refill(list, c, std::max(1u, thread_capacity(c.bytes) / 2));
    block = list.pop();
  } else {
    block = shared_pool().take(c);
  }
  if (cache) cache->count(static_cast<int64_t>(c.bytes));
  return block;
}

void deallocate(void* block, size_t bytes) noexcept {
  if (!block) return;
  const SizeClass c = size_class(bytes);
  ThreadCache* cache = this_thread_cache();
  if (cache) cache->count(-static_cast<int64_t>(c.bytes));
  if (!cache || !kKeepFreedBlocks || c.bytes > kThreadLimit) {
    shared_pool().give(block, c);
    return;
  }
  FreeList& list = cache->lists[c.index];
  list.push(block);
  const uint32_t capacity = thread_capacity(c.bytes);
  if (list.count > capacity) shared_pool().drain(list, c, capacity / 2);
}

MemoryStats memory_stats() {
  if (ThreadCache* cache = this_thread_cache()) cache->publish();
  SharedPool& pool = shared_pool();
  return {pool.in_use.load(), pool.cached(), pool.peak.load(), pool.allocations.load()};
}

void reset_peak_memory() {
  if (ThreadCache* cache = this_thread_cache()) cache->publish();
  SharedPool& pool = shared_pool();
  pool.peak.store(pool.in_use.load());
}

void empty_memory_cache() { shared_pool().empty(); }

Storage::Storage(size_t bytes) : data_(allocate(bytes)), bytes_(bytes) {}

Storage::Storage(void* data, size_t bytes, void (*deleter)(void*), void* context)
    : data_(data), bytes_(bytes), deleter_(deleter), context_(context) {
  PRONG_ASSERT(deleter != nullptr, "borrowed memory needs a deleter");
}

namespace {
std::atomic<void (*)(const Storage&)> reader_check{nullptr};
}

void Storage::set_reader_check(void (*check)(const Storage&)) { reader_check.store(check); }

Storage::Storage(size_t bytes, Ref<DeferredWork> work) : data_(nullptr), bytes_(bytes) {
  set_deferred(std::move(work));
}

void Storage::set_deferred(Ref<DeferredWork> work) {
  int change = work ? 1 : 0;
  {
    std::lock_guard lock(attachment_lock_);
    change -= deferred_ ? 1 : 0;
    deferred_.swap(work);
    if (change > 0) watches_.fetch_add(1, std::memory_order_release);
    if (change < 0) watches_.fetch_sub(1, std::memory_order_release);
  }
}

Ref<DeferredWork> Storage::deferred() const {
  std::lock_guard lock(attachment_lock_);
  return deferred_;
}

void Storage::before_access() const {
  if (Ref<DeferredWork> work = deferred())
    work->settle();
  else if (auto check = reader_check.load())
    check(*this);
}

void Storage::take_memory_of(Storage& other) {
  PRONG_ASSERT(!deleter_ && !other.deleter_ && bytes_ == other.bytes_,
               "memory is taken over from a storage of another kind");
  std::swap(data_, other.data_);
}

Storage::~Storage() {
  if (deleter_)
    deleter_(context_);
  else
    deallocate(data_, bytes_);  // null where the work never came
}

void Storage::resize(size_t bytes) {
  PRONG_CHECK(is_resizable(), kRuntime, "Trying to resize storage that is not resizable");
  data();  // work that was put off comes first
  void* larger = allocate(bytes);
  if (const size_t keep = std::min(bytes, bytes_)) std::memcpy(larger, data_, keep);
  deallocate(data_, bytes_);
  data_ = larger;
  bytes_ = bytes;
}

Ref<RefCounted> Storage::attachment() const {
  std::lock_guard lock(attachment_lock_);
  return attachment_;
}

void Storage::attach(Ref<RefCounted> derived) {
  std::lock_guard lock(attachment_lock_);
  attachment_.swap(derived);  // the old one dies after the lock is released
}

}  // namespace prong
