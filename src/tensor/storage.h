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

class Storage;

// Work that was put off (capture/): it will write a storage, or reads one that must not change
// before. Any thread that touches the memory has it done first.
struct DeferredWork : RefCounted {
  virtual void settle() = 0;  // returns when it is done; throws what the work throws
};

// A block of memory and its version (bumped by each in-place write through any view).
class Storage : public RefCounted, public Cached {
 public:
  explicit Storage(size_t bytes);  // owned, uninitialised
  // Borrowed memory (NumPy, DLPack, mapped file): deleter(context) runs when the last view is gone.
  Storage(void* data, size_t bytes, void (*deleter)(void*), void* context);
  ~Storage() override;

  void* data() const {
    if (watches_.load(std::memory_order_acquire)) [[unlikely]]
      before_access();
    return data_;
  }
  size_t bytes() const { return bytes_; }
  bool is_resizable() const { return deleter_ == nullptr; }
  void resize(size_t bytes);  // keeps the common prefix; only owned memory
  uint64_t version() const { return version_.load(std::memory_order_relaxed); }
  // How many of the writes went through `x.data`, which gradients do not know of.
  uint64_t writes_apart() const { return writes_apart_.load(std::memory_order_relaxed); }
  void bump_version(bool is_apart) {
    version_.fetch_add(1, std::memory_order_relaxed);
    if (is_apart) [[unlikely]]
      writes_apart_.fetch_add(1, std::memory_order_relaxed);
  }

  // ── work that was put off ──
  // Without memory yet: `work` will give it some with take_memory_of.
  Storage(size_t bytes, Ref<DeferredWork> work);
  void set_deferred(Ref<DeferredWork> work);  // that will write here; null: done
  Ref<DeferredWork> deferred() const;
  // A reader on this thread that must be asked before the memory is touched; see set_reader_check.
  void add_reader() { watches_.fetch_add(1, std::memory_order_release); }
  void remove_reader() { watches_.fetch_sub(1, std::memory_order_release); }
  // Called when memory with readers is touched.
  static void set_reader_check(void (*check)(const Storage&));
  void take_memory_of(Storage& other);  // owned memory of the same size; the other is left empty
  void set_version(uint64_t version, uint64_t writes_apart) {
    version_.store(version, std::memory_order_relaxed);
    writes_apart_.store(writes_apart, std::memory_order_relaxed);
  }

  // Memory that others can write without bumping the version (NumPy, DLPack, a raw pointer was
  // handed out, or it is borrowed): nothing derived from its contents may be kept.
  void mark_exposed() { exposed_.store(true, std::memory_order_relaxed); }
  bool is_exposed() const { return deleter_ || exposed_.load(std::memory_order_relaxed); }
  // Something derived from the contents that lives as long as they do (packed weights); whoever
  // puts it there remembers the version that it was made from. Any thread.
  Ref<RefCounted> attachment() const;
  void attach(Ref<RefCounted> derived);

 private:
  void before_access() const;

  void* data_;
  size_t bytes_;
  std::atomic<uint32_t> watches_{0};  // readers, and one more while work is deferred
  void (*deleter_)(void*) = nullptr;
  void* context_ = nullptr;
  std::atomic<uint64_t> version_{0}, writes_apart_{0};
  std::atomic<bool> exposed_{false};
  mutable SpinLock attachment_lock_;
  Ref<RefCounted> attachment_;
  Ref<DeferredWork> deferred_;  // under attachment_lock_
};

}  // namespace prong
