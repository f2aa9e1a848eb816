// Products of every kind against plain loops: transposes, strides, zero sizes, NaN in what is not
// read.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "ops/blas/gemm.h"
#include "runtime/parallel.h"

namespace prong::blas {
namespace {

template <class T>
std::vector<T> random_values(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(random() % 2001) / 1000 - 1;
  return values;
}

// A product with rows `pad` elements apart more than needed, and what it must be.
template <class T>
struct Case {
  int64_t m, n, k, lda, ldb, ldc;
  bool trans_a, trans_b;
  std::vector<T> a, b, c;

  Case(bool ta, bool tb, int64_t m, int64_t n, int64_t k, int64_t pad = 3)
      : m(m), n(n), k(k), lda((ta ? m : k) + pad), ldb((tb ? k : n) + pad), ldc(n + pad),
        trans_a(ta), trans_b(tb), a(random_values<T>((ta ? k : m) * lda + 1, 1)),
        b(random_values<T>((tb ? n : k) * ldb + 1, 2)), c(random_values<T>(m * ldc + 1, 3)) {}

  double exact(int64_t i, int64_t j) const {
    double sum = 0;
    for (int64_t p = 0; p < k; ++p) {
      sum += static_cast<double>(trans_a ? a[p * lda + i] : a[i * lda + p]) *
             static_cast<double>(trans_b ? b[j * ldb + p] : b[p * ldb + j]);
    }
    return sum;
  }
};

template <class T>
void check(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, T alpha, T beta) {
  Case<T> x(trans_a, trans_b, m, n, k);
  std::vector<T> before = x.c;
  gemm(trans_a, trans_b, m, n, k, alpha, x.a.data(), x.lda, x.b.data(), x.ldb, beta, x.c.data(),
       x.ldc);
  double tolerance = std::numeric_limits<T>::epsilon() * (k + 4) * 2;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < x.ldc; ++j) {
      double old = before[i * x.ldc + j];
      double expected = j < n ? alpha * x.exact(i, j) + beta * old : old;
      ASSERT_NEAR(x.c[i * x.ldc + j], expected, tolerance)
          << m << "x" << n << "x" << k << (trans_a ? " ta" : "") << (trans_b ? " tb" : "") << " at "
          << i << "," << j;
    }
  }
}

template <class T>
void check_sizes() {
  const int64_t sizes[][3] = {{1, 1, 1},    {3, 5, 7},   {64, 64, 64}, {1, 100, 33},
                              {100, 1, 33}, {17, 31, 1}, {50, 130, 7}, {129, 65, 200}};
  for (auto& s : sizes) {
    for (int transposes = 0; transposes < 4; ++transposes) {
      bool ta = transposes & 1, tb = transposes & 2;
      check<T>(ta, tb, s[0], s[1], s[2], T(1), T(0));
      check<T>(ta, tb, s[0], s[1], s[2], T(0.5), T(1));
      check<T>(ta, tb, s[0], s[1], s[2], T(-2), T(0.25));
    }
  }
}

TEST(Gemm, FloatAgainstLoops) { check_sizes<float>(); }
TEST(Gemm, DoubleAgainstLoops) { check_sizes<double>(); }

TEST(Gemm, BigEnoughForManyTiles) {
  check<float>(false, true, 300, 700, 90, 1.0f, 1.0f);
  check<double>(true, false, 300, 700, 90, 1.0, 0.0);
  check<float>(true, false, 270, 130, 70, 2.0f, 0.5f);
  check<float>(true, true, 40, 100, 1100, 1.0f, 0.0f);
  check<float>(false, false, 33, 9000, 60, -1.0f, 1.0f);  // several stretches of columns
}

TEST(Gemm, ThinProducts) {
  for (int transposes = 0; transposes < 4; ++transposes) {
    bool ta = transposes & 1, tb = transposes & 2;
    for (int64_t thin : {1, 2, 5, 24}) {
      check<float>(ta, tb, thin, 203, 101, 1.0f, 0.0f);
      check<float>(ta, tb, 203, thin, 101, -0.5f, 1.0f);
      check<float>(ta, tb, thin, 64, 1024, 1.0f, 2.0f);
      check<float>(ta, tb, 3000, thin, 37, 1.0f, 0.0f);
    }
  }
}

TEST(Gemm, ZeroSizes) {
  float a[4] = {1, 2, 3, 4}, b[4] = {1, 2, 3, 4}, c[4] = {5, 6, 7, 8};
  gemm(false, false, 0, 2, 2, 1.0f, a, 2, b, 2, 0.0f, c, 2);
  gemm(false, false, 2, 0, 2, 1.0f, a, 2, b, 2, 0.0f, c, 2);
  EXPECT_EQ(c[0], 5);
  gemm(false, false, 2, 2, 0, 1.0f, a, 2, b, 2, 0.5f, c, 2);
  EXPECT_EQ(c[3], 4);
  c[1] = std::nanf("");
  gemm(false, false, 2, 2, 0, 1.0f, a, 2, b, 2, 0.0f, c, 2);
  EXPECT_EQ(c[1], 0);
}

