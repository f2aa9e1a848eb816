// Ops that move elements without looking at them: clone, copy_, conversions, cat, stack, repeat, flip, roll, triangles, pad.
#include <algorithm>
#include <cstring>

#include "ops/kernels/fill.h"
#include "ops/kernels/geometry.h"
#include "ops/op_def.h"
#include "tensor/strided.h"

namespace prong {

namespace {

constexpr const char* kGradLater = "the tape is not built yet";
constexpr const char* kVmapLater = "vmap is not built yet";
constexpr Spelling kFunctionOnly{.method = false};
constexpr Spelling kMethodOnly{.function = false};
constexpr int64_t kGrain = 32 * 1024;

size_t at(int64_t i) { return static_cast<size_t>(i); }

OpDef& copy_op(Registry& r, std::string_view schema, std::string doc) {
  return r.add(schema).doc(std::move(doc)).family(Family::kCopy).no_grad(kGradLater).no_vmap(kVmapLater);
}
TensorMeta like(const TensorMeta& x) { return {x.sizes, x.dtype}; }
TensorMeta like(const TensorMeta& x, DType dtype) { return {x.sizes, dtype}; }

// An in-place op: what it does to the tensor, which is then returned.
template <class F>
Tensor in_place(const Tensor& x, F&& f) {
  f();
  x.bump_version();
  return x;
}

// ── whole tensors ──

template <DType kDType>
void register_conversion(Registry& r, const char* name) {
  copy_op(r, cat(name, "(input: Tensor) -> Tensor"), cat("The tensor as ", name_of(kDType), "; itself when it is that already."))
      .where(kMethodOnly)
      .kernel([](const Tensor& x) { return x.to(kDType); })
      .shape([](const TensorMeta& x) { return like(x, kDType); })
      .samples({{"t(2, 3)"}, {"t(3, dtype=int64)"}, {"strided(4, 6)"}})
      .reference(kDType == DType::kBFloat16 ? "input" : cat("input.astype(np.", kDType == DType::kBool ? "bool_" : name_of(kDType), ")"));
}

Tensor converted(const Tensor& x, DType dtype, bool copy) { return copy && dtype == x.dtype() ? x.clone() : x.to(dtype); }

void register_whole(Registry& r) {
  copy_op(r, "clone(input: Tensor) -> Tensor", "A copy with memory of its own.")
      .kernel([](const Tensor& x) { return x.clone(); })
      .shape([](const TensorMeta& x) { return like(x); })
      .samples({{"t(2, 3)"}, {"strided(4, 6)"}, {"t()"}, {"t(0, 3)"}})
      .reference("input.copy()");
  copy_op(r, "copy_(input: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor",
          "Writes the elements of src, broadcast and converted, into input.")
      .where(kMethodOnly)
      .mutates(0)
      .kernel([](const Tensor& x, const Tensor& src, bool) { return in_place(x, [&] { copy_into(x, src); }); })
      .shape([](const TensorMeta& x, const TensorMeta&, bool) { return like(x); })
      .samples({{"t(2, 3), t(3)"}, {"t(2, 3), t(2, 3, dtype=int64)"}})
      .reference("np.broadcast_to(src, input.shape)");
  copy_op(r, "fill_(input: Tensor, value: Scalar) -> Tensor", "Sets every element to value.")
      .where(kMethodOnly)
      .mutates(0)
      .kernel([](const Tensor& x, const Number& value) { return in_place(x, [&] { fill_number(x, value); }); })
      .shape([](const TensorMeta& x, const Number&) { return like(x); })
      .samples({{"t(2, 3), 1.5"}, {"t(2, dtype=int64), 2"}})
      .reference("np.full(input.shape, value)");
  copy_op(r, "fill_.Tensor(input: Tensor, value: Tensor) -> Tensor", "Sets every element to a zero-dim tensor's.")
      .where(kMethodOnly)
      .mutates(0)
      .kernel([](const Tensor& x, const Tensor& value) {
        PRONG_CHECK(value.rank() == 0, kRuntime, "fill_ only supports 0-dimension value tensor but got tensor with ",
                    value.rank(), " dimensions.");
        return in_place(x, [&] { copy_into(x, value); });
      })
      .shape([](const TensorMeta& x, const TensorMeta&) { return like(x); })
      .samples({{"t(2, 3), t()"}})
      .reference("np.full(input.shape, value)");
  copy_op(r, "zero_(input: Tensor) -> Tensor", "Sets every element to zero.")
      .where(kMethodOnly)
      .mutates(0)
      .kernel([](const Tensor& x) { return in_place(x, [&] { fill(x, int64_t{0}); }); })
      .shape([](const TensorMeta& x) { return like(x); })
      .samples({{"t(2, 3)"}})
      .reference("np.zeros_like(input)");
  copy_op(r, "to(input: Tensor, dtype: dtype, non_blocking: bool = False, copy: bool = False) -> Tensor",
          "The tensor in another element type; itself when nothing changes and copy is not asked for.")
      .where(kMethodOnly)
      .kernel([](const Tensor& x, DType dtype, bool, bool copy) { return converted(x, dtype, copy); })
      .shape([](const TensorMeta& x, DType dtype, bool, bool) { return like(x, dtype); })
      .samples({{"t(2, 3), torch.int64"}, {"t(2, 3, dtype=int64), torch.float64"}})
      .reference("input.astype(dtype)");
  copy_op(r, "to.device(input: Tensor, device: device, dtype: dtype? = None, non_blocking: bool = False, copy: bool = False) -> Tensor",
          "The tensor on a device, which can only be the CPU, in another element type.")
      .where(kMethodOnly)
      .kernel([](const Tensor& x, const IValue& device, const std::optional<DType>& dtype, bool, bool copy) {
        PRONG_CHECK(!device.is_string() || device.to_string().starts_with("cpu"), kRuntime,
                    "to(): prong runs on the CPU only, got device '", device.is_string() ? device.to_string() : "", "'");
        return converted(x, dtype.value_or(x.dtype()), copy);
      })
      .shape([](const TensorMeta& x, const IValue&, const std::optional<DType>& dtype, bool, bool) { return like(x, dtype.value_or(x.dtype)); })
      .samples({{"t(2, 3), torch.device('cpu')"}, {"t(2), 'cpu', torch.float64"}});
  copy_op(r, "to.other(input: Tensor, other: Tensor, non_blocking: bool = False, copy: bool = False) -> Tensor",
          "The tensor in the element type of another.")
      .where(kMethodOnly)
      .kernel([](const Tensor& x, const Tensor& other, bool, bool copy) { return converted(x, other.dtype(), copy); })
      .shape([](const TensorMeta& x, const TensorMeta& other, bool, bool) { return like(x, other.dtype); })
      .samples({{"t(2, 3), t(1, dtype=int64)"}})
      .reference("input.astype(other.dtype)");
  copy_op(r, "type_as(input: Tensor, other: Tensor) -> Tensor", "The tensor in the element type of another.")
      .where(kMethodOnly)
      .kernel([](const Tensor& x, const Tensor& other) { return x.to(other.dtype()); })
      .shape([](const TensorMeta& x, const TensorMeta& other) { return like(x, other.dtype); })
      .samples({{"t(2, 3), t(1, dtype=int64)"}})
      .reference("input.astype(other.dtype)");
  copy_op(r, "detach_(input: Tensor) -> Tensor", "Cuts the tensor off from the history of gradients.")
      .where(kMethodOnly)
      .mutates(0)
      .not_differentiable("it is what cuts the history")
      .kernel([](const Tensor& x) {
        x.impl()->autograd = {};
        x.impl()->requires_grad = false;
        return x;
      })
      .shape([](const TensorMeta& x) { return like(x); })
      .samples({{"t(2, 3)"}})
      .reference("input");
  register_conversion<DType::kFloat32>(r, "float");
  register_conversion<DType::kFloat64>(r, "double");
  register_conversion<DType::kFloat16>(r, "half");
  register_conversion<DType::kBFloat16>(r, "bfloat16");
  register_conversion<DType::kInt64>(r, "long");
  register_conversion<DType::kInt32>(r, "int");
  register_conversion<DType::kInt16>(r, "short");
  register_conversion<DType::kInt8>(r, "char");
  register_conversion<DType::kUInt8>(r, "byte");
  register_conversion<DType::kBool>(r, "bool");
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
    PRONG_CHECK(m.rank() > 0, kRuntime, "zero-dimensional tensor (at position ", i, ") cannot be concatenated");
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
    PRONG_CHECK(m.rank() == out.rank(), kRuntime, "Tensors must have same number of dimensions: got ", out.rank(),
                " and ", m.rank());
    for (size_t k = 0; k < m.sizes.size(); ++k)
      PRONG_CHECK(k == d || m.sizes[k] == out.sizes[k], kRuntime, "Sizes of tensors must match except in dimension ",
                  d, ". Expected size ", out.sizes[k], " but got size ", m.sizes[k], " for tensor number ", i,
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
    PRONG_CHECK(m.sizes == sizes, kRuntime, "stack expects each tensor to be equal size, but got ", sizes,
                " at entry 0 and ", m.sizes, " at entry ", i);
  }
  TensorMeta out{sizes, type.get()};
  out.sizes.insert(at(wrap_dim(dim, out.rank() + 1)), static_cast<int64_t>(tensors.size()));
  return out;
}

Tensor stack_tensors(const std::vector<Tensor>& tensors, int64_t dim) {
  const TensorMeta meta = stack_meta(tensors, dim);
  Tensor out = Tensor::empty(meta.sizes, meta.dtype);
  for (size_t i = 0; i < tensors.size(); ++i)
    copy_into(apply(out, selected(geometry_of(out), wrap_dim(dim, meta.rank()), static_cast<int64_t>(i))), tensors[i]);
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
template <class T>
int64_t hstack_dim(const std::vector<T>& tensors) {
  return !tensors.empty() && meta_of(tensors[0]).rank() <= 1 ? 0 : 1;
}

void register_joins(Registry& r) {
  copy_op(r, "cat(tensors: Tensor[], dim: int = 0) -> Tensor", "The tensors one after the other along dim.")
      .where({.method = false, .aliases = {"concat", "concatenate"}})
      .kernel([](const std::vector<Tensor>& tensors, int64_t dim) { return cat_tensors(tensors, dim); })
      .shape([](const std::vector<TensorMeta>& tensors, int64_t dim) { return cat_meta(tensors, dim); })
      .samples({{"[t(2, 3), t(4, 3)]"}, {"[t(2, 3), t(2, 1)], 1"}, {"[t(2, 3), t(2, 3, dtype=int64)], -1"}, {"[strided(4, 6), t(0, 6)]"}})
      .reference("np.concatenate(tensors, dim)");
  copy_op(r, "stack(tensors: Tensor[], dim: int = 0) -> Tensor", "The tensors along a new dimension.")
      .where(kFunctionOnly)
      .kernel([](const std::vector<Tensor>& tensors, int64_t dim) { return stack_tensors(tensors, dim); })
      .shape([](const std::vector<TensorMeta>& tensors, int64_t dim) { return stack_meta(tensors, dim); })
      .samples({{"[t(2, 3), t(2, 3)]"}, {"[t(2), t(2), t(2)], -1"}, {"[t(), t()]"}})
      .reference("np.stack(tensors, dim)");
  copy_op(r, "hstack(tensors: Tensor[]) -> Tensor", "The tensors side by side: along dim 1, vectors along dim 0.")
      .where(kFunctionOnly)
      .kernel([](const std::vector<Tensor>& tensors) { return cat_tensors(at_least(tensors, 1), hstack_dim(tensors)); })
      .shape([](const std::vector<TensorMeta>& tensors) { return cat_meta(at_least(tensors, 1), hstack_dim(tensors)); })
      .samples({{"[t(2), t(3)]"}, {"[t(2, 3), t(2, 1)]"}})
      .reference("np.hstack(tensors)");
  copy_op(r, "vstack(tensors: Tensor[]) -> Tensor", "The tensors below each other: along dim 0, vectors as rows.")
      .where({.method = false, .aliases = {"row_stack"}})
      .kernel([](const std::vector<Tensor>& tensors) { return cat_tensors(at_least(tensors, 2), 0); })
      .shape([](const std::vector<TensorMeta>& tensors) { return cat_meta(at_least(tensors, 2), 0); })
      .samples({{"[t(3), t(3)]"}, {"[t(2, 3), t(1, 3)]"}})
      .reference("np.vstack(tensors)");
}

// ── one several times ──

Dims repeated_sizes(DimsView sizes, DimsView repeats) {
  PRONG_CHECK(repeats.size() >= sizes.size(), kRuntime,
              "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
  Dims out(repeats);
  for (int64_t n : repeats)
    PRONG_CHECK(n >= 0, kRuntime, "Trying to create tensor with negative dimension ", n, ": ", repeats);
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
  copy_op(r, "repeat(input: Tensor, repeats: int[]) -> Tensor", "The tensor repeated as a block along each dimension.")
      .where(kMethodOnly)
      .kernel([](const Tensor& x, const Dims& repeats) { return repeat(x, repeats); })
      .shape([](const TensorMeta& x, const Dims& repeats) { return TensorMeta{repeated_sizes(x.sizes, repeats), x.dtype}; })
      .samples({{"t(2, 3), [2, 1]"}, {"t(3), [2, 2]"}, {"t(2, 3), [0, 1]"}, {"strided(4, 6), [1, 3]"}})
      .reference("np.tile(input, repeats)");
  copy_op(r, "tile(input: Tensor, dims: int[]) -> Tensor", "repeat, with as many leading ones as are missing.")
      .kernel([](const Tensor& x, const Dims& dims) { return repeat(x, tile_repeats(x.rank(), dims)); })
      .shape([](const TensorMeta& x, const Dims& dims) { return TensorMeta{repeated_sizes(x.sizes, tile_repeats(x.rank(), dims)), x.dtype}; })
      .samples({{"t(2, 3), [2]"}, {"t(3), [2, 2]"}})
      .reference("np.tile(input, dims)");
  copy_op(r, "repeat_interleave(input: Tensor, repeats: int, dim: int? = None, *, output_size: int? = None) -> Tensor",
          "Each slice along dim repeated in place; of all elements where dim is None.")
      .kernel([](const Tensor& x, int64_t repeats, const std::optional<int64_t>& dim, const std::optional<int64_t>&) {
        return repeat_interleave(x, repeats, dim);
      })
      .shape([](const TensorMeta& x, int64_t repeats, const std::optional<int64_t>& dim, const std::optional<int64_t>&) {
        PRONG_CHECK(repeats >= 0, kRuntime, "Repeats must be non-negative");
        TensorMeta out = dim && x.rank() ? like(x) : TensorMeta{Dims{x.numel()}, x.dtype};
        out.sizes[at(wrap_dim(dim.value_or(0), out.rank()))] *= repeats;
        return out;
      })
      .samples({{"t(2, 3), 2"}, {"t(2, 3), 2, 0"}, {"t(2, 3), 3, -1"}})
      .reference("np.repeat(input, repeats, axis=dim)");
  copy_op(r, "repeat_interleave.Tensor(input: Tensor, repeats: Tensor, dim: int? = None, *, output_size: int? = None) -> Tensor",
          "Each slice along dim repeated as often as its entry of repeats says.")
      .kernel([](const Tensor& given, const Tensor& repeats, const std::optional<int64_t>& dim, const std::optional<int64_t>&) {
        const Tensor x = dim ? given : reshape(given, Dims{-1});
        const int64_t d = wrap_dim(dim.value_or(0), x.rank());
        const int64_t size = x.rank() ? x.sizes()[at(d)] : 1;
        if (repeats.numel() == 1 && size != 1) return repeat_interleave(x, repeats.item_int(), d);
        PRONG_CHECK(repeats.rank() == 1 && repeats.numel() == size, kRuntime,
                    "repeats must have the same size as input along dim, but got repeats.size(0) = ", repeats.numel(),
                    " and input.size(", d, ") = ", size);
        return call_tensor("index_select", x, d, repeat_indices(repeats));
      })
      .dynamic_shape("the size is the sum of repeats")
      .samples({{"t(3, 2), torch.tensor([1, 0, 2]), 0"}})
      .reference("np.repeat(input, repeats, axis=dim)");
  copy_op(r, "repeat_interleave.self(repeats: Tensor, *, output_size: int? = None) -> Tensor",
          "0, 1, 2, ..., each as often as its entry of repeats says.")
      .where(kFunctionOnly)
      .not_differentiable("the results are indices")
      .kernel([](const Tensor& repeats, const std::optional<int64_t>&) { return repeat_indices(repeats); })
      .dynamic_shape("the size is the sum of repeats")
      .samples({{"torch.tensor([1, 0, 2])"}})
      .reference("np.repeat(np.arange(repeats.size), repeats)");
}

// ── rearranged ──

Tensor flip(const Tensor& x, DimsView dims) {
  Tensor out = Tensor::empty(x.sizes(), x.dtype());
  Dims strides = x.strides();
  int64_t start = 0;
  SmallVector<bool, 8> seen(x.sizes().size(), false);
  for (int64_t dim : dims) {
    const size_t d = at(wrap_dim(dim, x.rank()));
    if (x.rank() == 0) break;
    PRONG_CHECK(!seen[d], kRuntime, "dim ", d, " appears multiple times in the list of dims");
    seen[d] = true;
    start += (x.sizes()[d] - 1) * strides[d];
    strides[d] = -strides[d];
  }
  if (out.numel() == 0) return out;
  const StridedLoop<2> loop(out.sizes(), {&out.strides(), &strides});
  const RowFn row = row_converter(x.dtype(), x.dtype());
  const int64_t bytes = static_cast<int64_t>(x.item_bytes());
  char* to = static_cast<char*>(out.raw());
  const char* from = static_cast<const char*>(x.raw()) + start * bytes;
  loop.for_pieces(kGrain, [&](const std::array<int64_t, 2>& o, int64_t n) {
    row(to + o[0] * bytes, loop.strides[0].back(), from + o[1] * bytes, loop.strides[1].back(), n);
  });
  return out;
}

Tensor roll_one(const Tensor& x, int64_t shift, int64_t dim) {
  Tensor out = Tensor::empty(x.sizes(), x.dtype());
  if (x.numel() == 0) return out;
  const int64_t size = x.sizes()[at(dim)], by = ((shift % size) + size) % size;
  const Geometry to = geometry_of(out), from = geometry_of(x);
  copy_into(apply(out, narrowed(to, dim, by, size - by)), apply(x, narrowed(from, dim, 0, size - by)));
  copy_into(apply(out, narrowed(to, dim, 0, by)), apply(x, narrowed(from, dim, size - by, by)));
  return out;
}

Tensor roll(Tensor x, const Dims& shifts, const Dims& dims) {
  PRONG_CHECK(!shifts.empty(), kRuntime, "`shifts` required");
  if (dims.empty() && shifts.size() == 1) return reshape(roll_one(reshape(x, Dims{-1}), shifts[0], 0), x.sizes());
  PRONG_CHECK(shifts.size() == dims.size(), kRuntime, "shifts and dimensions must align. shifts: ", shifts.size(),
              ", dims:", dims.size());
  for (size_t i = 0; i < dims.size(); ++i) x = roll_one(x, shifts[i], wrap_dim(dims[i], x.rank()));
  return x;
}

Geometry rot90_geometry(const Geometry& g, int64_t k, const Dims& dims) {
  PRONG_CHECK(dims.size() == 2, kRuntime, "expected total rotation dims == 2, but got dims = ", dims.size());
  PRONG_CHECK(wrap_dim(dims[0], g.rank()) != wrap_dim(dims[1], g.rank()), kRuntime,
              "expected rotation dims to be different, but got dim0 = ", dims[0], " and dim1 = ", dims[1]);
  return k & 1 ? transposed(g, dims[0], dims[1]) : g;
}
Tensor rot90(const Tensor& x, int64_t k, const Dims& dims) {
  k = ((k % 4) + 4) % 4;
  const Tensor turned = apply(x, rot90_geometry(geometry_of(x), k, dims));
  if (k == 0) return turned.clone();
  if (k == 2) return flip(turned, dims);
  return flip(turned, Dims{dims[k == 1 ? 0 : 1]});
}

// Zeroes what lies outside the triangle, in place, of a contiguous tensor.
void zero_outside(const Tensor& x, bool lower, int64_t diagonal) {
  if (x.numel() == 0) return;
  const int64_t columns = x.sizes().back(), rows = x.sizes()[x.sizes().size() - 2];
  const int64_t bytes = static_cast<int64_t>(x.item_bytes());
  char* data = static_cast<char*>(x.raw());
  parallel_for(0, x.numel() / columns, std::max<int64_t>(1, kGrain / columns), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t edge = std::clamp<int64_t>(i % rows + diagonal + (lower ? 1 : 0), 0, columns);
      char* row = data + i * columns * bytes;
      if (lower)
        std::memset(row + edge * bytes, 0, at((columns - edge) * bytes));
      else
        std::memset(row, 0, at(edge * bytes));
    }
  });
}
void check_matrix(const char* op, int64_t rank) {
  PRONG_CHECK(rank >= 2, kRuntime, op, ": input tensor must have at least 2 dimensions");
}

template <bool kLower>
void register_triangle(Registry& r) {
  static constexpr const char* kName = kLower ? "tril" : "triu";
  copy_op(r, cat(kName, "(input: Tensor, diagonal: int = 0) -> Tensor"),
          cat("The ", kLower ? "lower" : "upper", " triangle of each matrix; zeros elsewhere."))
      .kernel([](const Tensor& x, int64_t diagonal) {
        check_matrix(kName, x.rank());
        Tensor out = x.clone();
        zero_outside(out, kLower, diagonal);
        return out;
      })
      .shape([](const TensorMeta& x, int64_t) {
        check_matrix(kName, x.rank());
        return like(x);
      })
      .samples({{"t(3, 4)"}, {"t(2, 3, 3), 1"}, {"t(4, 3), -1"}, {"strided(4, 6), 9"}})
      .reference(cat("np.", kName, "(input, diagonal)"));
  copy_op(r, cat(kName, "_(input: Tensor, diagonal: int = 0) -> Tensor"), cat(kName, ", in place."))
      .where(kMethodOnly)
      .mutates(0)
      .kernel([](const Tensor& x, int64_t diagonal) {
        check_matrix(kName, x.rank());
        return in_place(x, [&] {
          const Tensor dense = x.contiguous();
          zero_outside(dense, kLower, diagonal);
          if (!dense.is_same(x)) copy_into(x, dense);
        });
      })
      .shape([](const TensorMeta& x, int64_t) { return like(x); })
      .samples({{"t(3, 4)"}, {"t(4, 3), -1"}})
      .reference(cat("np.", kName, "(input, diagonal)"));
}

TensorMeta diag_embed_meta(const TensorMeta& x, int64_t offset, int64_t dim1, int64_t dim2) {
  PRONG_CHECK(x.rank() >= 1, kRuntime, "diag_embed(): expected a tensor of at least 1 dimension, got a 0-dim one");
  const int64_t rank = x.rank() + 1;
  const int64_t a = wrap_dim(dim1, rank), b = wrap_dim(dim2, rank), n = x.sizes.back() + std::abs(offset);
  PRONG_CHECK(a != b, kRuntime, "diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  Dims sizes(DimsView(x.sizes).first(x.sizes.size() - 1));
  sizes.insert(at(std::min(a, b)), n);
  sizes.insert(at(std::max(a, b)), n);
  return {sizes, x.dtype};
}
Tensor diag_embed(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
  Tensor out = Tensor::empty(diag_embed_meta(x.meta(), offset, dim1, dim2).sizes, x.dtype());
  fill(out, int64_t{0});
  copy_into(apply(out, diagonal_of(geometry_of(out), offset, dim1, dim2)), x);
  return out;
}

void register_rearranged(Registry& r) {
  copy_op(r, "flip(input: Tensor, dims: int[]) -> Tensor", "The order of elements reversed along the dims.")
      .kernel([](const Tensor& x, const Dims& dims) { return flip(x, dims); })
      .shape([](const TensorMeta& x, const Dims&) { return like(x); })
      .samples({{"t(2, 3), [0]"}, {"t(2, 3), [0, -1]"}, {"t(2, 3), []"}, {"strided(4, 6), [1]"}})
      .reference("np.flip(input, dims)");
  copy_op(r, "fliplr(input: Tensor) -> Tensor", "flip along dim 1.")
      .kernel([](const Tensor& x) { return flip(x, Dims{1}); })
      .shape([](const TensorMeta& x) { return like(x); })
      .samples({{"t(2, 3)"}})
      .reference("np.fliplr(input)");
  copy_op(r, "flipud(input: Tensor) -> Tensor", "flip along dim 0.")
      .kernel([](const Tensor& x) { return flip(x, Dims{0}); })
      .shape([](const TensorMeta& x) { return like(x); })
      .samples({{"t(2, 3)"}})
      .reference("np.flipud(input)");
  copy_op(r, "roll(input: Tensor, shifts: int[1], dims: int[1] = []) -> Tensor",
          "Elements moved along the dims, those that fall off come back at the start; of all elements without dims.")
      .kernel([](const Tensor& x, const Dims& shifts, const Dims& dims) { return roll(x, shifts, dims); })
      .shape([](const TensorMeta& x, const Dims&, const Dims&) { return like(x); })
      .samples({{"t(5), 2"}, {"t(2, 3), 1, 0"}, {"t(2, 3), [1, -1], [0, 1]"}})
      .reference("np.roll(input, shifts, tuple(dims) if dims else None)");
  copy_op(r, "rot90(input: Tensor, k: int = 1, dims: int[] = [0, 1]) -> Tensor", "Turned by k quarters in the plane of the dims.")
      .kernel([](const Tensor& x, int64_t k, const Dims& dims) { return rot90(x, k, dims); })
      .shape([](const TensorMeta& x, int64_t k, const Dims& dims) { return TensorMeta{rot90_geometry(geometry_of(x), k, dims).sizes, x.dtype}; })
      .samples({{"t(2, 3)"}, {"t(2, 3), 2"}, {"t(2, 3), -1"}})
      .reference("np.rot90(input, k, dims)");
  register_triangle<true>(r);
  register_triangle<false>(r);
  copy_op(r, "diag(input: Tensor, diagonal: int = 0) -> Tensor", "A matrix with the vector on its diagonal, or a matrix's diagonal.")
      .kernel([](const Tensor& x, int64_t diagonal) {
        PRONG_CHECK(x.rank() == 1 || x.rank() == 2, kRuntime, "diag(): Supports 1D or 2D tensors. Got ", x.rank(), "D");
        if (x.rank() == 1) return diag_embed(x, diagonal, 0, 1);
        return apply(x, diagonal_of(geometry_of(x), diagonal, 0, 1)).clone();
      })
      .shape([](const TensorMeta& x, int64_t diagonal) {
        PRONG_CHECK(x.rank() == 1 || x.rank() == 2, kRuntime, "diag(): Supports 1D or 2D tensors. Got ", x.rank(), "D");
        if (x.rank() == 1) return diag_embed_meta(x, diagonal, 0, 1);
        return apply(x, diagonal_of(geometry_of(x), diagonal, 0, 1));
      })
      .samples({{"t(3)"}, {"t(3), -1"}, {"t(3, 4)"}, {"t(3, 4), 1"}})
      .reference("np.diag(input, diagonal)");
  copy_op(r, "diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor",
          "Matrices with the last dimension on their diagonals.")
      .kernel([](const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) { return diag_embed(x, offset, dim1, dim2); })
      .shape([](const TensorMeta& x, int64_t offset, int64_t dim1, int64_t dim2) { return diag_embed_meta(x, offset, dim1, dim2); })
      .samples({{"t(2, 3)"}, {"t(3), 1"}})
      .reference("np.stack([np.diag(v, offset) for v in input.reshape(-1, input.shape[-1])])"
                 ".reshape(input.shape[:-1] + (input.shape[-1] + abs(offset),) * 2)");
}

// ── padding ──

// Pads of one dimension; PyTorch lists them from the last dimension, two numbers each.
struct Pads {
  int64_t before, after;
};
std::vector<Pads> pads_by_dim(int64_t rank, const Dims& pad) {
  PRONG_CHECK(pad.size() % 2 == 0, kRuntime, "Padding length must be divisible by 2");
  PRONG_CHECK(static_cast<int64_t>(pad.size()) <= 2 * rank, kRuntime,
              "Padding length should be less than or equal to two times the input dimension but got padding length ",
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
    PRONG_CHECK(out[i] >= 0, kRuntime, "The input size ", sizes[i], ", plus negative padding ", pads[i].before, " and ",
                pads[i].after, " resulted in a negative output size, which is invalid. Check dimension ", i,
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
    const int64_t length = std::max<int64_t>(x.sizes()[at(d)] - start - std::max<int64_t>(-after, 0), 0);
    kept.from = narrowed(kept.from, d, start, length);
    kept.to = narrowed(kept.to, d, std::min(std::max<int64_t>(before, 0), out.sizes()[at(d)]), length);
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

void check_pad_mode(const std::string& mode, const Dims& sizes, const std::vector<Pads>& pads, size_t count) {
  PRONG_CHECK(mode == "reflect" || mode == "replicate" || mode == "circular", kNotImplemented,
              "Unrecognised padding mode ", mode);
  const size_t rank = sizes.size();
  PRONG_CHECK(count == 2 * (rank - 1) || count == 2 * (rank - 2), kNotImplemented, "Padding size ", count,
              " is not supported for ", rank,
              "D input tensor.\nSupported combinations for non-constant padding:\n"
              "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
              "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
              "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)");
  for (size_t d = 0; d < rank; ++d) {
    const auto [before, after] = pads[d];
    const int64_t most = std::max(before, after);
    if (mode == "reflect")
      PRONG_CHECK(most < sizes[d] || most == 0, kRuntime,
                  "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding (",
                  before, ", ", after, ") at dimension ", d, " of input ", sizes);
    if (mode == "circular")
      PRONG_CHECK(most <= sizes[d], kRuntime, "Padding value causes wrapping around more than once.");
    PRONG_CHECK(most == 0 || sizes[d] > 0, kRuntime, "pad: dimension ", d, " of input ", sizes, " is empty");
  }
}

// Plane `i` of the result, counted from the first kept one, copies which kept plane?
int64_t source_plane(const std::string& mode, int64_t i, int64_t size) {
  if (mode == "replicate") return std::clamp<int64_t>(i, 0, size - 1);
  if (mode == "circular") return (i + size) % size;
  return i < 0 ? -i : i >= size ? 2 * (size - 1) - i : i;
}

Tensor pad_by_planes(const Tensor& x, const Dims& pad, const std::string& mode) {
  const std::vector<Pads> pads = pads_by_dim(x.rank(), pad);
  check_pad_mode(mode, x.sizes(), pads, pad.size());
  Tensor out = Tensor::empty(padded_sizes(x.sizes(), pad), x.dtype());
  if (out.numel() == 0) return out;
  const Kept kept = kept_part(x, out, pads);
  copy_into(apply(out, kept.to), apply(x, kept.from));
  // Dimension after dimension, borders copy whole planes of the result; the last one completes the corners.
  const Geometry g = geometry_of(out);
  for (int64_t d = 0; d < x.rank(); ++d) {
    const int64_t before = std::max<int64_t>(pads[at(d)].before, 0), size = kept.from.sizes[at(d)];
    for (int64_t i = 0; i < out.sizes()[at(d)]; ++i) {
      if (i >= before && i < before + size) continue;
      copy_into(apply(out, selected(g, d, i)), apply(out, selected(g, d, before + source_plane(mode, i - before, size))));
    }
  }
  return out;
}

void register_pads(Registry& r) {
  copy_op(r, "pad(input: Tensor, pad: int[], mode: str = \"constant\", value: float? = None) -> Tensor",
          "The tensor with borders: pad lists (before, after) from the last dimension; mode constant, reflect, replicate or circular.")
      .where({.function = false, .method = false, .nn_functional = true})
      .kernel([](const Tensor& x, const Dims& pad, const std::string& mode, const std::optional<double>& value) {
        if (mode == "constant") {
          const double number = value.value_or(0);
          const Number fill{is_integral(x.dtype()) ? IValue(static_cast<int64_t>(number)) : IValue(number)};
          return pad_constant(x, pad, fill);
        }
        PRONG_CHECK(!value || *value == 0, kRuntime, "Padding mode \"", mode, "\" doesn't take in value argument");
        return pad_by_planes(x, pad, mode);
      })
      .shape([](const TensorMeta& x, const Dims& pad, const std::string&, const std::optional<double>&) {
        return TensorMeta{padded_sizes(x.sizes, pad), x.dtype};
      })
      .samples({{"t(2, 3), [1, 2]"}, {"t(2, 3), [1, 1, 2, 0], 'constant', 1.5"}, {"t(2, 5), [-1, -2]"},
                {"t(1, 2, 5), [2, 1], 'reflect'"}, {"t(1, 2, 5), [2, 7], 'replicate'"}, {"t(1, 2, 5), [5, 1], 'circular'"},
                {"t(1, 2, 4, 5), [1, 2, 3, 0], 'reflect'"}})
      .reference("np.pad(input, [(0, 0)] * (input.ndim - len(pad) // 2) + [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -1, -2)], "
                 "**({'mode': 'constant', 'constant_values': value or 0} if mode == 'constant' else "
                 "{'mode': {'reflect': 'reflect', 'replicate': 'edge', 'circular': 'wrap'}[mode]})) "
                 "if min(pad) >= 0 else input[:, 1:-2]");
  copy_op(r, "constant_pad_nd(input: Tensor, pad: int[], value: Scalar = 0) -> Tensor", "The tensor with borders of one value.")
      .where(kFunctionOnly)
      .kernel([](const Tensor& x, const Dims& pad, const Number& value) { return pad_constant(x, pad, value); })
      .shape([](const TensorMeta& x, const Dims& pad, const Number&) { return TensorMeta{padded_sizes(x.sizes, pad), x.dtype}; })
      .samples({{"t(2, 3), [1, 2], 3"}})
      .reference("np.pad(input, [(0, 0), (pad[0], pad[1])], constant_values=value)");
}

}  // namespace

void register_copy(Registry& r) {
  register_whole(r);
  register_joins(r);
  register_repeats(r);
  register_rearranged(r);
  register_pads(r);
}

}  // namespace prong
