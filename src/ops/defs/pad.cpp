// Padding: constant borders, and those made from the elements themselves.
#include <algorithm>
#include <vector>

#include "ops/gradient.h"
#include "ops/kernels/fill.h"
#include "ops/kernels/geometry.h"

namespace prong {

namespace {

constexpr const char* kVmapLater = "vmap is not built yet";
constexpr Spelling kFunctionOnly{.method = false};

size_t at(int64_t i) { return static_cast<size_t>(i); }

OpDef& copy_op(Registry& r, std::string_view schema, std::string doc) {
  return r.add(schema).doc(std::move(doc)).family(Family::kCopy).no_vmap(kVmapLater);
}

// Pads of one dimension; PyTorch lists them from the last dimension, two numbers each.
struct Pads {
  int64_t before, after;
};
std::vector<Pads> pads_by_dim(int64_t rank, const Dims& pad) {
  PRONG_CHECK(pad.size() % 2 == 0, kRuntime, "Padding length must be divisible by 2");
  PRONG_CHECK(static_cast<int64_t>(pad.size()) <= 2 * rank, kRuntime,
              "Padding length should be less than or equal to two times the input dimension but "
              "got padding length ",
              pad.size(), " and input of dimension ", rank);
  std::vector<Pads> out(at(rank), {0, 0});
  for (size_t i = 0; i < pad.size() / 2; ++i) out[at(rank) - 1 - i] = {pad[2 * i], pad[2 * i + 1]};
  return out;
}

Dims padded_sizes(DimsView sizes, const Dims& pad) {
  const std::vector<Pads> pads = pads_by_dim(static_cast<int64_t>(sizes.size()), pad);
  Dims out(sizes);
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] += pads[i].before + pads[i].after;
    PRONG_CHECK(out[i] >= 0, kRuntime, "The input size ", sizes[i], ", plus negative padding ",
                pads[i].before, " and ", pads[i].after,
                " resulted in a negative output size, which is invalid. Check dimension ", i,
                " of your input.");
  }
  return out;
}

// The part of x that is kept in the result, and the part of the result where it goes.
struct Kept {
  Geometry from, to;
};
Kept kept_part(const Tensor& x, const Tensor& out, const std::vector<Pads>& pads) {
  Kept kept{geometry_of(x), geometry_of(out)};
  for (int64_t d = 0; d < x.rank(); ++d) {
    const auto [before, after] = pads[at(d)];
    const int64_t start = std::max<int64_t>(-before, 0);
    const int64_t length =
        std::max<int64_t>(x.sizes()[at(d)] - start - std::max<int64_t>(-after, 0), 0);
    kept.from = narrowed(kept.from, d, start, length);
    kept.to =
        narrowed(kept.to, d, std::min(std::max<int64_t>(before, 0), out.sizes()[at(d)]), length);
  }
  return kept;
}

Tensor pad_constant(const Tensor& x, const Dims& pad, const Number& value) {
  Tensor out = Tensor::empty(padded_sizes(x.sizes(), pad), x.dtype());
  fill_number(out, value);
  const Kept kept = kept_part(x, out, pads_by_dim(x.rank(), pad));
  copy_into(apply(out, kept.to), apply(x, kept.from));
  return out;
}

void check_no_value(const std::string& mode, const std::optional<double>& value) {
  PRONG_CHECK(!value || *value == 0, kRuntime, "Padding mode \"", mode,
              "\" doesn't take in value argument");
}

void check_pad_mode(const std::string& mode, const Dims& sizes, const std::vector<Pads>& pads,
                    size_t count) {
  PRONG_CHECK(mode == "reflect" || mode == "replicate" || mode == "circular", kNotImplemented,
              "Unrecognised padding mode ", mode);
  const size_t rank = sizes.size();
  PRONG_CHECK(count == 2 * (rank - 1) || count == 2 * (rank - 2), kNotImplemented, "Padding size ",
              count, " is not supported for ", rank,
              "D input tensor.\nSupported combinations for non-constant padding:\n"
              "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
              "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
              "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)");
  for (size_t d = 0; d < rank; ++d) {
    const auto [before, after] = pads[d];
    const int64_t most = std::max(before, after);
    if (mode == "reflect")
      PRONG_CHECK(most < sizes[d] || most == 0, kRuntime,
                  "Argument #4: Padding size should be less than the corresponding input "
                  "dimension, but got: padding (",
                  before, ", ", after, ") at dimension ", d, " of input ", sizes);
    if (mode == "circular")
      PRONG_CHECK(most <= sizes[d], kRuntime,
                  "Padding value causes wrapping around more than once.");
    PRONG_CHECK(most == 0 || sizes[d] > 0, kRuntime, "pad: dimension ", d, " of input ", sizes,
                " is empty");
  }
}

