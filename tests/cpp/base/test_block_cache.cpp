// The cache of small blocks: sizes, reuse, blocks that change threads.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "base/block_cache.h"

namespace prong {
namespace {

TEST(BlockCache, BlocksOfAllSizesAreTheirOwn) {
  std::vector<std::pair<void*, size_t>> blocks;
  for (int round = 0; round < 3; ++round) {
    for (size_t bytes = 1; bytes < 2000; bytes += 7) {
      void* p = cached_new(bytes);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % 16, 0u);
      std::memset(p, static_cast<int>(bytes & 0xff), bytes);
      blocks.push_back({p, bytes});
    }
    for (auto [p, bytes] : blocks) {
      auto* b = static_cast<unsigned char*>(p);
      EXPECT_EQ(b[0], bytes & 0xff);
      EXPECT_EQ(b[bytes - 1], bytes & 0xff);
      cached_delete(p, bytes);
    }
    blocks.clear();
  }
}

TEST(BlockCache, OneThreadMakesAnotherFrees) {
  struct Item : Cached {
    int64_t value[10];
  };
  for (int round = 0; round < 20; ++round) {
    std::vector<std::unique_ptr<Item>> items(1000);
    for (auto& item : items) item = std::make_unique<Item>();
    std::thread([&] { items.clear(); }).join();
  }
}

}  // namespace
}  // namespace prong
