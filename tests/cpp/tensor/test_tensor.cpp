// Tensors as views: shapes, strides, range checks and their messages, broadcasting, result types.
#include <gtest/gtest.h>

#include "tensor/tensor.h"

namespace prong {
namespace {

std::string message_of(auto&& f, ErrorKind kind = ErrorKind::kRuntime) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.message();
    return e.message();
  }
  return "no error";
}

TEST(Tensor, EmptyIsContiguous) {
  Tensor t = Tensor::empty(Dims{2, 3, 4}, DType::kInt16);
  EXPECT_EQ(t.strides(), (Dims{12, 4, 1}));
  EXPECT_EQ(t.numel(), 24);
  EXPECT_TRUE(t.is_contiguous());
  EXPECT_EQ(Tensor::empty(Dims{2, 0, 3}, DType::kBool).strides(), (Dims{3, 3, 1}));
  EXPECT_EQ(Tensor::empty({}, DType::kBool).numel(), 1);
}

TEST(Tensor, BadSizesAreRefused) {
  EXPECT_EQ(message_of([] {
              Tensor::empty(Dims{2, -1}, DType::kBool);
            }),
            "Trying to create tensor with negative dimension -1: [2, -1]");
  EXPECT_EQ(
      message_of([] {
        Tensor::empty(Dims{int64_t{1} << 62, int64_t{1} << 62}, DType::kFloat32);
      }),
      "Storage size calculation overflowed with sizes=[4611686018427387904, 4611686018427387904]");
}

TEST(Tensor, ViewsStayInsideTheirStorage) {
  Tensor t = Tensor::empty(Dims{2, 3}, DType::kFloat32);
  EXPECT_EQ(message_of([&] { t.as_strided(Dims{5}, Dims{4}, 0); }),
            "setStorage: sizes [5], strides [4], storage offset 0, and itemsize 4 requiring a "
            "storage size of 68 are "
            "out of bounds for storage of size 24");
  EXPECT_EQ(message_of([&] { t.as_strided(Dims{5}, Dims{-1}, 0); }),
            "as_strided: Negative strides are not supported at the moment, got strides: [-1]");
  EXPECT_EQ(message_of([&] { t.as_strided(Dims{5}, Dims{1}, -3); }),
            "Tensor: invalid storage offset -3");
  EXPECT_EQ(message_of([&] {
              t.as_strided(Dims{5, 2}, Dims{1}, 0);
            }),
            "mismatch in length of strides and shape");
  Tensor column = t.as_strided(Dims{2}, Dims{3}, 2);
  EXPECT_FALSE(column.is_contiguous());
  EXPECT_TRUE(t.as_strided(Dims{1, 3}, Dims{77, 1}, 3).is_contiguous());
}

TEST(Tensor, VersionsAreSharedByViews) {
  Tensor t = Tensor::empty(Dims{4}, DType::kFloat32), view = t.as_strided(Dims{2}, Dims{2}, 0);
  view.bump_version();
  EXPECT_EQ(t.version(), 1u);
}

TEST(Tensor, Items) {
  EXPECT_EQ(Tensor::wrapped(2.5).item_double(), 2.5);
  EXPECT_EQ(Tensor::wrapped(int64_t{-3}).item_int(), -3);
  EXPECT_EQ(Tensor::wrapped(true).item_int(), 1);
  EXPECT_EQ(message_of([] { Tensor::empty(Dims{2}, DType::kFloat32).item_double(); }),
            "a Tensor with 2 elements cannot be converted to Scalar");
}

TEST(Tensor, DimensionsWrap) {
  EXPECT_EQ(wrap_dim(-1, 3), 2);
  EXPECT_EQ(wrap_dim(-1, 0), 0);
  EXPECT_EQ(message_of([] { wrap_dim(3, 2); }, ErrorKind::kIndex),
            "Dimension out of range (expected to be in range of [-2, 1], but got 3)");
  EXPECT_EQ(message_of([] { Tensor::wrapped(1.0).size(0); }, ErrorKind::kIndex),
            "Dimension specified as 0 but tensor has no dimensions");
}

TEST(Tensor, Broadcasting) {
  EXPECT_EQ(broadcast_shapes(Dims{3, 1}, Dims{2, 1, 4}), (Dims{2, 3, 4}));
  EXPECT_EQ(broadcast_shapes(Dims{0}, Dims{1}), (Dims{0}));
  EXPECT_EQ(
      message_of([] {
        broadcast_shapes(Dims{2, 3}, Dims{2, 4});
      }),
      "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1");
  Tensor t = Tensor::empty(Dims{2, 1}, DType::kFloat32);
  EXPECT_EQ(broadcast_to(t, Dims{5, 2, 3}).strides(), (Dims{0, 1, 0}));
  EXPECT_EQ(message_of([&] {
              broadcast_to(t, Dims{4, 3});
            }),
            "The expanded size of the tensor (4) must match the existing size (2) at non-singleton "
            "dimension 0.  "
            "Target sizes: [4, 3].  Tensor sizes: [2, 1]");
}

DType result(std::initializer_list<TensorMeta> operands) {
  ResultType r;
  for (const TensorMeta& m : operands) r.add(m);
  return r.get();
}

TEST(Tensor, ResultTypes) {
  const auto dimensioned = [](DType d) { return TensorMeta{Dims{2}, d, false}; };
  const auto zero_dim = [](DType d) { return TensorMeta{Dims{}, d, false}; };
  const auto number = [](DType d) { return TensorMeta{Dims{}, d, true}; };
  using enum DType;
  EXPECT_EQ(result({dimensioned(kUInt8), dimensioned(kInt8)}), kInt16);
  EXPECT_EQ(result({dimensioned(kFloat16), dimensioned(kBFloat16)}), kFloat32);
  EXPECT_EQ(result({dimensioned(kFloat16), zero_dim(kFloat64)}), kFloat16);
  EXPECT_EQ(result({dimensioned(kInt32), zero_dim(kInt64)}), kInt32);
  EXPECT_EQ(result({dimensioned(kInt32), zero_dim(kFloat64)}), kFloat64);
  EXPECT_EQ(result({dimensioned(kInt32), number(kFloat64)}), kFloat32);
  EXPECT_EQ(result({dimensioned(kBool), number(kInt64)}), kInt64);
  EXPECT_EQ(result({zero_dim(kInt8), number(kInt64)}), kInt8);
  EXPECT_EQ(result({zero_dim(kFloat64), number(kFloat64)}), kFloat64);
  EXPECT_EQ(result({number(kFloat64), number(kInt64)}), kFloat32);
  EXPECT_EQ(result({dimensioned(kBFloat16), number(kFloat64)}), kBFloat16);
}

}  // namespace
}  // namespace prong
