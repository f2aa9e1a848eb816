// The compute core of recurrent layers: one layer and direction of an LSTM, a GRU or a plain RNN
// over a whole sequence. Called by the ops lstm, gru, rnn_tanh and rnn_relu (ops/defs).
//
// Weights are packed once (RecurrentWeights) and used by any number of calls and threads. A call
// computes the input products of many time steps at once, and each step's recurrent product with
// the gates fused, a block of 32 hidden units at a time. It spreads over the pool when that is idle
// and may run in several tasks at once; it brings its own scratch memory. The bits of the result do
// not depend on the number of threads.
#pragma once

#include <cstdint>

#include "ops/blas/packed.h"

namespace prong::blas {

enum class Cell {
  kLstm,  // gates in the order input, forget, cell, output (as PyTorch stacks its weights)
  kGru,   // reset, update, new
  kTanh,  // a plain RNN
  kRelu,
};
constexpr int64_t gate_count(Cell cell) {
  return cell == Cell::kLstm ? 4 : cell == Cell::kGru ? 3 : 1;
}

// Weights as PyTorch keeps them: w_input [gates * hidden, input], w_hidden [gates * hidden,
// hidden], biases [gates * hidden] or both null; rows contiguous.
template <class T>
struct PlainWeights {
  Cell cell;
  int64_t input, hidden;
  const T* w_input;
  const T* w_hidden;
  const T* b_input = nullptr;
  const T* b_hidden = nullptr;
};

class RecurrentWeights {
 public:
  RecurrentWeights() = default;
  explicit RecurrentWeights(const PlainWeights<float>& plain);

  Cell cell() const { return cell_; }
  int64_t input() const { return input_; }
  int64_t hidden() const { return hidden_; }
  int64_t hidden_padded() const { return w_hidden_.n() / gate_count(cell_); }  // multiple of 32
  const PackedMatrix& w_input() const { return w_input_; }
  const PackedMatrix& w_hidden() const { return w_hidden_; }
  // In the order of the packed columns. The start of the input products (b_input, plus b_hidden
  // where it is only added) and of a GRU's new gate in the recurrent product (b_hidden).
  const float* input_bias() const { return bias_.floats(); }
  const float* new_gate_bias() const { return bias_.floats() + w_input_.n(); }
  size_t bytes() const { return w_input_.bytes() + w_hidden_.bytes() + bias_.bytes(); }

 private:
  Cell cell_ = Cell::kLstm;
  int64_t input_ = 0, hidden_ = 0;
  PackedMatrix w_input_, w_hidden_;
  AlignedBuffer bias_;
};

// The sequence and where results go. Strides in elements; within a row, elements are contiguous.
template <class T>
struct RecurrentCall {
  int64_t steps, batch;
  bool reverse = false;  // walk from the last step to the first; `out` keeps the input's order

  const T* x;  // [steps, batch, input]
  int64_t x_step, x_batch;
  const T* h0 = nullptr;  // [batch, hidden], rows contiguous; null is zeros
  const T* c0 = nullptr;  // LSTM only

  T* out;  // [steps, batch, hidden]: rows may be wider, for the other direction
  int64_t out_step, out_batch;
  T* h_n = nullptr;  // [batch, hidden], rows contiguous; null is not wanted
  T* c_n = nullptr;

  // For a backward pass, null if not wanted: activated gates [steps, batch, gates, hidden] (a GRU
  // has a fourth: the recurrent part of its new gate before the reset), and the LSTM's cell state
  // after each step [steps, batch, hidden].
  T* gates = nullptr;
  T* cells = nullptr;
};

void recurrent_forward(const RecurrentWeights& weights, const RecurrentCall<float>& call);
// Plain kernels for double: every step's products through gemm.
void recurrent_forward(const PlainWeights<double>& weights, const RecurrentCall<double>& call);

}  // namespace prong::blas
