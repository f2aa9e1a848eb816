// Memory of tensors: a caching allocator (fresh pages cost more than the work done on them) and the
// storage object that views share.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/block_cache.h"
#include "base/ref.h"
#include "runtime/spin_lock.h"

namespace prong {

// 64-byte aligned blocks. Freed blocks are kept by size class and handed out again; thread-safe.
// Throws kOutOfMemory, with the number of bytes asked for.
void* allocate(size_t bytes);
void deallocate(void* block, size_t bytes) noexcept;

struct MemoryStats {
  int64_t bytes_in_use, bytes_cached, peak_bytes_in_use, allocations;
};
MemoryStats memory_stats();
void reset_peak_memory();
void empty_memory_cache();

// A block of memory and its version (bumped by each in-place write through any view).
class Storage : public RefCounted, public Cached {
 public:
  explicit Storage(size_t bytes);  // owned, uninitialised
  // Borrowed memory (NumPy, DLPack, mapped file): deleter(context) runs when the last view is gone.
  Storage(void* data, size_t bytes, void (*deleter)(void*), void* context);
  ~Storage() override;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  bool is_resizable() const { return deleter_ == nullptr; }
  void resize(size_t bytes);  // keeps the common prefix; only owned memory
  uint64_t version() const { return version_.load(std::memory_order_relaxed); }
  void bump_version() { version_.fetch_add(1, std::memory_order_relaxed); }

  // Memory that others can write without bumping the version (NumPy, DLPack, a raw pointer was
  // handed out, or it is borrowed): nothing derived from its contents may be kept.
  void mark_exposed() { exposed_.store(true, std::memory_order_relaxed); }
  bool is_exposed() const { return deleter_ || exposed_.load(std::memory_order_relaxed); }
  // Something derived from the contents that lives as long as they do (packed weights); whoever
  // puts it there remembers the version that it was made from. Any thread.
  Ref<RefCounted> attachment() const;
  void attach(Ref<RefCounted> derived);

 private:
  void* data_;
  size_t bytes_;
  void (*deleter_)(void*) = nullptr;
  void* context_ = nullptr;
  std::atomic<uint64_t> version_{0};
  std::atomic<bool> exposed_{false};
  mutable SpinLock attachment_lock_;
  Ref<RefCounted> attachment_;
};

}  // namespace prong
