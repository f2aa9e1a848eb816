// Distributions; see distributions.h. Compiled at -O3: blocks of normals become SIMD.
#include "ops/kernels/distributions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <type_traits>
#include <vector>

#include "ops/scalar_math.h"
#include "tensor/convert.h"
#include "tensor/strided.h"

namespace prong {

namespace {

// x's elements in the order in which they lie in memory: f(element pointer, n, stride).
template <class T, class F>
void for_memory_order(const Tensor& x, F&& f) {
  if (x.numel() == 0) return;
  const StridedLoop<1> loop(x.sizes(), {&x.strides()});
  T* data = x.data<T>();
  loop.for_rows(0, loop.rows(), [&](const std::array<int64_t, 1>& at) {
    f(data + at[0], loop.row_length(), loop.strides[0].back());
  });
}

constexpr int64_t kChunk = 512;

// Every element becomes draw(), converted from what that gives; in chunks, so that one loop serves
// all types.
template <class Draw>
void fill_each(const Tensor& x, Generator& g, Draw&& draw) {
  if (x.numel() == 0) return;
  std::lock_guard lock(g.mutex());
  using C = decltype(draw());
  const RowFn convert_row = row_converter(x.dtype(), DTypeOf<C>::value);
  const StridedLoop<1> loop(x.sizes(), {&x.strides()});
  const int64_t bytes = static_cast<int64_t>(x.item_bytes()), stride = loop.strides[0].back();
  char* data = static_cast<char*>(x.raw());
  C drawn[kChunk];
  loop.for_rows(0, loop.rows(), [&](const std::array<int64_t, 1>& at) {
    for (int64_t done = 0; done < loop.row_length(); done += kChunk) {
      const int64_t m = std::min(kChunk, loop.row_length() - done);
      for (int64_t i = 0; i < m; ++i) drawn[i] = draw();
      convert_row(data + (at[0] + done * stride) * bytes, stride, drawn, 1, m);
    }
  });
}

// Floats of [0, 1), chunk by chunk: f(values, how many).
template <class F>
void for_uniform_chunks(Generator& g, int64_t n, F&& f) {
  uint32_t words[kChunk];
  float values[kChunk];
  for (int64_t done = 0; done < n; done += kChunk) {
    const int64_t m = std::min(kChunk, n - done);
    g.random_words(words, m);
    for (int64_t i = 0; i < m; ++i)
      values[i] = static_cast<float>(static_cast<int32_t>(words[i] & ((1u << 24) - 1))) * 0x1p-24f;
    f(values, done, m);
  }
}

// Sixteen normals from sixteen uniforms, in place: element j and j + 8 are one pair.
template <class C>
void box_muller(C* u, C mean, C deviation) {
  for (int j = 0; j < 8; ++j) {
    const C radius = std::sqrt(C(-2) * math::log(C(1) - u[j]));
    const C theta = static_cast<C>(2 * std::numbers::pi * static_cast<double>(u[j + 8]));
    u[j] = std::fma(radius * math::cos(theta), deviation, mean);
    u[j + 8] = std::fma(radius * math::sin(theta), deviation, mean);
  }
}

template <class C>
void draw_uniform(Generator& g, C* out, int64_t n) {
  if constexpr (std::is_same_v<C, float>)
    for_uniform_chunks(
        g, n, [&](const float* u, int64_t at, int64_t m) { std::copy(u, u + m, out + at); });
  else
    for (int64_t i = 0; i < n; ++i) out[i] = g.uniform();
}

// All uniforms first, then blocks of sixteen; a rest is made by drawing the last sixteen anew.
template <class C>
void fill_normal_blocks(C* data, int64_t n, Generator& g, C mean, C deviation) {
  draw_uniform(g, data, n);
  parallel_for(0, n / 16, 256, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) box_muller(data + 16 * b, mean, deviation);
  });
  if (n % 16 == 0) return;
  draw_uniform(g, data + n - 16, 16);
  box_muller(data + n - 16, mean, deviation);
}

