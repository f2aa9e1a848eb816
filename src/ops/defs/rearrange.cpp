// Ops that put elements elsewhere: flip, roll, rot90, triangles, diagonals.
#include <algorithm>
#include <cstring>

#include "ops/data_check.h"
#include "ops/gradient.h"
#include "ops/kernels/geometry.h"
#include "tensor/convert.h"
#include "tensor/strided.h"

namespace prong {

namespace {

constexpr const char* kVmapLater = "vmap is not built yet";
constexpr Spelling kMethodOnly{.function = false};
constexpr int64_t kGrain = 32 * 1024;

size_t at(int64_t i) { return static_cast<size_t>(i); }

OpDef& copy_op(Registry& r, std::string_view schema, std::string doc) {
  return r.add(schema).doc(std::move(doc)).family(Family::kCopy).no_vmap(kVmapLater);
}
TensorMeta like(const TensorMeta& x) { return {x.sizes, x.dtype}; }

// An in-place op: what it does to the tensor, which is then returned.
template <class F>
Tensor in_place(const Tensor& x, F&& f) {
  f();
  x.bump_version();
  return x;
}

TensorMeta flip_shape(const TensorMeta& x, DimsView dims) {
  SmallVector<bool, 8> seen(x.sizes.size(), false);
  for (const int64_t dim : dims) {
    const size_t d = at(wrap_dim(dim, x.rank()));
    if (x.rank() == 0) break;
    PRONG_CHECK(!seen[d], kRuntime, "dim ", d, " appears multiple times in the list of dims");
    seen[d] = true;
  }
  return like(x);
}

Tensor flip(const Tensor& x, DimsView dims) {
  flip_shape(x.meta(), dims);
  Tensor out = Tensor::empty(x.sizes(), x.dtype());
  Dims strides = x.strides();
  int64_t start = 0;
  for (int64_t dim : dims) {
    const size_t d = at(wrap_dim(dim, x.rank()));
    if (x.rank() == 0) break;
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
  copy_into(apply(out, narrowed(to, dim, by, size - by)),
            apply(x, narrowed(from, dim, 0, size - by)));
  copy_into(apply(out, narrowed(to, dim, 0, by)), apply(x, narrowed(from, dim, size - by, by)));
  return out;
}

TensorMeta roll_shape(const TensorMeta& x, const Dims& shifts, const Dims& dims) {
  PRONG_CHECK(!shifts.empty(), kRuntime, "`shifts` required");
  if (dims.empty() && shifts.size() == 1) return like(x);
  PRONG_CHECK(shifts.size() == dims.size(), kRuntime,
              "shifts and dimensions must align. shifts: ", shifts.size(), ", dims:", dims.size());
  for (const int64_t dim : dims) wrap_dim(dim, x.rank());
  return like(x);
}

Tensor roll(Tensor x, const Dims& shifts, const Dims& dims) {
  roll_shape(x.meta(), shifts, dims);
  if (dims.empty()) return reshape(roll_one(reshape(x, Dims{-1}), shifts[0], 0), x.sizes());
  for (size_t i = 0; i < dims.size(); ++i) x = roll_one(x, shifts[i], wrap_dim(dims[i], x.rank()));
  return x;
}

Geometry rot90_geometry(const Geometry& g, int64_t k, const Dims& dims) {
  PRONG_CHECK(dims.size() == 2, kRuntime,
              "expected total rotation dims == 2, but got dims = ", dims.size());
  PRONG_CHECK(wrap_dim(dims[0], g.rank()) != wrap_dim(dims[1], g.rank()), kRuntime,
              "expected rotation dims to be different, but got dim0 = ", dims[0],
              " and dim1 = ", dims[1]);
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
  parallel_for(0, x.numel() / columns, std::max<int64_t>(1, kGrain / columns),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t edge =
                       std::clamp<int64_t>(i % rows + diagonal + (lower ? 1 : 0), 0, columns);
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
Expr grad_of_triangle(Gradient& g) {
  if constexpr (kLower)
    return op<"tril">(g.out(), g.integer("diagonal"));
  else
    return op<"triu">(g.out(), g.integer("diagonal"));
}

template <bool kLower>
void register_triangle(Registry& r) {
  static constexpr const char* kName = kLower ? "tril" : "triu";
  copy_op(r, cat(kName, "(input: Tensor, diagonal: int = 0) -> Tensor"),
          cat("The ", kLower ? "lower" : "upper", " triangle of each matrix; zeros elsewhere."))
      .bounds(&bounds_with_zero)
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
      .grad("input", "", [](Gradient& g) { return grad_of_triangle<kLower>(g); })
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
      .shape([](const TensorMeta& x, int64_t) {
        check_matrix(kName, x.rank());
        return like(x);
      })
      .grad("input", "", [](Gradient& g) { return grad_of_triangle<kLower>(g); })
      .samples({{"t(3, 4)"}, {"t(4, 3), -1"}})
      .reference(cat("np.", kName, "(input, diagonal)"));
}

TensorMeta diag_embed_meta(const TensorMeta& x, int64_t offset, int64_t dim1, int64_t dim2) {
  PRONG_CHECK(x.rank() >= 1, kRuntime,
              "diag_embed(): expected a tensor of at least 1 dimension, got a 0-dim one");
  const int64_t rank = x.rank() + 1;
  const int64_t a = wrap_dim(dim1, rank), b = wrap_dim(dim2, rank),
                n = x.sizes.back() + std::abs(offset);
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
  copy_op(r, "flip(input: Tensor, dims: int[]) -> Tensor",
          "The order of elements reversed along the dims.")
      .kernel([](const Tensor& x, const Dims& dims) { return flip(x, dims); })
      .shape([](const TensorMeta& x, const Dims& dims) { return flip_shape(x, dims); })
      .grad("input", "", [](Gradient& g) { return op<"flip">(g.out(), g.dims("dims")); })
      .bounds(&bounds_of_input)
      .samples({{"t(2, 3), [0]"}, {"t(2, 3), [0, -1]"}, {"t(2, 3), []"}, {"strided(4, 6), [1]"}})
      .reference("np.flip(input, dims)");
  copy_op(r, "fliplr(input: Tensor) -> Tensor", "flip along dim 1.")
      .kernel([](const Tensor& x) { return flip(x, Dims{1}); })
      .shape([](const TensorMeta& x) { return flip_shape(x, Dims{1}); })
      .grad("input", "", [](Gradient& g) { return op<"flip">(g.out(), Dims{1}); })
      .samples({{"t(2, 3)"}})
      .reference("np.fliplr(input)");
  copy_op(r, "flipud(input: Tensor) -> Tensor", "flip along dim 0.")
      .kernel([](const Tensor& x) { return flip(x, Dims{0}); })
      .shape([](const TensorMeta& x) { return flip_shape(x, Dims{0}); })
      .grad("input", "", [](Gradient& g) { return op<"flip">(g.out(), Dims{0}); })
      .samples({{"t(2, 3)"}})
      .reference("np.flipud(input)");
  copy_op(r, "roll(input: Tensor, shifts: int[1], dims: int[1] = []) -> Tensor",
          "Elements moved along the dims, those that fall off come back at the start; of all "
          "elements without dims.")
      .kernel([](const Tensor& x, const Dims& shifts, const Dims& dims) {
        return roll(x, shifts, dims);
      })
      .shape([](const TensorMeta& x, const Dims& shifts, const Dims& dims) {
        return roll_shape(x, shifts, dims);
      })
      .grad("input", "",
            [](Gradient& g) {
              Dims shifts = g.dims("shifts");
              for (int64_t& s : shifts) s = -s;
              return op<"roll">(g.out(), shifts, g.dims("dims"));
            })
      .bounds(&bounds_of_input)
      .samples({{"t(5), 2"}, {"t(2, 3), 1, 0"}, {"t(2, 3), [1, -1], [0, 1]"}})
      .reference("np.roll(input, shifts, None if dims == [] else dims)");
  copy_op(r, "rot90(input: Tensor, k: int = 1, dims: int[] = [0, 1]) -> Tensor",
          "Turned by k quarters in the plane of the dims.")
      .kernel([](const Tensor& x, int64_t k, const Dims& dims) { return rot90(x, k, dims); })
      .shape([](const TensorMeta& x, int64_t k, const Dims& dims) {
        return TensorMeta{rot90_geometry(geometry_of(x), k, dims).sizes, x.dtype};
      })
      .grad("input", "",
            [](Gradient& g) { return op<"rot90">(g.out(), -g.integer("k"), g.dims("dims")); })
      .samples({{"t(2, 3)"}, {"t(2, 3), 2"}, {"t(2, 3), -1"}})
      .reference("np.rot90(input, k, dims)");
  register_triangle<true>(r);
  register_triangle<false>(r);
  copy_op(r, "diag(input: Tensor, diagonal: int = 0) -> Tensor",
          "A matrix with the vector on its diagonal, or a matrix's diagonal.")
      .kernel([](const Tensor& x, int64_t diagonal) {
        PRONG_CHECK(x.rank() == 1 || x.rank() == 2, kRuntime,
                    "diag(): Supports 1D or 2D tensors. Got ", x.rank(), "D");
        if (x.rank() == 1) return call_tensor("diag_embed", x, diagonal, int64_t{0}, int64_t{1});
        return call_tensor("clone", call_tensor("diagonal", x, diagonal));
      })
      .composite()
      .shape([](const TensorMeta& x, int64_t diagonal) {
        PRONG_CHECK(x.rank() == 1 || x.rank() == 2, kRuntime,
                    "diag(): Supports 1D or 2D tensors. Got ", x.rank(), "D");
        if (x.rank() == 1) return diag_embed_meta(x, diagonal, 0, 1);
        return apply(x, diagonal_of(geometry_of(x), diagonal, 0, 1));
      })
      .samples({{"t(3)"}, {"t(3), -1"}, {"t(3, 4)"}, {"t(3, 4), 1"}})
      .reference("np.diag(input, diagonal)");
  copy_op(r, "diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor",
          "Matrices with the last dimension on their diagonals.")
      .kernel([](const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
        return diag_embed(x, offset, dim1, dim2);
      })
      .shape([](const TensorMeta& x, int64_t offset, int64_t dim1, int64_t dim2) {
        return diag_embed_meta(x, offset, dim1, dim2);
      })
      .grad("input", "",
            [](Gradient& g) {
              return op<"diagonal">(g.out(), g.integer("offset"), g.integer("dim1"),
                                    g.integer("dim2"));
            })
      .samples({{"t(2, 3)"}, {"t(3), 1"}})
      .reference(
          "np.stack([np.diag(v, offset) for v in input.reshape(-1, input.shape[-1])])"
          ".reshape(input.shape[:-1] + (input.shape[-1] + abs(offset),) * 2)");
}

}  // namespace

void register_rearrange(Registry& r) { register_rearranged(r); }

}  // namespace prong
