// Recurrent layers of floats: packing of weights, and the walk over time. Called through lstm.h.
#include "ops/blas/lstm.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "ops/blas/gate_kernels.h"
#include "runtime/parallel.h"

namespace prong::blas {

namespace {

// Input products are made for as many steps at once as give this many rows: enough to use the
// packed weights well, few enough that the sums stay in the third-level cache (10 MB for 1024
// hidden units).
constexpr int64_t kInputRows = 512;
constexpr int64_t kMostGates = 4;
// Rows of sums a power of two apart would fight for the same few lines of the cache.
constexpr int64_t kSkew = 16;
// Multiply-adds worth a task of their own within a time step; see bench/gemm.cpp.
constexpr int64_t kStepWork = int64_t{3} << 20;

// Biases in the order of interleaved columns: panel gates * i + g holds units 32i .. of gate g.
void interleave_bias(int64_t gates, int64_t hidden, int64_t gate, const float* bias, float* out) {
  for (int64_t j = 0; j < hidden; ++j) {
    out[(j / kPanelColumns * gates + gate) * kPanelColumns + j % kPanelColumns] +=
        bias[gate * hidden + j];
  }
}

}  // namespace

RecurrentWeights::RecurrentWeights(const PlainWeights<float>& plain)
    : cell_(plain.cell), input_(plain.input), hidden_(plain.hidden) {
  int64_t gates = gate_count(cell_);
  w_input_ = PackedMatrix::interleaved(gates, input_, hidden_, plain.w_input, input_);
  w_hidden_ = PackedMatrix::interleaved(gates, hidden_, hidden_, plain.w_hidden, hidden_);
  int64_t columns = w_input_.n(), padded = hidden_padded();
  bias_ = AlignedBuffer(static_cast<size_t>(columns + padded) * sizeof(float));
  float* bias = bias_.floats();
  std::fill(bias, bias + columns + padded, 0.0f);
  if (!plain.b_input) return;
  for (int64_t gate = 0; gate < gates; ++gate) {
    interleave_bias(gates, hidden_, gate, plain.b_input, bias);
    if (cell_ == Cell::kGru && gate == 2) {
      std::copy_n(plain.b_hidden + 2 * hidden_, hidden_, bias + columns);
    } else {
      interleave_bias(gates, hidden_, gate, plain.b_hidden, bias);
    }
  }
}

namespace {

// One call: states and scratch memory, and the walk.
class Walk {
 public:
  Walk(const RecurrentWeights& weights, const RecurrentCall<float>& call)
      : weights_(weights), call_(call), gates_(gate_count(weights.cell())),
        padded_(weights.hidden_padded()), columns_(gates_ * padded_ + kSkew),
        steps_at_once_(std::clamp<int64_t>(kInputRows / std::max<int64_t>(1, call.batch), 1,
                                           std::max<int64_t>(1, call.steps))) {
    rows_stride_ = packed_rows_bytes(std::min(kRowBlock, call.batch), weights.hidden());
    rows_ = AlignedBuffer(static_cast<size_t>(row_blocks() * rows_stride_));
    sums_ =
        AlignedBuffer(static_cast<size_t>(steps_at_once_ * call.batch * columns_) * sizeof(float));
    h_ = make_state(call.h0);
    if (weights.cell() == Cell::kLstm) c_ = make_state(call.c0);
  }

  void run() {
    for (int64_t done = 0; done < call_.steps; done += steps_at_once_) {
      int64_t count = std::min(steps_at_once_, call_.steps - done);
      int64_t first = call_.reverse ? call_.steps - done - count : done;
      multiply_inputs(first, count);
      for (int64_t i = 0; i < count; ++i) {
        int64_t offset = call_.reverse ? count - 1 - i : i;
        step(first + offset, sums_.floats() + offset * call_.batch * columns_);
      }
    }
    copy_state(h_, call_.h_n);
    if (weights_.cell() == Cell::kLstm) copy_state(c_, call_.c_n);
  }

 private:
  int64_t row_blocks() const { return (call_.batch + kRowBlock - 1) / kRowBlock; }

  AlignedBuffer make_state(const float* from) const {
    AlignedBuffer state(static_cast<size_t>(call_.batch * padded_) * sizeof(float));
    std::fill(state.floats(), state.floats() + call_.batch * padded_, 0.0f);
    for (int64_t i = 0; from && i < call_.batch; ++i) {
      std::copy_n(from + i * weights_.hidden(), weights_.hidden(), state.floats() + i * padded_);
    }
    return state;
  }

  void copy_state(const AlignedBuffer& state, float* to) const {
    for (int64_t i = 0; to && i < call_.batch; ++i) {
      std::copy_n(state.floats() + i * padded_, weights_.hidden(), to + i * weights_.hidden());
    }
  }

  void multiply_inputs(int64_t first, int64_t count) {
    RowSource rows{call_.x + first * call_.x_step, call_.x_batch, call_.batch, call_.x_step};
    GemmStart start;
    start.bias = weights_.input_bias();
    gemm_packed(count * call_.batch, rows, weights_.w_input(), start, sums_.floats(), columns_);
  }

