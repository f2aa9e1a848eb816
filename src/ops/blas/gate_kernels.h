// What turns the sums of a block of 32 hidden units into activations and new states, a time step of
// a recurrent layer. Called by lstm.cpp; written in gates_simd.cpp. No standard templates, as in
// panel_kernels.h.
#pragma once

#include <cstdint>

namespace prong::blas {

// All pointers stand at the block's first unit of the first row; strides are from row to row.
struct GateRows {
  int64_t rows, units;  // at most 32 units; states are padded to 32, results are not
  const float* sums;    // gate g at sums + 32 g: start + recurrent product
  int64_t sums_stride;
  const float* new_input;  // GRU: the input part of the new gate
  int64_t new_input_stride;
  float* h;  // state before the step, replaced
  float* c;  // LSTM
  int64_t state_stride;
  float* out;
  int64_t out_stride;
  float* gates;  // null, or activated gates: gate g at gates + g * gate_stride
  int64_t gates_stride, gate_stride;
  float* cells;  // null, or the new cell state
  int64_t cells_stride;
};

struct GateKernels {
  void (*lstm)(const GateRows&);
  void (*gru)(const GateRows&);
  void (*tanh)(const GateRows&);
  void (*relu)(const GateRows&);
};

}  // namespace prong::blas

namespace prong::v3 {
const blas::GateKernels& gate_kernels();
}
namespace prong::v4 {
const blas::GateKernels& gate_kernels();
}
namespace prong::generic {
const blas::GateKernels& gate_kernels();
}

namespace prong::blas {
const GateKernels& gate_kernels();  // of this machine
}
