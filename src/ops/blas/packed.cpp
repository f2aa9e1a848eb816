// Packing of matrices into panels, and products with them over the pool. Called through packed.h.
#include "ops/blas/packed.h"
#include "base/rounding.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/error.h"
#include "ops/blas/move_kernels.h"
#include "runtime/parallel.h"

namespace prong::blas {

namespace {

// A packed block of A (kRowBlock rows of this depth) fits the second-level cache beside a panel.
constexpr int64_t kDepthBlock = 1024;
// Multiply-adds that are worth a task of their own: 15 to 40 us.
constexpr int64_t kTaskWork = int64_t{3} << 20;
// Floats of B whose packing is worth a task: about 10 us.
constexpr int64_t kPackWork = 32768;

}  // namespace

int64_t PackedMatrix::panel_floats() const { return round_up(k_, kPanelDepth) * kPanelColumns; }

void PackedMatrix::allocate(int64_t k, int64_t n) {
  k_ = k;
  n_ = n;
  int64_t panels = round_up(n, kPanelColumns) / kPanelColumns;
  buffer_ = AlignedBuffer(static_cast<size_t>(panels * panel_floats()) * sizeof(float));
}

// Room for a panel: what the matrix does not fill is zero.
float* PackedMatrix::clear_panel(int64_t index, int64_t columns) {
  float* out = buffer_.floats() + index * panel_floats();
  std::fill(out + (columns < kPanelColumns ? 0 : k_ * kPanelColumns), out + panel_floats(), 0.0f);
  return out;
}

void PackedMatrix::finish_panel(int64_t index, float scale) {
  if (!move_kernels().finish_panel(k_, scale, buffer_.floats() + index * panel_floats())) {
    std::atomic_ref<bool>(is_moderate_).store(false, std::memory_order_relaxed);
  }
}

void PackedMatrix::pack_columns(int64_t index, int64_t columns, const float* b, int64_t ldb,
                                float scale) {
  move_kernels().transpose(columns, k_, b, ldb, clear_panel(index, columns), kPanelColumns);
  finish_panel(index, scale);
}

// Panels [begin, end) of a matrix stored by rows: each row is read in one go, since rows are often
// pages apart.
void PackedMatrix::pack_rows(int64_t begin, int64_t end, const float* b, int64_t ldb, float scale) {
  int64_t last = std::min(end, n_ / kPanelColumns);  // panels that are whole
  for (int64_t i = begin; i < end; ++i) clear_panel(i, i < last ? kPanelColumns : 0);
  float* out = buffer_.floats();
  for (int64_t p = 0; p < k_; ++p) {
    const float* row = b + p * ldb;
    for (int64_t i = begin; i < last; ++i) {
      std::memcpy(out + i * panel_floats() + p * kPanelColumns, row + i * kPanelColumns,
                  kPanelColumns * sizeof(float));
    }
    if (last < end) {
      std::copy(row + last * kPanelColumns, row + n_,
                out + last * panel_floats() + p * kPanelColumns);
    }
  }
  for (int64_t i = begin; i < end; ++i) finish_panel(i, scale);
}

PackedMatrix::PackedMatrix(bool transposed, int64_t k, int64_t n, const float* b, int64_t ldb,
                           float scale) {
  allocate(k, n);
  int64_t panels = round_up(n, kPanelColumns) / kPanelColumns;
  int64_t grain = std::max<int64_t>(1, kPackWork / std::max<int64_t>(1, panel_floats()));
  parallel_for(0, panels, grain, [&](int64_t begin, int64_t end) {
    constexpr int64_t kTogether = 8;  // streams that a core follows well
    for (int64_t i = begin; i < end; i += kTogether) {
      int64_t stop = std::min(end, i + kTogether);
      if (!transposed) {
        pack_rows(i, stop, b, ldb, scale);
        continue;
      }
      for (int64_t j = i; j < stop; ++j) {
        int64_t column = j * kPanelColumns;
        pack_columns(j, std::min(kPanelColumns, n - column), b + column * ldb, ldb, scale);
      }
    }
  });
}

PackedMatrix PackedMatrix::interleaved(int64_t groups, int64_t k, int64_t n, const float* b,
                                       int64_t ldb) {
  PackedMatrix packed;
  int64_t blocks = round_up(n, kPanelColumns) / kPanelColumns;
  packed.allocate(k, groups * blocks * kPanelColumns);
  int64_t grain = std::max<int64_t>(1, kPackWork / std::max<int64_t>(1, packed.panel_floats()));
  parallel_for(0, groups * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t column = i / groups * kPanelColumns, group = i % groups;
      packed.pack_columns(i, std::min(kPanelColumns, n - column), b + (group * n + column) * ldb,
                          ldb, 1.0f);
    }
  });
  return packed;
}

const PanelKernels& kernels_for(int64_t m, const PackedMatrix& b) {
  const PanelKernels* split = split_kernels();
  if (!split || !b.is_moderate()) return exact_kernels();
  // Measured on 4096 x 1024, in 10 us: the matrix unit takes 45 to read and split B, and 80 for
  // each 32 rows or part of them; fused multiply-adds take 5 a row (bench/gemm.cpp).
  int64_t row_pairs = (m + 31) / 32;
  return 45 + 80 * row_pairs < 5 * m ? *split : exact_kernels();
}

int64_t packed_rows_bytes(int64_t m, int64_t k) {
  int64_t bytes = exact_kernels().rows_bytes(m, k);
  if (split_kernels()) bytes = std::max(bytes, split_kernels()->rows_bytes(m, k));
  return round_up(bytes, 64);
}

