// Recurrent layers lstm, gru, rnn_tanh, rnn_relu as one op each, over the compute core in
// blas/lstm.h. Weights are packed when first seen and again when they change.
#include <vector>

#include "ops/blas/lstm.h"
#include "ops/gradient.h"
#include "ops/kernels/product.h"
#include "runtime/parallel.h"

namespace prong {
namespace {

constexpr const char* kVmapLater = "vmap is not built yet";

struct Settings {
  blas::Cell cell;
  bool has_biases;
  int64_t num_layers;
  double dropout;
  bool train, bidirectional, batch_first;
  int64_t directions() const { return bidirectional ? 2 : 1; }
  int64_t per_cell() const { return has_biases ? 4 : 2; }
};

const char* name_of(blas::Cell cell) {
  switch (cell) {
  case blas::Cell::kLstm:
    return "lstm";
  case blas::Cell::kGru:
    return "gru";
  case blas::Cell::kTanh:
    return "rnn_tanh";
  case blas::Cell::kRelu:
    return "rnn_relu";
  }
  return "?";
}

// ── checks and shapes, on abstract tensors ──

struct RnnShape {
  TensorMeta output, state;
};

RnnShape check(const TensorMeta& x, const std::vector<TensorMeta>& states,
               const std::vector<TensorMeta>& params, const Settings& s) {
  const char* op = name_of(s.cell);
  PRONG_CHECK(x.rank() == 3, kRuntime, op,
              ": expected a 3-dimensional input [steps, batch, features], but got shape ", x.sizes);
  PRONG_CHECK(is_floating(x.dtype), kRuntime, op, ": expected a floating-point input, but got ",
              x.dtype);
  const size_t expected = static_cast<size_t>(s.num_layers * s.directions() * s.per_cell());
  PRONG_CHECK(s.num_layers > 0 && params.size() == expected, kRuntime, op, ": expected ", expected,
              " parameters for ", s.num_layers, " layers, but got ", params.size());
  const int64_t batch = x.sizes[s.batch_first ? 0 : 1];
  PRONG_CHECK(params[1].rank() == 2, kRuntime, op,
              ": expected weight_hh to be a matrix, but got shape ", params[1].sizes);
  const int64_t hidden = params[1].sizes[1], rows = blas::gate_count(s.cell) * hidden;
  for (size_t i = 0; i < params.size(); i += static_cast<size_t>(s.per_cell())) {
    const int64_t layer = static_cast<int64_t>(i) / (s.per_cell() * s.directions());
    const int64_t features = layer == 0 ? x.sizes[2] : hidden * s.directions();
    const Dims want_input{rows, features}, want_hidden{rows, hidden}, want_bias{rows};
    const auto match = [&](size_t at, const Dims& want, const char* what) {
      PRONG_CHECK(params[at].sizes == want, kRuntime, op, ": expected ", what, " of layer ", layer,
                  " to have shape ", want, ", but got ", params[at].sizes);
      PRONG_CHECK(params[at].dtype == x.dtype, kRuntime, op,
                  ": input and parameter tensors are not the same dtype, found input tensor with ",
                  x.dtype, " and parameter tensor with ", params[at].dtype);
    };
    match(i, want_input, "weight_ih");
    match(i + 1, want_hidden, "weight_hh");
    if (s.has_biases) {
      match(i + 2, want_bias, "bias_ih");
      match(i + 3, want_bias, "bias_hh");
    }
  }
  const Dims state_sizes{s.num_layers * s.directions(), batch, hidden};
  for (const TensorMeta& state : states) {
    PRONG_CHECK(state.sizes == state_sizes, kRuntime, op, ": Expected hidden size (",
                state_sizes[0], ", ", state_sizes[1], ", ", state_sizes[2], "), got ", state.sizes);
    PRONG_CHECK(state.dtype == x.dtype, kRuntime, op,
                ": input and hidden state are not the same dtype: ", x.dtype, " and ", state.dtype);
  }
  Dims out = x.sizes;
  out[2] = hidden * s.directions();
  return {{out, x.dtype}, {state_sizes, x.dtype}};
}

// ── packed weights, kept with the storage of weight_hh ──

struct PackedWeights final : RefCounted {
  struct Source {
    const Storage* storage;
    uint64_t version;
    int64_t offset;
    Dims sizes, strides;
    bool operator==(const Source&) const = default;
  };
  blas::Cell cell;
  std::vector<Source> sources;
  blas::RecurrentWeights weights;
};

std::vector<PackedWeights::Source> sources_of(std::span<const Tensor> params) {
  std::vector<PackedWeights::Source> sources;
  for (const Tensor& p : params)
    sources.push_back(
        {p.storage().get(), p.storage()->version(), p.offset(), p.sizes(), p.strides()});
  return sources;
}

template <class T>
struct CellWeights {  // contiguous copies where needed, and pointers into them
  std::vector<Tensor> holders;
  blas::PlainWeights<T> plain;
  CellWeights(blas::Cell cell, std::span<const Tensor> params) {
    for (const Tensor& p : params) holders.push_back(p.contiguous());
    plain = {cell, holders[0].size(1), holders[1].size(1), holders[0].data<T>(),
             holders[1].data<T>()};
    if (holders.size() == 4) {
      plain.b_input = holders[2].data<T>();
      plain.b_hidden = holders[3].data<T>();
    }
  }
};

Ref<PackedWeights> packed(blas::Cell cell, std::span<const Tensor> params) {
  // Memory that NumPy can write to may change unseen, so it is packed anew each time.
  bool keep = true;
  for (const Tensor& p : params) keep &= !p.storage()->is_exposed();
  std::vector<PackedWeights::Source> sources = sources_of(params);
  Storage& home = *params[1].storage();
  if (keep) {
    const Ref<RefCounted> found = home.attachment();
    if (auto* weights = dynamic_cast<PackedWeights*>(found.get());
        weights && weights->cell == cell && weights->sources == sources)
      return Ref<PackedWeights>(weights);
  }
  const auto made = make_ref<PackedWeights>();
  made->cell = cell;
  made->sources = std::move(sources);
  made->weights = blas::RecurrentWeights(CellWeights<float>(cell, params).plain);
  if (keep) home.attach(made);
  return made;
}

// ── running ──

template <class T>
void run_cell(const Settings& s, std::span<const Tensor> params,
              const blas::RecurrentCall<T>& call) {
  if constexpr (std::is_same_v<T, float>)
    blas::recurrent_forward(packed(s.cell, params)->weights, call);
  else
    blas::recurrent_forward(CellWeights<T>(s.cell, params).plain, call);
}

// One layer, all its directions; gives the sequence of outputs.
template <class T>
Tensor run_layer(const Tensor& input, const std::vector<Tensor>& states,
                 const std::vector<Tensor>& params, const Settings& s, int64_t layer,
                 std::span<const Tensor> finals) {
  const Tensor x = input.stride(2) == 1 || input.size(2) <= 1 ? input : input.contiguous();
  const int64_t hidden = params[1].size(1);
  const int time = s.batch_first ? 1 : 0, batch = 1 - time;
  Dims sizes = x.sizes();
  sizes[2] = hidden * s.directions();
  const Tensor out = Tensor::empty(sizes, x.dtype());
  const auto run_direction = [&](int64_t d) {
    const int64_t index = layer * s.directions() + d;
    const auto state = [&](const Tensor& t) { return t.data<T>() + index * t.stride(0); };
    blas::RecurrentCall<T> call{};
    call.steps = x.size(time);
    call.batch = x.size(batch);
    call.reverse = d == 1;
    call.x = x.data<T>();
    call.x_step = x.stride(time);
    call.x_batch = x.stride(batch);
    call.h0 = state(states[0]);
    call.c0 = states.size() > 1 ? state(states[1]) : nullptr;
    call.out = out.data<T>() + d * hidden;
    call.out_step = out.stride(time);
    call.out_batch = out.stride(batch);
    call.h_n = state(finals[0]);
    call.c_n = finals.size() > 1 ? state(finals[1]) : nullptr;
    run_cell<T>(s,
                std::span(params).subspan(static_cast<size_t>(index * s.per_cell()),
                                          static_cast<size_t>(s.per_cell())),
                call);
  };
  if (s.bidirectional)
    parallel_for(0, 2, 1, [&](int64_t begin, int64_t end) {
      for (int64_t d = begin; d < end; ++d) run_direction(d);
    });
  else
    run_direction(0);
  return out;
}

Tensor dropped(const Tensor& x, double p) {
  const Tensor mask = call_tensor("bernoulli_.float", Tensor::empty(x.sizes(), x.dtype()), 1 - p);
  return call_tensor("mul", x, call_tensor("mul", mask, 1 / (1 - p)));
}

template <class T>
std::vector<Tensor> run_layers(const Tensor& input, const std::vector<Tensor>& given,
                               const std::vector<Tensor>& params, const Settings& s) {
  std::vector<Tensor> states, finals;
  for (const Tensor& g : given) {
    states.push_back(g.contiguous());
    finals.push_back(Tensor::empty(g.sizes(), g.dtype()));
  }
  Tensor x = input;
  for (int64_t layer = 0; layer < s.num_layers; ++layer) {
    x = run_layer<T>(x, states, params, s, layer, finals);
    if (s.train && s.dropout > 0 && layer + 1 < s.num_layers) x = dropped(x, s.dropout);
  }
  std::vector<Tensor> results{x};
  results.insert(results.end(), finals.begin(), finals.end());
  return results;
}

// ── one layer and direction, with what its gradient needs ──

struct LayerResult {
  Tensor out, h_n, c_n, gates, cells;
};

template <class T>
LayerResult run_saving(blas::Cell cell, const Tensor& given, const Tensor& h0, const Tensor& c0,
                       const std::vector<Tensor>& params, bool reverse, bool batch_first) {
  const Tensor x = given.stride(2) == 1 || given.size(2) <= 1 ? given : given.contiguous();
  const int time = batch_first ? 1 : 0, batch = 1 - time;
  const int64_t hidden = params[1].size(1), saved = cell == blas::Cell::kGru ? 4 : gate_count(cell);
  Dims sizes = x.sizes();
  sizes[2] = hidden;
  const bool is_lstm = cell == blas::Cell::kLstm;
  const Tensor h = h0.contiguous(), c = is_lstm ? c0.contiguous() : Tensor();
  const auto room = [&](DimsView s) { return Tensor::empty(s, x.dtype()); };
  LayerResult r{room(sizes), room(h.sizes()), room(is_lstm ? h.sizes() : Dims{0}),
                room(Dims{x.size(time), x.size(batch), saved, hidden}),
                room(is_lstm ? Dims{x.size(time), x.size(batch), hidden} : Dims{0})};
  blas::RecurrentCall<T> call{};
  call.steps = x.size(time);
  call.batch = x.size(batch);
  call.reverse = reverse;
  call.x = x.data<T>();
  call.x_step = x.stride(time);
  call.x_batch = x.stride(batch);
  call.h0 = h.data<T>();
  call.c0 = is_lstm ? c.data<T>() : nullptr;
  call.out = r.out.template data<T>();
  call.out_step = r.out.stride(time);
  call.out_batch = r.out.stride(batch);
  call.h_n = r.h_n.template data<T>();
  call.c_n = is_lstm ? r.c_n.template data<T>() : nullptr;
  call.gates = r.gates.template data<T>();
  call.cells = is_lstm ? r.cells.template data<T>() : nullptr;
  Settings s{};
  s.cell = cell;
  run_cell<T>(s, params, call);
  return r;
}

std::tuple<Expr, Expr, Expr, std::vector<Expr>> layer_gradient(Gradient& g) {
  const Expr back =
      op<"recurrent_backward">(g.out(0), g.out(1), g.out(2), g["input"], g["h0"], g.value("c0"),
                               g.value("params"), g["result"], g["result.3"], g["result.4"],
                               g.value("cell"), g.value("reverse"), g.value("batch_first"));
  std::vector<Expr> params{back[3], back[4]};
  if (g.length("params") > 2) params.insert(params.end(), {back[5], back[6]});
  return {back[0], back[1], g.is_given("c0") ? back[2] : g.none(), params};
}

void register_layer(Registry& r) {
  r.add(
       "recurrent_layer(input: Tensor, h0: Tensor, c0: Tensor?, params: Tensor[], cell: int, "
       "reverse: bool, batch_first: bool) -> (Tensor, Tensor, Tensor, Tensor, Tensor)")
      .doc(
          "One layer and direction of an LSTM, a GRU or a plain RNN (cell 0, 1, 2: tanh, 3: relu): "
          "the outputs, the last states, and for the way back the gates and cell states.")
      .where({.function = false, .method = false})
      .kernel([](const Tensor& x, const Tensor& h0, const std::optional<Tensor>& c0,
                 const std::vector<Tensor>& params, int64_t cell, bool reverse, bool batch_first) {
        const auto run = [&](auto tag) {
          using T = typename decltype(tag)::type;
          return run_saving<T>(static_cast<blas::Cell>(cell), x, h0, c0.value_or(Tensor()), params,
                               reverse, batch_first);
        };
        const LayerResult a =
            x.dtype() == DType::kFloat64 ? run(TypeTag<double>{}) : run(TypeTag<float>{});
        return std::make_tuple(a.out, a.h_n, a.c_n, a.gates, a.cells);
      })
      .shape([](const TensorMeta& x, const TensorMeta& h0, const std::optional<TensorMeta>&,
                const std::vector<TensorMeta>&, int64_t cell, bool, bool batch_first) {
        const bool is_lstm = static_cast<blas::Cell>(cell) == blas::Cell::kLstm;
        const int64_t gates = static_cast<blas::Cell>(cell) == blas::Cell::kGru
                                  ? 4
                                  : gate_count(static_cast<blas::Cell>(cell));
        const int64_t steps = x.sizes[batch_first ? 1 : 0], batch = h0.sizes[0],
                      hidden = h0.sizes[1];
        TensorMeta out = x;
        out.sizes[2] = hidden;
        return std::make_tuple(out, h0, TensorMeta{is_lstm ? h0.sizes : Dims{0}, x.dtype},
                               TensorMeta{{steps, batch, gates, hidden}, x.dtype},
                               TensorMeta{is_lstm ? Dims{steps, batch, hidden} : Dims{0}, x.dtype});
      })
      .grad("input, h0, c0, params", "input, h0, c0, params, result, result.3, result.4",
            [](Gradient& g) { return layer_gradient(g); })
      .no_vmap(kVmapLater)
      .samples({{"t(3, 2, 4), t(2, 5), t(2, 5), [t(20, 4), t(20, 5), t(20), t(20)], 0, False, "
                 "False"},
                {"t(2, 3, 4), t(2, 5), None, [t(15, 4), t(15, 5)], 1, True, True"}});
}

// All layers out of such ones, for gradients.
std::vector<Tensor> run_composed(Tensor x, const std::vector<Tensor>& states,
                                 const std::vector<Tensor>& params, const Settings& s) {
  const bool is_lstm = s.cell == blas::Cell::kLstm;
  std::vector<Tensor> h_n, c_n;
  for (int64_t layer = 0; layer < s.num_layers; ++layer) {
    std::vector<Tensor> outs;
    for (int64_t d = 0; d < s.directions(); ++d) {
      const int64_t index = layer * s.directions() + d;
      const auto first = params.begin() + index * s.per_cell();
      const auto state = [&](size_t i) {
        return call_tensor("select", states[i], int64_t{0}, index);
      };
      const IValue r =
          call("recurrent_layer", x, state(0), is_lstm ? std::optional(state(1)) : std::nullopt,
               std::vector<Tensor>(first, first + s.per_cell()), static_cast<int64_t>(s.cell),
               d == 1, s.batch_first);
      outs.push_back(r.items()[0].to_tensor());
      h_n.push_back(r.items()[1].to_tensor());
      if (is_lstm) c_n.push_back(r.items()[2].to_tensor());
    }
    x = outs.size() == 1 ? outs[0] : call_tensor("cat", outs, int64_t{2});
    if (s.train && s.dropout > 0 && layer + 1 < s.num_layers) x = dropped(x, s.dropout);
  }
  std::vector<Tensor> results{x, call_tensor("stack", h_n, int64_t{0})};
  if (is_lstm) results.push_back(call_tensor("stack", c_n, int64_t{0}));
  return results;
}

std::vector<TensorMeta> metas_of(const std::vector<Tensor>& tensors) {
  std::vector<TensorMeta> metas;
  for (const Tensor& t : tensors) metas.push_back(t.meta());
  return metas;
}

std::vector<Tensor> run(const Tensor& x, const std::vector<Tensor>& states,
                        const std::vector<Tensor>& params, const Settings& s) {
  const RnnShape shape = check(x.meta(), metas_of(states), metas_of(params), s);
  if (x.numel() == 0 &&
      shape.output.numel() == 0) {  // no steps or no rows: the states pass through
    std::vector<Tensor> results{Tensor::empty(shape.output.sizes, x.dtype())};
    for (const Tensor& t : states) results.push_back(call_tensor("clone", t));
    return results;
  }
  if (size_of(x.dtype()) > 2) {
    if (composing) return run_composed(x, states, params, s);
    return x.dtype() == DType::kFloat64 ? run_layers<double>(x, states, params, s)
                                        : run_layers<float>(x, states, params, s);
  }
  const auto widen = [](const Tensor& t) { return call_tensor("to", t, DType::kFloat32); };
  const auto widen_all = [&](const std::vector<Tensor>& ts) {
    std::vector<Tensor> wide;
    for (const Tensor& t : ts) wide.push_back(widen(t));
    return wide;
  };
  std::vector<Tensor> results = run(widen(x), widen_all(states), widen_all(params), s);
  for (Tensor& t : results) t = call_tensor("to", t, x.dtype());
  return results;
}

Cost rnn_cost(const OpDef&, std::span<const IValue> args) {
  const TensorMeta x = meta_from(args[0]);
  double weights = 0;
  for (const IValue& p : args[2].items()) weights += static_cast<double>(meta_from(p).numel());
  const double rows = static_cast<double>(x.sizes[0] * x.sizes[1]);
  return {2 * rows * weights, 4 * (weights + 2 * static_cast<double>(x.numel()))};
}

template <blas::Cell kCell>
void register_single_state(Registry& r, const char* doc, std::vector<Sample> samples) {
  r.add(cat(name_of(kCell),
            "(input: Tensor, hx: Tensor, params: Tensor[], has_biases: bool, num_layers: int, "
            "dropout: float, train: bool, "
            "bidirectional: bool, batch_first: bool) -> (Tensor, Tensor)"))
      .doc(doc)
      .where({.method = false})
      .shape([](const TensorMeta& x, const TensorMeta& h, const std::vector<TensorMeta>& params,
                bool biases, int64_t layers, double dropout, bool train, bool both,
                bool batch_first) {
        const RnnShape shape =
            check(x, {h}, params, {kCell, biases, layers, dropout, train, both, batch_first});
        return std::make_tuple(shape.output, shape.state);
      })
      .kernel([](const Tensor& x, const Tensor& h, const std::vector<Tensor>& params, bool biases,
                 int64_t layers, double dropout, bool train, bool both, bool batch_first) {
        std::vector<Tensor> out =
            run(x, {h}, params, {kCell, biases, layers, dropout, train, both, batch_first});
        return std::make_tuple(out[0], out[1]);
      })
      .cost(rnn_cost)
      .composite()
      .no_vmap(kVmapLater)
      .samples(std::move(samples));
}

}  // namespace

void register_rnn(Registry& r) {
  register_layer(r);
  r.add(
       "lstm(input: Tensor, hx: Tensor[], params: Tensor[], has_biases: bool, num_layers: int, "
       "dropout: float, train: bool, "
       "bidirectional: bool, batch_first: bool) -> (Tensor, Tensor, Tensor)")
      .doc(
          "LSTM layers over a sequence [T, B, I]; hx is [h0, c0]; params lists weight_ih, "
          "weight_hh(, bias_ih, bias_hh) a layer and direction.")
      .where({.method = false})
      .shape([](const TensorMeta& x, const std::vector<TensorMeta>& hx,
                const std::vector<TensorMeta>& params, bool biases, int64_t layers, double dropout,
                bool train, bool both, bool batch_first) {
        PRONG_CHECK(hx.size() == 2, kRuntime, "lstm expects two hidden states");
        const RnnShape shape = check(
            x, hx, params, {blas::Cell::kLstm, biases, layers, dropout, train, both, batch_first});
        return std::make_tuple(shape.output, shape.state, shape.state);
      })
      .kernel([](const Tensor& x, const std::vector<Tensor>& hx, const std::vector<Tensor>& params,
                 bool biases, int64_t layers, double dropout, bool train, bool both,
                 bool batch_first) {
        PRONG_CHECK(hx.size() == 2, kRuntime, "lstm expects two hidden states");
        std::vector<Tensor> out = run(
            x, hx, params, {blas::Cell::kLstm, biases, layers, dropout, train, both, batch_first});
        return std::make_tuple(out[0], out[1], out[2]);
      })
      .cost(rnn_cost)
      .composite()
      .no_vmap(kVmapLater)
      .samples({{"t(3, 2, 4), [t(1, 2, 5), t(1, 2, 5)], [t(20, 4), t(20, 5), t(20), t(20)], True, "
                 "1, 0.0, False, False, False"},
                {"t(2, 3, 4, dtype=float64), [t(2, 2, 3, dtype=float64), t(2, 2, 3, "
                 "dtype=float64)], [t(12, 4, dtype=float64), t(12, 3, dtype=float64), t(12, 4, "
                 "dtype=float64), t(12, 3, dtype=float64)], False, 1, 0.0, False, True, True"}});
  register_single_state<blas::Cell::kGru>(r, "GRU layers over a sequence [T, B, I].",
                                          {{"t(3, 2, 4), t(1, 2, 5), [t(15, 4), t(15, 5), t(15), "
                                            "t(15)], True, 1, 0.0, False, False, False"}});
  register_single_state<blas::Cell::kTanh>(r, "Plain recurrent layers with tanh.",
                                           {{"t(3, 2, 4), t(1, 2, 5), [t(5, 4), t(5, 5), t(5), "
                                             "t(5)], True, 1, 0.0, False, False, False"}});
  register_single_state<blas::Cell::kRelu>(r, "Plain recurrent layers with relu.",
                                           {{"t(3, 2, 4), t(1, 2, 5), [t(5, 4), t(5, 5), t(5), "
                                             "t(5)], True, 1, 0.0, False, False, False"}});
}

}  // namespace prong
