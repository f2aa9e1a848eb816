// Packed products on every kernel that this machine has, against plain loops in double.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "ops/blas/packed.h"
#include "runtime/parallel.h"

namespace prong::blas {
namespace {

std::vector<float> random_floats(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    value = static_cast<float>(static_cast<int32_t>(random())) * 0x1p-31f;
  }
  return values;
}

std::vector<const PanelKernels*> all_kernels() {
  std::vector<const PanelKernels*> kernels{&exact_kernels()};
#if defined(__x86_64__)
  kernels.push_back(&v3::fma_kernels());
#endif
  if (split_kernels()) kernels.push_back(split_kernels());
  return kernels;
}

// Rows x columns of `kernels`' result with a margin around, against double; returns the largest
// error.
double run(const PanelKernels& kernels, int64_t m, int64_t n, int64_t k, bool with_init) {
  int64_t lda = k + 1, ldc = n + 2;
  auto a = random_floats(m * lda, 1), b = random_floats(n * k, 2), init = random_floats(m * n, 3);
  PackedMatrix packed(true, k, n, b.data(), k);
  EXPECT_TRUE(packed.is_moderate());
  AlignedBuffer rows(static_cast<size_t>(kernels.rows_bytes(m, k)));
  EXPECT_TRUE(kernels.pack_rows(m, k, RowSource{a.data(), lda}, 0, rows.data()));
  std::vector<float> c(m * ldc, std::nanf(""));
  PanelProduct x{m,
                 k,
                 rows.data(),
                 packed.panel(0),
                 packed.panel_floats(),
                 n,
                 with_init ? init.data() : nullptr,
                 n,
                 c.data(),
                 ldc};
  kernels.multiply(x);
  double worst = 0;
  for (int64_t i = 0; i < m; ++i) {
    EXPECT_TRUE(std::isnan(c[i * ldc + n])) << "wrote past the columns";
    for (int64_t j = 0; j < n; ++j) {
      double sum = with_init ? init[i * n + j] : 0, size = std::fabs(sum) + 1;
      for (int64_t p = 0; p < k; ++p) {
        double term = static_cast<double>(a[i * lda + p]) * static_cast<double>(b[j * k + p]);
        sum += term;
        size += std::fabs(term);
      }
      double error = std::fabs(c[i * ldc + j] - sum) / size;
      if (!(error <= worst)) worst = error;
    }
  }
  return worst;
}

TEST(Packed, EveryKernelEverySize) {
  const int64_t sizes[][3] = {{1, 1, 1},       {1, 32, 32},   {7, 33, 31},   {16, 64, 64},
                              {17, 31, 33},    {50, 96, 300}, {33, 40, 257}, {64, 65, 513},
                              {128, 32, 1030}, {3, 5, 0}};
  for (const PanelKernels* kernels : all_kernels()) {
    for (auto& s : sizes) {
      for (bool with_init : {false, true}) {
        // A few roundings of the sum of absolute values: float's own accuracy.
        EXPECT_LT(run(*kernels, s[0], s[1], s[2], with_init), 4e-7)
            << kernels->name << " " << s[0] << "x" << s[1] << "x" << s[2] << " init " << with_init;
      }
    }
  }
}

TEST(Packed, SplitKernelIsAsAccurateAsFloat) {
  if (!split_kernels()) GTEST_SKIP() << "this machine has no bfloat16 matrix unit";
  double exact = run(exact_kernels(), 64, 64, 1024, false);
  double split = run(*split_kernels(), 64, 64, 1024, false);
  EXPECT_LT(split, 2 * exact + 1e-8);
}

TEST(Packed, ProductsThatFitAFloatAreExact) {
  // Integers up to 2^11 each: sums below 2^24 are exact in float and must be so on every kernel.
  int64_t m = 20, n = 40, k = 4;
  std::vector<float> a(m * k), b(n * k);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>((i * 977) % 2048);
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>((i * 331) % 1024);
  PackedMatrix packed(true, k, n, b.data(), k);
  for (const PanelKernels* kernels : all_kernels()) {
    AlignedBuffer rows(static_cast<size_t>(kernels->rows_bytes(m, k)));
    ASSERT_TRUE(kernels->pack_rows(m, k, RowSource{a.data(), k}, 0, rows.data()));
    std::vector<float> c(m * n);
    kernels->multiply(
        {m, k, rows.data(), packed.panel(0), packed.panel_floats(), n, nullptr, 0, c.data(), n});
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < k; ++p) sum += a[i * k + p] * b[j * k + p];
        ASSERT_EQ(c[i * n + j], sum) << kernels->name;
      }
    }
  }
}

