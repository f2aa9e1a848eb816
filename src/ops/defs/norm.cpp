// Normalisations: layer_norm, rms_norm, group_norm, batch_norm. Statistics are taken in float
// (double for double), two passes a row, in sums of a fixed order. What they send back is in
// norm_backward.cpp.
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/gradient.h"
#include "ops/kernels/moments.h"

namespace prong {
namespace {

constexpr const char* kVmapLater = "vmap is not built yet";
// Half types are computed in float: f(float tensors) and back.
template <class F>
Tensor in_compute_type(const Tensor& x, F&& f) {
  if (x.dtype() == DType::kFloat32) return f(x, TypeTag<float>{});
  if (x.dtype() == DType::kFloat64) return f(x, TypeTag<double>{});
  return f(x.to(DType::kFloat32), TypeTag<float>{}).to(x.dtype());
}

void check_floating(const char* op, DType d) {
  PRONG_CHECK(is_floating(d), kNotImplemented, "\"", op, "\" not implemented for '",
              scalar_type_name(d), "'");
}

template <class T>
const T* data_or_null(const std::optional<Tensor>& t, DType dtype, Tensor& holder) {
  if (!t) return nullptr;
  holder = t->to(dtype).contiguous();
  return holder.data<T>();
}

// y = (x - mean) * rstd * weight[i] + bias[i]; without mean for rms.
template <class T>
struct NormalizeRows {
  static PRONG_INLINE void run(const T* x, T* y, int64_t n, int64_t begin, int64_t end, const T* w,
                               const T* b, double eps, bool is_centred) {
    for (int64_t r = begin; r < end; ++r) {
      const T* p = x + r * n;
      T* q = y + r * n;
      const RowScale<T> row(p, n, eps, is_centred);
      const T mean = row.mean, rstd = row.rstd;
      if (w && b)
        for (int64_t i = 0; i < n; ++i) q[i] = (p[i] - mean) * rstd * w[i] + b[i];
      else if (w)
        for (int64_t i = 0; i < n; ++i) q[i] = (p[i] - mean) * rstd * w[i];
      else if (b)
        for (int64_t i = 0; i < n; ++i) q[i] = (p[i] - mean) * rstd + b[i];
      else
        for (int64_t i = 0; i < n; ++i) q[i] = (p[i] - mean) * rstd;
    }
  }
};

template <class T>
Tensor normalize_rows(const Tensor& x, int64_t n, const std::optional<Tensor>& weight,
                      const std::optional<Tensor>& bias, double eps, bool is_centred) {
  const Tensor in = x.contiguous(), out = Tensor::empty(x.sizes(), x.dtype());
  Tensor w_holder, b_holder;
  const T *w = data_or_null<T>(weight, x.dtype(), w_holder),
          *b = data_or_null<T>(bias, x.dtype(), b_holder);
  const T* src = in.data<T>();
  T* dst = out.data<T>();
  parallel_for(0, n ? x.numel() / n : 0, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, n)),
               [&](int64_t begin, int64_t end) {
                 run_simd<NormalizeRows<T>>(src, dst, n, begin, end, w, b, eps, is_centred);
               });
  return out;
}

void check_layer_norm(const char* op, const TensorMeta& x, const Dims& shape,
                      const std::optional<TensorMeta>& w, const std::optional<TensorMeta>& b,
                      bool takes_complex = false) {
  check_floating(op, takes_complex ? real_dtype(x.dtype) : x.dtype);
  PRONG_CHECK(!shape.empty(), kRuntime,
              "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least "
              "one element, but got normalized_shape = ",
              shape);
  const bool fits =
      x.sizes.size() >= shape.size() && Dims(DimsView(x.sizes).last(shape.size())) == shape;
  PRONG_CHECK(fits, kRuntime, "Given normalized_shape=", shape, ", expected input with shape [*, ",
              cat(shape).substr(1), ", but got input of size", x.sizes);
  PRONG_CHECK(!w || w->sizes == shape, kRuntime,
              "Expected weight to be of same shape as normalized_shape, but got weight of shape ",
              w ? w->sizes : shape, " and normalized_shape = ", shape);
  PRONG_CHECK(!b || b->sizes == shape, kRuntime,
              "Expected bias to be of same shape as normalized_shape, but got bias of shape ",
              b ? b->sizes : shape, " and normalized_shape = ", shape);
}

