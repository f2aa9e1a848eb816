// Convolution for 1 to 3 spatial dimensions and its gradients: by channels in small
// groups, over taps where this machine has kernels for them, and otherwise, and for other types, by
// unfolding and a matrix product. See convolution.h.
#include "ops/kernels/convolution.h"

#include <algorithm>
#include <cstring>

#include "ops/kernels/convolution_channels.h"
#include "ops/kernels/convolution_geometry.h"
#include "ops/kernels/convolution_taps.h"
#include "ops/kernels/product.h"
#include "ops/op_def.h"
#include "runtime/parallel.h"

namespace prong {
namespace {

using Geometry = ConvGeometry;

// Positions [begin, end) of the output, counted over all its lines. A strip of them is unfolded at
// a time, so that its columns stay in the second-level cache.
struct Strip {
  int64_t begin, end;
  int64_t length() const { return end - begin; }
};

int64_t strip_length(const Geometry& g, int64_t channels) {
  constexpr int64_t kFloats = int64_t{1} << 17;
  const int64_t k = channels * g.kernel_volume();
  const int64_t fits = std::max<int64_t>(32, kFloats / std::max<int64_t>(1, k) / 32 * 32);
  const int64_t n = g.out_volume(), count = (n + fits - 1) / fits;
  return std::min(n, ((n + count - 1) / count + 31) / 32 * 32);
}

template <class F>
void for_strips(const Geometry& g, int64_t channels, F&& f) {
  const int64_t n = g.out_volume(), length = strip_length(g, channels);
  for (int64_t begin = 0; begin < n; begin += length) f(Strip{begin, std::min(n, begin + length)});
}

// For a fixed kernel position, calls f(at, line, ow_begin, ow_end, first, count) for each line of
// the output that the strip meets: output positions ow_begin .. ow_end at row[at], of which `count`
// from `first` on look at elements of the input plane from `line` on, a stride apart; line is -1
// where none do.
template <class F>
void for_lines(const Geometry& g, Strip s, int64_t kd, int64_t kh, int64_t kw, F&& f) {
  const int64_t shift = kw * g.dilation[2] - g.padding[2], step = g.stride[2];
  // Output positions whose input lies inside: first_inside .. last_inside.
  const int64_t first_inside = shift >= 0 ? 0 : (-shift + step - 1) / step;
  const int64_t last_inside = shift >= g.in[2] ? -1 : (g.in[2] - 1 - shift) / step;
  for (int64_t at = s.begin; at < s.end;) {
    const int64_t line = at / g.out[2], od = line / g.out[1], oh = line % g.out[1];
    const int64_t begin = at - line * g.out[2], end = std::min(g.out[2], begin + (s.end - at));
    const int64_t d = od * g.stride[0] - g.padding[0] + kd * g.dilation[0];
    const int64_t h = oh * g.stride[1] - g.padding[1] + kh * g.dilation[1];
    const int64_t low = std::clamp(first_inside, begin, end),
                  high = std::clamp(last_inside + 1, low, end);
    const bool is_inside = d >= 0 && d < g.in[0] && h >= 0 && h < g.in[1] && high > low;
    f(at - s.begin, is_inside ? (d * g.in[1] + h) * g.in[2] + low * step + shift : -1, end - begin,
      low - begin, high - low);
    at += end - begin;
  }
}

// Columns of a strip: a row for each channel and kernel position, the value under it at each
// output position.
template <class T>
void unfold(const T* image, int64_t channels, T* columns, const Geometry& g, Strip s) {
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t kd = 0; kd < g.kernel[0]; ++kd)
      for (int64_t kh = 0; kh < g.kernel[1]; ++kh)
        for (int64_t kw = 0; kw < g.kernel[2]; ++kw, columns += s.length()) {
          const T* plane = image + c * g.in_volume();
          for_lines(g, s, kd, kh, kw,
                    [&](int64_t at, int64_t line, int64_t length, int64_t first, int64_t count) {
                      T* row = columns + at;
                      if (line < 0) {
                        std::fill(row, row + length, T{});
                        return;
                      }
                      std::fill(row, row + first, T{});
                      const T* from = plane + line;
                      if (g.stride[2] == 1)
                        std::memcpy(static_cast<void*>(row + first), from,
                                    static_cast<size_t>(count) * sizeof(T));
                      else
                        for (int64_t i = 0; i < count; ++i) row[first + i] = from[i * g.stride[2]];
                      std::fill(row + first + count, row + length, T{});
                    });
        }
}

// The inverse: adds every row of columns to where it was unfolded from.
template <class T>
void fold(const T* columns, int64_t channels, T* image, const Geometry& g, Strip s) {
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t kd = 0; kd < g.kernel[0]; ++kd)
      for (int64_t kh = 0; kh < g.kernel[1]; ++kh)
        for (int64_t kw = 0; kw < g.kernel[2]; ++kw, columns += s.length()) {
          T* plane = image + c * g.in_volume();
          for_lines(g, s, kd, kh, kw,
                    [&](int64_t at, int64_t line, int64_t, int64_t first, int64_t count) {
                      if (line < 0) return;
                      const T* row = columns + at + first;
                      T* to = plane + line;
                      if (g.stride[2] == 1)
                        for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(to[i] + row[i]);
                      else
                        for (int64_t i = 0; i < count; ++i)
                          to[i * g.stride[2]] = static_cast<T>(to[i * g.stride[2]] + row[i]);
                    });
        }
}

