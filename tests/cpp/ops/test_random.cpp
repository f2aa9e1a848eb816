// The generator's sequence and state against numbers of PyTorch 2.13 (seed 7).
#include <gtest/gtest.h>

#include <cmath>

#include "ops/op_def.h"
#include "ops/random.h"

namespace prong {
namespace {

void seed(uint64_t value) { Generator::default_generator()->manual_seed(value); }

TEST(Random, WordsAreThoseOfMt19937) {
  Generator g(7);
  EXPECT_EQ(g.random(), 327741615u);
  EXPECT_EQ(g.random(), 976413892u);
  EXPECT_EQ(g.random(), 3349725721u);
  Generator one(
      5489);  // the reference implementation's seed: its 10,000th word is in the C++ standard
  uint32_t last = 0;
  for (int i = 0; i < 10000; ++i) last = one.random();
  EXPECT_EQ(last, 4123659995u);
}

TEST(Random, WordsInBulkAreTheSame) {
  Generator a(3), b(3);
  for (int64_t n : {1, 5, 623, 624, 625, 2000, 7}) {
    std::vector<uint32_t> bulk(static_cast<size_t>(n));
    a.random_words(bulk.data(), n);
    for (uint32_t word : bulk) ASSERT_EQ(word, b.random());
  }
}

TEST(Random, NumbersArePyTorchs) {
  seed(7);
  const Tensor few = call_tensor("randn", Dims{3}, nullptr, DType::kFloat16);
  EXPECT_NEAR(few.to(DType::kFloat64).data<double>()[0], -0.1469, 1e-4);
  seed(7);
  const Tensor many = call_tensor("randn", Dims{16});
  EXPECT_NEAR(many.data<float>()[0], -0.8201345, 1e-6);
  EXPECT_NEAR(many.data<float>()[1], 0.3956309, 1e-6);
  seed(7);
  const Tensor even = call_tensor("uniform_", Tensor::empty(Dims{2}, DType::kFloat32), -0.3, 0.7);
  EXPECT_EQ(even.data<float>()[0], 0.23492252826690674f);
  EXPECT_EQ(even.data<float>()[1], -0.10119682550430298f);
  seed(7);
  const Tensor bits = call_tensor("bernoulli_.float", Tensor::empty(Dims{8}, DType::kInt64), 0.3);
  const int64_t expected[] = {1, 1, 0, 0, 0, 0, 1, 0};
  for (int i = 0; i < 8; ++i) EXPECT_EQ(bits.data<int64_t>()[i], expected[i]);
  seed(7);
  const Tensor order = call_tensor("randperm", 10);
  const int64_t shuffled[] = {5, 0, 3, 4, 1, 7, 9, 6, 8, 2};
  for (int i = 0; i < 10; ++i) EXPECT_EQ(order.data<int64_t>()[i], shuffled[i]);
}

TEST(Random, StatesAreRestored) {
  Generator g(11);
  g.normal();  // leaves the second of a pair
  const Tensor state = g.state();
  EXPECT_EQ(state.numel(), 5056);
  const double next = g.normal(), after = g.normal();
  Generator other(0);
  other.set_state(state);
  EXPECT_EQ(other.normal(), next);
  EXPECT_EQ(other.normal(), after);
  EXPECT_EQ(other.initial_seed(), 11u);
  EXPECT_THROW(other.set_state(Tensor::empty(Dims{7}, DType::kUInt8)), Error);
  EXPECT_THROW(other.set_state(state.to(DType::kInt64)), Error);
}

TEST(Random, ViewsAreFilledInTheOrderOfMemory) {
  seed(5);
  const Tensor rows = call_tensor("rand", Dims{3, 4});
  seed(5);
  const Tensor turned =
      call_tensor("uniform_", call_tensor("t", Tensor::empty(Dims{3, 4}, DType::kFloat32)));
  for (int64_t i = 0; i < 12; ++i)
    EXPECT_EQ(rows.data<float>()[i], static_cast<const float*>(turned.storage()->data())[i]);
}

}  // namespace
}  // namespace prong
