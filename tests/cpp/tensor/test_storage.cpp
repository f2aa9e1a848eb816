// The allocator: alignment, reuse, counters, threads; storages of borrowed memory.
#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "tensor/storage.h"
#include "tensor/tensor.h"

namespace prong {
namespace {

TEST(Storage, BlocksAreAlignedAndLargeEnough) {
  for (size_t bytes : {1ul, 63ul, 64ul, 65ul, 1024ul, 1025ul, 1280ul, 1281ul, 65536ul, 65537ul,
                       1ul << 22, (1ul << 22) + 1}) {
    void* block = allocate(bytes);
    ASSERT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u) << bytes;
    std::memset(block, 0x5a, bytes);  // the sanitizer checks the end
    deallocate(block, bytes);
  }
  EXPECT_EQ(allocate(0), nullptr);
}

TEST(Storage, LiveBlocksNeverOverlap) {
  std::vector<std::pair<unsigned char*, size_t>> blocks;
  for (size_t i = 0; i < 2000; ++i) {
    const size_t bytes = 1 + i * 37 % 9000;
    auto* block = static_cast<unsigned char*>(allocate(bytes));
    std::memset(block, static_cast<int>(i % 251), bytes);
    blocks.push_back({block, bytes});
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    ASSERT_EQ(blocks[i].first[0], i % 251);
    ASSERT_EQ(blocks[i].first[blocks[i].second - 1], i % 251);
    deallocate(blocks[i].first, blocks[i].second);
  }
}

TEST(Storage, CountsBytes) {
  const MemoryStats before = memory_stats();
  void* block = allocate(1 << 20);
  const MemoryStats during = memory_stats();
  EXPECT_EQ(during.bytes_in_use - before.bytes_in_use, 1 << 20);
  EXPECT_GE(during.peak_bytes_in_use, during.bytes_in_use);
  EXPECT_EQ(during.allocations - before.allocations, 1);
  deallocate(block, 1 << 20);
  EXPECT_EQ(memory_stats().bytes_in_use, before.bytes_in_use);
  empty_memory_cache();
  EXPECT_EQ(memory_stats().bytes_cached, 0);
}

TEST(Storage, BlocksMoveBetweenThreads) {
  std::vector<Tensor> made(500);
  std::thread maker([&] {
    for (size_t i = 0; i < made.size(); ++i) {
      made[i] = Tensor::empty(Dims{static_cast<int64_t>(1 + i)}, DType::kInt64);
      fill(made[i], static_cast<int64_t>(i));
    }
  });
  maker.join();
  std::thread user([&] {
    for (size_t i = 0; i < made.size(); ++i) {
      EXPECT_EQ(made[i].data<int64_t>()[i], static_cast<int64_t>(i));
      made[i] = Tensor();
    }
  });
  user.join();
}

TEST(Storage, BorrowedMemoryIsGivenBackOnce) {
  int freed = 0;
  float values[4] = {1, 2, 3, 4};
  {
    Ref<Storage> storage = make_ref<Storage>(
        values, sizeof values, [](void* count) { ++*static_cast<int*>(count); }, &freed);
    EXPECT_THROW(storage->resize(64), Error);
    Tensor t = Tensor::view_of(storage, 1, Dims{3}, Dims{1}, DType::kFloat32);
    storage = {};
    EXPECT_EQ(t.data<float>()[2], 4);
    EXPECT_EQ(freed, 0);
  }
  EXPECT_EQ(freed, 1);
}

TEST(Storage, ResizeKeepsThePrefix) {
  Storage storage(100);
  std::memset(storage.data(), 7, 100);
  storage.resize(5000);
  EXPECT_EQ(storage.bytes(), 5000u);
  EXPECT_EQ(static_cast<char*>(storage.data())[99], 7);
}

TEST(Storage, SaysHowMuchMemoryWasMissing) {
  try {
    allocate(size_t{1} << 60);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kOutOfMemory);
    EXPECT_NE(e.message().find("you tried to allocate 1152921504606846976 bytes"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace prong
