// Reductions: right in every layout, the same bits at any number of threads, PyTorch's rules for
// NaN and empty tensors.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "ops/op_def.h"
#include "runtime/parallel.h"

namespace prong {
namespace {

Tensor wave(DimsView sizes, DType dtype = DType::kFloat32) {
  const Tensor t = Tensor::empty(sizes, DType::kFloat32);
  for (int64_t i = 0; i < t.numel(); ++i)
    t.data<float>()[i] = std::sin(static_cast<float>(i) * 0.7f) * 3 + 0.125f;
  return t.to(dtype);
}
double at(const Tensor& t, int64_t i) {
  return t.contiguous().to(DType::kFloat64).data<double>()[i];
}
std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.message();
  }
  return "";
}

// Sums over each dim of a [3, 70, 130] tensor, its views, against a plain loop.
TEST(Reduce, SumsOverAnyDim) {
  const Tensor x = wave({{3, 70, 130}});
  for (const Tensor& t : {x, x.as_strided({{130, 70, 3}}, {{1, 130, 9100}}, 0),
                          x.as_strided({{3, 35, 65}}, {{9100, 260, 2}}, 1)})
    for (int64_t dim = 0; dim < 3; ++dim) {
      const Tensor sum = call_tensor("sum", t, dim), d = t.clone();
      const int64_t inner = dim == 2   ? 1
                            : dim == 1 ? d.size(2)
                                       : d.size(1) * d.size(2),
                    length = d.size(dim);
      for (int64_t o = 0; o < d.numel() / length / inner; ++o)
        for (int64_t c = 0; c < inner; ++c) {
          double expected = 0;
          for (int64_t i = 0; i < length; ++i)
            expected += static_cast<double>(d.data<float>()[(o * length + i) * inner + c]);
          ASSERT_NEAR(at(sum, o * inner + c), expected, 1e-4);
        }
    }
}

TEST(Reduce, SameBitsAtAnyNumberOfThreads) {
  const Tensor x = wave({{1000003}}), y = wave({{700, 900}});
  const int before = num_threads();
  std::vector<double> results[2];
  for (int threads : {1, 4}) {
    set_num_threads(threads);
    auto& r = results[threads == 4];
    r.push_back(at(call_tensor("sum", x), 0));
    r.push_back(at(call_tensor("var", x), 0));
    r.push_back(at(call_tensor("norm", y, 3), 0));
    for (int64_t dim : {0, 1})
      for (int64_t i : {0, 17, 600}) r.push_back(at(call_tensor("mean", y, dim), i));
    r.push_back(at(call_tensor("softmax", y, int64_t{0}), 12345));
  }
  set_num_threads(before);
  EXPECT_EQ(results[0], results[1]);
}

TEST(Reduce, SumOfManyIsAccurate) {
  const Tensor t = Tensor::empty({{10000000}}, DType::kFloat32);
  fill(t, 0.1);
  EXPECT_NEAR(at(call_tensor("sum", t), 0), 1000000.0149,
              0.4);  // PyTorch: 999999.5625; added one by one: 1087937
}

TEST(Reduce, ExtremesKnowNaNAndTies) {
  Tensor x = wave({{5, 200}});
  x.data<float>()[200 + 7] = NAN;
  x.data<float>()[400 + 9] = x.data<float>()[400 + 150] = 99;
  const IValue both = call("max.dim", x, int64_t{1});
  EXPECT_TRUE(std::isnan(at(both.items()[0].to_tensor(), 1)));
  EXPECT_EQ(at(both.items()[1].to_tensor(), 1), 7);
  EXPECT_EQ(at(both.items()[1].to_tensor(), 2), 9);
  EXPECT_TRUE(std::isnan(at(call_tensor("amin", x), 0)));
  EXPECT_EQ(at(call_tensor("argmax", x.as_strided({{200, 5}}, {{1, 200}}, 0), int64_t{0}), 2), 9);
}

TEST(Reduce, DtypesAsInPyTorch) {
  const Tensor n = wave({{6}}, DType::kInt32), flags = wave({{6}}, DType::kBool),
               h = wave({{6}}, DType::kFloat16);
  EXPECT_EQ(call_tensor("sum", n).dtype(), DType::kInt64);
  EXPECT_EQ(call_tensor("sum", flags).dtype(), DType::kInt64);
  EXPECT_EQ(call_tensor("sum", h).dtype(), DType::kFloat16);
  EXPECT_EQ(call_tensor("max", n).dtype(), DType::kInt32);
  EXPECT_EQ(call_tensor("any", n).dtype(), DType::kBool);
  EXPECT_EQ(message_of([&] { call("mean", n); }),
            "mean(): could not infer output dtype. Input dtype must be either a floating point or "
            "complex dtype. Got: Int");
}

TEST(Reduce, EmptyTensors) {
  const Tensor none = wave({{0, 3}});
  EXPECT_EQ(at(call_tensor("sum", none), 0), 0);
  EXPECT_EQ(at(call_tensor("prod", none), 0), 1);
  EXPECT_TRUE(std::isnan(at(call_tensor("mean", none), 0)));
  EXPECT_EQ(call_tensor("sum", none, int64_t{0}).sizes(), (Dims{3}));
  EXPECT_EQ(at(call_tensor("all", none), 0), 1);
  EXPECT_EQ(message_of([&] { call("max", none); }),
            "max(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
            "reduction dim with the 'dim' "
            "argument.");
  EXPECT_EQ(message_of([&] { call("amax", none, int64_t{0}); }),
            "amax(): Expected reduction dim 0 to have non-zero size.");
}

}  // namespace
}  // namespace prong