// The 16-bit types draw a block at a time, and the last one without the rest before it.
template <class T>
void fill_normal_small(T* data, int64_t n, Generator& g, float mean, float deviation) {
  float block[16];
  const auto fill_block = [&](T* to) {
    draw_uniform(g, block, 16);
    box_muller(block, mean, deviation);
    for (int j = 0; j < 16; ++j) to[j] = T(block[j]);
  };
  for (int64_t i = 0; i + 16 <= n; i += 16) fill_block(data + i);
  if (n % 16 != 0) fill_block(data + n - 16);
}

}  // namespace

void fill_uniform(const Tensor& x, Generator& g, double from, double to) {
  std::lock_guard lock(g.mutex());
  visit(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, double>) {
      for_memory_order<T>(x, [&](T* row, int64_t n, int64_t stride) {
        for (int64_t i = 0; i < n; ++i) row[i * stride] = std::fma(g.uniform(), to - from, from);
      });
    } else if constexpr (!std::is_integral_v<T>) {
      const float low = static_cast<float>(from), range = static_cast<float>(to) - low;
      const T first = T(low), last = T(static_cast<float>(to));
      for_memory_order<T>(x, [&](T* row, int64_t n, int64_t stride) {
        for_uniform_chunks(g, n, [&](const float* u, int64_t at, int64_t m) {
          T* out = row + at * stride;
          for (int64_t i = 0; i < m; ++i) {
            const T y = T(std::fma(u[i], range, low));
            // Rounding to 16 bits may reach the end, which the range leaves out.
            if constexpr (std::is_same_v<T, float>)
              out[i * stride] = y;
            else
              out[i * stride] = static_cast<float>(y) == static_cast<float>(last) ? first : y;
          }
        });
      });
    }
  });
}

void fill_normal(const Tensor& x, Generator& g, double mean, double deviation) {
  if (x.numel() < 16 || !x.is_contiguous())
    return fill_each(x, g, [&] { return g.normal() * deviation + mean; });
  std::lock_guard lock(g.mutex());
  const int64_t n = x.numel();
  const float mean_f = static_cast<float>(mean), deviation_f = static_cast<float>(deviation);
  switch (x.dtype()) {
  case DType::kFloat64:
    return fill_normal_blocks(x.data<double>(), n, g, mean, deviation);
  case DType::kFloat32:
    return fill_normal_blocks(x.data<float>(), n, g, mean_f, deviation_f);
  case DType::kFloat16:
    return fill_normal_small(x.data<Half>(), n, g, mean_f, deviation_f);
  default:
    return fill_normal_small(x.data<BFloat16>(), n, g, mean_f, deviation_f);
  }
}

void fill_bernoulli(const Tensor& x, Generator& g, double p) {
  fill_each(x, g, [&] { return g.uniform() < p; });
}

void fill_bernoulli(const Tensor& x, Generator& g, const Tensor& given) {
  const Tensor p = given.to(DType::kFloat64).contiguous();
  const bool is_double = given.dtype() == DType::kFloat64;
  const StridedLoop<2> loop(x.sizes(), {&x.strides(), &p.strides()});
  if (x.numel() == 0) return;
  const double* chances = p.data<double>();
  std::lock_guard lock(g.mutex());
  visit(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* data = x.data<T>();
    loop.for_rows(0, loop.rows(), [&](const std::array<int64_t, 2>& at) {
      for (int64_t i = 0; i < loop.row_length(); ++i) {
        const double chance = chances[at[1] + i * loop.strides[1].back()];
        PRONG_CHECK(chance >= 0 && chance <= 1, kRuntime,
                    "bernoulli expects probabilities in [0, 1], but got ", chance);
        const double u = is_double ? g.uniform() : static_cast<double>(g.uniform_float());
        data[at[0] + i * loop.strides[0].back()] = convert<T>(u < chance);
      }
    });
  });
}

