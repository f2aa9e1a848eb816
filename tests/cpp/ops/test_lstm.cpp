// Recurrent layers against a plain loop in double: all cells, odd sizes, strides, states,
// directions.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "ops/blas/lstm.h"
#include "runtime/parallel.h"

namespace prong::blas {
namespace {

std::vector<double> random_values(int64_t count, uint32_t seed, double scale) {
  std::mt19937 random(seed);
  std::vector<double> values(count);
  for (double& value : values) {
    value = static_cast<float>(scale * (static_cast<double>(random()) * 0x1p-31 - 1));
  }
  return values;
}
std::vector<float> to_float(const std::vector<double>& x) { return {x.begin(), x.end()}; }

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// A layer with its numbers, and what it must answer, computed by the definition.
struct Layer {
  Cell cell;
  int64_t steps, batch, input, hidden;
  bool reverse = false, has_bias = true, has_state = true;
  std::vector<double> w_input, w_hidden, b_input, b_hidden, x, h0, c0, out, h, c;

  Layer(Cell cell, int64_t steps, int64_t batch, int64_t input, int64_t hidden)
      : cell(cell), steps(steps), batch(batch), input(input), hidden(hidden) {
    int64_t rows = gate_count(cell) * hidden;
    double scale = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, hidden)));
    w_input = random_values(rows * input, 1, 2 * scale);
    w_hidden = random_values(rows * hidden, 2, scale);
    b_input = random_values(rows, 3, 0.5);
    b_hidden = random_values(rows, 4, 0.5);
    x = random_values(steps * batch * input, 5, 1);
    h0 = random_values(batch * hidden, 6, 1);
    c0 = random_values(batch * hidden, 7, 1);
  }

  double dot(const double* w, const double* v, int64_t n) const {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += w[i] * v[i];
    return sum;
  }

  void compute() {
    out.assign(steps * batch * hidden, 0);
    h = has_state ? h0 : std::vector<double>(batch * hidden);
    c = has_state ? c0 : std::vector<double>(batch * hidden);
    for (int64_t i = 0; i < steps; ++i) {
      int64_t t = reverse ? steps - 1 - i : i;
      std::vector<double> before = h;
      for (int64_t row = 0; row < batch; ++row) {
        for (int64_t j = 0; j < hidden; ++j) unit(t, row, j, before);
      }
    }
  }

  void unit(int64_t t, int64_t row, int64_t j, const std::vector<double>& before) {
    double in[4] = {}, rec[4] = {};
    for (int64_t g = 0; g < gate_count(cell); ++g) {
      int64_t r = g * hidden + j;
      in[g] = dot(w_input.data() + r * input, x.data() + (t * batch + row) * input, input) +
              (has_bias ? b_input[r] : 0);
      rec[g] = dot(w_hidden.data() + r * hidden, before.data() + row * hidden, hidden) +
               (has_bias ? b_hidden[r] : 0);
    }
    double& hj = h[row * hidden + j];
    double& cj = c[row * hidden + j];
    if (cell == Cell::kLstm) {
      cj = sigmoid(in[1] + rec[1]) * cj + sigmoid(in[0] + rec[0]) * std::tanh(in[2] + rec[2]);
      hj = sigmoid(in[3] + rec[3]) * std::tanh(cj);
    } else if (cell == Cell::kGru) {
      double z = sigmoid(in[1] + rec[1]);
      hj = (1 - z) * std::tanh(in[2] + sigmoid(in[0] + rec[0]) * rec[2]) + z * hj;
    } else {
      double sum = in[0] + rec[0];
      hj = cell == Cell::kTanh ? std::tanh(sum) : std::max(0.0, sum);
    }
    out[(t * batch + row) * hidden + j] = hj;
  }
};

void expect_near(const std::vector<double>& expected, const float* got, double tolerance,
                 const char* what) {
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(expected[i], got[i], tolerance) << what << " " << i;
  }
}

struct FloatLayer {
  std::vector<float> w_input, w_hidden, b_input, b_hidden, x, h0, c0, out, h, c;
  RecurrentWeights weights;
  RecurrentCall<float> call;

  explicit FloatLayer(const Layer& l)
      : w_input(to_float(l.w_input)), w_hidden(to_float(l.w_hidden)), b_input(to_float(l.b_input)),
        b_hidden(to_float(l.b_hidden)), x(to_float(l.x)), h0(to_float(l.h0)), c0(to_float(l.c0)),
        out(l.steps * l.batch * l.hidden, std::nanf("")), h(h0.size()), c(c0.size()),
        weights(PlainWeights<float>{l.cell, l.input, l.hidden, w_input.data(), w_hidden.data(),
                                    l.has_bias ? b_input.data() : nullptr,
                                    l.has_bias ? b_hidden.data() : nullptr}),
        call{l.steps,
             l.batch,
             l.reverse,
             x.data(),
             l.batch * l.input,
             l.input,
             l.has_state ? h0.data() : nullptr,
             l.has_state ? c0.data() : nullptr,
             out.data(),
             l.batch * l.hidden,
             l.hidden,
             h.data(),
             c.data()} {}
};

