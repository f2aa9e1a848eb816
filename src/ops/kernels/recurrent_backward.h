// The way back through one layer and direction of an LSTM, a GRU or a plain RNN. Used by
// defs/rnn_layer.
#pragma once

#include "ops/blas/lstm.h"
#include "tensor/tensor.h"

namespace prong {

// One call of a layer as it was made: x [steps, batch, input]; h0, c0 [batch, hidden]; out the
// states after each step; gates and cells as blas::RecurrentCall leaves them. All contiguous and of
// one dtype, float32 or float64. c0 and cells are undefined where there are none.
struct RecurrentStates {
  blas::Cell cell;
  bool reverse;
  Tensor x, h0, c0, w_input, w_hidden, out, gates, cells;
};

struct RecurrentGradients {
  Tensor x, h0, c0, w_input, w_hidden, b_input, b_hidden;
};

// From the gradients of out [steps, batch, hidden] (contiguous in its last dimension) and of the
// last states [batch, hidden], undefined where nothing came. The bits do not depend on the number
// of threads.
RecurrentGradients recurrent_backward(const RecurrentStates& s, const Tensor& d_out,
                                      const Tensor& d_h, const Tensor& d_c);

}  // namespace prong
