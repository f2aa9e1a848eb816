// The largest and the smallest: max, min, amax, amin, argmax, argmin, aminmax.
#include <limits>

#include "ops/data_check.h"
#include "ops/gradient.h"
#include "ops/kernels/rows.h"
#include "ops/scalar_math.h"

namespace prong {
namespace {

constexpr const char* kVmapLater = "vmap is not built yet";

Cost reduce_cost(const OpDef&, std::span<const IValue> args) {
  const TensorMeta x = meta_from(args[0]);
  const auto n = static_cast<double>(x.numel());
  return {n, n * static_cast<double>(size_of(x.dtype))};
}

OpDef& add_op(Registry& r, std::string_view schema) {
  return r.add(schema).family(Family::kReduce).cost(reduce_cost).no_vmap(kVmapLater);
}

template <class T, bool kIsLargest>
struct Extreme {
  using Acc = T;
  PRONG_INLINE T identity() const {
    using L = std::numeric_limits<T>;
    if constexpr (std::is_floating_point_v<T>)
      return kIsLargest ? -L::infinity() : L::infinity();
    else
      return kIsLargest ? L::min() : L::max();
  }
  PRONG_INLINE T lift(T x) const { return x; }
  PRONG_INLINE T combine(T a, T b) const {
    return kIsLargest ? math::larger(a, b) : math::smaller(a, b);
  }
};

template <bool kIsLargest>
Tensor extreme_of(const Tensor& x, const ReducedDims& dims, bool keepdim) {
  const ReduceView v = reduce_view(x, dims, reduce_dtype(x.dtype()));
  return visit_reduced(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Tensor out = Tensor::empty(reduced_sizes(x.sizes(), dims, keepdim), DTypeOf<T>::value);
    fold_into<T>(v, Extreme<T, kIsLargest>(), out.template data<T>());
    return out.to(x.dtype());
  });
}

// Every dim that is reduced must have elements.
void check_all_not_empty(const char* op, const TensorMeta& x) {
  PRONG_CHECK(x.numel() > 0, kRuntime, op,
              "(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
              "reduction dim with the 'dim' "
              "argument.");
}
void check_not_empty(const char* op, const TensorMeta& x, const ReducedDims& dims,
                     bool is_whole = false) {
  if (x.numel() > 0) return;
  if (is_whole) check_all_not_empty(op, x);
  for (size_t i = 0; i < x.sizes.size(); ++i)
    if (dims.is_reduced[i])
      PRONG_CHECK(x.sizes[i] != 0, kIndex, op, "(): Expected reduction dim ", i,
                  " to have non-zero size.");
}

std::tuple<Tensor, Tensor> with_places(const Tensor& x, int64_t dim, bool keepdim,
                                       bool is_largest) {
  const int64_t d = wrap_dim(dim, x.rank());
  const ReducedDims dims = reduced_dims(IValue(d), x.rank());
  check_not_empty(is_largest ? "max" : "min", x.meta(), dims);
  return extreme_along(view_along(x, d, reduce_dtype(x.dtype())),
                       reduced_sizes(x.sizes(), dims, keepdim), x.dtype(), is_largest);
}

void check_place_of(const char* name, DType dtype) {
  PRONG_CHECK(dtype != DType::kBool, kRuntime, name, "(): does not support bool input");
}

Tensor place_of(const Tensor& x, std::optional<int64_t> dim, bool keepdim, bool is_largest) {
  const char* name = is_largest ? "argmax" : "argmin";
  check_place_of(name, x.dtype());
  const DType compute = reduce_dtype(x.dtype());
  if (dim) {
    const int64_t d = wrap_dim(*dim, x.rank());
    const ReducedDims dims = reduced_dims(IValue(d), x.rank());
    check_not_empty(name, x.meta(), dims);
    return std::get<1>(extreme_along(
        view_along(x, d, compute), reduced_sizes(x.sizes(), dims, keepdim), x.dtype(), is_largest));
  }
  PRONG_CHECK(x.numel() > 0, kIndex, name,
              "(): Expected reduction dim to be specified for input.numel() == 0.");
  ReduceView v;
  v.data = x.to(compute).contiguous();
  v.length = x.numel();
  const Dims sizes = keepdim ? Dims(static_cast<size_t>(x.rank()), 1) : Dims();
  return std::get<1>(extreme_along(v, sizes, x.dtype(), is_largest));
}

// ── gradients: who is the extreme gets it, those that are equal share it ──

Expr shared_by(const Expr& dy, const Expr& mask, const IValue& dim) {
  return op<"where">(mask, dy / op<"sum">(mask, dim, true), 0.0);
}
Expr grad_of_all(Gradient& g) {
  const Expr x = g["input"], y = g["result"];
  const Expr mask =
      op<"logical_or">(op<"eq">(x, y), op<"logical_and">(op<"isnan">(x), op<"isnan">(y)));
  return shared_by(g.out(), mask, IValue());
}
Expr grad_over_dims(Gradient& g, const IValue& dim, const Expr& dy, const Expr& result) {
  const Expr x = g["input"];
  const bool keepdim = g.flag("keepdim");
  const auto wide = [&](const Expr& e) { return unreduced(e, dim, keepdim, x.sizes()); };
  return shared_by(wide(dy), op<"eq">(x, wide(result)), dim);
}

template <bool kIsLargest>
void register_extremes(Registry& r, const std::string& name, const std::string& word) {
  const std::string np = cat("np.", name);
  add_op(r, cat(name, "(input: Tensor) -> Tensor"))
      .doc(cat("The ", word, " element; NaN if there is one."))
      .shape([](const TensorMeta& x) {
        check_all_not_empty(kIsLargest ? "max" : "min", x);
        return TensorMeta{{}, x.dtype};
      })
      .kernel([](const Tensor& x) {
        check_all_not_empty(kIsLargest ? "max" : "min", x.meta());
        return extreme_of<kIsLargest>(x, reduced_dims(IValue(), x.rank()), false);
      })
      .grad("input", "input, result", [](Gradient& g) { return grad_of_all(g); })
      .samples({{"t(3, 4)"}, {"t()"}})
      .reference(cat(np, "(input)"));
  // Before the form with a dim: a zero-dim tensor of integers fits both, and means the other
  // operand.
  add_op(r, cat(name, ".other(input: Tensor, other: Tensor) -> Tensor"))
      .doc(cat("The ", word, " of two, element by element."))
      .shape([](const TensorMeta& x, const TensorMeta& y) {
        ResultType type;
        type.add(x);
        type.add(y);
        return TensorMeta{broadcast_shapes(x.sizes, y.sizes), type.get()};
      })
      .kernel([](const Tensor& x, const Tensor& y) {
        return call_tensor(kIsLargest ? "maximum" : "minimum", x, y);
      })
      .composite()
      .samples({{"t(3, 4), t(4)"}})
      .reference(cat("np.", name, "imum(input, other)"));
  add_op(r, cat(name,
                ".dim(input: Tensor, dim: int, keepdim: bool = False) -> (Tensor values, Tensor "
                "indices)"))
      .doc(cat("The ", word, " element along dim, and where it first is."))
      .shape([](const TensorMeta& x, int64_t dim, bool keepdim) {
        const ReducedDims dims = reduced_dims(IValue(dim), x.rank());
        check_not_empty(kIsLargest ? "max" : "min", x, dims);
        const Dims sizes = reduced_sizes(x.sizes, dims, keepdim);
        return std::tuple(TensorMeta{sizes, x.dtype}, TensorMeta{sizes, DType::kInt64});
      })
      .kernel([](const Tensor& x, int64_t dim, bool keepdim) {
        return with_places(x, dim, keepdim, kIsLargest);
      })
      .grad("input", "result.1",
            [](Gradient& g) { return picked_gradient(g, g.integer("dim"), g.flag("keepdim")); })
      .bounds(&bounds_of_places)
      .samples({{"t(3, 4), 1"}, {"t(3, 4), dim=0, keepdim=True"}})
      .reference(cat("(", np, "(input, axis=dim, keepdims=keepdim), np.arg", name,
                     "(input, axis=dim, keepdims=keepdim))"));
  add_op(r, cat("a", name, "(input: Tensor, dim: int[1]? = None, keepdim: bool = False) -> Tensor"))
      .doc(cat("The ", word, " element over dim, or over all dims."))
      .shape([](const TensorMeta& x, const IValue& dim, bool keepdim) {
        const ReducedDims dims = reduced_dims(dim, x.rank());
        check_not_empty(kIsLargest ? "amax" : "amin", x, dims, dim.is_none());
        return TensorMeta{reduced_sizes(x.sizes, dims, keepdim), x.dtype};
      })
      .kernel([](const Tensor& x, const IValue& dim, bool keepdim) {
        const ReducedDims dims = reduced_dims(dim, x.rank());
        check_not_empty(kIsLargest ? "amax" : "amin", x.meta(), dims, dim.is_none());
        return extreme_of<kIsLargest>(x, dims, keepdim);
      })
      .grad("input", "input, result",
            [](Gradient& g) { return grad_over_dims(g, g.value("dim"), g.out(), g["result"]); })
      .samples({{"t(3, 4)"}, {"t(3, 4), dim=1"}, {"t(2, 3, 4), (0, 2), True"}})
      .reference(cat(np, "(input, axis=dim, keepdims=keepdim)"));
  add_op(r, cat("arg", name, "(input: Tensor, dim: int? = None, keepdim: bool = False) -> Tensor"))
      .doc(cat("Where the ", word, " element first is, along dim or in the flattened tensor."))
      .not_differentiable("an index")
      .bounds(&bounds_of_places)
      .shape([](const TensorMeta& x, std::optional<int64_t> dim, bool keepdim) {
        check_place_of(kIsLargest ? "argmax" : "argmin", x.dtype);
        const IValue d = dim ? IValue(*dim) : IValue();
        return TensorMeta{reduced_sizes(x.sizes, reduced_dims(d, x.rank()), keepdim),
                          DType::kInt64};
      })
      .kernel([](const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
        return place_of(x, dim, keepdim, kIsLargest);
      })
      .samples({{"t(3, 4)"}, {"t(3, 4), 1"}, {"t(3, 4), dim=0, keepdim=True"}})
      .reference(cat("np.arg", name, "(input, axis=dim, keepdims=keepdim)"));
}

}  // namespace