void check(Layer l, double tolerance = 3e-6) {
  l.compute();
  FloatLayer f(l);
  recurrent_forward(f.weights, f.call);
  expect_near(l.out, f.out.data(), tolerance, "out");
  expect_near(l.h, f.h.data(), tolerance, "h");
  if (l.cell == Cell::kLstm) expect_near(l.c, f.c.data(), tolerance, "c");
}

TEST(Recurrent, EveryCellAndOddSizes) {
  for (Cell cell : {Cell::kLstm, Cell::kGru, Cell::kTanh, Cell::kRelu}) {
    check(Layer(cell, 1, 1, 1, 1));
    check(Layer(cell, 3, 2, 5, 7));
    check(Layer(cell, 5, 9, 33, 40));
    check(Layer(cell, 4, 50, 64, 96));
    Layer no_extras(cell, 6, 3, 10, 33);
    no_extras.has_bias = no_extras.has_state = false;
    check(no_extras);
    Layer backwards(cell, 6, 8, 10, 33);
    backwards.reverse = true;
    check(backwards);
  }
}

TEST(Recurrent, BatchOfSeveralRowBlocks) {
  check(Layer(Cell::kLstm, 3, 300, 20, 40));
  check(Layer(Cell::kGru, 2, 129, 20, 70));
}

TEST(Recurrent, MoreStepsThanAreMultipliedAtOnce) {
  Layer l(Cell::kLstm, 70, 20, 12, 34);
  check(l);
  l.reverse = true;
  check(l);
}

TEST(Recurrent, EmptySizes) {
  check(Layer(Cell::kLstm, 0, 3, 4, 5));
  check(Layer(Cell::kLstm, 2, 0, 4, 5));
  check(Layer(Cell::kLstm, 2, 3, 0, 5));
}

TEST(Recurrent, BatchFirstAndWiderRows) {
  Layer l(Cell::kLstm, 7, 6, 10, 20);
  l.compute();
  FloatLayer f(l);
  // x as [batch, steps, input], out as [batch, steps, 2 * hidden] at the second half.
  std::vector<float> x(f.x.size()), out(2 * f.out.size(), -9.0f);
  for (int64_t t = 0; t < l.steps; ++t) {
    for (int64_t b = 0; b < l.batch; ++b) {
      std::copy_n(&f.x[(t * l.batch + b) * l.input], l.input, &x[(b * l.steps + t) * l.input]);
    }
  }
  f.call.x = x.data();
  f.call.x_step = l.input;
  f.call.x_batch = l.steps * l.input;
  f.call.out = out.data() + l.hidden;
  f.call.out_step = 2 * l.hidden;
  f.call.out_batch = 2 * l.hidden * l.steps;
  recurrent_forward(f.weights, f.call);
  for (int64_t t = 0; t < l.steps; ++t) {
    for (int64_t b = 0; b < l.batch; ++b) {
      const float* row = &out[(b * l.steps + t) * 2 * l.hidden];
      for (int64_t j = 0; j < l.hidden; ++j) {
        ASSERT_EQ(row[j], -9.0f) << "wrote into the other direction";
        ASSERT_NEAR(row[l.hidden + j], l.out[(t * l.batch + b) * l.hidden + j], 3e-6);
      }
    }
  }
}

TEST(Recurrent, SavedGatesExplainTheResult) {
  for (Cell cell : {Cell::kLstm, Cell::kGru, Cell::kTanh}) {
    Layer l(cell, 3, 4, 5, 35);
    FloatLayer f(l);
    int64_t saved = cell == Cell::kGru ? 4 : gate_count(cell), n = l.hidden;
    std::vector<float> gates(l.steps * l.batch * saved * n), cells(l.steps * l.batch * n);
    f.call.gates = gates.data();
    if (cell == Cell::kLstm) f.call.cells = cells.data();
    recurrent_forward(f.weights, f.call);
    for (int64_t row = 0; row < l.steps * l.batch; ++row) {
      for (int64_t j = 0; j < n; ++j) {
        auto gate = [&](int64_t g) { return gates[(row * saved + g) * n + j]; };
        float h = f.out[row * n + j];
        float before = row < l.batch ? f.h0[row * n + j] : f.out[(row - l.batch) * n + j];
        if (cell == Cell::kLstm) {
          float old = row < l.batch ? f.c0[row * n + j] : cells[(row - l.batch) * n + j];
          ASSERT_NEAR(cells[row * n + j], gate(1) * old + gate(0) * gate(2), 1e-6);
          ASSERT_NEAR(h, gate(3) * std::tanh(cells[row * n + j]), 1e-6);
        } else if (cell == Cell::kGru) {
          ASSERT_NEAR(h, (1 - gate(1)) * gate(2) + gate(1) * before, 1e-6);
        } else {
          ASSERT_EQ(h, gate(0));
        }
      }
    }
  }
}