TEST(Gemm, NanInUnreadResultDoesNotSpread) {
  for (int64_t size : {1, 5, 40, 300}) {
    std::vector<float> a(size * size, 1), c(size * size, std::nanf(""));
    gemm(false, false, size, size, size, 1.0f, a.data(), size, a.data(), size, 0.0f, c.data(),
         size);
    for (float value : c) ASSERT_EQ(value, static_cast<float>(size));
  }
}

TEST(Gemm, NanAndInfinityOfTheInputsArrive) {
  int64_t n = 40;
  std::vector<float> a(n * n, 1), b(n * n, 0), c(n * n);
  a[3 * n + 4] = std::numeric_limits<float>::infinity();
  a[7 * n + 1] = std::nanf("");
  b[4 * n + 2] = 1;
  gemm(false, false, n, n, n, 1.0f, a.data(), n, b.data(), n, 0.0f, c.data(), n);
  EXPECT_EQ(c[3 * n + 2], std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(c[3 * n + 0]));  // infinity times zero
  EXPECT_TRUE(std::isnan(c[7 * n + 5]));
  EXPECT_EQ(c[0], 0);
}

TEST(Gemm, SameBitsForAnyNumberOfThreads) {
  int threads = num_threads();
  for (bool tb : {false, true}) {
    Case<float> x(false, tb, 333, 450, 257), y = x;
    set_num_threads(1);
    gemm(false, tb, x.m, x.n, x.k, 1.0f, x.a.data(), x.lda, x.b.data(), x.ldb, 0.0f, x.c.data(),
         x.ldc);
    set_num_threads(4);
    gemm(false, tb, x.m, x.n, x.k, 1.0f, x.a.data(), x.lda, x.b.data(), x.ldb, 0.0f, y.c.data(),
         x.ldc);
    EXPECT_EQ(std::memcmp(x.c.data(), y.c.data(), x.c.size() * sizeof(float)), 0);
  }
  set_num_threads(threads);
}

TEST(Gemm, DotOfStridedVectors) {
  auto x = random_values<double>(300, 4), y = random_values<double>(300, 5);
  double sum = -1, expected = 0;
  gemm(true, false, 1, 1, 100, 1.0, x.data(), 3, y.data(), 2, 0.0, &sum, 1);
  for (int i = 0; i < 100; ++i) expected += x[3 * i] * y[2 * i];
  EXPECT_NEAR(sum, expected, 1e-13);
}

TEST(Gemm, BatchedWithOffsets) {
  for (int64_t size : {4, 20, 60, 90}) {
    Case<float> x(false, true, size, size + 1, size + 2, 0);
    int64_t count = 6, area_c = x.m * x.ldc;
    auto a = random_values<float>(count * x.m * x.lda, 7);
    std::vector<float> c(count * area_c, std::nanf(""));
    std::vector<int64_t> offsets_a, offsets_c;
    for (int64_t i = 0; i < count; ++i) {
      offsets_a.push_back((count - 1 - i) * x.m * x.lda);
      offsets_c.push_back(i * area_c);
    }
    gemm_batched(false, true, count, x.m, x.n, x.k, 1.0f, a.data(), offsets_a.data(), x.lda,
                 x.b.data(), nullptr, x.ldb, 0.0f, c.data(), offsets_c.data(), x.ldc);
    for (int64_t i = 0; i < count; ++i) {
      std::copy_n(a.data() + offsets_a[i], x.m * x.lda, x.a.data());
      for (int64_t r = 0; r < x.m; ++r) {
        for (int64_t s = 0; s < x.n; ++s) {
          ASSERT_NEAR(c[offsets_c[i] + r * x.ldc + s], x.exact(r, s), 1e-4);
        }
      }
    }
  }
}

TEST(Gemm, GenericTypes) {
  // Unsigned sums wrap, as PyTorch's integers do.
  uint8_t a[2] = {200, 3}, b[2] = {2, 5}, c = 77;
  gemm_generic<uint8_t, uint32_t>(1, 1, 2, 1, a, 2, 1, b, 1, 1, 0, &c, 1, 1);
  EXPECT_EQ(c, static_cast<uint8_t>(415));
  // Strides of both kinds, wider than one stretch of columns.
  int64_t m = 5, n = 300, k = 9;
  std::vector<int64_t> x(m * k), y(k * n * 2), z(n * m);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<int64_t>(i) - 20;
  for (size_t i = 0; i < y.size(); ++i) y[i] = static_cast<int64_t>(i % 13);
  gemm_generic<int64_t, int64_t>(m, n, k, 2, x.data(), 1, m, y.data(), 2 * n, 2, 0, z.data(), 1, m);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      int64_t sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += x[i + p * m] * y[p * 2 * n + 2 * j];
      ASSERT_EQ(z[i + j * m], 2 * sum);
    }
  }
}

}  // namespace
}  // namespace prong::blas