void register_extreme(Registry& r) {
  register_extremes<true>(r, "max", "largest");
  register_extremes<false>(r, "min", "smallest");
  add_op(r,
         "aminmax(input: Tensor, *, dim: int? = None, keepdim: bool = False) -> (Tensor min, "
         "Tensor max)")
      .doc("The smallest and the largest element, along dim or of all.")
      .shape([](const TensorMeta& x, std::optional<int64_t> dim, bool keepdim) {
        const ReducedDims dims = reduced_dims(dim ? IValue(*dim) : IValue(), x.rank());
        check_not_empty("aminmax", x, dims);
        const TensorMeta m{reduced_sizes(x.sizes, dims, keepdim), x.dtype};
        return std::tuple(m, m);
      })
      .kernel([](const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
        const ReducedDims dims = reduced_dims(dim ? IValue(*dim) : IValue(), x.rank());
        check_not_empty("aminmax", x.meta(), dims);
        return std::tuple(extreme_of<false>(x, dims, keepdim), extreme_of<true>(x, dims, keepdim));
      })
      .grad("input", "input, result, result.1",
            [](Gradient& g) {
              Expr sum;
              for (const size_t i : {size_t{0}, size_t{1}}) {
                if (!g.has_out(i)) continue;
                const Expr part =
                    grad_over_dims(g, g.value("dim"), g.out(i), g[i == 0 ? "result" : "result.1"]);
                sum = sum.defined() ? sum + part : part;
              }
              return sum;
            })
      .samples({{"t(3, 4)"}, {"t(3, 4), dim=1"}})
      .reference(
          "(np.min(input, axis=dim, keepdims=keepdim), np.max(input, axis=dim, keepdims=keepdim))");
}

}  // namespace prong
