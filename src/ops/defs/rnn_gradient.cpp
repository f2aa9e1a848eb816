// The gradient of one recurrent layer and direction. Applied by the rule of recurrent_layer in
// rnn.cpp: a fused walk back over what the layer saved; where its own gradient is wanted, the same
// formulas as ordinary ops.
#include <algorithm>

#include "ops/gradient.h"
#include "ops/kernels/recurrent_backward.h"

namespace prong {

namespace {

using blas::Cell;

struct LayerCall {
  Cell cell;
  bool reverse, batch_first;
};

using Seven = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;

Tensor none_like(const Tensor& t) { return Tensor::empty(Dims{0}, t.dtype()); }

// ── fused ──

Tensor time_major(const Tensor& t, bool batch_first) {
  return batch_first ? call_tensor("transpose", t, int64_t{0}, int64_t{1}) : t;
}

Seven fused(const LayerCall& c, const Tensor& d_out, const Tensor& d_h, const Tensor& d_c,
            const Tensor& x, const Tensor& h0, const std::optional<Tensor>& c0,
            const std::vector<Tensor>& params, const Tensor& out, const Tensor& gates,
            const Tensor& cells) {
  RecurrentStates s{c.cell,
                    c.reverse,
                    time_major(x, c.batch_first).contiguous(),
                    h0.contiguous(),
                    c0 ? c0->contiguous() : Tensor(),
                    params[0].contiguous(),
                    params[1].contiguous(),
                    time_major(out, c.batch_first).contiguous(),
                    gates,
                    c.cell == Cell::kLstm ? cells : Tensor()};
  Tensor dy = time_major(d_out, c.batch_first);
  if (dy.stride(2) != 1 && dy.size(2) > 1) dy = dy.contiguous();
  const RecurrentGradients g = recurrent_backward(s, dy, d_h, d_c);
  return {time_major(g.x, c.batch_first),
          g.h0,
          g.c0.defined() ? g.c0 : none_like(x),
          g.w_input,
          g.w_hidden,
          g.b_input,
          g.b_hidden};
}

// ── as ordinary ops ──

Tensor mul(const Tensor& a, const Tensor& b) { return call_tensor("mul", a, b); }
Tensor add(const Tensor& a, const Tensor& b) { return call_tensor("add", a, b); }
Tensor sub(const Tensor& a, const Tensor& b) { return call_tensor("sub", a, b); }
Tensor less_than_one(const Tensor& a) { return call_tensor("rsub", a, int64_t{1}); }
// The slopes of sigmoid and tanh from their values.
Tensor sigmoid_slope(const Tensor& y) { return mul(y, less_than_one(y)); }
Tensor tanh_slope(const Tensor& y) { return less_than_one(mul(y, y)); }

class Unrolled {
 public:
  Unrolled(const LayerCall& c, const Tensor& x, const Tensor& h0, const std::optional<Tensor>& c0,
           const std::vector<Tensor>& params)
      : call_(c), x_(time_major(x, c.batch_first)), params_(params) {
    Tensor h = h0, state = c0 ? *c0 : Tensor();
    for (int64_t i = 0; i < x_.size(0); ++i) forward(i, h, state);
  }

  Seven backward(const Tensor& d_out, Tensor dh, Tensor dc) {
    const Tensor dy = time_major(d_out, call_.batch_first);
    const size_t n = steps_.size();
    std::vector<Tensor> d_input(n), d_hidden(n), h_before(n);
    for (size_t i = n; i-- > 0;) {
      const auto t = static_cast<size_t>(place(static_cast<int64_t>(i)));
      dh = add(dh, call_tensor("select", dy, int64_t{0}, static_cast<int64_t>(t)));
      std::tie(d_input[t], d_hidden[t]) = step_back(steps_[i], dh, dc);
      h_before[t] = steps_[i].h_before;
      const Tensor through = call_tensor("mm", d_hidden[t], params_[1]);
      dh = call_.cell == Cell::kGru ? add(dh, through) : through;
    }
    const Tensor in = call_tensor("stack", d_input, int64_t{0}),
                 hidden = call_tensor("stack", d_hidden, int64_t{0});
    const Tensor dx = call_tensor("matmul", in, params_[0]);
    return {time_major(dx, call_.batch_first),
            dh,
            call_.cell == Cell::kLstm ? dc : none_like(dh),
            weight_gradient(in, x_),
            weight_gradient(hidden, call_tensor("stack", h_before, int64_t{0})),
            call_tensor("sum", in, Dims{0, 1}),
            call_tensor("sum", hidden, Dims{0, 1})};
  }

 private:
  struct Step {
    Tensor h_before, c_before, h, tanh_c;
    std::vector<Tensor> gates;  // activated; a GRU's fourth is the recurrent part of its third
  };

  int64_t place(int64_t i) const { return call_.reverse ? x_.size(0) - 1 - i : i; }
  Tensor linear(const Tensor& rows, size_t weight) const {
    if (params_.size() > 2)
      return call_tensor("linear", rows, params_[weight], params_[weight + 2]);
    return call_tensor("linear", rows, params_[weight]);
  }
  static std::vector<Tensor> parts(const Tensor& t, int64_t count) {
    return call("chunk", t, count, int64_t{1}).to_tensors();
  }

