// See recurrent_backward.h. Step by step back for what goes from state to state; the gradients of
// inputs and weights are then one product each over all steps.
#include "ops/kernels/recurrent_backward.h"

#include <algorithm>

#include "ops/blas/gemm.h"
#include "ops/kernels/simd.h"
#include "ops/op_def.h"
#include "ops/scalar_math.h"
#include "runtime/parallel.h"

namespace prong {

namespace {

using blas::Cell;

// One row of one step. `gates` as saved; `dh` is all that came to the state, and becomes what goes
// to the state before except through the recurrent weights; `dc` likewise.
template <class T>
struct Row {
  int64_t hidden;
  const T *gates, *h, *h_before, *c, *c_before;
  T *dh, *dc;
  T *d_input, *d_hidden;  // of the gates' sums: of their input part and of their recurrent part
};

template <class T>
struct LstmRow {
  static PRONG_INLINE void run(const Row<T>* row) {
    const Row<T> r = *row;
    const int64_t n = r.hidden;
    const T *gi = r.gates, *gf = gi + n, *gg = gf + n, *go = gg + n;
    T *di = r.d_input, *df = di + n, *dg = df + n, *dout = dg + n;
    for (int64_t j = 0; j < n; ++j) {
      const T i = gi[j], f = gf[j], g = gg[j], o = go[j], tanh_c = math::tanh(r.c[j]);
      const T dh = r.dh[j], dc = r.dc[j] + dh * o * (T(1) - tanh_c * tanh_c);
      di[j] = dc * g * i * (T(1) - i);
      df[j] = dc * r.c_before[j] * f * (T(1) - f);
      dg[j] = dc * i * (T(1) - g * g);
      dout[j] = dh * tanh_c * o * (T(1) - o);
      r.dc[j] = dc * f;
    }
  }
};
template <class T>
struct GruRow {
  static PRONG_INLINE void run(const Row<T>* row) {
    const Row<T> w = *row;
    const int64_t n = w.hidden;
    const T *gr = w.gates, *gz = gr + n, *gn = gz + n, *gh = gn + n;
    T *dr = w.d_input, *dz = dr + n, *dn = dz + n;
    T *hr = w.d_hidden, *hz = hr + n, *hn = hz + n;
    for (int64_t j = 0; j < n; ++j) {
      const T r = gr[j], z = gz[j], fresh = gn[j], dh = w.dh[j];
      const T d_new = dh * (T(1) - z) * (T(1) - fresh * fresh);
      dr[j] = hr[j] = d_new * gh[j] * r * (T(1) - r);
      dz[j] = hz[j] = dh * (w.h_before[j] - fresh) * z * (T(1) - z);
      dn[j] = d_new;
      hn[j] = d_new * r;
      w.dh[j] = dh * z;
    }
  }
};
template <class T, bool kIsTanh>
struct PlainRow {
  static PRONG_INLINE void run(const Row<T>* row) {
    const Row<T> r = *row;
    for (int64_t j = 0; j < r.hidden; ++j) {
      const T h = r.h[j];
      r.d_input[j] = kIsTanh ? r.dh[j] * (T(1) - h * h) : (h > T(0) ? r.dh[j] : T(0));
    }
  }
};

template <class T>
void run_row(Cell cell, const Row<T>& row) {
  switch (cell) {
  case Cell::kLstm:
    return run_simd<LstmRow<T>>(&row);
  case Cell::kGru:
    return run_simd<GruRow<T>>(&row);
  case Cell::kTanh:
    return run_simd<PlainRow<T, true>>(&row);
  case Cell::kRelu:
    return run_simd<PlainRow<T, false>>(&row);
  }
}

// rows * weights, the same weights at every step: packed once where that pays.
template <class T>
class StepProduct {
 public:
  StepProduct(const Tensor& weights, int64_t rows)
      : weights_(weights), rows_(rows), k_(weights.size(0)), n_(weights.size(1)) {
    if constexpr (std::is_same_v<T, float>)
      if (rows >= 24) packed_ = blas::PackedMatrix(false, k_, n_, weights.data<float>(), n_);
  }
  void run(const T* from, bool accumulate, T* to) const {
    if constexpr (std::is_same_v<T, float>)
      if (packed_.n()) {
        blas::GemmStart start;
        start.accumulate = accumulate;
        return blas::gemm_packed(rows_, from, k_, packed_, start, to, n_);
      }
    blas::gemm(false, false, rows_, n_, k_, T(1), from, k_, weights_.data<T>(), n_,
               accumulate ? T(1) : T(0), to, n_);
  }

 private:
  Tensor weights_;
  int64_t rows_, k_, n_;
  blas::PackedMatrix packed_;
};

template <class T>
class WalkBack {
 public:
  WalkBack(const RecurrentStates& s, const Tensor& d_out, const Tensor& d_h, const Tensor& d_c)
      : s_(s), d_out_(d_out), steps_(s.x.size(0)), batch_(s.x.size(1)), hidden_(s.h0.size(1)),
        columns_(blas::gate_count(s.cell) * hidden_), dh_(start(d_h)) {
    if (s.cell == Cell::kLstm) dc_ = start(d_c);
    d_input_ = Tensor::empty(Dims{steps_, batch_, columns_}, s.x.dtype());
    d_hidden_ = s.cell == Cell::kGru ? Tensor::empty(d_input_.sizes(), s.x.dtype()) : d_input_;
  }

