// Recurrent layers of doubles: the same walk as lstm.cpp with plain loops and products through
// gemm. Called through lstm.h.
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/blas/gemm.h"
#include "ops/blas/lstm.h"

namespace prong::blas {

namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

class DoubleWalk {
 public:
  DoubleWalk(const PlainWeights<double>& w, const RecurrentCall<double>& call)
      : w_(w), call_(call), gates_(gate_count(w.cell)), columns_(gates_ * w.hidden),
        input_sums_(call.batch * columns_), hidden_sums_(call.batch * columns_),
        h_(make_state(call.h0)), c_(make_state(call.c0)) {}

  void run() {
    for (int64_t i = 0; i < call_.steps; ++i) step(call_.reverse ? call_.steps - 1 - i : i);
    if (call_.h_n) std::copy(h_.begin(), h_.end(), call_.h_n);
    if (call_.c_n) std::copy(c_.begin(), c_.end(), call_.c_n);
  }

 private:
  std::vector<double> make_state(const double* from) const {
    std::vector<double> state(call_.batch * w_.hidden, 0.0);
    if (from) std::copy_n(from, state.size(), state.begin());
    return state;
  }

  // sums[batch, columns] = bias + rows * weights^T
  void multiply(const double* rows, int64_t stride, int64_t k, const double* weights,
                const double* bias, std::vector<double>& sums) const {
    for (int64_t i = 0; i < call_.batch; ++i) {
      for (int64_t j = 0; j < columns_; ++j) sums[i * columns_ + j] = bias ? bias[j] : 0.0;
    }
    gemm(false, true, call_.batch, columns_, k, 1.0, rows, stride, weights, k, 1.0, sums.data(),
         columns_);
  }

  void step(int64_t t) {
    multiply(call_.x + t * call_.x_step, call_.x_batch, w_.input, w_.w_input, w_.b_input,
             input_sums_);
    multiply(h_.data(), w_.hidden, w_.hidden, w_.w_hidden, w_.b_hidden, hidden_sums_);
    for (int64_t i = 0; i < call_.batch; ++i) {
      for (int64_t j = 0; j < w_.hidden; ++j) unit(t, i, j);
    }
  }

  void unit(int64_t t, int64_t i, int64_t j) {
    const double* input = input_sums_.data() + i * columns_ + j;
    const double* hidden = hidden_sums_.data() + i * columns_ + j;
    int64_t n = w_.hidden;
    double& h = h_[i * n + j];
    double& c = c_[i * n + j];
    double activated[4] = {};
    auto sum = [&](int64_t gate) { return input[gate * n] + hidden[gate * n]; };
    switch (w_.cell) {
    case Cell::kLstm:
      for (int64_t gate : {0, 1, 3}) activated[gate] = sigmoid(sum(gate));
      activated[2] = std::tanh(sum(2));
      c = activated[1] * c + activated[0] * activated[2];
      h = activated[3] * std::tanh(c);
      break;
    case Cell::kGru:
      for (int64_t gate : {0, 1}) activated[gate] = sigmoid(sum(gate));
      activated[3] = hidden[2 * n];
      activated[2] = std::tanh(input[2 * n] + activated[0] * activated[3]);
      h = activated[2] + activated[1] * (h - activated[2]);
      break;
    case Cell::kTanh:
      h = activated[0] = std::tanh(sum(0));
      break;
    case Cell::kRelu:
      h = activated[0] = sum(0) < 0 ? 0.0 : sum(0);
      break;
    }
    call_.out[t * call_.out_step + i * call_.out_batch + j] = h;
    int64_t saved = w_.cell == Cell::kGru ? 4 : gates_, row = t * call_.batch + i;
    for (int64_t gate = 0; call_.gates && gate < saved; ++gate) {
      call_.gates[(row * saved + gate) * n + j] = activated[gate];
    }
    if (call_.cells) call_.cells[row * n + j] = c;
  }

  const PlainWeights<double>& w_;
  const RecurrentCall<double>& call_;
  int64_t gates_, columns_;
  std::vector<double> input_sums_, hidden_sums_, h_, c_;
};

}  // namespace

void recurrent_forward(const PlainWeights<double>& weights, const RecurrentCall<double>& call) {
  if (call.batch <= 0 || weights.hidden <= 0) return;
  DoubleWalk(weights, call).run();
}

}  // namespace prong::blas