// Plane `i` of the result, counted from the first kept one, copies which kept plane?
int64_t source_plane(const std::string& mode, int64_t i, int64_t size) {
  if (mode == "replicate") return std::clamp<int64_t>(i, 0, size - 1);
  if (mode == "circular") return (i + size) % size;
  return i < 0 ? -i : i >= size ? 2 * (size - 1) - i : i;
}

// The borders of every row of the result, each element by itself.
void pad_rows(const Tensor& out, int64_t given_before, int64_t size, const std::string& mode) {
  const int64_t before = std::max<int64_t>(given_before, 0), columns = out.sizes().back();
  std::vector<std::pair<int64_t, int64_t>> moves;  // to, from
  for (int64_t i = 0; i < columns; ++i)
    if (i < before || i >= before + size)
      moves.push_back({i, before + source_plane(mode, i - before, size)});
  visit_width(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* data = static_cast<T*>(out.raw());
    parallel_for(0, out.numel() / columns, 4096, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r)
        for (const auto& [to, from] : moves) data[r * columns + to] = data[r * columns + from];
    });
  });
}

// Where negative pads cut off all of a dimension, its edge is repeated nonetheless.
bool is_all_edge(const std::string& mode, const Kept& kept) {
  return mode == "replicate" && product(DimsView(kept.from.sizes)) == 0;
}

// For each place of the result along a dimension, the place of the input that it repeats.
Tensor edge_places(int64_t size, int64_t before, int64_t out_size) {
  Tensor places = Tensor::empty(Dims{out_size}, DType::kInt64);
  for (int64_t i = 0; i < out_size; ++i)
    places.data<int64_t>()[i] = std::clamp<int64_t>(i - before, 0, size - 1);
  return places;
}

Tensor pad_by_planes(const Tensor& x, const Dims& pad, const std::string& mode) {
  const std::vector<Pads> pads = pads_by_dim(x.rank(), pad);
  check_pad_mode(mode, x.sizes(), pads, pad.size());
  Tensor out = Tensor::empty(padded_sizes(x.sizes(), pad), x.dtype());
  if (out.numel() == 0) return out;
  const Kept kept = kept_part(x, out, pads);
  if (is_all_edge(mode, kept)) {
    Tensor part = x;
    for (int64_t d = 0; d < x.rank(); ++d)
      part = call_tensor("index_select", part, d,
                         edge_places(x.sizes()[at(d)], pads[at(d)].before, out.sizes()[at(d)]));
    return part;
  }
  copy_into(apply(out, kept.to), apply(x, kept.from));
  if (pads.back().before > 0 || pads.back().after > 0)
    pad_rows(out, pads.back().before, kept.from.sizes.back(), mode);
  // Dimension after dimension, borders copy whole planes of the result; the last one completes the
  // corners.
  const Geometry g = geometry_of(out);
  for (int64_t d = x.rank() - 2; d >= 0; --d) {
    const int64_t before = std::max<int64_t>(pads[at(d)].before, 0), size = kept.from.sizes[at(d)];
    for (int64_t i = 0; i < out.sizes()[at(d)]; ++i) {
      if (i >= before && i < before + size) continue;
      copy_into(apply(out, selected(g, d, i)),
                apply(out, selected(g, d, before + source_plane(mode, i - before, size))));
    }
  }
  return out;
}

// The borders' gradients added to the elements that they copied.
Tensor pad_backward(const Tensor& grad, const Dims& sizes, const Dims& pad,
                    const std::string& mode) {
  const std::vector<Pads> pads = pads_by_dim(static_cast<int64_t>(sizes.size()), pad);
  Tensor x = Tensor::empty(sizes, grad.dtype());
  fill(x, int64_t{0});
  if (grad.numel() == 0) return x;
  const Tensor sums = grad.clone();
  const Kept kept = kept_part(x, sums, pads);
  if (is_all_edge(mode, kept)) {
    Tensor part = grad;
    for (int64_t d = 0; d < grad.rank(); ++d) {
      Dims narrower = part.sizes();
      narrower[at(d)] = sizes[at(d)];
      const Tensor zeros = Tensor::empty(narrower, grad.dtype());
      fill(zeros, int64_t{0});
      part = call_tensor("index_add", zeros, d,
                         edge_places(sizes[at(d)], pads[at(d)].before, grad.sizes()[at(d)]), part);
    }
    return part;
  }
  const Geometry g = geometry_of(sums);
  for (int64_t d = 0; d < grad.rank(); ++d) {
    const int64_t before = std::max<int64_t>(pads[at(d)].before, 0), size = kept.from.sizes[at(d)];
    for (int64_t i = 0; i < grad.sizes()[at(d)]; ++i) {
      if (i >= before && i < before + size) continue;
      call_tensor("add_",
                  apply(sums, selected(g, d, before + source_plane(mode, i - before, size))),
                  apply(sums, selected(g, d, i)));
    }
  }
  copy_into(apply(x, kept.from), apply(sums, kept.to));
  return x;
}