  RecurrentGradients run() {
    const StepProduct<T> product(s_.w_hidden, batch_);
    for (int64_t i = steps_; i-- > 0;) {
      const int64_t t = s_.reverse ? steps_ - 1 - i : i;
      step(t, i == 0 ? -1 : s_.reverse ? t + 1 : t - 1);
      product.run(d_hidden_.template data<T>() + t * batch_ * columns_, s_.cell == Cell::kGru,
                  dh_.template data<T>());
    }
    return {of_inputs(),    dh_, dc_, of_input_weights(), of_hidden_weights(), sums(d_input_),
            sums(d_hidden_)};
  }

 private:
  Tensor start(const Tensor& given) const {
    const Tensor state = Tensor::empty(s_.h0.sizes(), s_.h0.dtype());
    if (given.defined())
      copy_into(state, given);
    else
      fill(state, int64_t{0});
    return state;
  }

  // The rows of step t; `before` is the step that came before it, -1 for none.
  void step(int64_t t, int64_t before) {
    const int64_t n = hidden_, saved = s_.gates.numel() / std::max<int64_t>(1, steps_ * batch_);
    const auto state = [&](const Tensor& all, const Tensor& first) -> const T* {
      if (!all.defined()) return nullptr;
      return before < 0 ? first.data<T>() : all.data<T>() + before * batch_ * n;
    };
    const T *h_before = state(s_.out, s_.h0), *c_before = state(s_.cells, s_.c0);
    parallel_for(0, batch_, std::max<int64_t>(1, 4096 / std::max<int64_t>(1, columns_)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t b = begin; b < end; ++b) {
                     const int64_t at = t * batch_ + b;
                     T* dh = dh_.template data<T>() + b * n;
                     if (d_out_.defined()) {
                       const T* more = static_cast<const T*>(d_out_.raw()) + t * d_out_.stride(0) +
                                       b * d_out_.stride(1);
                       for (int64_t j = 0; j < n; ++j) dh[j] += more[j];
                     }
                     Row<T> row{};
                     row.hidden = n;
                     row.gates = s_.gates.data<T>() + at * saved;
                     row.h = s_.out.data<T>() + at * n;
                     row.h_before = h_before + b * n;
                     if (c_before) {
                       row.c = s_.cells.data<T>() + at * n;
                       row.c_before = c_before + b * n;
                       row.dc = dc_.template data<T>() + b * n;
                     }
                     row.dh = dh;
                     row.d_input = d_input_.template data<T>() + at * columns_;
                     row.d_hidden = d_hidden_.template data<T>() + at * columns_;
                     run_row(s_.cell, row);
                   }
                 });
  }

  Tensor of_inputs() const {
    const Tensor out = Tensor::empty(s_.x.sizes(), s_.x.dtype());
    const int64_t inputs = s_.x.size(2);
    blas::gemm(false, false, steps_ * batch_, inputs, columns_, T(1), d_input_.data<T>(), columns_,
               s_.w_input.data<T>(), inputs, T(0), out.data<T>(), inputs);
    return out;
  }
  // d[columns, width] += gates^T * rows
  void add_products(const Tensor& gates, int64_t first, int64_t count, const T* rows, int64_t width,
                    bool accumulate, const Tensor& out) const {
    blas::gemm(true, false, columns_, width, count * batch_, T(1),
               gates.data<T>() + first * batch_ * columns_, columns_, rows, width,
               accumulate ? T(1) : T(0), out.data<T>(), width);
  }
  Tensor of_input_weights() const {
    const Tensor out = Tensor::empty(s_.w_input.sizes(), s_.x.dtype());
    add_products(d_input_, 0, steps_, s_.x.data<T>(), s_.x.size(2), false, out);
    return out;
  }
  // Every step's gates with the state before it.
  Tensor of_hidden_weights() const {
    const Tensor out = Tensor::empty(s_.w_hidden.sizes(), s_.x.dtype());
    const int64_t first = s_.reverse ? steps_ - 1 : 0, shift = s_.reverse ? 1 : 0;
    add_products(d_hidden_, first, 1, s_.h0.data<T>(), hidden_, false, out);
    if (steps_ > 1)
      add_products(d_hidden_, 1 - shift, steps_ - 1, s_.out.data<T>() + shift * batch_ * hidden_,
                   hidden_, true, out);
    return out;
  }
  Tensor sums(const Tensor& gates) const { return call_tensor("sum", gates, Dims{0, 1}); }

  const RecurrentStates& s_;
  const Tensor& d_out_;
  int64_t steps_, batch_, hidden_, columns_;
  Tensor dh_, dc_, d_input_, d_hidden_;
};

}  // namespace

RecurrentGradients recurrent_backward(const RecurrentStates& s, const Tensor& d_out,
                                      const Tensor& d_h, const Tensor& d_c) {
  if (s.x.dtype() == DType::kFloat64) return WalkBack<double>(s, d_out, d_h, d_c).run();
  return WalkBack<float>(s, d_out, d_h, d_c).run();
}

}  // namespace prong