Tensor matrix(const Tensor& t, int64_t offset, int64_t rows, int64_t columns, int64_t ld) {
  return t.as_strided(Dims{rows, columns}, Dims{ld, 1}, t.offset() + offset);
}
Tensor turned(const Tensor& m) {
  return m.as_strided(Dims{m.size(1), m.size(0)}, Dims{m.stride(1), m.stride(0)}, m.offset());
}

// A piece of the work: a sample, a group, and some of the group's input channels.
struct Piece {
  int64_t sample, group, channel, channels;
};

// The channels of a group are cut where samples and groups alone would leave threads idle; how
// depends on sizes only.
struct Pieces {
  int64_t samples, groups, cuts, channels;
  Pieces(const Geometry& g, int64_t samples_apart)
      : samples(samples_apart), groups(g.groups), channels(g.group_in()) {
    constexpr int64_t kEnough = 16;
    cuts = std::clamp<int64_t>(kEnough / std::max<int64_t>(1, samples * groups), 1,
                               std::max<int64_t>(1, channels / 4));
  }
  int64_t count() const { return samples * groups * cuts; }
  Piece operator[](int64_t i) const {
    const int64_t cut = i % cuts, begin = channels * cut / cuts;
    return {i / cuts / groups, i / cuts % groups, begin, channels * (cut + 1) / cuts - begin};
  }
};

// Each of the three by unfolding, for all types; operands are contiguous.
void unfolded_forward(const Geometry& g, const Tensor& in, const Tensor& w,
                      const std::optional<Tensor>& bias, const Tensor& out) {
  const int64_t k = g.group_in() * g.kernel_volume(), n = g.out_volume(), o = g.group_out();
  if (bias)
    copy_into(reshaped(out, Dims{g.batch, g.out_channels, n}),
              bias->as_strided(Dims{g.batch, g.out_channels, n}, Dims{0, bias->stride(0), 0},
                               bias->offset()));
  const int64_t length = g.is_pointwise() ? n : strip_length(g, g.group_in()),
                strips = (n + length - 1) / length;
  parallel_for(0, g.batch * g.groups * strips, 1, [&](int64_t begin, int64_t end) {
    Tensor columns;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t sample = i / strips / g.groups, group = i / strips % g.groups;
      const Strip strip{i % strips * length, std::min(n, (i % strips + 1) * length)};
      const int64_t image = (sample * g.in_channels + group * g.group_in()) * g.in_volume();
      if (g.is_pointwise()) {
        columns = matrix(in, image, k, n, n);
      } else {
        columns = Tensor::empty(Dims{k, strip.length()}, in.dtype());
        visit_width(in.dtype(), [&]<class U>(TypeTag<U>) {
          unfold(static_cast<const U*>(in.raw()) + image, g.group_in(),
                 static_cast<U*>(columns.raw()), g, strip);
        });
      }
      product_into("conv", matrix(w, group * o * k, o, k, k), columns,
                   matrix(out, (sample * g.out_channels + group * o) * n + strip.begin, o,
                          strip.length(), n),
                   1, bias ? 1 : 0);
    }
  });
}

