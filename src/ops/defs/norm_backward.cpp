// What normalisations send back: a pass for the sums, a pass for the result; statistics are taken
// anew from the input, which is cheaper than to keep them. Applied by the rules in norm.cpp.
//
// With r = 1 / sqrt(variance + eps), y = (x - mean) r, h = grad * weight and m() the mean over what
// was normalised:  dx = P(h), P(h) = r (h - m(h) - y m(h y)); rms_norm is without m(h).
#include <vector>

#include "ops/gradient.h"
#include "ops/kernels/moments.h"

namespace prong {
namespace {

constexpr const char* kVmapLater = "vmap is not built yet";

// Half types are computed in float.
DType compute_type(DType d) { return d == DType::kFloat64 ? d : DType::kFloat32; }
Tensor prepared(const Tensor& x, DType dtype) { return x.to(dtype).contiguous(); }

// f(TypeTag<T>) on float or double copies; results go back to the dtype of x.
template <class F>
std::tuple<Tensor, Tensor, Tensor> in_compute_type(const Tensor& x, F&& f) {
  const auto [dx, dw, db] =
      compute_type(x.dtype()) == DType::kFloat64 ? f(TypeTag<double>{}) : f(TypeTag<float>{});
  return {dx.to(x.dtype()), dw.to(x.dtype()), db.to(x.dtype())};
}

template <class T>
struct Inputs {
  Tensor grad, input, weight;
  const T *g, *x, *w = nullptr;