std::optional<TensorMeta> meta_of(const std::optional<Tensor>& t) {
  return t ? std::optional(t->meta()) : std::nullopt;
}

// Per channel c of [N, C, *]: y = x * scale[c] + shift[c].
template <class T>
struct ScaleChannels {
  // Rows are (sample, channel) of `inner` numbers, or where `inner` is 1 samples of all channels.
  static PRONG_INLINE void run(const T* x, T* y, const T* scale, const T* shift, int64_t channels,
                               int64_t inner, int64_t begin, int64_t end) {
    if (inner == 1) {
      for (int64_t at = begin * channels; at < end * channels; at += channels)
        for (int64_t c = 0; c < channels; ++c) y[at + c] = x[at + c] * scale[c] + shift[c];
      return;
    }
    for (int64_t r = begin, c = begin % channels; r < end; ++r, c = c + 1 < channels ? c + 1 : 0) {
      const T *from = x + r * inner, a = scale[c], b = shift[c];
      T* to = y + r * inner;
      for (int64_t i = 0; i < inner; ++i) to[i] = from[i] * a + b;
    }
  }
};

template <class T>
Tensor scale_channels(const Tensor& x, const T* scale, const T* shift) {
  const Tensor in = x.contiguous(), out = Tensor::empty(x.sizes(), x.dtype());
  const ChannelShape shape(x.sizes());
  const T* src = in.data<T>();
  T* dst = out.data<T>();
  const bool is_flat = shape.inner == 1;
  const int64_t rows = x.numel() == 0 ? 0
                       : is_flat      ? shape.batch
                                      : shape.batch * shape.channels,
                work = is_flat ? shape.channels : shape.inner;
  parallel_for(0, rows, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, work)),
               [&](int64_t begin, int64_t end) {
                 run_simd<ScaleChannels<T>>(src, dst, scale, shift, shape.channels, shape.inner,
                                            begin, end);
               });
  return out;
}

// Mean and (biased) variance of channels [first, first + width).
template <class T>
struct ChannelMoments {
  static PRONG_INLINE void run(const T* x, const ChannelShape* shape, int64_t first, int64_t width,
                               T* mean, T* variance) {
    double sums[1][64];
    const auto n = static_cast<double>(shape->count());
    shape->template sums<1, T>(first, width, sums,
                               [&](int64_t i, int64_t) { return Sums<1, T>{{x[i]}}; });
    for (int64_t c = 0; c < width; ++c) mean[c] = static_cast<T>(sums[0][c] / n);
    shape->template sums<1, T>(first, width, sums, [&](int64_t i, int64_t c) {
      const T d = x[i] - mean[c];
      return Sums<1, T>{{d * d}};
    });
    for (int64_t c = 0; c < width; ++c) variance[c] = static_cast<T>(sums[0][c] / n);
  }
};

template <class T>
void update_running(const std::optional<Tensor>& running, const std::vector<T>& batch_value,
                    double momentum, double correction) {
  if (!running) return;
  const Tensor new_value = Tensor::empty(running->sizes(), DTypeOf<T>::value);
  const Tensor old = running->to(DTypeOf<T>::value).contiguous();
  for (size_t c = 0; c < batch_value.size(); ++c)
    new_value.data<T>()[c] = static_cast<T>(momentum * (batch_value[c] * correction) +
                                            (1 - momentum) * old.data<T>()[c]);
  copy_into(*running, new_value);
  running->bump_version();
}

