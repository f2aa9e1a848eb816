// Pooling: largest and mean of windows, of given size or as many as the result shall have elements.
// Loops: kernels/pooling.h.
#include "ops/data_check.h"
#include "ops/gradient.h"
#include "ops/kernels/pooling.h"

namespace prong {
namespace {

constexpr const char* kVmapLater = "vmap is not built yet";
constexpr Spelling kInternal{.function = false, .method = false};
constexpr Spelling kNnOnly{.function = false, .method = false, .nn_functional = true};
constexpr Spelling kFunction{.method = false};
constexpr Spelling kFunctionAndNn{.method = false, .nn_functional = true};

Cost window_cost(const OpDef&, std::span<const IValue> args) {
  const TensorMeta x = meta_from(args[0]);
  const auto n = static_cast<double>(x.numel());
  return {4 * n, 2 * n * static_cast<double>(size_of(x.dtype))};
}

Dims spread(const Dims& d, size_t n, const Dims& otherwise, const char* what) {
  const Dims& given = d.empty() ? otherwise : d;
  if (given.size() == 1) return Dims(n, given[0]);
  PRONG_CHECK(given.size() == n, kRuntime, "pooling: ", what,
              " must either be a single int, or a tuple of ", n, " ints");
  return given;
}

PoolParams params(size_t n, const Dims& kernel, const Dims& stride, const Dims& padding,
                  const Dims& dilation, bool ceil_mode, bool counts_padding = true) {
  PoolParams p;
  p.kernel = spread(kernel, n, kernel, "kernel_size");
  p.stride = spread(stride, n, p.kernel, "stride");
  p.padding = spread(padding, n, padding, "padding");
  p.dilation = spread(dilation, n, dilation, "dilation");
  p.ceil_mode = ceil_mode;
  p.counts_padding = counts_padding;
  return p;
}

TensorMeta pooled(const TensorMeta& x, const Dims& spatial, DType dtype) {
  check_pooled(x.dtype);
  Dims sizes = x.sizes;
  for (size_t i = 0; i < spatial.size(); ++i) sizes[sizes.size() - spatial.size() + i] = spatial[i];
  return {sizes, dtype};
}

// A gradient put back where the largest elements were.
Expr unpooled(const Expr& gradient, const Expr& places, const Dims& sizes, size_t spatial) {
  const int64_t from = static_cast<int64_t>(sizes.size() - spatial);
  Dims flat(DimsView(sizes).first(sizes.size() - spatial));
  flat.push_back(product(DimsView(sizes).subspan(sizes.size() - spatial)));
  Dims given(DimsView(sizes).first(sizes.size() - spatial));
  given.push_back(-1);
  const Expr zeros = op<"new_zeros">(gradient, flat);
  const Expr index = op<"flatten">(places, from, int64_t(-1)),
             values = op<"flatten">(gradient, from, int64_t(-1));
  return op<"reshape">(op<"scatter_add">(zeros, int64_t(-1), index, values), sizes);
}

// Places in the plane of the last dimensions.
template <int kSpatial>
std::optional<IntRange> bounds_of_plane(const BoundsCall& c) {
  const TensorMeta* x = c.tensor(0);
  if (c.output() != 1 || !x || x->rank() < kSpatial) return std::nullopt;
  int64_t places = 1;
  for (size_t d = x->sizes.size() - kSpatial; d < x->sizes.size(); ++d) places *= x->sizes[d];
  return IntRange{0, places - 1};
}

template <int kSpatial>
void register_max(Registry& r, std::vector<Sample> samples) {
  const std::string n = std::to_string(kSpatial);
  const std::string arguments =
      cat("(input: Tensor, kernel_size: int[", n, "], stride: int[", n, "] = [], padding: int[", n,
          "] = 0, dilation: int[", n, "] = 1, ceil_mode: bool = False) -> ");
  r.add(cat("max_pool", n, "d_with_indices", arguments, "(Tensor, Tensor)"))
      .doc("The largest element of each window, and its place in its plane.")
      .where(kNnOnly)
      .cost(window_cost)
      .shape([](const TensorMeta& x, const Dims& k, const Dims& s, const Dims& p, const Dims& d,
                bool c) {
        const Dims spatial = pool_sizes(x, params(kSpatial, k, s, p, d, c));
        return std::tuple(pooled(x, spatial, x.dtype), pooled(x, spatial, DType::kInt64));
      })
      .kernel(
          [](const Tensor& x, const Dims& k, const Dims& s, const Dims& p, const Dims& d, bool c) {
            return max_pool(x, pool_axes(x.meta(), params(kSpatial, k, s, p, d, c)));
          })
      .grad(
          "input", "result.1",
          [](Gradient& g) { return unpooled(g.out(), g["result.1"], g.sizes("input"), kSpatial); })
      .bounds(&bounds_of_plane<kSpatial>)
      .no_vmap(kVmapLater)
      .samples(samples);
  r.add(cat("max_pool", n, "d", arguments, "Tensor"))
      .doc("The largest element of each window.")
      .where(kFunction)
      .cost(window_cost)
      .shape(
          [](const TensorMeta& x, const Dims& k, const Dims& s, const Dims& p, const Dims& d,
             bool c) { return pooled(x, pool_sizes(x, params(kSpatial, k, s, p, d, c)), x.dtype); })
      .kernel([](const OpDef& op, const Tensor& x, const Dims& k, const Dims& s, const Dims& p,
                 const Dims& d, bool c) {
        return call(op.name() + "_with_indices", x, k, s, p, d, c).items()[0].to_tensor();
      })
      .composite()
      .no_vmap(kVmapLater)
      .samples(std::move(samples));
}

// ── averages ──

void check_divisor(std::optional<int64_t> divisor) {
  PRONG_CHECK(!divisor || *divisor != 0, kRuntime, "divisor must be not zero");
}

template <int kSpatial>
void register_average(Registry& r, std::vector<Sample> samples) {
  const std::string n = std::to_string(kSpatial);
  r.add(cat("avg_pool", n, "d(input: Tensor, kernel_size: int[", n, "], stride: int[", n,
            "] = [], padding: int[", n,
            "] = 0, ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: "
            "int? = None) -> Tensor"))
      .doc("The mean of each window; padding counts as zeros, unless count_include_pad is False.")
      .where(kSpatial == 1 ? kFunctionAndNn : kNnOnly)
      .cost(window_cost)
      .shape([](const TensorMeta& x, const Dims& k, const Dims& s, const Dims& p, bool c, bool,
                std::optional<int64_t>) {
        return pooled(x, pool_sizes(x, params(kSpatial, k, s, p, Dims{1}, c)), x.dtype);
      })
      .kernel([](const Tensor& x, const Dims& k, const Dims& s, const Dims& p, bool c, bool counts,
                 std::optional<int64_t> divisor) {
        check_divisor(divisor);
        return average_pool(x, pool_axes(x.meta(), params(kSpatial, k, s, p, Dims{1}, c, counts)),
                            divisor.value_or(0));
      })
      .grad("input", "",
            [](Gradient& g) {
              return op<"_avg_pool_backward">(
                  g.out(), g.sizes("input"), int64_t(kSpatial), g.value("kernel_size"),
                  g.value("stride"), g.value("padding"), g.value("ceil_mode"),
                  g.value("count_include_pad"), g.value("divisor_override"));
            })
      .no_vmap(kVmapLater)
      .samples(std::move(samples));
}

void register_average_backward(Registry& r) {
  r.add(
       "_avg_pool_backward(input: Tensor, sizes: int[], spatial: int, kernel_size: int[], stride: "
       "int[], padding: "
       "int[], ceil_mode: bool, count_include_pad: bool, divisor_override: int?) -> Tensor")
      .doc("The transpose of avg_pool1d, 2d and 3d: each element spread over its window.")
      .where(kInternal)
      .cost(window_cost)
      .shape([](const TensorMeta& g, const Dims& sizes, int64_t, const Dims&, const Dims&,
                const Dims&, bool, bool, std::optional<int64_t>) {
        return TensorMeta{sizes, g.dtype};
      })
      .kernel([](const Tensor& g, const Dims& sizes, int64_t n, const Dims& k, const Dims& s,
                 const Dims& p, bool c, bool counts, std::optional<int64_t> divisor) {
        const TensorMeta input{sizes, g.dtype()};
        const PoolParams all = params(static_cast<size_t>(n), k, s, p, Dims{1}, c, counts);
        return average_pool_backward(g, sizes, pool_axes(input, all), divisor.value_or(0));
      })
      .grad("input", "",
            [](Gradient& g) {
              const std::string forward = cat("avg_pool", g.integer("spatial"), "d");
              const IValue args[] = {g.out().value(),
                                     g.value("kernel_size"),
                                     g.value("stride"),
                                     g.value("padding"),
                                     g.value("ceil_mode"),
                                     g.value("count_include_pad"),
                                     g.value("divisor_override")};
              return g.expr(g.builder().apply(registry().get(forward), args));
            })
      .no_vmap(kVmapLater)
      .samples({{"t(2, 3, 3), [2, 3, 6], 1, [2], [2], [0], False, True, None"},
                {"t(2, 2, 2), [2, 5, 4], 2, [3, 2], [], [1, 0], False, False, None"}});
}

// ── adaptive ──

Dims adaptive_sizes(const TensorMeta& x, const IValue& output, size_t n) {
  PRONG_CHECK(x.rank() == static_cast<int64_t>(n) + 1 || x.rank() == static_cast<int64_t>(n) + 2,
              kRuntime, "adaptive pooling: Expected ", n + 1, "D or ", n + 2, "D tensor, but got ",
              x.sizes);
  Dims sizes;
  if (output.is_list() || output.is_tuple()) {
    const auto& items = output.items();
    PRONG_CHECK(items.size() == n || items.size() == 1, kRuntime,
                "adaptive pooling: output_size must be ", n);
    for (size_t i = 0; i < n; ++i) {
      const IValue& v = items[items.size() == 1 ? 0 : i];
      sizes.push_back(v.is_none() ? x.sizes[x.sizes.size() - n + i] : v.to_int());
    }
  }
  for (const int64_t s : sizes)
    PRONG_CHECK(s >= 0, kRuntime,
                "adaptive pooling: elements of output_size must be greater than or equal to 0");
  return sizes;
}

template <int kSpatial>
void register_adaptive(Registry& r, std::vector<Sample> samples) {
  const std::string n = std::to_string(kSpatial);
  r.add(cat("adaptive_avg_pool", n, "d(input: Tensor, output_size: int[", n, "]) -> Tensor"))
      .doc("The means of as many windows as the result shall have elements.")
      .where(kSpatial == 1 ? kFunctionAndNn : kNnOnly)
      .cost(window_cost)
      .shape([](const TensorMeta& x, const IValue& size) {
        return pooled(x, adaptive_sizes(x, size, kSpatial), x.dtype);
      })
      .kernel([](const Tensor& x, const IValue& size) {
        return average_pool(x, adaptive_axes(x.meta(), adaptive_sizes(x.meta(), size, kSpatial)),
                            0);
      })
      .grad("input", "",
            [](Gradient& g) {
              return op<"_adaptive_avg_pool_backward">(g.out(), g.sizes("input"),
                                                       int64_t(kSpatial));
            })
      .no_vmap(kVmapLater)
      .samples(samples);
  r.add(cat("adaptive_max_pool", n, "d_with_indices(input: Tensor, output_size: int[", n,
            "]) -> (Tensor, Tensor)"))
      .doc(
          "The largest elements of as many windows as the result shall have elements, and their "
          "places.")
      .where(kNnOnly)
      .cost(window_cost)
      .shape([](const TensorMeta& x, const IValue& size) {
        const Dims spatial = adaptive_sizes(x, size, kSpatial);
        return std::tuple(pooled(x, spatial, x.dtype), pooled(x, spatial, DType::kInt64));
      })
      .kernel([](const Tensor& x, const IValue& size) {
        return max_pool(x, adaptive_axes(x.meta(), adaptive_sizes(x.meta(), size, kSpatial)));
      })
      .grad(
          "input", "result.1",
          [](Gradient& g) { return unpooled(g.out(), g["result.1"], g.sizes("input"), kSpatial); })
      .bounds(&bounds_of_plane<kSpatial>)
      .no_vmap(kVmapLater)
      .samples(std::move(samples));
}

void register_adaptive_backward(Registry& r) {
  r.add("_adaptive_avg_pool_backward(input: Tensor, sizes: int[], spatial: int) -> Tensor")
      .doc("The transpose of adaptive_avg_pool1d, 2d and 3d.")
      .where(kInternal)
      .cost(window_cost)
      .shape([](const TensorMeta& g, const Dims& sizes, int64_t) {
        return TensorMeta{sizes, g.dtype};
      })
      .kernel([](const Tensor& g, const Dims& sizes, int64_t n) {
        const auto spatial = static_cast<size_t>(n);
        const Dims output(DimsView(g.sizes()).subspan(g.sizes().size() - spatial));
        return average_pool_backward(g, sizes, adaptive_axes(TensorMeta{sizes, g.dtype()}, output),
                                     0);
      })
      .grad("input", "",
            [](Gradient& g) {
              const int64_t n = g.integer("spatial");
              const Dims all = g.sizes("input");
              const Dims output(DimsView(all).subspan(all.size() - static_cast<size_t>(n)));
              return n == 1   ? op<"adaptive_avg_pool1d">(g.out(), output)
                     : n == 2 ? op<"adaptive_avg_pool2d">(g.out(), output)
                              : op<"adaptive_avg_pool3d">(g.out(), output);
            })
      .no_vmap(kVmapLater)
      .samples({{"t(2, 3, 3), [2, 3, 7], 1"}, {"t(2, 2, 3), [2, 5, 4], 2"}});
}

}  // namespace

void register_pool(Registry& r) {
  register_max<1>(r, {{"t(2, 3, 8), 3"}, {"t(3, 8), 3, 2, 1"}, {"t(2, 3, 9), 2, 2, 1, 2, True"}});
  register_max<2>(r, {{"t(2, 3, 6, 7), 2"},
                      {"t(3, 6, 7), [3, 2], 2, 1"},
                      {"t(2, 3, 7, 6), 3, 2, 1, 1, True"},
                      {"t(0, 3, 4, 4), 2"}});
  register_max<3>(r, {{"t(1, 2, 4, 5, 6), 2"}});
  register_average<1>(r, {{"t(2, 3, 8), 3"}, {"t(3, 8), 3, 2, 1, False, False"}});
  register_average<2>(r, {{"t(2, 3, 6, 7), 2"},
                          {"t(3, 6, 7), [3, 2], 2, 1"},
                          {"t(2, 3, 7, 6), 3, 2, 1, True, False"},
                          {"t(2, 3, 6, 6), 2, divisor_override=3"}});
  register_average<3>(r, {{"t(1, 2, 4, 5, 6), 2"}});
  register_average_backward(r);
  register_adaptive<1>(r, {{"t(2, 3, 8), 3"}});
  register_adaptive<2>(r, {{"t(2, 3, 6, 7), [3, 4]"}, {"t(3, 6, 7), 1"}});
  register_adaptive<3>(r, {{"t(1, 2, 4, 5, 6), [2, 3, 1]"}});
  register_adaptive_backward(r);
}

}  // namespace prong
