// Ops that the gradients of views are made of: what was looked at, written into zeros of the whole.
// Applied by the rules in view.cpp.
#include <algorithm>

#include "ops/gradient.h"
#include "ops/kernels/geometry.h"
#include "ops/self_overlap.h"

namespace prong {

namespace {

constexpr Spelling kInternal{.function = false, .method = false};
constexpr const char* kVmapLater = "vmap is not built yet";

OpDef& into_op(Registry& r, std::string_view schema, std::string doc) {
  return r.add(schema)
      .doc(std::move(doc))
      .family(Family::kCopy)
      .where(kInternal)
      .no_vmap(kVmapLater);
}

Tensor zeros(DimsView sizes, DType dtype) {
  Tensor out = Tensor::empty(sizes, dtype);
  fill(out, int64_t{0});
  return out;
}

// Zeros with `grad` at a part of them.
Tensor placed(const Tensor& grad, const Tensor& whole, const Geometry& part) {
  copy_into(apply(whole, part), grad);
  return whole;
}

Tensor unfold_backward(const Tensor& grad, const Dims& sizes, int64_t dim, int64_t size,
                       int64_t step) {
  Tensor whole = zeros(sizes, grad.dtype());
  if (grad.numel() == 0) return whole;
  if (sizes.empty()) {
    copy_into(whole, call_tensor("reshape", grad, Dims{}));
    return whole;
  }
  const int64_t d = wrap_dim(dim, whole.rank()), windows = grad.size(d);
  const Geometry to = geometry_of(whole), from = geometry_of(grad);
  // Windows overlap each other; neither the elements of one window nor the k-th ones of all do.
  if (windows < size) {
    for (int64_t w = 0; w < windows; ++w) {
      Geometry window = selected(from, d, w);  // its elements come last: moved to where they belong
      window = moved(window, Dims{window.rank() - 1}, Dims{d});
      call_tensor("add_", apply(whole, narrowed(to, d, w * step, size)), apply(grad, window));
    }
  } else {
    for (int64_t k = 0; k < size; ++k)
      call_tensor("add_", apply(whole, sliced(to, d, k, k + (windows - 1) * step + 1, step)),
                  apply(grad, selected(from, -1, k)));
  }
  return whole;
}

// Numbers of the elements of a buffer that a geometry visits, in order.
Tensor numbers_of(const Tensor& all, DimsView sizes, DimsView strides, int64_t offset) {
  return call_tensor("reshape", all.as_strided(sizes, strides, offset), Dims{-1});
}

struct Reach {
  int64_t low = 0, high = 0;
  Reach(DimsView sizes, DimsView strides, int64_t offset) : low(offset), high(offset) {
    for (size_t i = 0; i < sizes.size(); ++i)
      (strides[i] < 0 ? low : high) += std::max<int64_t>(0, sizes[i] - 1) * strides[i];
  }
};

// The gradient through memory: every element of the memory gets what its appearances in the view
// got, and gives it to its appearances in the input, in equal parts.
Tensor as_strided_backward(const Tensor& grad, const Dims& sizes, const Dims& strides,
                           int64_t offset, const Dims& in_sizes, const Dims& in_strides) {
  const Reach view(sizes, strides, offset), input(in_sizes, in_strides, 0);
  const int64_t low = std::min(view.low, input.low),
                length = std::max(view.high, input.high) + 1 - low;
  const TensorMeta memory{{length}, grad.dtype()};
  Tensor sums = call_tensor("zeros", memory.sizes, memory.dtype);
  const Tensor all = call_tensor("arange", length);
  sums = call_tensor("index_add", sums, int64_t{0}, numbers_of(all, sizes, strides, offset - low),
                     call_tensor("reshape", grad, Dims{-1}));
  const Tensor places = numbers_of(all, in_sizes, in_strides, -low);
  if (may_overlap_itself(in_sizes, in_strides)) {
    Tensor counts = call_tensor("zeros", memory.sizes, memory.dtype);
    counts = call_tensor("index_add", counts, int64_t{0}, places,
                         call_tensor("ones", places.sizes(), memory.dtype));
    sums = call_tensor("div", sums, call_tensor("clamp", counts, int64_t{1}));
  }
  return call_tensor("reshape", call_tensor("index_select", sums, int64_t{0}, places), in_sizes);
}

}  // namespace

bool may_overlap_itself(const Dims& sizes, const Dims& strides) {
  std::vector<std::pair<int64_t, int64_t>> dims;
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] > 1) dims.emplace_back(strides[i], sizes[i]);
  std::sort(dims.begin(), dims.end());
  int64_t reach = 0;
  for (const auto& [stride, size] : dims) {
    if (stride <= reach) return true;
    reach += stride * (size - 1);
  }
  return false;
}