template <class T>
Tensor batch_norm(const Tensor& x, const std::optional<Tensor>& weight,
                  const std::optional<Tensor>& bias, const std::optional<Tensor>& running_mean,
                  const std::optional<Tensor>& running_var, bool training, double momentum,
                  double eps) {
  const ChannelShape shape(x.sizes());
  const int64_t channels = shape.channels;
  const Tensor in = x.contiguous();
  std::vector<T> mean(static_cast<size_t>(channels)), var(mean.size()), scale(mean.size()),
      shift(mean.size());
  if (training) {
    shape.each_strip([&](int64_t first, int64_t width) {
      run_simd<ChannelMoments<T>>(static_cast<const T*>(in.data<T>()), &shape, first, width,
                                  mean.data() + first, var.data() + first);
    });
    const double n = static_cast<double>(shape.count());
    update_running(running_mean, mean, momentum, 1.0);
    update_running(running_var, var, momentum, n > 1 ? n / (n - 1) : 1.0);
  } else {
    const Tensor m = running_mean->to(x.dtype()).contiguous(),
                 v = running_var->to(x.dtype()).contiguous();
    std::copy_n(m.data<T>(), channels, mean.begin());
    std::copy_n(v.data<T>(), channels, var.begin());
  }
  Tensor w_holder, b_holder;
  const T *w = data_or_null<T>(weight, x.dtype(), w_holder),
          *b = data_or_null<T>(bias, x.dtype(), b_holder);
  for (size_t c = 0; c < mean.size(); ++c) {
    scale[c] = (w ? w[c] : T(1)) / std::sqrt(var[c] + static_cast<T>(eps));
    shift[c] = (b ? b[c] : T(0)) - mean[c] * scale[c];
  }
  return scale_channels(in, scale.data(), shift.data());
}

// What there is one of for each channel: weights and statistics.
void check_per_channel(const char* op, const char* name, const std::optional<TensorMeta>& t,
                       int64_t channels) {
  PRONG_CHECK(!t || t->numel() == channels, kRuntime, op, ": ", name, " should contain ", channels,
              " elements, one for each channel, not ", t->numel());
}

void check_batch_norm(const TensorMeta& x, const std::optional<TensorMeta>& weight,
                      const std::optional<TensorMeta>& bias, const std::optional<TensorMeta>& mean,
                      const std::optional<TensorMeta>& var, bool training) {
  check_floating("batch_norm", x.dtype);
  PRONG_CHECK(x.rank() >= 2, kRuntime,
              "batch_norm: expected an input of at least 2 dimensions [N, C, ...], but got shape ",
              x.sizes);
  PRONG_CHECK(training || (mean && var), kRuntime,
              "running_mean and running_var must be defined in evaluation mode");
  const int64_t values = x.sizes[1] ? x.numel() / x.sizes[1] : 0;
  PRONG_CHECK(!training || values != 1, kValue,
              "Expected more than 1 value per channel when training, got input size torch.Size(",
              x.sizes, ")");
  check_per_channel("batch_norm", "running_mean", mean, x.sizes[1]);
  check_per_channel("batch_norm", "running_var", var, x.sizes[1]);
  check_per_channel("batch_norm", "weight", weight, x.sizes[1]);
  check_per_channel("batch_norm", "bias", bias, x.sizes[1]);
}

void check_group_norm(const TensorMeta& x, int64_t groups, const std::optional<TensorMeta>& weight,
                      const std::optional<TensorMeta>& bias) {
  check_floating("GroupNormKernelImpl", x.dtype);
  PRONG_CHECK(x.rank() >= 2, kRuntime,
              "Expected at least 2 dimensions for input tensor but received ", x.rank());
  PRONG_CHECK(groups > 0 && x.sizes[1] % groups == 0, kRuntime,
              "Expected number of channels in input to be divisible by num_groups, but got "
              "input of shape ",
              x.sizes, " and num_groups=", groups);
  check_per_channel("group_norm", "weight", weight, x.sizes[1]);
  check_per_channel("group_norm", "bias", bias, x.sizes[1]);
}

double default_eps(DType dtype) {
  return real_dtype(dtype) == DType::kFloat64 ? 2.220446049250313e-16 : 1.1920928955078125e-07;
}

// Results of backward ops that nobody asked for, or that are of the wrong shape then.
Expr wanted(Gradient& g, std::string_view argument, const Expr& e) {
  return g.needs(argument) ? e : g.none();
}