Expr grad_of_constant(Gradient& g) {
  Dims pad = g.dims("pad");
  for (int64_t& n : pad) n = -n;
  return op<"constant_pad_nd">(g.out(), pad);
}

void register_pads(Registry& r) {
  copy_op(r, "pad_backward(grad: Tensor, sizes: int[], pad: int[], mode: str) -> Tensor",
          "The gradient of a tensor of these sizes that was padded with its own elements.")
      .where({.function = false, .method = false})
      .kernel([](const Tensor& grad, const Dims& sizes, const Dims& pad, const std::string& mode) {
        return pad_backward(grad, sizes, pad, mode);
      })
      .shape([](const TensorMeta& grad, const Dims& sizes, const Dims&, const std::string&) {
        return TensorMeta{sizes, grad.dtype};
      })
      .grad("grad", "",
            [](Gradient& g) { return op<"pad">(g.out(), g.dims("pad"), g.value("mode")); })
      .samples({{"t(1, 2, 8), [1, 2, 5], [2, 1], 'reflect'"},
                {"t(1, 2, 7, 8), [1, 2, 4, 5], [1, 2, 3, 0], 'circular'"}});
  copy_op(
      r, "pad(input: Tensor, pad: int[], mode: str = \"constant\", value: float? = None) -> Tensor",
      "The tensor with borders: pad lists (before, after) from the last dimension; mode constant, "
      "reflect, replicate or circular.")
      .where({.function = false, .method = false, .nn_functional = true})
      .kernel([](const Tensor& x, const Dims& pad, const std::string& mode,
                 const std::optional<double>& value) {
        if (mode == "constant") {
          const double number = value.value_or(0);
          const Number fill{is_integral(x.dtype()) ? IValue(static_cast<int64_t>(number))
                                                   : IValue(number)};
          return pad_constant(x, pad, fill);
        }
        check_no_value(mode, value);
        return pad_by_planes(x, pad, mode);
      })
      .shape([](const TensorMeta& x, const Dims& pad, const std::string& mode,
                const std::optional<double>& value) {
        const Dims sizes = padded_sizes(x.sizes, pad);
        if (mode != "constant") {
          check_no_value(mode, value);
          check_pad_mode(mode, x.sizes, pads_by_dim(x.rank(), pad), pad.size());
        }
        return TensorMeta{sizes, x.dtype};
      })
      .grad("input", "",
            [](Gradient& g) {
              if (g.value("mode").to_string() == "constant") return grad_of_constant(g);
              return op<"pad_backward">(g.out(), g.sizes("input"), g.dims("pad"), g.value("mode"));
            })
      .samples({{"t(2, 3), [1, 2]"},
                {"t(2, 3), [1, 1, 2, 0], 'constant', 1.5"},
                {"t(2, 5), [-1, -2]"},
                {"t(1, 2, 5), [2, 1], 'reflect'"},
                {"t(1, 2, 5), [2, 7], 'replicate'"},
                {"t(1, 2, 5), [5, 1], 'circular'"},
                {"t(1, 2, 4, 5), [1, 2, 3, 0], 'reflect'"}})
      .reference(
          "np.pad(input, [(0, 0)] * (input.ndim - len(pad) // 2) + [(pad[i], pad[i + 1]) for i in "
          "range(len(pad) - 2, -1, -2)], "
          "**({'mode': 'constant', 'constant_values': value or 0} if mode == 'constant' else "
          "{'mode': {'reflect': 'reflect', 'replicate': 'edge', 'circular': 'wrap'}[mode]})) "
          "if min(pad) >= 0 else input[:, 1:-2]");
  copy_op(r, "constant_pad_nd(input: Tensor, pad: int[], value: Scalar = 0) -> Tensor",
          "The tensor with borders of one value.")
      .where(kFunctionOnly)
      .kernel([](const Tensor& x, const Dims& pad, const Number& value) {
        return pad_constant(x, pad, value);
      })
      .shape([](const TensorMeta& x, const Dims& pad, const Number&) {
        return TensorMeta{padded_sizes(x.sizes, pad), x.dtype};
      })
      .grad("input", "", [](Gradient& g) { return grad_of_constant(g); })
      .samples({{"t(2, 3), [1, 2], 3"}})
      .reference("np.pad(input, [(0, 0), (pad[0], pad[1])], constant_values=value)");
}

}  // namespace

void register_pad(Registry& r) { register_pads(r); }

}  // namespace prong