void unfolded_to_input(const Geometry& g, const Tensor& dy, const Tensor& w, const Tensor& out) {
  if (!g.is_pointwise()) fill(out, int64_t{0});
  const int64_t v = g.kernel_volume(), k = g.group_in() * v, n = g.out_volume(), o = g.group_out();
  const Pieces pieces(g, g.batch);
  parallel_for(0, pieces.count(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Piece piece = pieces[i];
      const int64_t rows = piece.channels * v;
      const int64_t image =
          (piece.sample * g.in_channels + piece.group * g.group_in() + piece.channel) *
          g.in_volume();
      const Tensor w_t = turned(matrix(w, piece.group * o * k + piece.channel * v, o, rows, k));
      const int64_t dy_at = (piece.sample * g.out_channels + piece.group * o) * n;
      if (g.is_pointwise()) {
        product_into("conv", w_t, matrix(dy, dy_at, o, n, n), matrix(out, image, rows, n, n), 1, 0);
        continue;
      }
      for_strips(g, piece.channels, [&](Strip strip) {
        const Tensor columns = Tensor::empty(Dims{rows, strip.length()}, dy.dtype());
        product_into("conv", w_t, matrix(dy, dy_at + strip.begin, o, strip.length(), n), columns, 1,
                     0);
        visit_any(dy.dtype(), [&]<class U>(TypeTag<U>) {
          fold(static_cast<const U*>(columns.raw()), piece.channels,
               static_cast<U*>(out.raw()) + image, g, strip);
        });
      });
    }
  });
}

// Samples are dealt out to a few sums, which are then added up in order. They are kept with the
// columns of the weight as rows: that way the unfolded input is read as it lies.
void unfolded_to_weight(const Geometry& g, const Tensor& dy, const Tensor& in, const Tensor& out) {
  const int64_t v = g.kernel_volume(), k = g.group_in() * v, n = g.out_volume(), o = g.group_out();
  const int64_t weights = out.numel();
  const int64_t sums =
      std::clamp<int64_t>((int64_t{1} << 22) / weights, 1, std::clamp<int64_t>(g.batch, 1, 8));
  const Tensor partial = Tensor::empty(Dims{sums, g.groups, k, o}, in.dtype());
  const Pieces pieces(g, sums);
  parallel_for(0, pieces.count(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Piece piece = pieces[i];  // "sample" is the number of the sum
      const int64_t rows = piece.channels * v;
      const Tensor dw =
          matrix(partial, ((piece.sample * g.groups + piece.group) * k + piece.channel * v) * o,
                 rows, o, o);
      const int64_t first = g.batch * piece.sample / sums,
                    last = g.batch * (piece.sample + 1) / sums;
      for (int64_t sample = first; sample < last; ++sample) {
        const int64_t image =
            (sample * g.in_channels + piece.group * g.group_in() + piece.channel) * g.in_volume();
        const int64_t dy_at = (sample * g.out_channels + piece.group * o) * n;
        if (g.is_pointwise()) {
          product_into("conv", matrix(in, image, rows, n, n), turned(matrix(dy, dy_at, o, n, n)),
                       dw, 1, sample == first ? 0 : 1);
          continue;
        }
        for_strips(g, piece.channels, [&](Strip strip) {
          const Tensor columns = Tensor::empty(Dims{rows, strip.length()}, in.dtype());
          visit_width(in.dtype(), [&]<class U>(TypeTag<U>) {
            unfold(static_cast<const U*>(in.raw()) + image, piece.channels,
                   static_cast<U*>(columns.raw()), g, strip);
          });
          product_into("conv", columns,
                       turned(matrix(dy, dy_at + strip.begin, o, strip.length(), n)), dw, 1,
                       sample == first && strip.begin == 0 ? 0 : 1);
        });
      }
    }
  });
  const Tensor total = sums == 1 ? partial : call_tensor("sum", partial, Dims{0}, true);
  copy_into(out.as_strided(Dims{g.groups, k, o}, Dims{o * k, 1, k}, 0),
            total.as_strided(Dims{g.groups, k, o}, Dims{k * o, o, 1}, total.offset()));
}

