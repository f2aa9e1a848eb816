// Ops that put tensors together or repeat one: cat, stack, repeat, repeat_interleave.
#include <algorithm>
#include <limits>

#include "ops/data_check.h"
#include "ops/gradient.h"
#include "ops/kernels/fill.h"
#include "ops/kernels/geometry.h"

namespace prong {

namespace {

constexpr const char* kVmapLater = "vmap is not built yet";
constexpr Spelling kFunctionOnly{.method = false};
constexpr Spelling kMethodOnly{.function = false};

size_t at(int64_t i) { return static_cast<size_t>(i); }

OpDef& copy_op(Registry& r, std::string_view schema, std::string doc) {
  return r.add(schema).doc(std::move(doc)).family(Family::kCopy).no_vmap(kVmapLater);
}

// ── several into one ──

TensorMeta meta_of(const Tensor& t) { return t.meta(); }
const TensorMeta& meta_of(const TensorMeta& m) { return m; }

// PyTorch of old made empty vectors of everything; they may still stand beside tensors of any rank.
bool is_skipped(const TensorMeta& m) { return m.rank() == 1 && m.sizes[0] == 0; }

template <class T>
TensorMeta cat_meta(const std::vector<T>& tensors, int64_t dim) {
  PRONG_CHECK(!tensors.empty(), kValue, "torch.cat(): expected a non-empty list of Tensors");
  ResultType type;
  std::optional<TensorMeta> first;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorMeta m = meta_of(tensors[i]);
    PRONG_CHECK(m.rank() > 0, kRuntime, "zero-dimensional tensor (at position ", i,
                ") cannot be concatenated");
    type.add(m);
    if (!first && !is_skipped(m)) first = m;
  }
  if (!first) first = meta_of(tensors[0]);
  TensorMeta out{first->sizes, type.get()};
  const size_t d = at(wrap_dim(dim, out.rank()));
  out.sizes[d] = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorMeta m = meta_of(tensors[i]);
    if (is_skipped(m)) continue;
    PRONG_CHECK(m.rank() == out.rank(), kRuntime,
                "Tensors must have same number of dimensions: got ", out.rank(), " and ", m.rank());
    for (size_t k = 0; k < m.sizes.size(); ++k)
      PRONG_CHECK(k == d || m.sizes[k] == out.sizes[k], kRuntime,
                  "Sizes of tensors must match except in dimension ", d, ". Expected size ",
                  out.sizes[k], " but got size ", m.sizes[k], " for tensor number ", i,
                  " in the list.");
    out.sizes[d] += m.sizes[d];
  }
  return out;
}

Tensor cat_tensors(const std::vector<Tensor>& tensors, int64_t dim) {
  const TensorMeta meta = cat_meta(tensors, dim);
  const int64_t d = wrap_dim(dim, meta.rank());
  Tensor out = Tensor::empty(meta.sizes, meta.dtype);
  Geometry g = geometry_of(out);
  for (const Tensor& t : tensors) {
    if (is_skipped(t.meta())) continue;
    g.sizes[at(d)] = t.sizes()[at(d)];
    copy_into(apply(out, g), t);
    g.offset += g.sizes[at(d)] * g.strides[at(d)];
  }
  return out;
}

template <class T>
TensorMeta stack_meta(const std::vector<T>& tensors, int64_t dim) {
  PRONG_CHECK(!tensors.empty(), kRuntime, "stack expects a non-empty TensorList");
  ResultType type;
  const Dims sizes = meta_of(tensors[0]).sizes;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorMeta m = meta_of(tensors[i]);
    type.add(m);
    PRONG_CHECK(m.sizes == sizes, kRuntime, "stack expects each tensor to be equal size, but got ",
                sizes, " at entry 0 and ", m.sizes, " at entry ", i);
  }
  TensorMeta out{sizes, type.get()};
  out.sizes.insert(at(wrap_dim(dim, out.rank() + 1)), static_cast<int64_t>(tensors.size()));
  return out;
}

Tensor stack_tensors(const std::vector<Tensor>& tensors, int64_t dim) {
  const TensorMeta meta = stack_meta(tensors, dim);
  Tensor out = Tensor::empty(meta.sizes, meta.dtype);
  for (size_t i = 0; i < tensors.size(); ++i)
    copy_into(
        apply(out, selected(geometry_of(out), wrap_dim(dim, meta.rank()), static_cast<int64_t>(i))),
        tensors[i]);
  return out;
}