void fill_exponential(const Tensor& x, Generator& g, double rate) {
  fill_each(x, g, [&] { return -1.0 / rate * std::log1p(-g.uniform()); });
}
void fill_log_normal(const Tensor& x, Generator& g, double mean, double deviation) {
  fill_each(x, g, [&] { return std::exp(g.normal() * deviation + mean); });
}
void fill_cauchy(const Tensor& x, Generator& g, double median, double sigma) {
  fill_each(x, g,
            [&] { return median + sigma * std::tan(std::numbers::pi * (g.uniform() - 0.5)); });
}
void fill_geometric(const Tensor& x, Generator& g, double p) {
  fill_each(x, g, [&] { return std::ceil(std::log(g.uniform()) / std::log1p(-p)); });
}

void fill_integers(const Tensor& x, Generator& g, int64_t low, uint64_t range) {
  // Below this a word of 32 bits is even enough.
  const bool is_wide = range == 0 || range >= uint64_t{1} << 28;
  fill_each(x, g, [&] {
    const uint64_t bits = is_wide ? g.random64() : g.random();
    return static_cast<int64_t>((range ? bits % range : bits) + static_cast<uint64_t>(low));
  });
}

void fill_random_bits(const Tensor& x, Generator& g) {
  const DType dtype = x.dtype();
  const bool is_wide = dtype == DType::kInt64 || dtype == DType::kFloat64;
  const uint64_t count = visit(dtype, [](auto tag) -> uint64_t {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, Half>)
      return (1u << 11) + 1;
    else if constexpr (std::is_same_v<T, BFloat16>)
      return (1u << 8) + 1;
    else if constexpr (std::is_floating_point_v<T>)
      return (uint64_t{1} << std::numeric_limits<T>::digits) + 1;
    else
      return static_cast<uint64_t>(std::numeric_limits<T>::max()) + 1;
  });
  fill_each(x, g,
            [&] { return static_cast<int64_t>((is_wide ? g.random64() : g.random()) % count); });
}

void fill_permutation(const Tensor& x, Generator& g) {
  std::lock_guard lock(g.mutex());
  visit(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* data = x.data<T>();
    const int64_t n = x.numel();
    for (int64_t i = 0; i < n; ++i) data[i] = convert<T>(i);
    const bool is_wide = n >= static_cast<int64_t>(std::numeric_limits<uint32_t>::max() / 20);
    for (int64_t i = 0; i < n - 1; ++i) {
      const uint64_t bits = is_wide ? g.random64() : g.random();
      std::swap(data[i], data[i + static_cast<int64_t>(bits % static_cast<uint64_t>(n - i))]);
    }
  });
}

void fill_multinomial(const Tensor& out, const Tensor& probabilities, Generator& g) {
  const int64_t categories = probabilities.sizes().back(), draws = out.sizes().back();
  const int64_t rows = out.numel() / std::max<int64_t>(draws, 1);
  std::lock_guard lock(g.mutex());
  visit(probabilities.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_floating_point_v<T>) {
      std::vector<T> cumulative(static_cast<size_t>(categories));
      for (int64_t r = 0; r < rows; ++r) {
        const T* p = probabilities.data<T>() + r * categories;
        T sum = 0;
        for (int64_t j = 0; j < categories; ++j) {
          PRONG_CHECK(p[j] >= 0 && std::isfinite(p[j]), kRuntime,
                      "probability tensor contains either `inf`, `nan` or element < 0");
          cumulative[static_cast<size_t>(j)] = sum += p[j];
        }
        PRONG_CHECK(sum > 0, kRuntime,
                    "invalid multinomial distribution (sum of probabilities <= 0)");
        for (T& c : cumulative) c /= sum;
        cumulative.back() = 1;
        for (int64_t j = 0; j < draws; ++j) {
          const double u = g.uniform();
          const auto found = std::partition_point(cumulative.begin(), cumulative.end(),
                                                  [u](T c) { return static_cast<double>(c) < u; });
          out.data<int64_t>()[r * draws + j] = found - cumulative.begin();
        }
      }
    }
  });
}

}  // namespace prong