Tensor samples_of(const Tensor& t, int64_t first, int64_t count) {
  Dims sizes = t.sizes();
  sizes[0] = count;
  return t.as_strided(sizes, t.strides(), t.offset() + first * t.stride(0));
}

// f(geometry, first sample, number of samples) for what the products over taps left to do.
template <class F>
void for_undone(const Geometry& g, const TapOutcome& outcome, F&& f) {
  if (!outcome.is_done) return f(g, int64_t{0}, g.batch);
  Geometry one = g;
  one.batch = 1;
  for (const int64_t sample : outcome.samples_undone) f(one, sample, int64_t{1});
}

}  // namespace

Dims spread(const Dims& d, size_t n, const char* what) {
  if (d.size() == 1) return Dims(n, d[0]);
  PRONG_CHECK(d.size() == n, kRuntime, "expected ", what,
              " to be a single integer value or a list of ", n,
              " values to match the convolution dimensions, but got ", what, "=", d);
  return d;
}

Dims conv_sizes(const TensorMeta& input, const TensorMeta& weight, const ConvParams& p) {
  const int64_t spatial = weight.rank() - 2;
  PRONG_CHECK(input.rank() == weight.rank(), kRuntime, "Expected ", spatial + 1,
              "D (unbatched) or ", spatial + 2, "D (batched) input to conv", spatial,
              "d, but got input of size: ", input.sizes);
  PRONG_CHECK(input.dtype == weight.dtype, kRuntime, "Input type (", input.dtype,
              ") and weight type (", weight.dtype, ") should be the same");
  PRONG_CHECK(p.groups > 0, kRuntime, "non-positive groups is not supported");
  PRONG_CHECK(input.sizes[1] == weight.sizes[1] * p.groups, kRuntime, "Given groups=", p.groups,
              ", weight of size ", weight.sizes, ", expected input", input.sizes, " to have ",
              weight.sizes[1] * p.groups, " channels, but got ", input.sizes[1],
              " channels instead");
  PRONG_CHECK(weight.sizes[0] % p.groups == 0, kRuntime, "Given groups=", p.groups,
              ", expected weight to be divisible by ", p.groups,
              " at dimension 0, but got weight of size ", weight.sizes, " instead");
  Dims out{input.sizes[0], weight.sizes[0]};
  for (size_t i = 0; i < static_cast<size_t>(spatial); ++i) {
    PRONG_CHECK(p.stride[i] > 0, kRuntime, "non-positive stride is not supported");
    PRONG_CHECK(p.dilation[i] > 0, kRuntime, "dilation should be greater than zero");
    PRONG_CHECK(p.padding[i] >= 0, kRuntime, "negative padding is not supported");
    const int64_t padded = input.sizes[i + 2] + 2 * p.padding[i],
                  reach = p.dilation[i] * (weight.sizes[i + 2] - 1) + 1;
    PRONG_CHECK(padded >= reach, kRuntime, "Calculated padded input size per channel: (", padded,
                "). Kernel size: (", reach,
                "). Kernel size can't be greater than actual input size");
    out.push_back((padded - reach) / p.stride[i] + 1);
  }
  return out;
}

void check_bias(const TensorMeta& weight, const TensorMeta& bias) {
  PRONG_CHECK(bias.rank() == 1 && bias.sizes[0] == weight.sizes[0], kRuntime,
              "Given weight of size ", weight.sizes, ", expected bias to be 1-dimensional with ",
              weight.sizes[0], " elements, but got bias of size ", bias.sizes, " instead");
}