void check_gemm(int64_t m, int64_t n, int64_t k, bool transposed) {
  auto a = random_floats(m * k, 4), b = random_floats(n * k, 5), bias = random_floats(n, 6);
  PackedMatrix packed(transposed, k, n, b.data(), transposed ? k : n);
  for (int start = 0; start < 3; ++start) {
    std::vector<float> c(m * n, start == 2 ? 1.5f : std::nanf(""));
    gemm_packed(m, a.data(), k, packed, {start == 1 ? bias.data() : nullptr, start == 2}, c.data(),
                n);
    for (int64_t i = 0; i < m; i += 3) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = start == 1 ? bias[j] : start == 2 ? 1.5 : 0;
        for (int64_t p = 0; p < k; ++p) {
          sum += static_cast<double>(a[i * k + p]) * (transposed ? b[j * k + p] : b[p * n + j]);
        }
        ASSERT_NEAR(c[i * n + j], sum, 1e-5 * std::sqrt(k + 1)) << i << "," << j;
      }
    }
  }
}

TEST(Packed, GemmOverThePool) {
  check_gemm(50, 200, 100, true);
  check_gemm(50, 200, 100, false);
  check_gemm(300, 70, 40, true);
  check_gemm(1, 33, 1100, true);
  check_gemm(130, 64, 2100, false);
  check_gemm(0, 5, 5, true);
  check_gemm(5, 0, 5, true);
  check_gemm(5, 5, 0, true);
}

TEST(Packed, SameBitsForAnyNumberOfThreads) {
  int threads = num_threads();
  int64_t m = 300, n = 500, k = 1100;
  auto a = random_floats(m * k, 4), b = random_floats(n * k, 5);
  a[140 * k] = 1e30f;  // one block of rows falls back to the exact kernel
  PackedMatrix packed(true, k, n, b.data(), k);
  std::vector<float> c1(m * n), c4(m * n);
  set_num_threads(1);
  gemm_packed(m, a.data(), k, packed, {}, c1.data(), n);
  set_num_threads(4);
  gemm_packed(m, a.data(), k, packed, {}, c4.data(), n);
  set_num_threads(threads);
  EXPECT_EQ(std::memcmp(c1.data(), c4.data(), c1.size() * sizeof(float)), 0);
}

TEST(Packed, InfinityNanAndTinyNumbersAreRespected) {
  int64_t m = 20, n = 40, k = 50;
  const float infinity = std::numeric_limits<float>::infinity();
  for (float odd : {infinity, std::nanf(""), 1e-39f, 3e38f}) {
    std::vector<float> a(m * k, 1.0f), b(n * k, 0.0f), c(m * n);
    for (int64_t j = 0; j < n; ++j) b[j * k + 3] = 1.0f;
    for (int64_t p = 0; p < k; ++p) a[7 * k + p] = odd;
    PackedMatrix weights(true, k, n, b.data(), k);
    gemm_packed(m, a.data(), k, weights, {}, c.data(), n);
    EXPECT_EQ(c[6 * n + 1], 1.0f);
    if (std::isfinite(odd)) {
      EXPECT_EQ(c[7 * n + 1], odd);
    } else {
      EXPECT_TRUE(std::isnan(c[7 * n + 1]));  // infinity times zero, and NaN
    }
    // The same number in the packed matrix.
    for (int64_t p = 0; p < k; ++p) b[5 * k + p] = odd;
    std::fill(a.begin(), a.end(), 0.0f);
    for (int64_t i = 0; i < m; ++i) a[i * k + 9] = 1.0f;
    PackedMatrix odd_weights(true, k, n, b.data(), k);
    EXPECT_FALSE(odd_weights.is_moderate());
    gemm_packed(m, a.data(), k, odd_weights, {}, c.data(), n);
    EXPECT_EQ(c[2 * n + 4], 0.0f);
    if (std::isfinite(odd)) {
      EXPECT_EQ(c[2 * n + 5], odd);
    }
  }
}

TEST(Packed, InterleavedGates) {
  int64_t groups = 3, n = 40, k = 9;
  auto b = random_floats(groups * n * k, 8);
  PackedMatrix packed = PackedMatrix::interleaved(groups, k, n, b.data(), k);
  EXPECT_EQ(packed.n(), groups * 64);
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t j = 0; j < 64; ++j) {
      const float* panel = packed.panel(j / 32 * groups + g);
      for (int64_t p = 0; p < k; ++p) {
        EXPECT_EQ(panel[p * 32 + j % 32], j < n ? b[(g * n + j) * k + p] : 0.0f);
      }
    }
  }
}

}  // namespace
}  // namespace prong::blas
