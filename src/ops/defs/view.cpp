// Ops that look at a tensor's elements through another shape, and host ops that answer about a
// tensor. The arithmetic is in kernels/geometry.h, and serves kernels and shape rules alike.
#include "ops/data_check.h"
#include "ops/gradient.h"
#include <algorithm>

#include "ops/kernels/geometry.h"

namespace prong {

namespace {

constexpr const char* kVmapLater = "vmap is not built yet";
constexpr Spelling kMethodOnly{.function = false};
constexpr Spelling kInternal{.function = false, .method = false};
constexpr Spelling kProperty{.function = false, .method = false, .property = true};

constexpr auto reshaped_back = [](Gradient& g) { return op<"reshape">(g.out(), g.sizes("input")); };
constexpr auto pass_through = [](Gradient& g) { return g.out(); };

// The gradients of several views as the pieces that they are, zeros where there is none.
Expr joined(Gradient& g, size_t count, const char* join, int64_t dim) {
  std::vector<IValue> parts;
  for (size_t i = 0; i < count; ++i) parts.push_back(g.out(i).value());
  return g.expr(g.builder()(join, {IValue::list(std::move(parts)), IValue(dim)}));
}
size_t pieces_of(int64_t size, int64_t piece) {
  return piece > 0 ? split_lengths(size, piece).size() : 1;
}
int64_t extent_of(Gradient& g) {
  const Dims sizes = g.sizes("input");
  return sizes[static_cast<size_t>(wrap_dim(g.integer("dim"), static_cast<int64_t>(sizes.size())))];
}

OpDef& view_op(Registry& r, std::string_view schema, std::string doc) {
  return r.add(schema).doc(std::move(doc)).family(Family::kView).view_of(0).no_vmap(kVmapLater);
}

// Kernel and shape rule from one rule on geometries: (const Geometry&, arguments...) -> Geometry.
template <class F, class... A>
OpDef& geometry_rule(OpDef& op, F, Geometry (F::*)(const Geometry&, A...) const) {
  return op
      .kernel([](const Tensor& x, const std::remove_cvref_t<A>&... a) {
        return apply(x, F{}(geometry_of(x), a...));
      })
      .shape([](const TensorMeta& x, const std::remove_cvref_t<A>&... a) {
        return apply(x, F{}(geometry_of(x), a...));
      });
}
template <class F>
OpDef& geometry_rule(OpDef& op, F rule) {
  return geometry_rule(op, rule, &F::operator());
}

// Several views of one tensor; the rule gives the lengths of the pieces along `dim`.
template <class T>
std::vector<T> pieces(const T& x, const Dims& lengths, int64_t dim) {
  std::vector<T> out;
  int64_t start = 0;
  for (int64_t length : lengths) {
    out.push_back(apply(x, narrowed(geometry_of(x), dim, start, length)));
    start += length;
  }
  return out;
}

template <class T>
int64_t extent(const T& x, int64_t dim, const char* op) {
  const Geometry g = geometry_of(x);
  PRONG_CHECK(g.rank() > 0, kRuntime, op, " expects at least a 1-dimensional tensor");
  return g.sizes[static_cast<size_t>(wrap_dim(dim, g.rank()))];
}

template <class T>
std::vector<T> split(const T& x, int64_t split_size, int64_t dim) {
  return pieces(x, split_lengths(extent(x, dim, "split"), split_size), dim);
}
template <class T>
std::vector<T> split_with_sizes(const T& x, const Dims& sizes, int64_t dim) {
  const int64_t size = extent(x, dim, "split_with_sizes");
  int64_t total = 0;
  for (int64_t s : sizes) {
    PRONG_CHECK(s >= 0, kRuntime,
                "split_with_sizes expects split_sizes have only non-negative entries, but got "
                "split_sizes=",
                sizes);
    total += s;
  }
  PRONG_CHECK(total == size, kRuntime, "split_with_sizes expects split_sizes to sum exactly to ",
              size, " (input tensor's size at dimension ", dim, "), but got split_sizes=", sizes);
  return pieces(x, sizes, dim);
}
template <class T>
std::vector<T> chunk(const T& x, int64_t chunks, int64_t dim) {
  return pieces(x, chunk_lengths(extent(x, dim, "chunk"), chunks), dim);
}
template <class T>
std::vector<T> tensor_split(const T& x, int64_t sections, int64_t dim) {
  const int64_t size = extent(x, dim, "tensor_split");
  PRONG_CHECK(sections > 0, kRuntime, "number of sections must be larger than 0, got ", sections);
  Dims lengths;
  for (int64_t i = 0; i < sections; ++i) lengths.push_back(size / sections + (i < size % sections));
  return pieces(x, lengths, dim);
}
template <class T>
std::vector<T> tensor_split_at(const T& x, const Dims& places, int64_t dim) {
  const int64_t size = extent(x, dim, "tensor_split");
  std::vector<T> out;
  int64_t start = 0;
  const auto add = [&](int64_t end) {
    const int64_t first = std::min(start, size), last = std::clamp(end, first, size);
    out.push_back(apply(x, narrowed(geometry_of(x), dim, first, last - first)));
    start = end;
  };
  for (const int64_t place : places) add(place < 0 ? place + size : place);
  add(size);
  return out;
}
template <class T>
std::vector<T> unbind(const T& x, int64_t dim) {
  const Geometry g = geometry_of(x);
  PRONG_CHECK(g.rank() > 0, kIndex, "Dimension specified as ", dim,
              " but tensor has no dimensions");
  const int64_t n = g.sizes[static_cast<size_t>(wrap_dim(dim, g.rank()))];
  std::vector<T> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(apply(x, selected(g, dim, i)));
  return out;
}

void register_shapes(Registry& r) {
  geometry_rule(
      view_op(
          r, "view(input: Tensor, size: int[]) -> Tensor",
          "The same elements, in order, under another shape; one size may be -1. Never copies."),
      [](const Geometry& g, const Dims& size) { return viewed(g, size); })
      .where(kMethodOnly)
      .grad("input", "", reshaped_back)
      .samples({{"t(2, 6), [3, 4]"}, {"t(2, 6), [-1]"}, {"t(0, 3), [3, 0]"}, {"t(), [1, 1]"}})
      .reference("np.reshape(input, size)");

  view_op(r, "view.dtype(input: Tensor, dtype: dtype) -> Tensor",
          "The same bytes read as another element type.")
      .bounds(&unknown_bounds)
      .where(kMethodOnly)
      .kernel([](const Tensor& x, DType dtype) {
        const int64_t from = static_cast<int64_t>(x.item_bytes()),
                      to = static_cast<int64_t>(size_of(dtype));
        if (from == to) return x.as_strided(x.sizes(), x.strides(), x.offset(), dtype);
        PRONG_CHECK(x.rank() > 0, kRuntime, "self.dim() cannot be 0 to view ", x.dtype(), " as ",
                    dtype, " (different element sizes)");
        PRONG_CHECK(x.strides().back() == 1, kRuntime, "self.stride(-1) must be 1 to view ",
                    x.dtype(), " as ", dtype, " (different element sizes), but got ",
                    x.strides().back());
        Dims sizes = x.sizes(), strides = x.strides();
        const auto rescale = [&](int64_t n, const char* what) {
          PRONG_CHECK(n * from % to == 0, kRuntime, what, " must be divisible by ", to / from,
                      " to view ", x.dtype(), " as ", dtype, " (different element sizes), but got ",
                      n);
          return n * from / to;
        };
        sizes.back() = rescale(sizes.back(), "self.size(-1)");
        for (size_t i = 0; i + 1 < strides.size(); ++i)
          strides[i] = rescale(strides[i], "self.stride");
        return x.as_strided(sizes, strides, rescale(x.offset(), "self.storage_offset()"), dtype);
      })
      .shape([](const TensorMeta& x, DType dtype) {
        TensorMeta out{x.sizes, dtype};
        if (!out.sizes.empty())
          out.sizes.back() = out.sizes.back() * static_cast<int64_t>(size_of(x.dtype)) /
                             static_cast<int64_t>(size_of(dtype));
        return out;
      })
      .not_differentiable("the bytes are read as other numbers")
      .samples({{"t(2, 4), torch.int32"}, {"t(2, 4), torch.float64"}, {"t(2, 4), torch.uint8"}})
      .reference("np.ascontiguousarray(input).view(dtype)");

  view_op(r, "reshape(input: Tensor, shape: int[]) -> Tensor",
          "The same elements, in order, under another shape; a view where the strides allow it, "
          "else a copy.")
      .kernel([](const Tensor& x, const Dims& shape) { return reshape(x, shape); })
      .shape([](const TensorMeta& x, const Dims& shape) {
        return TensorMeta{infer_size(shape, x.numel()), x.dtype};
      })
      .grad("input", "", reshaped_back)
      .samples({{"t(2, 6), [4, 3]"}, {"strided(4, 6), [-1, 2]"}, {"t(0, 3), [3, 0]"}, {"t(), [1]"}})
      .reference("np.reshape(input, shape)");

  view_op(r, "flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor",
          "Dimensions start_dim to end_dim as one; the tensor itself where that is one dimension.")
      .kernel([](const Tensor& x, int64_t start, int64_t end) {
        const Dims sizes = flattened_sizes(x.sizes(), start, end);
        return sizes.size() == static_cast<size_t>(x.rank()) ? x : reshape(x, sizes);
      })
      .shape([](const TensorMeta& x, int64_t start, int64_t end) {
        return TensorMeta{flattened_sizes(x.sizes, start, end), x.dtype};
      })
      .grad("input", "", reshaped_back)
      .samples({{"t(2, 3, 4)"}, {"t(2, 3, 4), 1"}, {"strided(4, 6)"}, {"t()"}})
      .reference(
          "np.reshape(input, input.shape[:start_dim] + (-1,) + input.shape[(end_dim % "
          "max(input.ndim, 1)) + 1:])");

  view_op(r, "unflatten(input: Tensor, dim: int, sizes: int[]) -> Tensor",
          "One dimension as several.")
      .kernel([](const Tensor& x, int64_t dim, const Dims& sizes) {
        return reshape(x, unflattened_sizes(x.sizes(), dim, sizes));
      })
      .shape([](const TensorMeta& x, int64_t dim, const Dims& sizes) {
        return TensorMeta{unflattened_sizes(x.sizes, dim, sizes), x.dtype};
      })
      .grad("input", "", reshaped_back)
      .samples({{"t(2, 6), 1, [2, 3]"}, {"t(2, 6), -1, [2, -1]"}})
      .reference(
          "np.reshape(input, input.shape[:dim % input.ndim] + tuple(sizes) + input.shape[dim % "
          "input.ndim + 1:])");

  view_op(r, "ravel(input: Tensor) -> Tensor",
          "All elements along one dimension; a copy only where needed.")
      .kernel([](const Tensor& x) { return reshape(x, Dims{-1}); })
      .shape([](const TensorMeta& x) {
        return TensorMeta{Dims{x.numel()}, x.dtype};
      })
      .grad("input", "", reshaped_back)
      .samples({{"t(2, 3)"}, {"strided(4, 6)"}, {"t()"}})
      .reference("np.ravel(input)");

  view_op(r, "view_as(input: Tensor, other: Tensor) -> Tensor", "view with the sizes of other.")
      .where(kMethodOnly)
      .kernel([](const Tensor& x, const Tensor& other) {
        return apply(x, viewed(geometry_of(x), other.sizes()));
      })
      .shape([](const TensorMeta& x, const TensorMeta& other) {
        return apply(x, viewed(geometry_of(x), other.sizes));
      })
      .grad("input", "", reshaped_back)
      .samples({{"t(2, 6), t(3, 4)"}})
      .reference("np.reshape(input, other.shape)");

  view_op(r, "reshape_as(input: Tensor, other: Tensor) -> Tensor",
          "reshape with the sizes of other.")
      .where(kMethodOnly)
      .kernel([](const Tensor& x, const Tensor& other) { return reshape(x, other.sizes()); })
      .shape([](const TensorMeta& x, const TensorMeta& other) {
        return TensorMeta{infer_size(other.sizes, x.numel()), x.dtype};
      })
      .grad("input", "", reshaped_back)
      .samples({{"strided(4, 6), t(3, 8)"}})
      .reference("np.reshape(input, other.shape)");
}

void register_dims(Registry& r) {
  geometry_rule(
      view_op(r, "transpose(input: Tensor, dim0: int, dim1: int) -> Tensor",
              "Two dimensions swapped."),
      [](const Geometry& g, int64_t dim0, int64_t dim1) { return transposed(g, dim0, dim1); })
      .where({.aliases = {"swapaxes", "swapdims"}})
      .grad("input", "",
            [](Gradient& g) {
              return op<"transpose">(g.out(), g.integer("dim0"), g.integer("dim1"));
            })
      .samples({{"t(2, 3, 4), 0, 2"}, {"t(2, 3), -1, -2"}, {"t(2, 0), 0, 1"}})
      .reference("np.swapaxes(input, dim0, dim1)");

  geometry_rule(view_op(r, "t(input: Tensor) -> Tensor",
                        "The transpose of a matrix; vectors and scalars as they are."),
                [](const Geometry& g) {
                  PRONG_CHECK(g.rank() <= 2, kRuntime,
                              "t() expects a tensor with <= 2 dimensions, but self is ", g.rank(),
                              "D");
                  return g.rank() == 2 ? transposed(g, 0, 1) : g;
                })
      .grad("input", "", [](Gradient& g) { return op<"t">(g.out()); })
      .samples({{"t(2, 3)"}, {"t(3)"}, {"t()"}})
      .reference("np.transpose(input)");

  geometry_rule(view_op(r, "T(input: Tensor) -> Tensor", "All dimensions in reverse order."),
                [](const Geometry& g) {
                  Dims order;
                  for (int64_t d = g.rank(); d-- > 0;) order.push_back(d);
                  return permuted(g, order);
                })
      .where(kProperty)
      .grad("input", "", [](Gradient& g) { return op<"T">(g.out()); })
      .samples({{"t(2, 3)"}})
      .reference("np.transpose(input)");

  geometry_rule(view_op(r, "mT(input: Tensor) -> Tensor", "Each matrix of a batch transposed."),
                [](const Geometry& g) {
                  PRONG_CHECK(
                      g.rank() >= 2, kRuntime,
                      "tensor.mT is only supported on matrices or batches of matrices. Got ",
                      g.rank(), "-D tensor.");
                  return transposed(g, -2, -1);
                })
      .where(kProperty)
      .grad("input", "", [](Gradient& g) { return op<"mT">(g.out()); })
      .samples({{"t(2, 3)"}, {"t(4, 2, 3)"}})
      .reference("np.swapaxes(input, -1, -2)");

  geometry_rule(
      view_op(r, "permute(input: Tensor, dims: int[]) -> Tensor", "Dimensions in the given order."),
      [](const Geometry& g, const Dims& dims) { return permuted(g, dims); })
      .grad("input", "",
            [](Gradient& g) {
              const Dims dims = g.dims("dims");
              const auto rank = static_cast<int64_t>(dims.size());
              Dims back(dims.size(), 0);
              for (int64_t i = 0; i < rank; ++i)
                back[static_cast<size_t>(wrap_dim(dims[static_cast<size_t>(i)], rank))] = i;
              return op<"permute">(g.out(), back);
            })
      .samples({{"t(2, 3, 4), [2, 0, 1]"}, {"t(2, 3), [-1, 0]"}, {"t(), []"}})
      .reference("np.transpose(input, dims)");

  geometry_rule(
      view_op(
          r, "movedim(input: Tensor, source: int[], destination: int[]) -> Tensor",
          "The source dimensions moved to the destination positions; the others keep their order."),
      [](const Geometry& g, const Dims& source, const Dims& destination) {
        return moved(g, source, destination);
      })
      .where({.aliases = {"moveaxis"}})
      .grad("input", "",
            [](Gradient& g) {
              return op<"movedim">(g.out(), g.dims("destination"), g.dims("source"));
            })
      .samples({{"t(2, 3, 4), [0, 1], [1, 2]"}, {"t(2, 3, 4), [0], [-1]"}})
      .reference("np.moveaxis(input, source, destination)");

  geometry_rule(
      view_op(r, "unsqueeze(input: Tensor, dim: int) -> Tensor", "A dimension of size 1 put in."),
      [](const Geometry& g, int64_t dim) { return unsqueezed(g, dim); })
      .grad("input", "", [](Gradient& g) { return op<"squeeze.dim">(g.out(), g.integer("dim")); })
      .samples({{"t(2, 3), 0"}, {"t(2, 3), -1"}, {"t(), 0"}})
      .reference("np.expand_dims(input, dim)");

  geometry_rule(
      view_op(r, "squeeze(input: Tensor) -> Tensor", "All dimensions of size 1 taken out."),
      [](const Geometry& g) {
        Dims all;
        for (int64_t d = 0; d < g.rank(); ++d) all.push_back(d);
        return squeezed(g, all);
      })
      .grad("input", "", reshaped_back)
      .samples({{"t(1, 3, 1)"}, {"t(2, 3)"}, {"t()"}})
      .reference("np.squeeze(input)");
  geometry_rule(view_op(r, "squeeze.dim(input: Tensor, dim: int) -> Tensor",
                        "One dimension taken out if its size is 1."),
                [](const Geometry& g, int64_t dim) { return squeezed(g, Dims{dim}); })
      .grad("input", "", reshaped_back)
      .samples({{"t(1, 3, 1), 0"}, {"t(1, 3), -1"}})
      .reference("np.squeeze(input, dim) if input.shape[dim] == 1 else input");
  geometry_rule(view_op(r, "squeeze.dims(input: Tensor, dim: int[]) -> Tensor",
                        "The listed dimensions of size 1 taken out."),
                [](const Geometry& g, const Dims& dims) { return squeezed(g, dims); })
      .grad("input", "", reshaped_back)
      .samples({{"t(1, 3, 1), [0, 2]"}, {"t(1, 3, 1), [0, 1]"}})
      .reference("np.squeeze(input, tuple(d for d in dim if input.shape[d] == 1))");

  geometry_rule(view_op(r, "expand(input: Tensor, size: int[]) -> Tensor",
                        "Dimensions of size 1 repeated without copying; -1 keeps a size."),
                [](const Geometry& g, const Dims& size) { return expanded(g, size); })
      .where(kMethodOnly)
      .grad("input", "", pass_through)  // the tape sums what was repeated
      .samples({{"t(3, 1), [3, 4]"}, {"t(3), [2, -1]"}, {"t(), [2, 2]"}})
      .reference(
          "np.broadcast_to(input, [i if s == -1 else s for s, i in "
          "zip(size, (1,) * (len(size) - input.ndim) + input.shape)])");
  geometry_rule(
      view_op(r, "broadcast_to(input: Tensor, size: int[]) -> Tensor", "expand, as a function."),
      [](const Geometry& g, const Dims& size) { return expanded(g, size); })
      .grad("input", "", pass_through)
      .samples({{"t(3, 1), [3, 4]"}, {"t(3), [2, 3]"}})
      .reference("np.broadcast_to(input, size)");
  view_op(r, "expand_as(input: Tensor, other: Tensor) -> Tensor", "expand to the sizes of other.")
      .where(kMethodOnly)
      .kernel([](const Tensor& x, const Tensor& other) {
        return apply(x, expanded(geometry_of(x), other.sizes()));
      })
      .shape([](const TensorMeta& x, const TensorMeta& other) {
        return apply(x, expanded(geometry_of(x), other.sizes));
      })
      .grad("input", "", pass_through)
      .samples({{"t(3, 1), t(3, 4)"}})
      .reference("np.broadcast_to(input, other.shape)");
}

void register_parts(Registry& r) {
  geometry_rule(
      view_op(r, "select(input: Tensor, dim: int, index: int) -> Tensor",
              "One slice along dim, without it."),
      [](const Geometry& g, int64_t dim, int64_t index) { return selected(g, dim, index); })
      .grad("input", "",
            [](Gradient& g) {
              return op<"select_backward">(g.out(), g.sizes("input"), g.integer("dim"),
                                           g.integer("index"));
            })
      .samples({{"t(2, 3), 0, 1"}, {"t(2, 3), -1, -2"}})
      .reference("np.take(input, index, axis=dim)");

  geometry_rule(view_op(r,
                        "slice(input: Tensor, dim: int = 0, start: int? = None, end: int? = None, "
                        "step: int = 1) -> Tensor",
                        "input[start:end:step] along dim, ends clamped as Python does."),
                [](const Geometry& g, int64_t dim, const std::optional<int64_t>& start,
                   const std::optional<int64_t>& end,
                   int64_t step) { return sliced(g, dim, start, end, step); })
      .where(kInternal)
      .grad("input", "",
            [](Gradient& g) {
              return op<"slice_backward">(g.out(), g.sizes("input"), g.integer("dim"),
                                          g.value("start"), g.value("end"), g.integer("step"));
            })
      .samples({{"t(5, 3), 0, 1, -1, 2"}, {"t(5, 3), 1"}, {"t(5), 0, 4, 2"}})
      .reference("input[(slice(None),) * dim + (slice(start, end, step),)]");

  geometry_rule(view_op(r, "narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor",
                        "length slices from start along dim."),
                [](const Geometry& g, int64_t dim, int64_t start, int64_t length) {
                  return narrowed(g, dim, start, length);
                })
      .grad("input", "",
            [](Gradient& g) {
              const int64_t start = g.integer("start"), size = extent_of(g);
              const int64_t first = start < 0 ? start + size : start;
              return op<"slice_backward">(g.out(), g.sizes("input"), g.integer("dim"), first,
                                          first + g.integer("length"), int64_t{1});
            })
      .samples({{"t(5, 3), 0, 1, 3"}, {"t(5, 3), -1, 0, 0"}, {"t(5), 0, -2, 2"}})
      .reference(
          "np.take(input, range(start % max(input.shape[dim], 1), start % max(input.shape[dim], 1) "
          "+ length), axis=dim)");

  view_op(r, "split(input: Tensor, split_size: int, dim: int = 0) -> Tensor[]",
          "Pieces of split_size along dim; the last may be smaller.")
      .kernel([](const Tensor& x, int64_t size, int64_t dim) { return split(x, size, dim); })
      .shape([](const TensorMeta& x, int64_t size, int64_t dim) { return split(x, size, dim); })
      .grad("input", "",
            [](Gradient& g) {
              return joined(g, pieces_of(extent_of(g), g.integer("split_size")), "cat",
                            g.integer("dim"));
            })
      .samples({{"t(5, 2), 2"}, {"t(2, 6), 3, -1"}, {"t(0, 2), 1"}})
      .reference("np.split(input, range(split_size, input.shape[dim], split_size), axis=dim)");
  view_op(r, "split.sizes(input: Tensor, split_size: int[], dim: int = 0) -> Tensor[]",
          "Pieces of the given sizes along dim.")
      .kernel([](const Tensor& x, const Dims& sizes, int64_t dim) {
        return split_with_sizes(x, sizes, dim);
      })
      .shape([](const TensorMeta& x, const Dims& sizes, int64_t dim) {
        return split_with_sizes(x, sizes, dim);
      })
      .grad("input", "",
            [](Gradient& g) {
              return joined(g, g.dims("split_size").size(), "cat", g.integer("dim"));
            })
      .samples({{"t(5, 2), [1, 4]"}, {"t(2, 6), [2, 0, 4], 1"}})
      .reference("np.split(input, np.cumsum(split_size)[:-1], axis=dim)");
  view_op(r, "split_with_sizes(input: Tensor, split_sizes: int[], dim: int = 0) -> Tensor[]",
          "Pieces of the given sizes along dim.")
      .kernel([](const Tensor& x, const Dims& sizes, int64_t dim) {
        return split_with_sizes(x, sizes, dim);
      })
      .shape([](const TensorMeta& x, const Dims& sizes, int64_t dim) {
        return split_with_sizes(x, sizes, dim);
      })
      .grad("input", "",
            [](Gradient& g) {
              return joined(g, g.dims("split_sizes").size(), "cat", g.integer("dim"));
            })
      .samples({{"t(5, 2), [1, 4]"}})
      .reference("np.split(input, np.cumsum(split_sizes)[:-1], axis=dim)");
  view_op(r, "chunk(input: Tensor, chunks: int, dim: int = 0) -> Tensor[]",
          "At most `chunks` pieces of equal size along dim.")
      .kernel([](const Tensor& x, int64_t chunks, int64_t dim) { return chunk(x, chunks, dim); })
      .shape([](const TensorMeta& x, int64_t chunks, int64_t dim) { return chunk(x, chunks, dim); })
      .grad("input", "",
            [](Gradient& g) {
              return joined(g, chunk_lengths(extent_of(g), g.integer("chunks")).size(), "cat",
                            g.integer("dim"));
            })
      .samples({{"t(5, 2), 2"}, {"t(2, 6), 4, 1"}, {"t(6, 2), 3"}})
      .reference(
          "np.split(input, range(-(-input.shape[dim] // chunks), input.shape[dim], "
          "-(-input.shape[dim] // chunks)), axis=dim)");
  view_op(r, "tensor_split(input: Tensor, indices_or_sections: int, dim: int = 0) -> Tensor[]",
          "Exactly that many pieces along dim, as equal as they can be.")
      .kernel([](const Tensor& x, int64_t sections, int64_t dim) {
        return tensor_split(x, sections, dim);
      })
      .shape([](const TensorMeta& x, int64_t sections, int64_t dim) {
        return tensor_split(x, sections, dim);
      })
      .grad("input", "",
            [](Gradient& g) {
              return joined(g, static_cast<size_t>(g.integer("indices_or_sections")), "cat",
                            g.integer("dim"));
            })
      .samples({{"t(5, 2), 3"}, {"t(2, 6), 4, 1"}})
      .reference("np.array_split(input, indices_or_sections, axis=dim)");
  view_op(r,
          "tensor_split.indices(input: Tensor, indices_or_sections: int[], dim: int = 0) -> "
          "Tensor[]",
          "Views that end before the places given, and the rest.")
      .kernel([](const Tensor& x, const Dims& places, int64_t dim) {
        return tensor_split_at(x, places, dim);
      })
      .shape([](const TensorMeta& x, const Dims& places, int64_t dim) {
        return tensor_split_at(x, places, dim);
      })
      .grad("input", "",
            [](Gradient& g) {
              const Dims places = g.dims("indices_or_sections");
              const int64_t dim = g.integer("dim"), size = extent_of(g);
              const auto place = [&](size_t i) {
                return i == places.size() ? size : places[i] < 0 ? places[i] + size : places[i];
              };
              bool in_order = true;
              for (size_t i = 0; i < places.size(); ++i)
                in_order &= std::min(place(i), size) <= place(i + 1) && place(i) >= 0;
              if (in_order) return joined(g, places.size() + 1, "cat", dim);
              Expr sum;  // pieces that overlap
              for (size_t i = 0; i <= places.size(); ++i) {
                if (!g.has_out(i)) continue;
                const int64_t start = i == 0 ? 0 : place(i - 1),
                              length = g.out(i).sizes()[static_cast<size_t>(
                                  wrap_dim(dim, g.meta("input").rank()))];
                const Expr part =
                    op<"slice_backward">(g.out(i), g.sizes("input"), dim, std::min(start, size),
                                         std::min(start, size) + length, int64_t{1});
                sum = sum.defined() ? sum + part : part;
              }
              return sum;
            })
      .samples({{"t(5, 2), [1, 3]"}, {"t(2, 6), [2, 9], 1"}})
      .reference("np.array_split(input, indices_or_sections, axis=dim)");
  view_op(r, "unbind(input: Tensor, dim: int = 0) -> Tensor[]", "All slices along dim, without it.")
      .kernel([](const Tensor& x, int64_t dim) { return unbind(x, dim); })
      .shape([](const TensorMeta& x, int64_t dim) { return unbind(x, dim); })
      .grad("input", "",
            [](Gradient& g) {
              return joined(g, static_cast<size_t>(extent_of(g)), "stack", g.integer("dim"));
            })
      .samples({{"t(3, 2)"}, {"t(3, 2), -1"}, {"t(0, 2)"}})
      .reference("list(np.moveaxis(input, dim, 0))");

  geometry_rule(
      view_op(r, "diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor",
              "The diagonal of dim1 and dim2, as the last dimension."),
      [](const Geometry& g, int64_t offset, int64_t dim1, int64_t dim2) {
        return diagonal_of(g, offset, dim1, dim2);
      })
      .grad("input", "",
            [](Gradient& g) {
              return op<"diagonal_backward">(g.out(), g.sizes("input"), g.integer("offset"),
                                             g.integer("dim1"), g.integer("dim2"));
            })
      .samples({{"t(3, 4)"}, {"t(3, 4), 1"}, {"t(3, 4), -2"}, {"t(2, 3, 4), 0, 1, 2"}})
      .reference("np.diagonal(input, offset, dim1, dim2)");

  view_op(r,
          "as_strided(input: Tensor, size: int[], stride: int[], storage_offset: int? = None) -> "
          "Tensor",
          "A view of the tensor's storage with the given sizes and strides (in elements).")
      .kernel([](const Tensor& x, const Dims& size, const Dims& stride,
                 const std::optional<int64_t>& offset) {
        return x.as_strided(size, stride, offset.value_or(x.offset()));
      })
      .shape([](const TensorMeta& x, const Dims& size, const Dims&, const std::optional<int64_t>&) {
        return TensorMeta{size, x.dtype};
      })
      .bounds(&unknown_bounds)  // it reaches what its argument does not
      .grad("input", "input",
            [](Gradient& g) {
              const Gradient::Layout in = g.layout("input");
              const IValue given = g.value("storage_offset");
              const int64_t offset = given.is_none() ? 0 : given.to_int() - in.offset;
              return op<"as_strided_backward">(g.out(), g.dims("size"), g.dims("stride"), offset,
                                               in.sizes, in.strides);
            })
      .samples({{"t(3, 4), [2, 2], [1, 2]"}, {"t(3, 4), [4, 3], [1, 4], 0"}})
      .reference(
          "np.lib.stride_tricks.as_strided(input.reshape(-1)[storage_offset or 0:], size, "
          "[s * input.itemsize for s in stride])");

  geometry_rule(
      view_op(r, "unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor",
              "All windows of `size` along a dimension, `step` apart, as a last dimension."),
      [](const Geometry& g, int64_t dimension, int64_t size, int64_t step) {
        return unfolded(g, dimension, size, step);
      })
      .where(kMethodOnly)
      .grad("input", "",
            [](Gradient& g) {
              return op<"unfold_backward">(g.out(), g.sizes("input"), g.integer("dimension"),
                                           g.integer("size"), g.integer("step"));
            })
      .samples({{"t(7, 2), 0, 3, 2"}, {"t(5), -1, 2, 1"}})
      .reference(
          "np.moveaxis(np.moveaxis(np.lib.stride_tricks.sliding_window_view(input, size, "
          "dimension), "
          "dimension % input.ndim, 0)[::step], 0, dimension % input.ndim)");
}

void check_signed(DType dtype) {
  PRONG_CHECK(dtype != DType::kBool, kRuntime,
              "The `+` operator, on a bool tensor is not supported.");
}

template <int64_t kRank>
Geometry raised(Geometry g) {
  while (g.rank() < kRank) g = unsqueezed(g, 0);
  return g;
}

template <int64_t kRank>
void at_least(Registry& r, std::string doc, std::vector<Sample> samples) {
  view_op(r, cat("atleast_", kRank, "d(input: Tensor) -> Tensor"), std::move(doc))
      .kernel([](const Tensor& x) {
        return x.rank() < kRank ? apply(x, raised<kRank>(geometry_of(x))) : x;
      })
      .shape([](const TensorMeta& x) { return apply(x, raised<kRank>(geometry_of(x))); })
      .where({.method = false})
      .grad("input", "", reshaped_back)
      .samples(std::move(samples))
      .reference(cat("np.atleast_", kRank, "d(input)"));
}

void register_identities(Registry& r) {
  geometry_rule(view_op(r, "alias(input: Tensor) -> Tensor", "The whole tensor as a new view."),
                [](const Geometry& g) { return g; })
      .where(kInternal)
      .grad("input", "", pass_through)
      .samples({{"t(2, 3)"}})
      .reference("input");
  geometry_rule(view_op(r, "detach(input: Tensor) -> Tensor",
                        "The same elements, cut off from the history of gradients."),
                [](const Geometry& g) { return g; })
      .not_differentiable("it is what leaves the history behind")
      .samples({{"t(2, 3)"}, {"strided(4, 6)"}})
      .reference("input");
  view_op(r, "contiguous(input: Tensor) -> Tensor",
          "The tensor itself if its elements lie in order, else a copy in which they do.")
      .where(kMethodOnly)
      .kernel([](const Tensor& x) { return x.contiguous(); })
      .shape([](const TensorMeta& x) {
        return TensorMeta{x.sizes, x.dtype};
      })
      .grad("input", "", pass_through)
      .samples({{"t(2, 3)"}, {"strided(4, 6)"}})
      .reference("np.ascontiguousarray(input) if input.ndim else input");

  view_op(r, "positive(input: Tensor) -> Tensor", "The tensor itself; a bool tensor is refused.")
      .kernel([](const Tensor& x) {
        check_signed(x.dtype());
        return x;
      })
      .shape([](const TensorMeta& x) {
        check_signed(x.dtype);
        return TensorMeta{x.sizes, x.dtype};
      })
      .grad("input", "", pass_through)
      .samples({{"t(2, 3)"}, {"t(3, dtype=int64)"}, {"strided(4, 6)"}})
      .reference("+input");

  at_least<1>(r, "A scalar as a vector of one; others as they are.", {{"t()"}, {"t(2, 3)"}});
  at_least<2>(r, "Leading dimensions of size 1 up to rank 2; the tensor itself if it has as many.",
              {{"t()"}, {"t(3)"}, {"t(2, 3)"}});
}

OpDef& host_op(Registry& r, std::string_view schema, std::string doc) {
  return r.add(schema)
      .doc(std::move(doc))
      .family(Family::kHost)
      .where(kMethodOnly)
      .not_differentiable("the answer is no tensor")
      .no_grad("the answer is no tensor")
      .no_vmap(kVmapLater)
      .samples({{"t(2, 3)"}});
}

void register_host(Registry& r) {
  for (const char* name : {"dim", "ndimension"})
    host_op(r, cat(name, "(input: Tensor) -> int"), "The number of dimensions.")
        .kernel([](const Tensor& x) { return x.rank(); })
        .shape([](const TensorMeta& x) { return x.rank(); })
        .reference("input.ndim");
  host_op(r, "numel(input: Tensor) -> int", "The number of elements.")
      .where({.aliases = {"nelement"}})
      .kernel([](const Tensor& x) { return x.numel(); })
      .shape([](const TensorMeta& x) { return x.numel(); })
      .reference("input.size");
  host_op(r, "size(input: Tensor) -> int[]", "The sizes of all dimensions.")
      .kernel([](const Tensor& x) { return x.sizes(); })
      .shape([](const TensorMeta& x) { return x.sizes; })
      .reference("list(input.shape)");
  host_op(r, "size.dim(input: Tensor, dim: int) -> int", "The size of one dimension.")
      .kernel([](const Tensor& x, int64_t dim) { return x.size(dim); })
      .shape([](const TensorMeta& x, int64_t dim) {
        PRONG_CHECK(x.rank() > 0, kIndex, "Dimension specified as ", dim,
                    " but tensor has no dimensions");
        return x.sizes[static_cast<size_t>(wrap_dim(dim, x.rank()))];
      })
      .samples({{"t(2, 3), -1"}})
      .reference("input.shape[dim]");
  host_op(r, "stride(input: Tensor) -> int[]", "The strides of all dimensions, in elements.")
      .kernel([](const Tensor& x) { return x.strides(); })
      .dynamic_shape("strides belong to a tensor in memory")
      .reference("[s // input.itemsize for s in input.strides]");
  host_op(r, "stride.dim(input: Tensor, dim: int) -> int",
          "The stride of one dimension, in elements.")
      .kernel([](const Tensor& x, int64_t dim) { return x.stride(dim); })
      .dynamic_shape("strides belong to a tensor in memory")
      .samples({{"t(2, 3), 0"}})
      .reference("input.strides[dim] // input.itemsize");
  host_op(r, "storage_offset(input: Tensor) -> int",
          "Where the view starts in its storage, in elements.")
      .kernel([](const Tensor& x) { return x.offset(); })
      .dynamic_shape("offsets belong to a tensor in memory")
      .reference("0");
  host_op(r, "is_contiguous(input: Tensor) -> bool", "Do the elements lie in memory in order?")
      .kernel([](const Tensor& x) { return x.is_contiguous(); })
      .dynamic_shape("strides belong to a tensor in memory")
      .reference("input.flags.c_contiguous");
  host_op(r, "data_ptr(input: Tensor) -> int",
          "The address of the first element; 0 when there is none.")
      .kernel([](const Tensor& x) {
        return x.numel() ? reinterpret_cast<int64_t>(x.raw()) : int64_t{0};
      })
      .dynamic_shape("an address belongs to a tensor in memory");
  host_op(r, "element_size(input: Tensor) -> int", "Bytes an element.")
      .kernel([](const Tensor& x) { return static_cast<int64_t>(x.item_bytes()); })
      .shape([](const TensorMeta& x) { return static_cast<int64_t>(size_of(x.dtype)); })
      .reference("input.itemsize");
  host_op(r, "is_floating_point(input: Tensor) -> bool", "Is the element type a floating one?")
      .where({})
      .kernel([](const Tensor& x) { return is_floating(x.dtype()); })
      .shape([](const TensorMeta& x) { return is_floating(x.dtype); })
      .reference("input.dtype.kind == 'f'");
  host_op(r, "is_complex(input: Tensor) -> bool", "Is the element type a complex one?")
      .where({})
      .kernel([](const Tensor& x) { return is_complex(x.dtype()); })
      .shape([](const TensorMeta& x) { return is_complex(x.dtype); })
      .reference("input.dtype.kind == 'c'");
  host_op(r, "is_signed(input: Tensor) -> bool", "Can elements be negative?")
      .where({})
      .kernel([](const Tensor& x) { return is_signed(x.dtype()); })
      .shape([](const TensorMeta& x) { return is_signed(x.dtype); })
      .reference("input.dtype.kind in 'if'");
  host_op(r, "is_same_size(input: Tensor, other: Tensor) -> bool",
          "Do two tensors have the same shape?")
      .kernel([](const Tensor& x, const Tensor& other) { return x.sizes() == other.sizes(); })
      .shape([](const TensorMeta& x, const TensorMeta& other) { return x.sizes == other.sizes; })
      .samples({{"t(2, 3), t(2, 3)"}, {"t(2, 3), t(3, 2)"}})
      .reference("input.shape == other.shape");
  host_op(r, "item(input: Tensor) -> Scalar", "The one element as a Python number.")
      .kernel([](const Tensor& x) {
        if (is_complex(x.dtype())) return IValue(x.item_complex());
        if (is_floating(x.dtype())) return IValue(x.item_double());
        if (x.dtype() == DType::kBool) return IValue(x.item_int() != 0);
        return IValue(x.item_int());
      })
      .dynamic_shape("a number read from the data")
      .samples({{"t()"}, {"t(1, 1)"}, {"t(dtype=int64)"}, {"b()"}})
      .reference("input.reshape(()).item()");
}

}  // namespace

void register_view(Registry& r) {
  register_shapes(r);
  register_dims(r);
  register_parts(r);
  register_identities(r);
  register_host(r);
}

}  // namespace prong