void register_view_gradient(Registry& r) {
  into_op(r, "select_backward(grad: Tensor, sizes: int[], dim: int, index: int) -> Tensor",
          "Zeros with grad as the slice at index along dim.")
      .kernel([](const Tensor& grad, const Dims& sizes, int64_t dim, int64_t index) {
        const Tensor whole = zeros(sizes, grad.dtype());
        return placed(grad, whole, selected(geometry_of(whole), dim, index));
      })
      .shape([](const TensorMeta& grad, const Dims& sizes, int64_t, int64_t) {
        return TensorMeta{sizes, grad.dtype};
      })
      .grad("grad", "",
            [](Gradient& g) { return op<"select">(g.out(), g.integer("dim"), g.integer("index")); })
      .samples({{"t(3), [2, 3], 0, 1"}, {"t(2), [2, 3], -1, -2"}});
  into_op(r,
          "slice_backward(grad: Tensor, sizes: int[], dim: int, start: int?, end: int?, step: int) "
          "-> Tensor",
          "Zeros with grad as start:end:step along dim.")
      .kernel([](const Tensor& grad, const Dims& sizes, int64_t dim, std::optional<int64_t> start,
                 std::optional<int64_t> end, int64_t step) {
        // A gradient for all of it needs no zeros.
        if (grad.sizes() == sizes) return grad;
        const Tensor whole = zeros(sizes, grad.dtype());
        return placed(grad, whole, sliced(geometry_of(whole), dim, start, end, step));
      })
      .shape([](const TensorMeta& grad, const Dims& sizes, int64_t, std::optional<int64_t>,
                std::optional<int64_t>, int64_t) {
        return TensorMeta{sizes, grad.dtype};
      })
      .grad("grad", "",
            [](Gradient& g) {
              return op<"slice">(g.out(), g.integer("dim"), g.value("start"), g.value("end"),
                                 g.integer("step"));
            })
      .samples({{"t(2, 3), [5, 3], 0, 1, -1, 2"}, {"t(5, 1), [5, 3], 1, 2, None, 1"}});
  into_op(
      r,
      "diagonal_backward(grad: Tensor, sizes: int[], offset: int, dim1: int, dim2: int) -> Tensor",
      "Zeros with grad on the diagonal of dim1 and dim2.")
      .kernel(
          [](const Tensor& grad, const Dims& sizes, int64_t offset, int64_t dim1, int64_t dim2) {
            const Tensor whole = zeros(sizes, grad.dtype());
            return placed(grad, whole, diagonal_of(geometry_of(whole), offset, dim1, dim2));
          })
      .shape([](const TensorMeta& grad, const Dims& sizes, int64_t, int64_t, int64_t) {
        return TensorMeta{sizes, grad.dtype};
      })
      .grad("grad", "",
            [](Gradient& g) {
              return op<"diagonal">(g.out(), g.integer("offset"), g.integer("dim1"),
                                    g.integer("dim2"));
            })
      .samples({{"t(3), [3, 4], 0, 0, 1"}, {"t(2, 3), [3, 2, 4], 1, 0, 2"}});
  into_op(r,
          "unfold_backward(grad: Tensor, sizes: int[], dim: int, size: int, step: int) -> Tensor",
          "Zeros to which every window of unfold has added its gradient.")
      .kernel([](const Tensor& grad, const Dims& sizes, int64_t dim, int64_t size, int64_t step) {
        return unfold_backward(grad, sizes, dim, size, step);
      })
      .shape([](const TensorMeta& grad, const Dims& sizes, int64_t, int64_t, int64_t) {
        return TensorMeta{sizes, grad.dtype};
      })
      .grad("grad", "",
            [](Gradient& g) {
              return op<"unfold">(g.out(), g.integer("dim"), g.integer("size"), g.integer("step"));
            })
      .samples({{"t(3, 2, 3), [7, 2], 0, 3, 2"}, {"t(4, 2), [5], -1, 2, 1"}});
  into_op(r,
          "as_strided_backward(grad: Tensor, sizes: int[], strides: int[], offset: int, in_sizes: "
          "int[], in_strides: int[]) -> Tensor",
          "What a tensor gets from a view of its memory; offset counts from its first element.")
      .composite()
      .kernel([](const Tensor& grad, const Dims& sizes, const Dims& strides, int64_t offset,
                 const Dims& in_sizes, const Dims& in_strides) {
        return as_strided_backward(grad, sizes, strides, offset, in_sizes, in_strides);
      })
      .shape([](const TensorMeta& grad, const Dims&, const Dims&, int64_t, const Dims& in_sizes,
                const Dims&) {
        return TensorMeta{in_sizes, grad.dtype};
      })
      .samples({{"t(2, 2), [2, 2], [1, 2], 0, [3, 4], [4, 1]"},
                {"t(3, 2), [3, 2], [1, 1], 1, [2, 3], [3, 1]"}});
}

}  // namespace prong