// With the running statistics, which are constants.
std::tuple<Expr, Expr, Expr> fixed_batch_norm_slopes(Gradient& g) {
  const Expr dy = g.out(), x = g["input"];
  Dims channels(static_cast<size_t>(x.rank()), 1), summed{0};
  channels[1] = x.sizes()[1];
  for (int64_t d = 2; d < x.rank(); ++d) summed.push_back(d);
  const auto by_channel = [&](const Expr& e) { return op<"reshape">(e, channels); };
  const Expr rstd = op<"rsqrt">(g["running_var"] + g.number("eps"));
  const Expr scale = g.is_given("weight") ? rstd * g["weight"] : rstd;
  Expr to_weight = g.none(), to_bias = g.none();
  if (g.needs("weight"))
    to_weight = op<"sum">(dy * (x - by_channel(g["running_mean"])) * by_channel(rstd), summed);
  if (g.needs("bias")) to_bias = op<"sum">(dy, summed);
  return {g.needs("input") ? dy * by_channel(scale) : g.none(), to_weight, to_bias};
}

Cost row_cost(const OpDef&, std::span<const IValue> args) {
  const TensorMeta x = meta_from(args[0]);
  return {8.0 * static_cast<double>(x.numel()),
          2.0 * static_cast<double>(x.numel()) * static_cast<double>(size_of(x.dtype))};
}

// ── rms_norm of complex numbers: by the square x^2, not |x|^2, as PyTorch's ──

Dims last_dims(size_t n) {
  Dims dims;
  for (size_t i = 0; i < n; ++i) dims.push_back(static_cast<int64_t>(i) - static_cast<int64_t>(n));
  return dims;
}

Tensor complex_rms_norm(const Tensor& x, const Dims& shape, const std::optional<Tensor>& weight,
                        double eps) {
  const Tensor mean = call_tensor("mean", call_tensor("mul", x, x), last_dims(shape.size()), true);
  const Tensor y = call_tensor("mul", x, call_tensor("rsqrt", call_tensor("add", mean, eps)));
  return weight ? call_tensor("mul", y, *weight) : y;
}

// With s = mean(x^2) + eps and y = x s^-1/2: dL/ds = sum(dL/dy conj(x)) conj(-s^-3/2 / 2).
std::tuple<Expr, Expr> complex_rms_slopes(Gradient& g, double eps) {
  const Dims shape = g.dims("normalized_shape"), dims = last_dims(shape.size());
  const Expr x = g["input"];
  const Expr r = op<"rsqrt">(op<"mean">(x * x, dims, true) + eps);
  const Expr dy = g.is_given("weight") ? g.out() * conj(g["weight"]) : g.out();
  const Expr to_square = op<"mean">(dy * conj(x), dims, true) * conj(r * r * r);
  return {dy * conj(r) - to_square * conj(x), g.needs("weight") ? g.out() * conj(x * r) : g.none()};
}

}  // namespace