namespace {

// One product: its rows in blocks of kRowBlock and its depth in blocks of kDepthBlock, whatever the
// number of threads; tasks take row blocks whole or share their panels.
struct Product {
  int64_t m;
  RowSource a;
  bool is_a_transposed;  // a.data is [k,m], rows a.stride apart
  const PackedMatrix& b;
  GemmStart start;
  float* c;
  int64_t ldc;

  int64_t row_blocks() const { return (m + kRowBlock - 1) / kRowBlock; }
  int64_t panels() const { return (b.n() + kPanelColumns - 1) / kPanelColumns; }
  int64_t rows(int64_t block) const { return std::min(kRowBlock, m - block * kRowBlock); }
  int64_t depth(int64_t p) const { return std::min(kDepthBlock, b.k() - p); }

  int64_t packed_bytes(int64_t block, int64_t p) const {
    return packed_rows_bytes(rows(block), depth(p));
  }

  // Packs a block of A for the best kernel that takes its numbers, and names that kernel.
  const PanelKernels* pack(int64_t block, int64_t p, void* out) const {
    int64_t first = block * kRowBlock;
    RowSource from = a;
    AlignedBuffer turned;
    if (is_a_transposed) {
      turned = AlignedBuffer(static_cast<size_t>(rows(block) * depth(p)) * sizeof(float));
      move_kernels().transpose(depth(p), rows(block), a.data + p * a.stride + first, a.stride,
                               turned.floats(), depth(p));
      from = RowSource{turned.floats(), depth(p)};
      first = 0;
    } else {
      from.data += p;
    }
    const PanelKernels* kernels = &kernels_for(rows(block), b);
    if (!kernels->pack_rows(rows(block), depth(p), from, first, out)) {
      kernels = &exact_kernels();
      kernels->pack_rows(rows(block), depth(p), from, first, out);
    }
    return kernels;
  }

  void multiply(int64_t block, int64_t p, int64_t panel_begin, int64_t panel_end,
                const PanelKernels& kernels, const void* packed) const {
    int64_t column = panel_begin * kPanelColumns;
    PanelProduct x;
    x.m = rows(block);
    x.k = depth(p);
    x.rows = packed;
    x.panels = b.panel(panel_begin) + p * kPanelColumns;
    x.panel_stride = b.panel_floats();
    x.columns = std::min(panel_end * kPanelColumns, b.n()) - column;
    x.out = c + block * kRowBlock * ldc + column;
    x.out_stride = ldc;
    x.init = start.bias ? start.bias + column : nullptr;
    x.init_stride = 0;
    if (p > 0 || start.accumulate) {
      x.init = x.out;
      x.init_stride = ldc;
    }
    kernels.multiply(x);
  }

  void run_by_row_blocks() const {
    parallel_for(0, row_blocks(), 1, [&](int64_t begin, int64_t end) {
      AlignedBuffer packed(static_cast<size_t>(packed_bytes(0, 0)));
      for (int64_t block = begin; block < end; ++block) {
        for (int64_t p = 0; p < b.k() || p == 0; p += kDepthBlock) {
          const PanelKernels* kernels = pack(block, p, packed.data());
          multiply(block, p, 0, panels(), *kernels, packed.data());
        }
      }
    });
  }

  void run_by_panels() const {
    int64_t stride = packed_bytes(0, 0), count = row_blocks();
    AlignedBuffer packed(static_cast<size_t>(stride * count));
    const PanelKernels* kernels[kFewBlocks];
    int64_t panel_work = rows(0) * kPanelColumns * std::max<int64_t>(1, depth(0));
    int64_t grain = std::max<int64_t>(1, kTaskWork / panel_work);
    auto at = [&](int64_t block) { return static_cast<char*>(packed.data()) + block * stride; };
    for (int64_t p = 0; p < b.k() || p == 0; p += kDepthBlock) {
      parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) kernels[i] = pack(i, p, at(i));
      });
      parallel_for(0, count * panels(), grain, [&](int64_t begin, int64_t end) {
        while (begin < end) {
          int64_t block = begin / panels(), first = begin % panels();
          int64_t last = std::min(panels(), first + end - begin);
          multiply(block, p, first, last, *kernels[block], at(block));
          begin += last - first;
        }
      });
    }
  }

  // Blocks that are too few to keep all threads busy by themselves.
  static constexpr int64_t kFewBlocks = 64;
  void run() const {
    if (m <= 0 || b.n() <= 0) return;
    int64_t threads = num_threads(), blocks = row_blocks();
    // Whole row blocks need one loop and no waiting between packing and products.
    if (blocks % threads == 0 || blocks >= std::min(kFewBlocks, 4 * threads)) {
      run_by_row_blocks();
    } else {
      run_by_panels();
    }
  }
};

}  // namespace

void gemm_packed(int64_t m, const RowSource& a, const PackedMatrix& b, GemmStart start, float* c,
                 int64_t ldc) {
  PRONG_ASSERT(!(start.bias && start.accumulate), "gemm_packed starts with one of both");
  Product{m, a, false, b, start, c, ldc}.run();
}

void gemm_packed(int64_t m, const float* a, int64_t lda, const PackedMatrix& b, GemmStart start,
                 float* c, int64_t ldc) {
  gemm_packed(m, RowSource{a, lda}, b, start, c, ldc);
}

void gemm_packed_transposed(int64_t m, const float* a, int64_t lda, const PackedMatrix& b,
                            GemmStart start, float* c, int64_t ldc) {
  PRONG_ASSERT(!(start.bias && start.accumulate), "gemm_packed starts with one of both");
  Product{m, RowSource{a, lda}, true, b, start, c, ldc}.run();
}

}  // namespace prong::blas
