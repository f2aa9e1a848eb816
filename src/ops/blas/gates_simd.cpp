// Activations of recurrent layers, vectors of hidden units at a time. Called through GateKernels.
#include "ops/blas/gate_kernels.h"
#include "ops/blas/simd_float.h"

namespace prong::PRONG_ISA {
namespace {

using blas::GateRows;

constexpr int64_t kUnits = 32;

Vi as_bits(Vf x) { return (Vi)x; }
Vf as_float(Vi x) { return (Vf)x; }

// e^x within 2 ulp. Below -87 it is 0 or near it, above 88 near infinity; both only ever stand in
// 1 / (1 + e^x). A NaN stays one.
Vf exp(Vf x) {
  const Vf low = splat(-87.0f), high = splat(88.0f);
  x = x > high ? high : x;
  x = x < low ? low : x;
  const Vf magic = splat(0x1.8p23f);  // adding it rounds to an integer, kept in the low bits
  Vf shifted = fma(x, splat(0x1.715476p0f), magic);
  Vf n = shifted - magic;
  Vf r = fma(n, splat(-0x1.62e400p-1f), x);
  r = fma(n, splat(-0x1.7f7d1cp-20f), r);
  Vf q = splat(0x1.6db47ap-10f);
  q = fma(q, r, splat(0x1.123b92p-7f));
  q = fma(q, r, splat(0x1.55545ep-5f));
  q = fma(q, r, splat(0x1.55548ep-3f));
  q = fma(q, r, splat(0.5f));
  Vf p = fma(r * r, q, r) + splat(1.0f);
  Vi power = (as_bits(shifted) - as_bits(magic) + 127) << 23;
  return p * as_float(power);
}

Vf sigmoid(Vf x) { return splat(1.0f) / (splat(1.0f) + exp(-x)); }

Vf tanh(Vf x) {
  Vi sign = as_bits(x) & as_bits(splat(-0.0f));
  Vf size = as_float(as_bits(x) ^ sign);
  // Near 0 an odd polynomial; elsewhere 1 - 2 / (e^2|x| + 1), with the sign put back.
  Vf square = x * x;
  Vf q = splat(0x1.197b62p-9f);
  q = fma(q, square, splat(-0x1.0c213ep-7f));
  q = fma(q, square, splat(0x1.6394d8p-6f));
  q = fma(q, square, splat(-0x1.b9ef7cp-5f));
  q = fma(q, square, splat(0x1.11106cp-3f));
  q = fma(q, square, splat(-0x1.555554p-2f));
  Vf near = fma(x * square, q, x);
  Vf far = splat(1.0f) - splat(2.0f) / (exp(size + size) + splat(1.0f));
  far = as_float(as_bits(far) | sign);
  return size < splat(0.625f) ? near : far;
}

// Stores the units of a vector that exist; the last block of a layer may have fewer than 32.
void store_units(float* at, Vf x, int64_t units) {
  if (units >= kLanes) {
    store(at, x);
  } else {
    for (int64_t i = 0; i < units; ++i) at[i] = x[i];
  }
}

// body(row, unit, units): for each vector of each row, with the number of units in it that exist.
template <class Body>
inline void for_each_vector(const GateRows& g, Body body) {
  for (int64_t row = 0; row < g.rows; ++row) {
    for (int64_t unit = 0; unit < kUnits; unit += kLanes) body(row, unit, g.units - unit);
  }
}

struct Saved {
  float* at;
  int64_t gate_stride, units;
  Saved(const GateRows& g, int64_t row, int64_t unit, int64_t units)
      : at(g.gates ? g.gates + row * g.gates_stride + unit : nullptr), gate_stride(g.gate_stride),
        units(units) {}
  void put(int64_t gate, Vf x) const {
    if (at && units > 0) store_units(at + gate * gate_stride, x, units);
  }
};

inline void put_hidden(const GateRows& g, int64_t row, int64_t unit, int64_t units, Vf h) {
  store(g.h + row * g.state_stride + unit, h);
  if (units > 0) store_units(g.out + row * g.out_stride + unit, h, units);
}

void lstm(const GateRows& g) {
  for_each_vector(g, [&](int64_t row, int64_t unit, int64_t units) {
    const float* sums = g.sums + row * g.sums_stride + unit;
    float* cell = g.c + row * g.state_stride + unit;
    Vf input = sigmoid(load(sums));
    Vf forget = sigmoid(load(sums + kUnits));
    Vf candidate = tanh(load(sums + 2 * kUnits));
    Vf output = sigmoid(load(sums + 3 * kUnits));
    Vf c = fma(forget, load(cell), input * candidate);
    store(cell, c);
    put_hidden(g, row, unit, units, output * tanh(c));
    Saved saved(g, row, unit, units);
    saved.put(0, input);
    saved.put(1, forget);
    saved.put(2, candidate);
    saved.put(3, output);
    if (g.cells && units > 0) store_units(g.cells + row * g.cells_stride + unit, c, units);
  });
}

void gru(const GateRows& g) {
  for_each_vector(g, [&](int64_t row, int64_t unit, int64_t units) {
    const float* sums = g.sums + row * g.sums_stride + unit;
    Vf reset = sigmoid(load(sums));
    Vf update = sigmoid(load(sums + kUnits));
    Vf recurrent = load(sums + 2 * kUnits);
    Vf candidate = tanh(fma(reset, recurrent, load(g.new_input + row * g.new_input_stride + unit)));
    Vf before = load(g.h + row * g.state_stride + unit);
    put_hidden(g, row, unit, units, fma(update, before - candidate, candidate));
    Saved saved(g, row, unit, units);
    saved.put(0, reset);
    saved.put(1, update);
    saved.put(2, candidate);
    saved.put(3, recurrent);
  });
}

template <class Activation>
inline void plain(const GateRows& g, Activation activation) {
  for_each_vector(g, [&](int64_t row, int64_t unit, int64_t units) {
    Vf h = activation(load(g.sums + row * g.sums_stride + unit));
    put_hidden(g, row, unit, units, h);
    Saved(g, row, unit, units).put(0, h);
  });
}

void plain_tanh(const GateRows& g) {
  plain(g, [](Vf x) { return tanh(x); });
}
void plain_relu(const GateRows& g) {
  plain(g, [](Vf x) { return x < Vf{} ? Vf{} : x; });  // keeps a NaN
}

}  // namespace

const blas::GateKernels& gate_kernels() {
  static constexpr blas::GateKernels kernels = {lstm, gru, plain_tanh, plain_relu};
  return kernels;
}

}  // namespace prong::PRONG_ISA