void register_norm(Registry& r) {
  r.add(
       "layer_norm(input: Tensor, normalized_shape: int[], weight: Tensor? = None, bias: Tensor? = "
       "None, eps: float = 1e-05) -> Tensor")
      .doc(
          "Normalises over the last len(normalized_shape) dimensions: (x - mean) / sqrt(var + eps) "
          "* weight + bias.")
      .where({.method = false, .nn_functional = true})
      .shape([](const TensorMeta& x, const Dims& shape, std::optional<TensorMeta> w,
                std::optional<TensorMeta> b, double) {
        check_layer_norm("LayerNormKernelImpl", x, shape, w, b);
        return TensorMeta{x.sizes, x.dtype};
      })
      .kernel([](const Tensor& x, const Dims& shape, std::optional<Tensor> w,
                 std::optional<Tensor> b, double eps) {
        check_layer_norm("LayerNormKernelImpl", x.meta(), shape, meta_of(w), meta_of(b));
        return in_compute_type(x, [&]<class T>(const Tensor& in, TypeTag<T>) {
          return normalize_rows<T>(in, product(DimsView(shape)), w, b, eps, true);
        });
      })
      .cost(row_cost)
      .grad("input, weight, bias", "input, weight",
            [](Gradient& g) {
              const Expr d = op<"norm_rows_backward">(
                  g.out(), g["input"], g.value("normalized_shape"), g.value("weight"),
                  g.number("eps"), true, g.needs("weight") || g.needs("bias"));
              return std::tuple(d[0], wanted(g, "weight", d[1]), wanted(g, "bias", d[2]));
            })
      .no_vmap(kVmapLater)
      .samples({{"t(3, 4), [4]"},
                {"t(2, 3, 4), [3, 4], t(3, 4), t(3, 4)"},
                {"t(0, 4), [4], t(4)"},
                {"strided(4, 6), [6], t(6), t(6), eps=0.1"}})
      .reference(
          "(lambda ax: (input - input.mean(ax, keepdims=True)) / np.sqrt(input.var(ax, "
          "keepdims=True) + eps) * (1 if weight is None else weight) + (0 if bias is None else "
          "bias))(tuple(range(-len(normalized_shape), 0)))");

  r.add(
       "rms_norm(input: Tensor, normalized_shape: int[], weight: Tensor? = None, eps: float? = "
       "None) -> Tensor")
      .takes_complex()
      .doc(
          "x / sqrt(mean(x^2) + eps) * weight over the last dimensions; eps defaults to the "
          "dtype's epsilon.")
      .where({.method = false, .nn_functional = true})
      .shape([](const TensorMeta& x, const Dims& shape, std::optional<TensorMeta> w,
                std::optional<double>) {
        check_layer_norm("rms_norm", x, shape, w, std::nullopt, true);
        return TensorMeta{x.sizes, x.dtype};
      })
      .kernel([](const Tensor& x, const Dims& shape, std::optional<Tensor> w,
                 std::optional<double> eps) {
        check_layer_norm("rms_norm", x.meta(), shape, meta_of(w), std::nullopt, true);
        const double e = eps.value_or(default_eps(x.dtype()));
        if (is_complex(x.dtype())) return complex_rms_norm(x, shape, w, e);
        return in_compute_type(x, [&]<class T>(const Tensor& in, TypeTag<T>) {
          return normalize_rows<T>(in, product(DimsView(shape)), w, std::nullopt, e, false);
        });
      })
      .cost(row_cost)
      .grad("input, weight", "input, weight",
            [](Gradient& g) {
              const double eps =
                  g.is_given("eps") ? g.number("eps") : default_eps(g["input"].dtype());
              if (is_complex(g["input"].dtype())) return complex_rms_slopes(g, eps);
              const Expr d =
                  op<"norm_rows_backward">(g.out(), g["input"], g.value("normalized_shape"),
                                           g.value("weight"), eps, false, g.needs("weight"));
              return std::tuple(d[0], wanted(g, "weight", d[1]));
            })
      .no_vmap(kVmapLater)
      .samples({{"t(3, 4), [4]"}, {"t(2, 3, 4), [3, 4], t(3, 4), 0.01"}})
      .reference(
          "(lambda ax: input / np.sqrt((input ** 2).mean(ax, keepdims=True) + "
          "(np.finfo(input.dtype).eps if eps is None else eps)) * (1 if weight is None else "
          "weight))(tuple(range(-len(normalized_shape), 0)))");

  r.add(
       "group_norm(input: Tensor, num_groups: int, weight: Tensor? = None, bias: Tensor? = None, "
       "eps: float = 1e-05) -> Tensor")
      .doc(
          "Normalises each of num_groups groups of channels of [N, C, ...] by itself, then scales "
          "by channel.")
      .where({.method = false, .nn_functional = true})
      .shape([](const TensorMeta& x, int64_t groups, std::optional<TensorMeta> w,
                std::optional<TensorMeta> b, double) {
        check_group_norm(x, groups, w, b);
        return TensorMeta{x.sizes, x.dtype};
      })
      .kernel([](const Tensor& x, int64_t groups, std::optional<Tensor> w, std::optional<Tensor> b,
                 double eps) {
        check_group_norm(x.meta(), groups, meta_of(w), meta_of(b));
        return in_compute_type(x, [&]<class T>(const Tensor& in, TypeTag<T>) {
          const int64_t rows = in.size(0) * groups;
          const Tensor y = normalize_rows<T>(in, rows ? in.numel() / rows : 0, std::nullopt,
                                             std::nullopt, eps, true);
          if (!w && !b) return y;
          std::vector<T> scale(static_cast<size_t>(x.size(1)), T(1)), shift(scale.size(), T(0));
          Tensor wh, bh;
          if (const T* p = data_or_null<T>(w, in.dtype(), wh))
            std::copy_n(p, scale.size(), scale.begin());
          if (const T* p = data_or_null<T>(b, in.dtype(), bh))
            std::copy_n(p, shift.size(), shift.begin());
          return scale_channels(y, scale.data(), shift.data());
        });
      })
      .cost(row_cost)
      .grad("input, weight, bias", "input, weight",
            [](Gradient& g) {
              const Expr d = op<"group_norm_backward">(g.out(), g["input"], g.integer("num_groups"),
                                                       g.value("weight"), g.number("eps"));
              return std::tuple(d[0], wanted(g, "weight", d[1]), wanted(g, "bias", d[2]));
            })
      .no_vmap(kVmapLater)
      .samples({{"t(2, 4, 3), 2"}, {"t(2, 6, 3, 2), 3, t(6), t(6)"}})
      .reference(
          "(lambda y: (y - y.mean(2, keepdims=True)) / np.sqrt(y.var(2, keepdims=True) + "
          "eps))(input.reshape(input.shape[0], num_groups, -1)).reshape(input.shape) * (1 if "
          "weight is None else weight.reshape([1, -1] + [1] * (input.ndim - 2))) + (0 if bias is "
          "None else bias.reshape([1, -1] + [1] * (input.ndim - 2)))");

  r.add(
       "batch_norm(input: Tensor, weight: Tensor?, bias: Tensor?, running_mean: Tensor?, "
       "running_var: Tensor?, training: bool, momentum: float, eps: float, cudnn_enabled: bool = "
       "False) -> Tensor")
      .doc(
          "Normalises each channel of [N, C, ...]; training uses (and folds into the running) "
          "statistics of the batch.")
      .writes({3, 4}, 5)  // the running statistics, where it trains
      .where({.method = false})
      .shape([](const TensorMeta& x, std::optional<TensorMeta> w, std::optional<TensorMeta> b,
                std::optional<TensorMeta> m, std::optional<TensorMeta> v, bool training, double,
                double, bool) {
        check_batch_norm(x, w, b, m, v, training);
        return TensorMeta{x.sizes, x.dtype};
      })
      .kernel([](const Tensor& x, std::optional<Tensor> w, std::optional<Tensor> b,
                 std::optional<Tensor> mean, std::optional<Tensor> var, bool training,
                 double momentum, double eps, bool) {
        check_batch_norm(x.meta(), meta_of(w), meta_of(b), meta_of(mean), meta_of(var), training);
        return in_compute_type(x, [&]<class T>(const Tensor& in, TypeTag<T>) {
          return batch_norm<T>(in, w, b, mean, var, training, momentum, eps);
        });
      })
      .cost(row_cost)
      .grad("input, weight, bias", "input, weight, running_mean, running_var",
            [](Gradient& g) {
              if (!g.flag("training")) return fixed_batch_norm_slopes(g);
              const Expr d = op<"batch_norm_backward">(g.out(), g["input"], g.value("weight"),
                                                       g.number("eps"));
              return std::tuple(d[0], wanted(g, "weight", d[1]), wanted(g, "bias", d[2]));
            })
      .no_vmap(kVmapLater)
      .samples({{"t(4, 3), t(3), t(3), t(3), pos(3), False, 0.1, 1e-5"},
                {"t(2, 3, 4), None, None, None, None, True, 0.1, 1e-5"},
                {"t(5, 3), t(3), t(3), None, None, True, 0.1, 1e-5"}})
      .reference(
          "(lambda s, ax: (lambda m, v: (input - m) / np.sqrt(v + eps) * (1 if weight is None else "
          "weight.reshape(s)) + (0 if bias is None else bias.reshape(s)))(input.mean(ax, "
          "keepdims=True) if training else running_mean.reshape(s), input.var(ax, keepdims=True) "
          "if training else running_var.reshape(s)))([1, -1] + [1] * (input.ndim - 2), (0,) + "
          "tuple(range(2, input.ndim)))");
}

}  // namespace prong