template <class T>
std::vector<T> at_least(const std::vector<T>& tensors, int64_t rank) {
  std::vector<T> out;
  for (const T& t : tensors) {
    Geometry g = geometry_of(t);
    while (g.rank() < rank) g = unsqueezed(g, 0);
    out.push_back(apply(t, g));
  }
  return out;
}
std::vector<Tensor> ranked(const std::vector<Tensor>& tensors, const char* op) {
  std::vector<Tensor> out;
  for (const Tensor& t : tensors) out.push_back(call_tensor(op, t));
  return out;
}
template <class T>
int64_t hstack_dim(const std::vector<T>& tensors) {
  return !tensors.empty() && meta_of(tensors[0]).rank() <= 1 ? 0 : 1;
}

void register_joins(Registry& r) {
  copy_op(r, "cat(tensors: Tensor[], dim: int = 0) -> Tensor",
          "The tensors one after the other along dim.")
      .where({.method = false, .aliases = {"concat", "concatenate"}})
      .kernel(
          [](const std::vector<Tensor>& tensors, int64_t dim) { return cat_tensors(tensors, dim); })
      .shape([](const std::vector<TensorMeta>& tensors, int64_t dim) {
        return cat_meta(tensors, dim);
      })
      .grad("tensors", "",
            [](Gradient& g) {
              std::vector<Expr> parts;
              int64_t start = 0;
              const int64_t dim = wrap_dim(g.integer("dim"), g.out().rank());
              for (size_t i = 0; i < g.length("tensors"); ++i) {
                const TensorMeta m = g.meta("tensors", i);
                const int64_t n = is_skipped(m) ? 0 : m.sizes[at(dim)];
                parts.push_back(!g.needs("tensors", i) ? g.none()
                                : is_skipped(m)        ? g.zeros(m)
                                                       : op<"narrow">(g.out(), dim, start, n));
                start += n;
              }
              return parts;
            })
      .samples({{"[t(2, 3), t(4, 3)]"},
                {"[t(2, 3), t(2, 1)], 1"},
                {"[t(2, 3), t(2, 3, dtype=int64)], -1"},
                {"[strided(4, 6), t(0, 6)]"}})
      .reference("np.concatenate(tensors, dim)");
  copy_op(r, "stack(tensors: Tensor[], dim: int = 0) -> Tensor",
          "The tensors along a new dimension.")
      .where(kFunctionOnly)
      .kernel([](const std::vector<Tensor>& tensors, int64_t dim) {
        return stack_tensors(tensors, dim);
      })
      .shape([](const std::vector<TensorMeta>& tensors, int64_t dim) {
        return stack_meta(tensors, dim);
      })
      .grad("tensors", "",
            [](Gradient& g) {
              std::vector<Expr> parts;
              const int64_t dim = wrap_dim(g.integer("dim"), g.out().rank());
              for (size_t i = 0; i < g.length("tensors"); ++i)
                parts.push_back(g.needs("tensors", i)
                                    ? op<"select">(g.out(), dim, static_cast<int64_t>(i))
                                    : g.none());
              return parts;
            })
      .samples({{"[t(2, 3), t(2, 3)]"}, {"[t(2), t(2), t(2)], -1"}, {"[t(), t()]"}})
      .reference("np.stack(tensors, dim)");
  copy_op(r, "hstack(tensors: Tensor[]) -> Tensor",
          "The tensors side by side: along dim 1, vectors along dim 0.")
      .where(kFunctionOnly)
      .kernel([](const std::vector<Tensor>& tensors) {
        return call_tensor("cat", ranked(tensors, "atleast_1d"), hstack_dim(tensors));
      })
      .composite()
      .shape([](const std::vector<TensorMeta>& tensors) {
        return cat_meta(at_least(tensors, 1), hstack_dim(tensors));
      })
      .samples({{"[t(2), t(3)]"}, {"[t(2, 3), t(2, 1)]"}})
      .reference("np.hstack(tensors)");
  copy_op(r, "vstack(tensors: Tensor[]) -> Tensor",
          "The tensors below each other: along dim 0, vectors as rows.")
      .where({.method = false, .aliases = {"row_stack"}})
      .kernel([](const std::vector<Tensor>& tensors) {
        return call_tensor("cat", ranked(tensors, "atleast_2d"), int64_t{0});
      })
      .composite()
      .shape(
          [](const std::vector<TensorMeta>& tensors) { return cat_meta(at_least(tensors, 2), 0); })
      .samples({{"[t(3), t(3)]"}, {"[t(2, 3), t(1, 3)]"}})
      .reference("np.vstack(tensors)");
}

// ── one several times ──