  Inputs(const Tensor& grad_, const Tensor& input_, const std::optional<Tensor>& weight_)
      : grad(prepared(grad_, DTypeOf<T>::value)), input(prepared(input_, DTypeOf<T>::value)) {
    g = grad.data<T>();
    x = input.data<T>();
    if (!weight_) return;
    weight = prepared(*weight_, DTypeOf<T>::value);
    w = weight.data<T>();
  }
};

// ── rows: layer_norm, rms_norm ──

template <class T>
struct RowSlopes {
  // dw and db (null: not wanted) are added to.
  static PRONG_INLINE void run(const T* grad, const T* input, const T* w, T* dx, T* dw, T* db,
                               int64_t n, int64_t begin, int64_t end, double eps, bool is_centred) {
    for (int64_t r = begin; r < end; ++r) {
      const T *g = grad + r * n, *x = input + r * n;
      T* out = dx + r * n;
      const RowScale<T> row(x, n, eps, is_centred);
      const T mean = row.mean, rstd = row.rstd;
      if (w)
        for (int64_t i = 0; i < n; ++i) out[i] = g[i] * w[i];
      else
        for (int64_t i = 0; i < n; ++i) out[i] = g[i];
      const auto sums = lane_sums<2, T>(n, [&](int64_t i) {
        return Sums<2, T>{{out[i], out[i] * (x[i] - mean)}};
      });
      const T level = is_centred ? sums.values[0] / static_cast<T>(n) : T(0);
      const T tilt = sums.values[1] * rstd * rstd / static_cast<T>(n);
      for (int64_t i = 0; i < n; ++i) out[i] = rstd * (out[i] - level - (x[i] - mean) * tilt);
      if (!dw) continue;
      for (int64_t i = 0; i < n; ++i) dw[i] += g[i] * ((x[i] - mean) * rstd);
      for (int64_t i = 0; i < n; ++i) db[i] += g[i];
    }
  }
};

template <class T>
std::tuple<Tensor, Tensor, Tensor> row_slopes(const Inputs<T>& in, const Dims& shape, double eps,
                                              bool is_centred, bool with_sums) {
  const DType dtype = DTypeOf<T>::value;
  const int64_t n = product(shape), rows = n ? in.input.numel() / n : 0;
  const Tensor dx = Tensor::empty(in.input.sizes(), dtype);
  const Dims sums_shape = with_sums ? shape : Dims{0};
  const Tensor dw = Tensor::empty(sums_shape, dtype), db = Tensor::empty(sums_shape, dtype);
  // Pieces that depend on the shape only, each with sums of its own.
  const int64_t chunk = std::max<int64_t>({1, 32768 / std::max<int64_t>(1, n), (rows + 31) / 32});
  const int64_t pieces = (rows + chunk - 1) / chunk;
  std::vector<T> partial(with_sums ? static_cast<size_t>(2 * pieces * n) : 0, T(0));
  T* out = dx.data<T>();
  parallel_chunks(0, rows, chunk, [&](int64_t begin, int64_t end) {
    T* own = with_sums ? partial.data() + begin / chunk * 2 * n : nullptr;
    run_simd<RowSlopes<T>>(in.g, in.x, in.w, out, own, own ? own + n : nullptr, n, begin, end, eps,
                           is_centred);
  });
  if (with_sums)
    for (int64_t k = 0; k < 2; ++k) {
      T* total = (k == 0 ? dw : db).template data<T>();
      std::fill_n(total, n, T(0));
      for (int64_t p = 0; p < pieces; ++p)
        for (int64_t i = 0; i < n; ++i)
          total[i] += partial[static_cast<size_t>((2 * p + k) * n + i)];
    }
  return {dx, dw, db};
}

// ── groups of channels ──

template <class T>
struct GroupSlopes {
  // Rows are (batch, group); sums hold for each (batch, channel) grad * y and grad.
  static PRONG_INLINE void run(const T* grad, const T* input, const T* w, T* dx, T* sums,
                               int64_t channels, int64_t inner, int64_t groups, int64_t begin,
                               int64_t end, double eps) {
    const int64_t width = channels / groups, n = width * inner;
    for (int64_t r = begin; r < end; ++r) {
      const T *g = grad + r * n, *x = input + r * n;
      T *out = dx + r * n, *own = sums + r * width * 2;
      const T* scale = w ? w + r % groups * width : nullptr;
      const RowScale<T> row(x, n, eps, true);
      const T mean = row.mean, rstd = row.rstd;
      T level = 0, tilt = 0;
      for (int64_t c = 0; c < width; ++c) {
        const T *gc = g + c * inner, *xc = x + c * inner;
        const auto s = lane_sums<2, T>(inner, [&](int64_t i) {
          return Sums<2, T>{{gc[i], gc[i] * ((xc[i] - mean) * rstd)}};
        });
        own[2 * c] = s.values[1];
        own[2 * c + 1] = s.values[0];
        level += s.values[0] * (scale ? scale[c] : T(1));
        tilt += s.values[1] * (scale ? scale[c] : T(1));
      }
      level /= static_cast<T>(n);
      tilt = tilt * rstd / static_cast<T>(n);
      for (int64_t c = 0; c < width; ++c) {
        const T factor = scale ? scale[c] : T(1);
        for (int64_t i = c * inner; i < (c + 1) * inner; ++i)
          out[i] = rstd * (g[i] * factor - level - (x[i] - mean) * tilt);
      }
    }
  }
};

template <class T>
std::tuple<Tensor, Tensor, Tensor> group_slopes(const Inputs<T>& in, int64_t groups, double eps) {
  const DType dtype = DTypeOf<T>::value;
  const ChannelShape shape(in.input.sizes());
  const Tensor dx = Tensor::empty(in.input.sizes(), dtype);
  const Tensor dw = Tensor::empty(Dims{shape.channels}, dtype),
               db = Tensor::empty(Dims{shape.channels}, dtype);
  std::vector<T> sums(static_cast<size_t>(shape.batch * shape.channels * 2), T(0));
  const int64_t n = groups ? shape.channels / groups * shape.inner : 0;
  T* out = dx.data<T>();
  parallel_for(0, n ? shape.batch * groups : 0,
               std::max<int64_t>(1, 16384 / std::max<int64_t>(1, n)),
               [&](int64_t begin, int64_t end) {
                 run_simd<GroupSlopes<T>>(in.g, in.x, in.w, out, sums.data(), shape.channels,
                                          shape.inner, groups, begin, end, eps);
               });
  for (int64_t k = 0; k < 2; ++k) {
    T* total = (k == 0 ? dw : db).template data<T>();
    for (int64_t c = 0; c < shape.channels; ++c) {
      double sum = 0;
      for (int64_t b = 0; b < shape.batch; ++b)
        sum += sums[static_cast<size_t>(2 * (b * shape.channels + c) + k)];
      total[c] = static_cast<T>(sum);
    }
  }
  return {dx, dw, db};
}

// ── channels: batch_norm ──

template <class T>
struct ChannelSlopes {
  static PRONG_INLINE void run(const T* g, const T* x, const T* w, T* dx, T* dw, T* db,
                               const ChannelShape* shape, int64_t first, int64_t width,
                               double eps) {
    double sums[2][64];
    T mean[64], rstd[64], level[64], tilt[64], factor[64];
    const auto n = static_cast<double>(shape->count());
    shape->template sums<1, T>(first, width, sums,
                               [&](int64_t i, int64_t) { return Sums<1, T>{{x[i]}}; });
    for (int64_t c = 0; c < width; ++c) mean[c] = static_cast<T>(sums[0][c] / n);
    shape->template sums<1, T>(first, width, sums, [&](int64_t i, int64_t c) {
      const T d = x[i] - mean[c];
      return Sums<1, T>{{d * d}};
    });
    for (int64_t c = 0; c < width; ++c)
      rstd[c] = 1 / std::sqrt(static_cast<T>(sums[0][c] / n) + static_cast<T>(eps));
    shape->template sums<2, T>(first, width, sums, [&](int64_t i, int64_t c) {
      return Sums<2, T>{{g[i], g[i] * (x[i] - mean[c])}};
    });
    for (int64_t c = 0; c < width; ++c) {
      db[c] = static_cast<T>(sums[0][c]);
      dw[c] = static_cast<T>(sums[1][c]) * rstd[c];
      level[c] = static_cast<T>(sums[0][c] / n);
      tilt[c] = static_cast<T>(sums[1][c] / n) * rstd[c] * rstd[c];
      factor[c] = rstd[c] * (w ? w[c] : T(1));
    }
    for (int64_t b = 0; b < shape->batch; ++b) {
      const int64_t at = (b * shape->channels + first) * shape->inner;
      if (shape->inner == 1) {
        for (int64_t c = 0; c < width; ++c)
          dx[at + c] = factor[c] * (g[at + c] - level[c] - (x[at + c] - mean[c]) * tilt[c]);
      } else {
        const T m = mean[0], l = level[0], t = tilt[0], f = factor[0];
        for (int64_t i = at; i < at + shape->inner; ++i) dx[i] = f * (g[i] - l - (x[i] - m) * t);
      }
    }
  }
};

template <class T>
std::tuple<Tensor, Tensor, Tensor> channel_slopes(const Inputs<T>& in, double eps) {
  const DType dtype = DTypeOf<T>::value;
  const ChannelShape shape(in.input.sizes());
  const Tensor dx = Tensor::empty(in.input.sizes(), dtype);
  const Tensor dw = Tensor::empty(Dims{shape.channels}, dtype),
               db = Tensor::empty(Dims{shape.channels}, dtype);
  T *out = dx.data<T>(), *to_w = dw.data<T>(), *to_b = db.data<T>();
  shape.each_strip([&](int64_t first, int64_t width) {
    run_simd<ChannelSlopes<T>>(in.g, in.x, in.w ? in.w + first : nullptr, out, to_w + first,
                               to_b + first, &shape, first, width, eps);
  });
  return {dx, dw, db};
}

// ── gradients of these ops ──

// How a normalisation sees its input: reshaped to `sizes`, normalised over `dims`; the weight is
// reshaped to `weight_sizes` and broadcasts.
struct Layout {
  Dims sizes, dims, weight_sizes;
};

// From gradients a, b, c of dx, dw, db to grad, input and weight. With h = grad * weight:
//   to grad: weight P(a) + b y + c;  to weight: sum(grad P(a));
//   to input: P(b grad - r (a m(h y) + h m(a y))) - r y m(a P(h)).
std::tuple<Expr, Expr, Expr> norm_curve(Gradient& g, const Layout& layout, double eps,
                                        bool is_centred, bool with_sums) {
  const Expr given = g["input"];
  const auto seen = [&](const Expr& e) { return op<"reshape">(e, layout.sizes); };
  const auto by_weight = [&](const Expr& e) { return op<"reshape">(e, layout.weight_sizes); };
  const auto mean = [&](const Expr& e) { return op<"mean">(e, layout.dims, true); };
  const Expr x = seen(given), dy = seen(g["grad"]), a = seen(g.out(0));
  const Expr centred = is_centred ? x - mean(x) : x;
  const Expr r = op<"rsqrt">(mean(centred * centred) + eps), y = centred * r;
  const auto project = [&](const Expr& v) {
    const Expr level = is_centred ? v - mean(v) : v;
    return r * (level - y * mean(v * y));
  };
  const bool has_weight = g.is_given("weight");
  const Expr h = has_weight ? dy * by_weight(g["weight"]) : dy;
  const Expr pa = project(a);
  Expr to_grad = has_weight ? pa * by_weight(g["weight"]) : pa;
  Expr on_y = -(r * (a * mean(h * y) + h * mean(a * y)));
  if (with_sums) {
    const Expr b = by_weight(g.out(1));
    to_grad = to_grad + b * y + by_weight(g.out(2));
    on_y = on_y + b * dy;
  }
  const Expr to_input = project(on_y) - r * y * mean(a * project(h));
  const auto back = [&](const Expr& e) { return op<"reshape">(e, given.sizes()); };
  Expr to_weight = g.none();
  if (has_weight && g.needs("weight"))
    to_weight = op<"reshape">(op<"sum_to_size">(dy * pa, layout.weight_sizes), g["weight"].sizes());
  return {back(to_grad), back(to_input), to_weight};
}

OpDef& backward_op(Registry& r, std::string_view schema) {
  return r.add(schema)
      .where({.function = false, .method = false})
      .cost([](const OpDef&, std::span<const IValue> args) {
        const TensorMeta x = meta_from(args[1]);
        const auto n = static_cast<double>(x.numel());
        return Cost{16 * n, 3 * n * static_cast<double>(size_of(x.dtype))};
      })
      .no_vmap(kVmapLater);
}

std::tuple<TensorMeta, TensorMeta, TensorMeta> slope_metas(const TensorMeta& x, const Dims& sums) {
  return {{x.sizes, x.dtype}, {sums, x.dtype}, {sums, x.dtype}};
}

}  // namespace

void register_norm_backward(Registry& r) {
  backward_op(r,
              "norm_rows_backward(grad: Tensor, input: Tensor, normalized_shape: int[], weight: "
              "Tensor?, eps: float, centred: bool, sums: bool) -> (Tensor input, Tensor weight, "
              "Tensor bias)")
      .doc("What layer_norm (centred) and rms_norm send back; the last two empty without sums.")
      .shape([](const TensorMeta&, const TensorMeta& x, const Dims& shape,
                std::optional<TensorMeta>, double, bool,
                bool with_sums) { return slope_metas(x, with_sums ? shape : Dims{0}); })
      .kernel([](const Tensor& grad, const Tensor& x, const Dims& shape, std::optional<Tensor> w,
                 double eps, bool is_centred, bool with_sums) {
        return in_compute_type(x, [&]<class T>(TypeTag<T>) {
          return row_slopes<T>(Inputs<T>(grad, x, w), shape, eps, is_centred, with_sums);
        });
      })
      .grad("grad, input, weight", "grad, input, weight",
            [](Gradient& g) {
              const int64_t n = product(g.dims("normalized_shape"));
              const int64_t rows = n ? product(g["input"].sizes()) / n : 0;
              return norm_curve(g, {{rows, n}, {1}, {1, n}}, g.number("eps"), g.flag("centred"),
                                g.flag("sums"));
            })
      .samples({{"t(3, 4), t(3, 4), [4], t(4), 1e-5, True, True"},
                {"t(3, 4), t(3, 4), [4], None, 0.1, False, False"},
                {"t(2, 3, 4), t(2, 3, 4), [3, 4], t(3, 4), 0.1, False, True"},
                {"t(0, 4), t(0, 4), [4], t(4), 1e-5, True, True"}});
  backward_op(r,
              "group_norm_backward(grad: Tensor, input: Tensor, num_groups: int, weight: Tensor?, "
              "eps: float) -> (Tensor input, Tensor weight, Tensor bias)")
      .doc("What group_norm sends back.")
      .shape([](const TensorMeta&, const TensorMeta& x, int64_t, std::optional<TensorMeta>,
                double) { return slope_metas(x, Dims{x.sizes[1]}); })
      .kernel([](const Tensor& grad, const Tensor& x, int64_t groups, std::optional<Tensor> w,
                 double eps) {
        return in_compute_type(x, [&]<class T>(TypeTag<T>) {
          return group_slopes<T>(Inputs<T>(grad, x, w), groups, eps);
        });
      })
      .grad("grad, input, weight", "grad, input, weight",
            [](Gradient& g) {
              const ChannelShape s(g["input"].sizes());
              const int64_t groups = g.integer("num_groups"), width = s.channels / groups;
              return norm_curve(g,
                                {{s.batch, groups, width, s.inner}, {2, 3}, {1, groups, width, 1}},
                                g.number("eps"), true, true);
            })
      .samples({{"t(2, 4, 3), t(2, 4, 3), 2, t(4), 1e-5"},
                {"t(2, 6, 3, 2), t(2, 6, 3, 2), 3, None, 0.1"}});
  backward_op(r,
              "batch_norm_backward(grad: Tensor, input: Tensor, weight: Tensor?, eps: float) -> "
              "(Tensor input, Tensor weight, Tensor bias)")
      .doc("What batch_norm sends back where it used the statistics of the batch.")
      .shape([](const TensorMeta&, const TensorMeta& x, std::optional<TensorMeta>, double) {
        return slope_metas(x, Dims{x.sizes[1]});
      })
      .kernel([](const Tensor& grad, const Tensor& x, std::optional<Tensor> w, double eps) {
        return in_compute_type(
            x, [&]<class T>(TypeTag<T>) { return channel_slopes<T>(Inputs<T>(grad, x, w), eps); });
      })
      .grad("grad, input, weight", "grad, input, weight",
            [](Gradient& g) {
              const ChannelShape s(g["input"].sizes());
              return norm_curve(g, {{s.batch, s.channels, s.inner}, {0, 2}, {1, s.channels, 1}},
                                g.number("eps"), true, true);
            })
      .samples({{"t(4, 3), t(4, 3), t(3), 1e-5"}, {"t(2, 3, 4), t(2, 3, 4), None, 0.1"}});
}

}  // namespace prong
