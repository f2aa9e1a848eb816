// Convolutions conv1d, conv2d, conv3d with int or named padding, and max/average pooling. Kernels:
// kernels/convolution.h.
#include "ops/gradient.h"
#include "ops/kernels/convolution.h"

namespace prong {
namespace {

constexpr const char* kVmapLater = "vmap is not built yet";

ConvParams params(const TensorMeta& w, const Dims& stride, const Dims& padding,
                  const Dims& dilation, int64_t groups) {
  const size_t n = w.sizes.size() - 2;
  return {spread(stride, n, "stride"), spread(padding, n, "padding"),
          spread(dilation, n, "dilation"), groups};
}

void check_rank(const char* op, const TensorMeta& x, const TensorMeta& w, int64_t spatial) {
  PRONG_CHECK(w.rank() == spatial + 2, kRuntime, op, ": expected a ", spatial + 2,
              "D weight, but got shape ", w.sizes);
  PRONG_CHECK(x.rank() == spatial + 2 || x.rank() == spatial + 1, kRuntime, "Expected ",
              spatial + 1, "D (unbatched) or ", spatial + 2, "D (batched) input to ", op,
              ", but got input of size: ", x.sizes);
}

// An unbatched input gets a batch of one for the time of the call.
TensorMeta batched(TensorMeta x, int64_t spatial) {
  if (x.rank() == spatial + 1) x.sizes.insert(0, 1);
  return x;
}
Tensor batched(const Tensor& x, int64_t spatial) {
  if (x.rank() != spatial + 1) return x;
  Dims sizes = x.sizes(), strides = x.strides();
  sizes.insert(0, 1);
  strides.insert(0, 0);
  return x.as_strided(sizes, strides, x.offset());
}
Dims without_batch(Dims sizes, bool was_batched) {
  if (!was_batched) sizes.erase(0);
  return sizes;
}

template <int kSpatial>
TensorMeta conv_meta(const OpDef& op, const TensorMeta& x, const TensorMeta& w,
                     const std::optional<TensorMeta>& bias, const ConvParams& p) {
  check_rank(op.base_name().c_str(), x, w, kSpatial);
  if (bias) check_bias(w, *bias);
  return {without_batch(conv_sizes(batched(x, kSpatial), w, p), x.rank() == kSpatial + 2), x.dtype};
}

template <int kSpatial>
Tensor conv(const OpDef& op, const Tensor& x, const Tensor& w, const std::optional<Tensor>& bias,
            const ConvParams& p) {
  check_rank(op.base_name().c_str(), x.meta(), w.meta(), kSpatial);
  const Tensor out = convolve(batched(x, kSpatial), w, bias, p);
  const Dims sizes = without_batch(out.sizes(), x.rank() == kSpatial + 2);
  return out.as_strided(sizes, contiguous_strides(sizes), 0);
}

// padding="same": the output has the input's size; an odd remainder pads the end more, as PyTorch
// does.
struct SamePadding {
  Tensor input;
  Dims padding;
};
Dims same_padding(const TensorMeta& w, const Dims& stride, const Dims& dilation,
                  const std::string& name) {
  Dims total;
  PRONG_CHECK(name == "same" || name == "valid", kRuntime, "Invalid padding string: '", name, "'");
  for (size_t i = 0; i + 2 < w.sizes.size(); ++i) {
    PRONG_CHECK(name == "valid" || stride[i] == 1, kRuntime,
                "padding='same' is not supported for strided convolutions");
    total.push_back(name == "valid" ? 0 : dilation[i] * (w.sizes[i + 2] - 1));
  }
  return total;
}

SamePadding pad_evenly(const Tensor& x, const Dims& total) {
  Dims half, extra;
  bool odd = false;
  for (const int64_t t : total) half.push_back(t / 2);
  for (size_t i = total.size(); i-- > 0;) {  // torch.pad lists the last dimension first
    extra.push_back(0);
    extra.push_back(total[i] % 2);
    odd |= total[i] % 2 != 0;
  }
  return {odd ? call_tensor("pad", x, extra, "constant", 0.0) : x, half};
}

// ── gradients: each of the three maps is the gradient of the others ──

std::string conv_name(int64_t spatial) { return cat("conv", spatial, "d"); }

IValue convolved(Gradient& g, const Expr& x, const Expr& w) {
  return g.builder()(conv_name(w.rank() - 2),
                     {x.value(), w.value(), IValue(), g.value("stride"), g.value("padding"),
                      g.value("dilation"), g.value("groups")});
}
Expr to_input(Gradient& g, const Expr& dy, const Expr& w, const Dims& sizes) {
  return op<"conv_to_input">(dy, w, sizes, g.value("stride"), g.value("padding"),
                             g.value("dilation"), g.value("groups"));
}
Expr to_weight(Gradient& g, const Expr& dy, const Expr& x, const Dims& sizes) {
  return op<"conv_to_weight">(dy, x, sizes, g.value("stride"), g.value("padding"),
                              g.value("dilation"), g.value("groups"));
}

// An unbatched call is one with a batch of one.
template <int kSpatial>
Expr grad_of_input(Gradient& g) {
  Dims sizes = g.sizes("input");
  if (static_cast<int>(sizes.size()) == kSpatial + 2)
    return to_input(g, g.out(), conj(g["weight"]), sizes);
  sizes.insert(0, 1);
  const Expr dy = op<"unsqueeze">(g.out(), int64_t{0});
  return op<"squeeze.dim">(to_input(g, dy, conj(g["weight"]), sizes), int64_t{0});
}
template <int kSpatial>
Expr grad_of_weight(Gradient& g) {
  Expr dy = g.out(), x = conj(g["input"]);
  if (x.rank() == kSpatial + 1) {
    dy = op<"unsqueeze">(dy, int64_t{0});
    x = op<"unsqueeze">(x, int64_t{0});
  }
  return to_weight(g, dy, x, g.sizes("weight"));
}
template <int kSpatial>
Expr grad_of_bias(Gradient& g) {
  Dims dims;
  const int64_t rank = g.out().rank();
  for (int64_t d = 0; d < rank; ++d)
    if (d != rank - kSpatial - 1) dims.push_back(d);
  return op<"sum">(g.out(), dims);
}

void register_backward(Registry& r) {
  const std::string settings =
      "int[], stride: int[], padding: int[], dilation: int[], groups: int) -> Tensor";
  const auto add = [&](const char* schema, const char* doc) -> OpDef& {
    return r.add(cat(schema, settings))
        .doc(doc)
        .where({.function = false, .method = false})
        .family(Family::kMatmul)
        .takes_complex()
        .no_vmap(kVmapLater);
  };
  add("conv_to_input(grad: Tensor, weight: Tensor, sizes: ",
      "The gradient of a convolution to its input [N, C, ...] of these sizes.")
      .shape([](const TensorMeta& dy, const TensorMeta&, const Dims& sizes, const Dims&,
                const Dims&, const Dims&, int64_t) {
        return TensorMeta{sizes, dy.dtype};
      })
      .kernel([](const Tensor& dy, const Tensor& w, const Dims& sizes, const Dims& s, const Dims& p,
                 const Dims& d, int64_t groups) {
        return convolve_to_input(dy, w, sizes, params(w.meta(), s, p, d, groups));
      })
      .grad("grad", "weight", [](Gradient& g) { return convolved(g, g.out(), conj(g["weight"])); })
      .grad("weight", "grad",
            [](Gradient& g) { return to_weight(g, conj(g["grad"]), g.out(), g.sizes("weight")); })
      .samples({{"t(2, 4, 6, 5), t(4, 3, 3, 3), [2, 3, 6, 5], [1], [1], [1], 1"},
                {"t(2, 4, 3), t(4, 2, 3), [2, 4, 8], [2], [1], [2], 2"}});
  add("conv_to_weight(grad: Tensor, input: Tensor, sizes: ",
      "The gradient of a convolution to its weight of these sizes.")
      .shape([](const TensorMeta& dy, const TensorMeta&, const Dims& sizes, const Dims&,
                const Dims&, const Dims&, int64_t) {
        return TensorMeta{sizes, dy.dtype};
      })
      .kernel([](const Tensor& dy, const Tensor& x, const Dims& sizes, const Dims& s, const Dims& p,
                 const Dims& d, int64_t groups) {
        return convolve_to_weight(dy, x, sizes, params({sizes, x.dtype()}, s, p, d, groups));
      })
      .grad("grad", "input", [](Gradient& g) { return convolved(g, conj(g["input"]), g.out()); })
      .grad("input", "grad",
            [](Gradient& g) { return to_input(g, conj(g["grad"]), g.out(), g.sizes("input")); })
      .samples({{"t(2, 4, 6, 5), t(2, 3, 6, 5), [4, 3, 3, 3], [1], [1], [1], 1"},
                {"t(2, 4, 3), t(2, 4, 8), [4, 2, 3], [2], [1], [2], 2"}});
}

template <int kSpatial>
void register_conv(Registry& r, const std::string& name, const char* shape_doc,
                   std::vector<Sample> samples) {
  const std::string n = std::to_string(kSpatial);
  const auto cost = [](const OpDef&, std::span<const IValue> args) {
    const TensorMeta x = meta_from(args[0]), w = meta_from(args[1]);
    const double per_output = static_cast<double>(w.numel());
    return Cost{2 * per_output * static_cast<double>(x.numel()) /
                    static_cast<double>(std::max<int64_t>(1, w.sizes[1])),
                4.0 * static_cast<double>(x.numel() + w.numel())};
  };
  r.add(cat(name, "(input: Tensor, weight: Tensor, bias: Tensor? = None, stride: int[", n,
            "] = 1, padding: int[", n, "] = 0, dilation: int[", n,
            "] = 1, groups: int = 1) -> Tensor"))
      .doc(cat("Cross-correlation of input ", shape_doc, " with weight [O, C / groups, ...]."))
      .where({.method = false, .nn_functional = true})
      .family(Family::kMatmul)
      .takes_complex()
      .shape([](const OpDef& op, const TensorMeta& x, const TensorMeta& w,
                std::optional<TensorMeta> bias, const Dims& s, const Dims& p, const Dims& d,
                int64_t g) { return conv_meta<kSpatial>(op, x, w, bias, params(w, s, p, d, g)); })
      .kernel([](const OpDef& op, const Tensor& x, const Tensor& w, std::optional<Tensor> bias,
                 const Dims& s, const Dims& p, const Dims& d, int64_t g) {
        check_rank(op.base_name().c_str(), x.meta(), w.meta(), kSpatial);
        return conv<kSpatial>(op, x, w, bias, params(w.meta(), s, p, d, g));
      })
      .cost(cost)
      .grad("input", "weight", [](Gradient& g) { return grad_of_input<kSpatial>(g); })
      .grad("weight", "input", [](Gradient& g) { return grad_of_weight<kSpatial>(g); })
      .grad("bias", "", [](Gradient& g) { return grad_of_bias<kSpatial>(g); })
      .no_vmap(kVmapLater)
      .samples(std::move(samples));
  r.add(cat(name, ".padding(input: Tensor, weight: Tensor, bias: Tensor? = None, stride: int[", n,
            "] = 1, padding: str = \"valid\", dilation: int[", n,
            "] = 1, groups: int = 1) -> Tensor"))
      .doc("The same with padding=\"same\" or \"valid\".")
      .where({.method = false, .nn_functional = true})
      .family(Family::kMatmul)
      .takes_complex()
      .shape([](const OpDef& op, const TensorMeta& x, const TensorMeta& w,
                std::optional<TensorMeta> bias, const Dims& s, const std::string& p, const Dims& d,
                int64_t g) {
        check_rank(op.base_name().c_str(), x, w, kSpatial);
        if (bias) check_bias(w, *bias);
        ConvParams c = params(w, s, Dims{0}, d, g);
        TensorMeta padded = batched(x, kSpatial);
        const Dims total = same_padding(w, c.stride, c.dilation, p);
        for (size_t i = 0; i < total.size(); ++i) padded.sizes[i + 2] += total[i];
        return TensorMeta{without_batch(conv_sizes(padded, w, c), x.rank() == kSpatial + 2),
                          x.dtype};
      })
      .kernel([](const OpDef& op, const Tensor& x, const Tensor& w, std::optional<Tensor> bias,
                 const Dims& s, const std::string& p, const Dims& d, int64_t g) {
        check_rank(op.base_name().c_str(), x.meta(), w.meta(), kSpatial);
        const ConvParams c = params(w.meta(), s, Dims{0}, d, g);
        const SamePadding same = pad_evenly(x, same_padding(w.meta(), c.stride, c.dilation, p));
        return call_tensor(conv_name(kSpatial), same.input, w, bias, c.stride, same.padding,
                           c.dilation, g);
      })
      .composite()
      .cost(cost)
      .no_vmap(kVmapLater)
      .samples({{kSpatial == 1   ? "t(2, 3, 7), t(4, 3, 3), padding='same'"
                 : kSpatial == 2 ? "t(1, 2, 5, 6), t(3, 2, 3, 2), padding='same'"
                                 : "t(1, 1, 3, 4, 4), t(2, 1, 2, 3, 3), padding='same'"}});
}

}  // namespace

void register_conv(Registry& r) {
  register_backward(r);
  register_conv<1>(r, "conv1d", "[N, C, L]",
                   {{"t(2, 3, 8), t(4, 3, 3), t(4)"},
                    {"t(3, 8), t(4, 3, 3)"},
                    {"t(2, 4, 8), t(4, 2, 3), None, 2, 1, 2, 2"},
                    {"t(0, 3, 8), t(4, 3, 3)"}});
  register_conv<2>(
      r, "conv2d", "[N, C, H, W]",
      {{"t(2, 3, 6, 5), t(4, 3, 3, 3), t(4)"},
       {"t(3, 6, 5), t(4, 3, 1, 1)"},
       {"t(2, 4, 7, 6), t(6, 2, 3, 2), t(6), [2, 1], [1, 0], 1, 2"},
       {"t(1, 2, 9, 9, dtype=float64), t(2, 2, 3, 3, dtype=float64), padding=2, dilation=2"}});
  register_conv<3>(r, "conv3d", "[N, C, D, H, W]", {{"t(1, 2, 4, 5, 4), t(3, 2, 2, 3, 2), t(3)"}});
}

}  // namespace prong