Tensor convolve(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                const ConvParams& p) {
  const Dims sizes = conv_sizes(input.meta(), weight.meta(), p);
  if (bias) check_bias(weight.meta(), bias->meta());
  if (size_of(input.dtype()) == 2 && is_floating(input.dtype())) {  // sums of many terms
    std::optional<Tensor> wide;
    if (bias) wide = bias->to(DType::kFloat32);
    return convolve(input.to(DType::kFloat32), weight.to(DType::kFloat32), wide, p)
        .to(input.dtype());
  }
  const Tensor out = Tensor::empty(sizes, input.dtype());
  if (out.numel() == 0) return out;
  const Geometry g(input.sizes(), weight.sizes(), sizes, p);
  const Tensor in = input.contiguous(), w = weight.contiguous();
  const Tensor b = bias ? bias->to(input.dtype()).contiguous() : Tensor();
  if (may_go_by_channels(g, input.dtype())) {
    channels_forward(g, in.data<float>(), w.data<float>(), bias ? b.data<float>() : nullptr,
                     out.data<float>());
    return out;
  }
  if (!may_use_taps(g, input.dtype())) {
    unfolded_forward(g, in, w, bias, out);
    return out;
  }
  const TapOutcome outcome = taps_forward(g, in.data<float>(), w.data<float>(),
                                          bias ? b.data<float>() : nullptr, out.data<float>());
  for_undone(g, outcome, [&](const Geometry& one, int64_t first, int64_t count) {
    unfolded_forward(one, samples_of(in, first, count), w, bias, samples_of(out, first, count));
  });
  return out;
}

Tensor convolve_to_input(const Tensor& grad, const Tensor& weight, const Dims& input_sizes,
                         const ConvParams& p) {
  const Dims sizes = conv_sizes({input_sizes, grad.dtype()}, weight.meta(), p);
  PRONG_CHECK(sizes == grad.sizes(), kRuntime, "convolution backward: expected a gradient of size ",
              sizes, ", but got ", grad.sizes());
  if (size_of(grad.dtype()) == 2)  // sums of many terms need more bits
    return convolve_to_input(grad.to(DType::kFloat32), weight.to(DType::kFloat32), input_sizes, p)
        .to(grad.dtype());
  Tensor out = Tensor::empty(input_sizes, grad.dtype());
  const Geometry g(input_sizes, weight.sizes(), sizes, p);
  if (out.numel() == 0) return out;
  if (grad.numel() == 0 || weight.numel() == 0) {
    fill(out, int64_t{0});
    return out;
  }
  const Tensor dy = grad.contiguous(), w = weight.contiguous();
  if (may_go_by_channels(g, grad.dtype())) {
    channels_to_input(g, dy.data<float>(), w.data<float>(), out.data<float>());
    return out;
  }
  if (!may_use_taps(g, grad.dtype())) {
    unfolded_to_input(g, dy, w, out);
    return out;
  }
  const TapOutcome outcome = taps_to_input(g, dy.data<float>(), w.data<float>(), out.data<float>());
  for_undone(g, outcome, [&](const Geometry& one, int64_t first, int64_t count) {
    unfolded_to_input(one, samples_of(dy, first, count), w, samples_of(out, first, count));
  });
  return out;
}

Tensor convolve_to_weight(const Tensor& grad, const Tensor& input, const Dims& weight_sizes,
                          const ConvParams& p) {
  const Dims sizes = conv_sizes(input.meta(), {weight_sizes, input.dtype()}, p);
  PRONG_CHECK(sizes == grad.sizes(), kRuntime, "convolution backward: expected a gradient of size ",
              sizes, ", but got ", grad.sizes());
  if (size_of(grad.dtype()) == 2)
    return convolve_to_weight(grad.to(DType::kFloat32), input.to(DType::kFloat32), weight_sizes, p)
        .to(grad.dtype());
  const Geometry g(input.sizes(), weight_sizes, sizes, p);
  Tensor out = Tensor::empty(weight_sizes, input.dtype());
  if (grad.numel() == 0 || out.numel() == 0) {
    fill(out, int64_t{0});
    return out;
  }
  const Tensor dy = grad.contiguous(), in = input.contiguous();
  const auto try_fast = [&] {
    if (may_go_by_channels(g, input.dtype()))
      return channels_to_weight(g, dy.data<float>(), in.data<float>(), out.data<float>());
    return may_use_taps(g, input.dtype()) &&
           taps_to_weight(g, dy.data<float>(), in.data<float>(), out.data<float>());
  };
  if (!try_fast()) unfolded_to_weight(g, dy, in, out);
  return out;
}

}  // namespace prong
