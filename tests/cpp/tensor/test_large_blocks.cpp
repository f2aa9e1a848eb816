// Large blocks: cut, joined, given back to the system.
#include "tensor/large_blocks.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

namespace prong {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

char* segment(LargeBlocks& blocks, size_t bytes) {
  void* made = std::malloc(bytes);
  blocks.add(made, bytes);
  return static_cast<char*>(made);
}

TEST(LargeBlocks, OneSizeServesAnother) {
  LargeBlocks blocks;
  char* begin = segment(blocks, 32 * kMiB);
  EXPECT_EQ(blocks.take(kMiB), nullptr);
  blocks.give(begin);
  EXPECT_EQ(blocks.free_bytes(), 32 * kMiB);
  EXPECT_EQ(blocks.take(16 * kMiB), begin);
  EXPECT_EQ(blocks.take(6 * kMiB), begin + 16 * kMiB);
  EXPECT_EQ(blocks.free_bytes(), 10 * kMiB);
  // Whole again, whatever the order.
  blocks.give(begin);
  blocks.give(begin + 16 * kMiB);
  EXPECT_EQ(blocks.take(32 * kMiB), begin);
  blocks.give(begin);
  blocks.trim(0);
  EXPECT_EQ(blocks.free_bytes(), 0u);
}

TEST(LargeBlocks, TheSmallestThatFitsIsTakenAndSmallOnesCutNoLargeOne) {
  LargeBlocks blocks;
  char* large = segment(blocks, 64 * kMiB);
  char* small = segment(blocks, 8 * kMiB);
  blocks.give(large);
  blocks.give(small);
  EXPECT_EQ(blocks.take(6 * kMiB), small);
  EXPECT_EQ(blocks.take(2 * kMiB), small + 6 * kMiB);
  EXPECT_EQ(blocks.take(2 * kMiB), nullptr);
  EXPECT_EQ(blocks.take(40 * kMiB), large);
  blocks.give(large);
  blocks.give(small);
  blocks.give(small + 6 * kMiB);
  blocks.trim(0);
}

TEST(LargeBlocks, SegmentsInUseAreKept) {
  LargeBlocks blocks;
  char* used = segment(blocks, 4 * kMiB);
  char* half = segment(blocks, 16 * kMiB);
  char* unused = segment(blocks, 8 * kMiB);
  blocks.give(half);
  EXPECT_EQ(blocks.take(8 * kMiB), half);
  blocks.give(unused);
  blocks.trim(12 * kMiB);
  EXPECT_EQ(blocks.free_bytes(), 8 * kMiB);  // the other half
  std::memset(used, 1, 4 * kMiB);
  std::memset(half, 1, 8 * kMiB);
  blocks.give(used);
  blocks.give(half);
  blocks.trim(0);
  EXPECT_EQ(blocks.free_bytes(), 0u);
}

TEST(LargeBlocks, DrawnCallsNeverOverlap) {
  LargeBlocks blocks;
  std::mt19937 draw(1);
  struct Held {
    char* begin;
    size_t bytes;
    char mark;
  };
  std::vector<Held> held;
  for (int i = 0; i < 3000; ++i) {
    if (held.empty() || draw() % 2) {
      const size_t bytes = (1 + draw() % 64) * (kMiB / 16);
      auto* begin = static_cast<char*>(blocks.take(bytes));
      if (!begin) begin = segment(blocks, bytes);
      held.push_back({begin, bytes, static_cast<char>(i)});
      begin[0] = begin[bytes - 1] = held.back().mark;
    } else {
      std::swap(held[draw() % held.size()], held.back());
      const Held h = held.back();
      held.pop_back();
      ASSERT_EQ(h.begin[0], h.mark);
      ASSERT_EQ(h.begin[h.bytes - 1], h.mark);
      blocks.give(h.begin);
    }
    if (i % 500 == 0) blocks.trim(8 * kMiB);
  }
  for (const Held& h : held) blocks.give(h.begin);
  blocks.trim(0);
  EXPECT_EQ(blocks.free_bytes(), 0u);
}

}  // namespace
}  // namespace prong