  void forward(int64_t i, Tensor& h, Tensor& c) {
    const Tensor in = linear(call_tensor("select", x_, int64_t{0}, place(i)), 0),
                 rec = linear(h, 1);
    Step s{h, c, {}, {}, {}};
    switch (call_.cell) {
    case Cell::kLstm: {
      s.gates = parts(add(in, rec), 4);
      for (const size_t gate : {0, 1, 3}) s.gates[gate] = call_tensor("sigmoid", s.gates[gate]);
      s.gates[2] = call_tensor("tanh", s.gates[2]);
      c = add(mul(s.gates[1], c), mul(s.gates[0], s.gates[2]));
      s.tanh_c = call_tensor("tanh", c);
      h = mul(s.gates[3], s.tanh_c);
      break;
    }
    case Cell::kGru: {
      const std::vector<Tensor> a = parts(in, 3), b = parts(rec, 3);
      s.gates = {call_tensor("sigmoid", add(a[0], b[0])), call_tensor("sigmoid", add(a[1], b[1]))};
      s.gates.push_back(call_tensor("tanh", add(a[2], mul(s.gates[0], b[2]))));
      s.gates.push_back(b[2]);
      h = add(s.gates[2], mul(s.gates[1], sub(h, s.gates[2])));
      break;
    }
    case Cell::kTanh:
      h = call_tensor("tanh", add(in, rec));
      break;
    case Cell::kRelu:
      h = call_tensor("relu", add(in, rec));
      break;
    }
    s.h = h;
    steps_.push_back(std::move(s));
  }

  std::pair<Tensor, Tensor> step_back(const Step& s, Tensor& dh, Tensor& dc) const {
    const auto& g = s.gates;
    switch (call_.cell) {
    case Cell::kLstm: {
      const Tensor all = add(dc, mul(mul(dh, g[3]), tanh_slope(s.tanh_c)));
      dc = mul(all, g[1]);
      const std::vector<Tensor> sums = {
          mul(mul(all, g[2]), sigmoid_slope(g[0])), mul(mul(all, s.c_before), sigmoid_slope(g[1])),
          mul(mul(all, g[0]), tanh_slope(g[2])), mul(mul(dh, s.tanh_c), sigmoid_slope(g[3]))};
      const Tensor d = call_tensor("cat", sums, int64_t{1});
      return {d, d};
    }
    case Cell::kGru: {
      const Tensor fresh = mul(mul(dh, less_than_one(g[1])), tanh_slope(g[2]));
      const Tensor reset = mul(mul(fresh, g[3]), sigmoid_slope(g[0]));
      const Tensor update = mul(mul(dh, sub(s.h_before, g[2])), sigmoid_slope(g[1]));
      dh = mul(dh, g[1]);
      return {call_tensor("cat", std::vector<Tensor>{reset, update, fresh}, int64_t{1}),
              call_tensor("cat", std::vector<Tensor>{reset, update, mul(fresh, g[0])}, int64_t{1})};
    }
    case Cell::kTanh: {
      const Tensor d = mul(dh, tanh_slope(s.h));
      return {d, d};
    }
    case Cell::kRelu: {
      const Tensor d = mul(dh, call_tensor("to", call_tensor("gt", s.h, 0.0), dh.dtype()));
      return {d, d};
    }
    }
    __builtin_unreachable();
  }

  static Tensor weight_gradient(const Tensor& gates, const Tensor& rows) {
    const auto flat = [](const Tensor& t) {
      return call_tensor("reshape", t, Dims{t.size(0) * t.size(1), t.size(2)});
    };
    return call_tensor("mm", call_tensor("t", flat(gates)), flat(rows));
  }

  LayerCall call_;
  Tensor x_;
  const std::vector<Tensor>& params_;
  std::vector<Step> steps_;
};

}  // namespace

void register_rnn_gradient(Registry& r) {
  r.add(
       "recurrent_backward(d_out: Tensor, d_h: Tensor, d_c: Tensor, input: Tensor, h0: Tensor, c0: "
       "Tensor?, params: Tensor[], out: Tensor, gates: Tensor, cells: Tensor, cell: int, reverse: "
       "bool, batch_first: bool) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)")
      .doc(
          "The gradients of one recurrent layer and direction to its input, its first states, its "
          "weights and its biases.")
      .where({.function = false, .method = false})
      .composite()
      .kernel([](const Tensor& d_out, const Tensor& d_h, const Tensor& d_c, const Tensor& x,
                 const Tensor& h0, const std::optional<Tensor>& c0,
                 const std::vector<Tensor>& params, const Tensor& out, const Tensor& gates,
                 const Tensor& cells, int64_t cell, bool reverse, bool batch_first) {
        const LayerCall c{static_cast<Cell>(cell), reverse, batch_first};
        if (composing) return Unrolled(c, x, h0, c0, params).backward(d_out, d_h, d_c);
        return fused(c, d_out, d_h, d_c, x, h0, c0, params, out, gates, cells);
      })
      .shape([](const TensorMeta&, const TensorMeta&, const TensorMeta&, const TensorMeta& x,
                const TensorMeta& h0, const std::optional<TensorMeta>& c0,
                const std::vector<TensorMeta>& params, const TensorMeta&, const TensorMeta&,
                const TensorMeta&, int64_t, bool, bool) {
        const TensorMeta bias{{params[0].sizes[0]}, x.dtype};
        return std::make_tuple(x, h0, c0.value_or(TensorMeta{{0}, x.dtype}), params[0], params[1],
                               bias, bias);
      })
      .no_vmap("vmap is not built yet")
      .samples({{"t(3, 2, 5), t(2, 5), t(2, 5), t(3, 2, 4), t(2, 5), None, [t(5, 4), t(5, 5)], "
                 "unit(3, 2, 5), unit(3, 2, 1, 5), t(0), 2, False, False"}});
}

}  // namespace prong
