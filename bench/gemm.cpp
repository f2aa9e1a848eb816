// How fast matrix products and recurrent layers are, in GFLOP/s. Run by gemm.py, which prints
// ratios to PyTorch, or by hand: bench_gemm [threads] [part of a name]. One line a case.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "ops/blas/gate_kernels.h"
#include "ops/blas/gemm.h"
#include "ops/blas/lstm.h"
#include "runtime/parallel.h"

namespace prong::blas {
namespace {

std::vector<float> random_floats(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  uint32_t state = 1;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(static_cast<int32_t>(state)) * 0x1p-36f;
  }
  return values;
}

double now() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

const char* only = nullptr;

// The best of a few runs of about 50 ms each; f runs `flops` floating-point operations.
template <class F>
void measure(const char* name, double flops, F&& f) {
  if (only && !std::strstr(name, only)) return;
  f();
  double start = now();
  f();
  int64_t count = std::max<int64_t>(1, static_cast<int64_t>(0.05 / (now() - start + 1e-9)));
  double best = 1e9;
  for (int round = 0; round < 5; ++round) {
    start = now();
    for (int64_t i = 0; i < count; ++i) f();
    best = std::min(best, (now() - start) / static_cast<double>(count));
  }
  std::printf("%-34s %12.3e s %8.1f GFLOP/s\n", name, best, flops / best * 1e-9);
  std::fflush(stdout);
}

void plain_products() {
  const int64_t sizes[][3] = {{16, 16, 16},       {64, 64, 64},     {128, 128, 128},
                              {256, 256, 256},    {512, 512, 512},  {1024, 1024, 1024},
                              {2048, 2048, 2048}, {50, 4096, 1024}, {2500, 4096, 1024},
                              {1, 1024, 1024},    {1024, 1, 1024},  {8, 1024, 1024}};
  for (auto& s : sizes) {
    int64_t m = s[0], n = s[1], k = s[2];
    auto a = random_floats(m * k), b = random_floats(k * n);
    std::vector<float> c(static_cast<size_t>(m * n));
    for (bool transposed : {false, true}) {
      char name[64];
      std::snprintf(name, sizeof name, "gemm %dx%dx%d%s", int(m), int(n), int(k),
                    transposed ? " bT" : "");
      measure(name, 2.0 * m * n * k, [&] {
        gemm(false, transposed, m, n, k, 1.0f, a.data(), k, b.data(), transposed ? k : n, 0.0f,
             c.data(), n);
      });
    }
  }
}

void packed_products() {
  int64_t n = 4096, k = 1024;
  auto b = random_floats(n * k);
  PackedMatrix packed(true, k, n, b.data(), k);
  measure("pack 4096x1024", 0, [&] { PackedMatrix again(true, k, n, b.data(), k); });
  for (int64_t m : {1, 4, 8, 16, 50, 2500}) {
    auto a = random_floats(m * k);
    std::vector<float> c(static_cast<size_t>(m * n));
    char name[64];
    std::snprintf(name, sizeof name, "packed %dx4096x1024", int(m));
    measure(name, 2.0 * m * n * k, [&] { gemm_packed(m, a.data(), k, packed, {}, c.data(), n); });
    for (const PanelKernels* kernels : {&exact_kernels(), split_kernels()}) {
      if (!kernels) continue;
      int64_t rows = std::min<int64_t>(m, kRowBlock);
      AlignedBuffer space(static_cast<size_t>(kernels->rows_bytes(rows, k)));
      kernels->pack_rows(rows, k, RowSource{a.data(), k}, 0, space.data());
      std::snprintf(name, sizeof name, "kernel %s %dx4096x1024", kernels->name, int(rows));
      PanelProduct x{
          rows,     k, space.data(), packed.panel(0), packed.panel_floats(), n, nullptr, 0,
          c.data(), n};
      measure(name, 2.0 * rows * n * k, [&] { kernels->multiply(x); });
    }
  }
}

void gates_alone() {
  int64_t rows = 50, blocks = 32;
  auto sums = random_floats(rows * 128), h = random_floats(rows * 1024), c = h, out = h;
  // Per unit: 3 sigmoids, 2 tanh; the number printed counts them as 1 each.
  measure("gates 50x1024", 5.0 * rows * 1024, [&] {
    for (int64_t i = 0; i < blocks; ++i) {
      GateRows g{rows,
                 32,
                 sums.data(),
                 128,
                 nullptr,
                 0,
                 h.data() + 32 * i,
                 c.data() + 32 * i,
                 1024,
                 out.data() + 32 * i,
                 1024,
                 nullptr,
                 0,
                 0,
                 nullptr,
                 0};
      gate_kernels().lstm(g);
    }
  });
}

struct Net {
  static constexpr int64_t kSteps = 50, kBatch = 50, kWidth = 1024;
  static constexpr double kFlops = 2.0 * 2 * kSteps * kBatch * kWidth * 4 * kWidth;
  std::vector<float> w_input = random_floats(4 * kWidth * kWidth), w_hidden = w_input,
                     bias = random_floats(4 * kWidth), out;
  RecurrentWeights weights{PlainWeights<float>{Cell::kLstm, kWidth, kWidth, w_input.data(),
                                               w_hidden.data(), bias.data(), bias.data()}};
  Net() : out(static_cast<size_t>(kSteps * kBatch * kWidth)) {}
  void run(const float* x, bool reverse) {
    RecurrentCall<float> call{kSteps,          kBatch,          reverse, x,
                              kBatch * kWidth, kWidth,          nullptr, nullptr,
                              out.data(),      kBatch * kWidth, kWidth};
    recurrent_forward(weights, call);
  }
};

void recurrent() {
  auto x = random_floats(Net::kSteps * Net::kBatch * Net::kWidth);
  std::vector<Net> nets(8);
  measure("lstm", Net::kFlops, [&] { nets[0].run(x.data(), false); });
  measure("8 lstms in turn", 8 * Net::kFlops, [&] {
    for (int i = 0; i < 8; ++i) nets[i].run(x.data(), i & 1);
  });
  measure("8 lstms, one a task", 8 * Net::kFlops, [&] {
    parallel_for(0, 8, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) nets[i].run(x.data(), i & 1);
    });
  });
}

}  // namespace
}  // namespace prong::blas

int main(int argc, char** argv) {
  int threads = argc > 1 ? std::atoi(argv[1]) : prong::num_threads();
  if (argc > 2) prong::blas::only = argv[2];
  prong::set_num_threads(threads);
  std::printf("threads %d, kernels %s and %s\n", threads, prong::blas::exact_kernels().name,
              prong::blas::split_kernels() ? prong::blas::split_kernels()->name : "no others");
  prong::blas::plain_products();
  prong::blas::packed_products();
  prong::blas::gates_alone();
  prong::blas::recurrent();
}