  // One time step; `inputs` holds the input products [batch, columns].
  void step(int64_t t, const float* inputs) {
    const PanelKernels* kernels[kMostRowBlocks];
    int64_t hidden = weights_.hidden();
    for (int64_t r0 = 0; r0 < row_blocks(); r0 += kMostRowBlocks) {
      int64_t r1 = std::min(row_blocks(), r0 + kMostRowBlocks);
      for (int64_t r = r0; r < r1; ++r) kernels[r - r0] = pack_state(r);
      // Row blocks of one group share the tasks; units of different groups are independent, but a
      // group must not overwrite h before others read it: each packs its own rows first.
      int64_t rows = std::min(call_.batch, kRowBlock);
      int64_t work = rows * gates_ * kPanelColumns * std::max<int64_t>(1, hidden);
      int64_t blocks = padded_ / kPanelColumns, grain = std::max<int64_t>(1, kStepWork / work);
      parallel_for(0, (r1 - r0) * blocks, grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          unit_block(t, inputs, r0 + i / blocks, i % blocks, *kernels[i / blocks]);
        }
      });
    }
  }

  const PanelKernels* pack_state(int64_t block) {
    int64_t first = block * kRowBlock, rows = std::min(kRowBlock, call_.batch - first);
    RowSource source{h_.floats(), padded_};
    void* out = packed_rows(block);
    const PanelKernels& best = kernels_for(rows, weights_.w_hidden());
    if (best.pack_rows(rows, weights_.hidden(), source, first, out)) return &best;
    exact_kernels().pack_rows(rows, weights_.hidden(), source, first, out);
    return &exact_kernels();
  }

  char* packed_rows(int64_t block) {
    return static_cast<char*>(rows_.data()) + block * rows_stride_;
  }

  // 32 hidden units of up to kRowBlock rows: all their gates' sums, then the new states.
  void unit_block(int64_t t, const float* inputs, int64_t row_block, int64_t unit_block,
                  const PanelKernels& kernels) {
    alignas(64) float sums[kRowBlock * kMostGates * kPanelColumns];
    int64_t row = row_block * kRowBlock, unit = unit_block * kPanelColumns;
    const float* input = inputs + row * columns_ + gates_ * unit;
    PanelProduct x;
    x.m = std::min(kRowBlock, call_.batch - row);
    x.k = weights_.hidden();
    x.rows = packed_rows(row_block);
    x.panels = weights_.w_hidden().panel(gates_ * unit_block);
    x.panel_stride = weights_.w_hidden().panel_floats();
    x.columns = gates_ * kPanelColumns;
    x.init = input;
    x.init_stride = columns_;
    x.out = sums;
    x.out_stride = gates_ * kPanelColumns;
    if (weights_.cell() == Cell::kGru) {  // the new gate's recurrent part stays apart
      x.columns = 2 * kPanelColumns;
      kernels.multiply(x);
      x.panels += 2 * x.panel_stride;
      x.columns = kPanelColumns;
      x.init = weights_.new_gate_bias() + unit;
      x.init_stride = 0;
      x.out = sums + 2 * kPanelColumns;
    }
    kernels.multiply(x);
    apply_gates(t, row, unit, x.m, sums, input + 2 * kPanelColumns);
  }

  void apply_gates(int64_t t, int64_t row, int64_t unit, int64_t rows, const float* sums,
                   const float* new_input) {
    int64_t hidden = weights_.hidden();
    int64_t saved = weights_.cell() == Cell::kGru ? 4 : gates_;
    GateRows g;
    g.rows = rows;
    g.units = std::min(kPanelColumns, hidden - unit);
    g.sums = sums;
    g.sums_stride = gates_ * kPanelColumns;
    g.new_input = new_input;
    g.new_input_stride = columns_;
    g.h = h_.floats() + row * padded_ + unit;
    g.c = c_.data() ? c_.floats() + row * padded_ + unit : nullptr;
    g.state_stride = padded_;
    g.out = call_.out + t * call_.out_step + row * call_.out_batch + unit;
    g.out_stride = call_.out_batch;
    g.gates_stride = saved * hidden;
    g.gate_stride = hidden;
    g.gates = call_.gates ? call_.gates + (t * call_.batch + row) * g.gates_stride + unit : nullptr;
    g.cells_stride = hidden;
    g.cells = call_.cells ? call_.cells + (t * call_.batch + row) * hidden + unit : nullptr;
    const GateKernels& kernels = gate_kernels();
    switch (weights_.cell()) {
    case Cell::kLstm:
      return kernels.lstm(g);
    case Cell::kGru:
      return kernels.gru(g);
    case Cell::kTanh:
      return kernels.tanh(g);
    case Cell::kRelu:
      return kernels.relu(g);
    }
  }

  static constexpr int64_t kMostRowBlocks = 32;

  const RecurrentWeights& weights_;
  const RecurrentCall<float>& call_;
  int64_t gates_, padded_;
  int64_t columns_;  // floats from row to row of the input products
  int64_t steps_at_once_, rows_stride_ = 0;
  AlignedBuffer rows_, sums_, h_, c_;
};

}  // namespace

void recurrent_forward(const RecurrentWeights& weights, const RecurrentCall<float>& call) {
  if (call.batch <= 0 || weights.hidden() <= 0) return;
  Walk(weights, call).run();
}

}  // namespace prong::blas
