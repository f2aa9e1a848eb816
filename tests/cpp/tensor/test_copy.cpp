// Copies between all layouts and element types, against a plain walk over indices.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tensor/convert.h"
#include "tensor/tensor.h"

namespace prong {
namespace {

Tensor counting(DimsView sizes, DType dtype) {
  Tensor t = Tensor::empty(sizes, dtype);
  visit(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < t.numel(); ++i)
      t.data<T>()[i] = convert<T>(static_cast<float>(i % 113));
  });
  return t;
}

double at(const Tensor& t, DimsView index) {
  int64_t offset = 0;
  for (size_t i = 0; i < index.size(); ++i) offset += index[i] * t.strides()[i];
  return visit(t.dtype(), [&](auto tag) {
    return static_cast<double>(t.data<typename decltype(tag)::type>()[offset]);
  });
}

void expect_equal(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.sizes(), b.sizes());
  Dims index(a.sizes().size(), 0);
  for (int64_t i = 0; i < a.numel(); ++i) {
    ASSERT_EQ(at(a, index), at(b, index)) << cat(index);
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < a.sizes()[d]) break;
      index[d] = 0;
    }
  }
}

Tensor permuted(const Tensor& t, std::initializer_list<size_t> order) {
  Dims sizes, strides;
  for (size_t d : order) {
    sizes.push_back(t.sizes()[d]);
    strides.push_back(t.strides()[d]);
  }
  return t.as_strided(sizes, strides, t.offset());
}

// Complex numbers come after the real ones; tests/parity compares them.
constexpr int kNumRealDTypes = static_cast<int>(DType::kComplex64);

TEST(Copy, EveryPairOfTypes) {
  for (int from = 0; from < kNumRealDTypes; ++from)
    for (int to = 0; to < kNumRealDTypes; ++to) {
      Tensor src = counting(Dims{5, 7}, static_cast<DType>(from));
      Tensor dst = src.to(static_cast<DType>(to));
      ASSERT_EQ(dst.dtype(), static_cast<DType>(to));
      if (dst.dtype() == DType::kBool || src.dtype() == DType::kBool) {
        EXPECT_EQ(at(dst, Dims{0, 0}), 0);
        EXPECT_EQ(at(dst, Dims{0, 3}), 1);
      } else {
        expect_equal(dst, src);
      }
      Tensor turned = permuted(src, {1, 0});
      expect_equal(turned.to(dst.dtype()), permuted(dst, {1, 0}));
    }
}

TEST(Copy, ConversionsFollowPyTorch) {
  EXPECT_EQ(convert<uint8_t>(-1.0f), 255);
  EXPECT_EQ(convert<int8_t>(300.0), 44);
  EXPECT_EQ(convert<bool>(std::nanf("")), true);
  EXPECT_EQ(convert<int64_t>(-2.9), -2);
  EXPECT_EQ(static_cast<float>(convert<Half>(70000.0f)), std::numeric_limits<float>::infinity());
  EXPECT_EQ(static_cast<float>(convert<BFloat16>(1.0 + 1.0 / 256)), 1.0f);  // ties to even
  EXPECT_TRUE(std::isnan(static_cast<float>(convert<BFloat16>(std::nanf("")))));
}

TEST(Copy, Permutations) {
  for (DType dtype : {DType::kUInt8, DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    Tensor base = counting(Dims{17, 33, 40}, dtype);
    for (auto order :
         {std::initializer_list<size_t>{0, 2, 1}, {2, 1, 0}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}}) {
      Tensor src = permuted(base, order);
      expect_equal(src.clone(), src);
      Tensor dst = permuted(Tensor::empty(base.sizes(), dtype), order);
      copy_into(dst, src);
      expect_equal(dst, src);
    }
  }
}

TEST(Copy, LargeEnoughForSeveralThreads) {
  Tensor big = counting(Dims{700, 501}, DType::kInt32);
  expect_equal(permuted(big, {1, 0}).clone(), permuted(big, {1, 0}));
  Tensor wide = Tensor::empty(Dims{2, 100000}, DType::kFloat32);
  Tensor row = counting(Dims{100000}, DType::kFloat64);
  copy_into(wide, row);
  expect_equal(wide, broadcast_to(row, wide.sizes()));
  Tensor every_other = wide.as_strided(Dims{2, 50000}, Dims{100000, 2}, 1);
  expect_equal(every_other.clone(), every_other);
}

TEST(Copy, BroadcastsAndRefuses) {
  Tensor dst = Tensor::empty(Dims{3, 4}, DType::kFloat32), row = counting(Dims{4}, DType::kInt64);
  copy_into(dst, row);
  expect_equal(dst, broadcast_to(row, Dims{3, 4}));
  EXPECT_THROW(copy_into(dst, counting(Dims{5}, DType::kFloat32)), Error);
  try {
    copy_into(dst, counting(Dims{2, 3, 4}, DType::kFloat32));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "output with shape [3, 4] doesn't match the broadcast shape [2, 3, 4]");
  }
  EXPECT_THROW(copy_into(broadcast_to(row, Dims{3, 4}), dst), Error);  // one place, several values
}

TEST(Copy, OverlapsAsIfCopiedFirst) {
  Tensor line = counting(Dims{10}, DType::kInt64);
  copy_into(line.as_strided(Dims{9}, Dims{1}, 1), line.as_strided(Dims{9}, Dims{1}, 0));
  for (int64_t i = 1; i < 10; ++i) EXPECT_EQ(line.data<int64_t>()[i], i - 1);
  Tensor square = counting(Dims{20, 20}, DType::kInt64), before = square.clone();
  copy_into(square, permuted(square, {1, 0}));
  expect_equal(square, permuted(before, {1, 0}));
}

TEST(Copy, FillsViews) {
  Tensor t = Tensor::empty(Dims{4, 6}, DType::kFloat16);
  fill(t, 0.0);
  fill(t.as_strided(Dims{4}, Dims{6}, 2), 1.5);
  for (int64_t i = 0; i < 4; ++i)
    for (int64_t j = 0; j < 6; ++j) EXPECT_EQ(at(t, Dims{i, j}), j == 2 ? 1.5 : 0.0);
  Tensor empty = Tensor::empty(Dims{0, 3}, DType::kInt8);
  fill(empty, int64_t{1});
  expect_equal(empty.clone(), empty);
}

}  // namespace
}  // namespace prong