TEST(Recurrent, SaturatedAndNotFinite) {
  Layer l(Cell::kLstm, 2, 9, 3, 40);
  for (double& b : l.b_input) b *= 2000;  // gates at 0 and 1
  check(l, 1e-6);
  FloatLayer f(l);
  f.x[0] = std::nanf("");
  f.x[3] = INFINITY;
  recurrent_forward(f.weights, f.call);
  for (int64_t j = 0; j < l.hidden; ++j) {
    EXPECT_TRUE(std::isnan(f.out[j]));                  // the first row
    EXPECT_FALSE(std::isnan(f.out[2 * l.hidden + j]));  // rows do not mix
    EXPECT_FALSE(std::isnan(f.out[(l.batch + 2) * l.hidden + j]));
  }
}

TEST(Recurrent, ActivationsAreAccurate) {
  // A plain RNN of one unit and no recurrent weight is the activation itself.
  int64_t count = 4000;
  std::vector<float> x(count), out(count);
  for (int64_t i = 0; i < count; ++i) {
    x[i] = static_cast<float>((i - count / 2) * 0.005);
    if (i % 10 == 3) x[i] *= 1e-4f;
  }
  float one = 1, zero = 0;
  RecurrentWeights weights(PlainWeights<float>{Cell::kTanh, 1, 1, &one, &zero});
  recurrent_forward(weights, {count, 1, false, x.data(), 1, 1, nullptr, nullptr, out.data(), 1, 1});
  for (int64_t i = 0; i < count; ++i) {
    double exact = std::tanh(static_cast<double>(x[i]));
    ASSERT_NEAR(out[i], exact, 1.5e-7 * std::fabs(exact)) << x[i];
  }
}

TEST(Recurrent, SameBitsForAnyNumberOfThreads) {
  int threads = num_threads();
  Layer l(Cell::kLstm, 4, 40, 200, 256);
  FloatLayer one(l), four(l);
  set_num_threads(1);
  recurrent_forward(one.weights, one.call);
  set_num_threads(4);
  recurrent_forward(four.weights, four.call);
  set_num_threads(threads);
  EXPECT_EQ(std::memcmp(one.out.data(), four.out.data(), one.out.size() * sizeof(float)), 0);
  EXPECT_EQ(std::memcmp(one.c.data(), four.c.data(), one.c.size() * sizeof(float)), 0);
}

TEST(Recurrent, SeveralAtOnceOnTheSameWeights) {
  Layer l(Cell::kLstm, 5, 20, 64, 64);
  l.compute();
  FloatLayer f(l);
  std::vector<FloatLayer> layers;
  layers.reserve(4);
  for (int i = 0; i < 4; ++i) layers.emplace_back(l);
  std::vector<std::thread> threads;
  for (FloatLayer& layer : layers) {
    threads.emplace_back([&] { recurrent_forward(f.weights, layer.call); });
  }
  for (std::thread& thread : threads) thread.join();
  for (FloatLayer& layer : layers) expect_near(l.out, layer.out.data(), 3e-6, "out");
}

TEST(Recurrent, DoubleAgainstLoops) {
  for (Cell cell : {Cell::kLstm, Cell::kGru, Cell::kTanh, Cell::kRelu}) {
    Layer l(cell, 4, 3, 6, 9);
    l.reverse = cell == Cell::kGru;
    l.compute();
    std::vector<double> out(l.out.size()), h(l.h.size()), c(l.c.size());
    PlainWeights<double> weights{cell,
                                 l.input,
                                 l.hidden,
                                 l.w_input.data(),
                                 l.w_hidden.data(),
                                 l.b_input.data(),
                                 l.b_hidden.data()};
    RecurrentCall<double> call{l.steps,  l.batch,     l.reverse,   l.x.data(), l.batch * l.input,
                               l.input,  l.h0.data(), l.c0.data(), out.data(), l.batch * l.hidden,
                               l.hidden, h.data(),    c.data()};
    recurrent_forward(weights, call);
    for (size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], l.out[i], 1e-13);
    for (size_t i = 0; i < h.size(); ++i) ASSERT_NEAR(h[i], l.h[i], 1e-13);
    if (cell == Cell::kLstm) {
      for (size_t i = 0; i < c.size(); ++i) ASSERT_NEAR(c[i], l.c[i], 1e-13);
    }
  }
}

}  // namespace
}  // namespace prong::blas