Dims repeated_sizes(DimsView sizes, DimsView repeats) {
  PRONG_CHECK(
      repeats.size() >= sizes.size(), kRuntime,
      "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
  Dims out(repeats);
  for (int64_t n : repeats)
    PRONG_CHECK(n >= 0, kRuntime, "Trying to create tensor with negative dimension ", n, ": ",
                repeats);
  for (size_t i = 0; i < sizes.size(); ++i) out[out.size() - 1 - i] *= sizes[sizes.size() - 1 - i];
  return out;
}

Tensor repeat(const Tensor& x, DimsView repeats) {
  Tensor out = Tensor::empty(repeated_sizes(x.sizes(), repeats), x.dtype());
  // Seen as (repeats, size) in each dimension, the result is x broadcast.
  Dims sizes, own_strides;
  const size_t added = repeats.size() - x.sizes().size();
  for (size_t i = 0; i < repeats.size(); ++i) {
    sizes.push_back(repeats[i]);
    own_strides.push_back(0);
    sizes.push_back(i < added ? 1 : x.sizes()[i - added]);
    own_strides.push_back(i < added ? 0 : x.strides()[i - added]);
  }
  copy_into(reshape(out, sizes), apply(x, {sizes, own_strides, x.offset()}));
  return out;
}

Dims tile_repeats(int64_t rank, const Dims& dims) {
  Dims out = dims;
  while (static_cast<int64_t>(out.size()) < rank) out.insert(0, 1);
  return out;
}

void check_repeats(DataCheck& c) {
  c.within(c["repeats"], {0, std::numeric_limits<int64_t>::max()});
}

Tensor repeat_interleave(Tensor x, int64_t repeats, std::optional<int64_t> given) {
  PRONG_CHECK(repeats >= 0, kRuntime, "Repeats must be non-negative");
  if (!given) x = reshape(x, Dims{-1});
  const int64_t dim = wrap_dim(given.value_or(0), x.rank());
  if (x.rank() == 0) x = reshape(x, Dims{1});
  Dims sizes = x.sizes();
  sizes.insert(at(dim) + 1, repeats);
  Tensor out = Tensor::empty(sizes, x.dtype());
  copy_into(out, apply(x, unsqueezed(geometry_of(x), dim + 1)));
  Dims merged = x.sizes();
  merged[at(dim)] *= repeats;
  return reshape(out, merged);
}

// Element numbers, each as often as `repeats` says.
Tensor repeat_indices(const Tensor& repeats) {
  PRONG_CHECK(repeats.dtype() == DType::kInt64 || repeats.dtype() == DType::kInt32, kNotImplemented,
              "\"repeat_interleave_cpu\" not implemented for '", type_name(repeats.dtype()), "'");
  PRONG_CHECK(repeats.rank() == 1, kRuntime, "repeat_interleave only accept 1D vector as repeat");
  const Tensor counts = repeats.to(DType::kInt64).contiguous();
  const int64_t* n = counts.data<int64_t>();
  int64_t total = 0;
  for (int64_t i = 0; i < counts.numel(); ++i) {
    PRONG_CHECK(n[i] >= 0, kRuntime, "repeats can not be negative");
    total += n[i];
  }
  Tensor out = Tensor::empty(Dims{total}, DType::kInt64);
  int64_t* to = out.data<int64_t>();
  for (int64_t i = 0; i < counts.numel(); ++i) to = std::fill_n(to, n[i], i);
  return out;
}

void register_repeats(Registry& r) {
  copy_op(r, "repeat(input: Tensor, repeats: int[]) -> Tensor",
          "The tensor repeated as a block along each dimension.")
      .where(kMethodOnly)
      .bounds(&bounds_of_input)
      .kernel([](const Tensor& x, const Dims& repeats) { return repeat(x, repeats); })
      .shape([](const TensorMeta& x, const Dims& repeats) {
        return TensorMeta{repeated_sizes(x.sizes, repeats), x.dtype};
      })
      .grad("input", "",
            [](Gradient& g) {
              const Dims sizes = g.sizes("input"), repeats = g.dims("repeats");
              if (g.out().meta().numel() == 0) return g.zeros({sizes, g.out().dtype()});
              // As (repeats, size) in each dimension; the tape sums what was added in front.
              Dims split, dims;
              const size_t added = repeats.size() - sizes.size();
              for (size_t i = 0; i < repeats.size(); ++i) {
                if (repeats[i] != 1) dims.push_back(static_cast<int64_t>(split.size()));
                split.push_back(repeats[i]);
                split.push_back(i < added ? 1 : sizes[i - added]);
              }
              if (dims.empty()) return op<"reshape">(g.out(), sizes);
              return op<"reshape">(op<"sum">(op<"reshape">(g.out(), split), dims), sizes);
            })
      .samples(
          {{"t(2, 3), [2, 1]"}, {"t(3), [2, 2]"}, {"t(2, 3), [0, 1]"}, {"strided(4, 6), [1, 3]"}})
      .reference("np.tile(input, repeats)");
  copy_op(r, "tile(input: Tensor, dims: int[]) -> Tensor",
          "repeat, with as many leading ones as are missing.")
      .kernel([](const Tensor& x, const Dims& dims) {
        return call_tensor("repeat", x, tile_repeats(x.rank(), dims));
      })
      .composite()
      .shape([](const TensorMeta& x, const Dims& dims) {
        return TensorMeta{repeated_sizes(x.sizes, tile_repeats(x.rank(), dims)), x.dtype};
      })
      .samples({{"t(2, 3), [2]"}, {"t(3), [2, 2]"}})
      .reference("np.tile(input, dims)");
  copy_op(r,
          "repeat_interleave(input: Tensor, repeats: int, dim: int? = None, *, output_size: int? = "
          "None) -> Tensor",
          "Each slice along dim repeated in place; of all elements where dim is None.")
      .kernel([](const Tensor& x, int64_t repeats, const std::optional<int64_t>& dim,
                 const std::optional<int64_t>&) { return repeat_interleave(x, repeats, dim); })
      .shape([](const TensorMeta& x, int64_t repeats, const std::optional<int64_t>& dim,
                const std::optional<int64_t>&) {
        PRONG_CHECK(repeats >= 0, kRuntime, "Repeats must be non-negative");
        TensorMeta out =
            dim && x.rank() ? TensorMeta{x.sizes, x.dtype} : TensorMeta{Dims{x.numel()}, x.dtype};
        out.sizes[at(wrap_dim(dim.value_or(0), out.rank()))] *= repeats;
        return out;
      })
      .grad(
          "input", "",
          [](Gradient& g) {
            const TensorMeta x = g.meta("input");
            const IValue given = g.value("dim");
            Dims split = given.is_none() || x.rank() == 0 ? Dims{x.numel()} : x.sizes;
            const int64_t dim =
                wrap_dim(given.is_none() ? 0 : given.to_int(), static_cast<int64_t>(split.size()));
            split.insert(at(dim) + 1, g.integer("repeats"));
            return op<"reshape">(op<"sum">(op<"reshape">(g.out(), split), Dims{dim + 1}), x.sizes);
          })
      .samples({{"t(2, 3), 2"}, {"t(2, 3), 2, 0"}, {"t(2, 3), 3, -1"}})
      .reference("np.repeat(input, repeats, axis=dim)");
  copy_op(r,
          "repeat_interleave.Tensor(input: Tensor, repeats: Tensor, dim: int? = None, *, "
          "output_size: int? = None) -> Tensor",
          "Each slice along dim repeated as often as its entry of repeats says.")
      .kernel([](const Tensor& given, const Tensor& repeats, const std::optional<int64_t>& dim,
                 const std::optional<int64_t>&) {
        const Tensor x = dim ? given : call_tensor("reshape", given, Dims{-1});
        const int64_t d = wrap_dim(dim.value_or(0), x.rank());
        const int64_t size = x.rank() ? x.sizes()[at(d)] : 1;
        if (repeats.numel() == 1 && size != 1)
          return call_tensor("repeat_interleave", x, repeats.item_int(), d);
        PRONG_CHECK(
            repeats.rank() == 1 && repeats.numel() == size, kRuntime,
            "repeats must have the same size as input along dim, but got repeats.size(0) = ",
            repeats.numel(), " and input.size(", d, ") = ", size);
        return call_tensor("index_select", x, d, repeat_indices(repeats));
      })
      .composite()
      .dynamic_shape("the size is the sum of repeats")
      .checks(&check_repeats)
      .samples({{"t(3, 2), torch.tensor([1, 0, 2]), 0"}})
      .reference("np.repeat(input, repeats, axis=dim)");
  copy_op(r, "repeat_interleave.self(repeats: Tensor, *, output_size: int? = None) -> Tensor",
          "0, 1, 2, ..., each as often as its entry of repeats says.")
      .where(kFunctionOnly)
      .not_differentiable("the results are indices")
      .kernel([](const Tensor& repeats, const std::optional<int64_t>&) {
        return repeat_indices(repeats);
      })
      .dynamic_shape("the size is the sum of repeats")
      .checks(&check_repeats)
      .samples({{"torch.tensor([1, 0, 2])"}})
      .reference("np.repeat(np.arange(repeats.size), repeats)");
}

}  // namespace

void register_join(Registry& r) {
  register_joins(r);
  register_repeats(r);
}

}  // namespace prong
