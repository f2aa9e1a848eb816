// Ops that read or write single elements by number along one dimension, or by mask: gather,
// scatter, nonzero, masked_*.
#include <algorithm>
#include <limits>

#include "ops/data_check.h"
#include "ops/gradient.h"
#include "ops/kernels/fill.h"
#include "ops/kernels/geometry.h"
#include "ops/kernels/indexing.h"
#include "tensor/strided.h"

namespace prong {

namespace {

constexpr const char* kVmapLater = "vmap is not built yet";
constexpr const char* kIndices = "the results are indices";
constexpr Spelling kFunctionOnly{.method = false};
constexpr Spelling kMethodOnly{.function = false};
constexpr int64_t kGrain = 16 * 1024;

size_t at(int64_t i) { return static_cast<size_t>(i); }

OpDef& scatter_op(Registry& r, std::string_view schema, std::string doc) {
  return r.add(schema).doc(std::move(doc)).family(Family::kCopy).no_vmap(kVmapLater);
}
TensorMeta like(const TensorMeta& x) { return {x.sizes, x.dtype}; }

// ── by number along a dimension ──

void check_places(DataCheck& c) {
  c.within(c["index"], {0, c.size(c["input"], c["dim"].to_int()) - 1});
}

// A zero-dim tensor counts as a vector of one here.
Tensor at_least_1d(const Tensor& t) { return t.rank() ? t : reshape(t, Dims{1}); }
Dims at_least_1d(const Dims& sizes) { return sizes.empty() ? Dims{1} : sizes; }

void check_index_dtype(const char* op, DType d) {
  PRONG_CHECK(d == DType::kInt64 || d == DType::kInt32, kRuntime, op,
              "(): Expected dtype int32/int64 for index");
}

int64_t check_gather(const TensorMeta& x, int64_t dim, const TensorMeta& index) {
  const int64_t d = wrap_dim(dim, x.rank());
  if (index.numel() == 0) return d;
  check_index_dtype("gather", index.dtype);
  const Dims own = at_least_1d(x.sizes), wanted = at_least_1d(index.sizes);
  PRONG_CHECK(own.size() == wanted.size(), kRuntime,
              "Index tensor must have the same number of dimensions as input tensor");
  for (size_t i = 0; i < own.size(); ++i)
    PRONG_CHECK(static_cast<int64_t>(i) == d || wanted[i] <= own[i], kRuntime,
                "Size does not match at dimension ", i, " expected index ", index.sizes,
                " to be no larger than self ", x.sizes, " apart from dimension ", d);
  return d;
}

[[noreturn]] void throw_bounds(int64_t value, int64_t dim, int64_t size) {
  throw_error(ErrorKind::kRuntime,
              cat("index ", value, " is out of bounds for dimension ", dim, " with size ", size));
}

// Strides of x as seen from the index: along dim the index decides, so the walk does not move
// there.
Dims strides_without(const Tensor& x, int64_t dim) {
  Dims strides = x.strides();
  strides[at(dim)] = 0;
  return strides;
}

Tensor gather(const Tensor& given, int64_t dim, const Tensor& given_index) {
  const int64_t d = check_gather(given.meta(), dim, given_index.meta());
  Tensor out = Tensor::empty(given_index.sizes(), given.dtype());
  if (out.numel() == 0) return out;
  const Tensor x = at_least_1d(given), index = at_least_1d(given_index.to(DType::kInt64)),
               to = at_least_1d(out);
  const Dims strides = strides_without(x, d);
  const StridedLoop<3> loop(index.sizes(), {&to.strides(), &index.strides(), &strides});
  const int64_t size = x.sizes()[at(d)], step = x.strides()[at(d)];
  const int64_t s0 = loop.strides[0].back(), s1 = loop.strides[1].back(),
                s2 = loop.strides[2].back();
  const int64_t* numbers = index.data<int64_t>();
  visit_width(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* src = static_cast<const T*>(x.raw());
    T* dst = static_cast<T*>(to.raw());
    loop.for_pieces(kGrain, [&](const std::array<int64_t, 3>& o, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        const int64_t number = numbers[o[1] + i * s1];
        if (number < 0 || number >= size) [[unlikely]]
          throw_bounds(number, d, size);
        dst[o[0] + i * s0] = src[o[2] + i * s2 + number * step];
      }
    });
  });
  return out;
}

int64_t check_scatter(const TensorMeta& x, int64_t dim, const TensorMeta& index,
                      const TensorMeta* src) {
  const int64_t d = wrap_dim(dim, x.rank());
  if (index.numel() == 0) return d;
  check_index_dtype("scatter", index.dtype);
  PRONG_CHECK(!src || src->dtype == x.dtype, kRuntime,
              "scatter(): Expected self.dtype to be equal to src.dtype");
  const Dims own = at_least_1d(x.sizes), wanted = at_least_1d(index.sizes);
  const Dims from = src ? at_least_1d(src->sizes) : wanted;
  PRONG_CHECK(own.size() == wanted.size(), kRuntime,
              "Index tensor must have the same number of dimensions as self tensor");
  PRONG_CHECK(own.size() == from.size(), kRuntime,
              "Index tensor must have the same number of dimensions as src tensor");
  bool fits = true;
  for (size_t i = 0; i < own.size(); ++i)
    fits &= (static_cast<int64_t>(i) == d || wanted[i] <= own[i]) && wanted[i] <= from[i];
  PRONG_CHECK(fits, kRuntime, "Expected index ", index.sizes, " to be no larger than self ",
              x.sizes, " apart from dimension ", d,
              src ? cat(" and to be no larger size than src ", src->sizes) : std::string());
  return d;
}

// Calls f(x element, src element) in the order of the index, for every element that the index
// names. On one thread: equal numbers must meet in that order.
template <class T, class F>
void scatter_part(const Tensor& x, int64_t d, const Tensor& index, const Tensor& src, F&& f) {
  const Dims strides = strides_without(x, d);
  const StridedLoop<3> loop(index.sizes(), {&index.strides(), &strides, &src.strides()});
  const int64_t size = x.sizes()[at(d)], step = x.strides()[at(d)];
  const int64_t s0 = loop.strides[0].back(), s1 = loop.strides[1].back(),
                s2 = loop.strides[2].back();
  const int64_t* numbers = index.data<int64_t>();
  T* to = static_cast<T*>(x.raw());
  const T* from = static_cast<const T*>(src.raw());
  loop.for_rows(0, loop.rows(), [&](const std::array<int64_t, 3>& o) {
    for (int64_t i = 0; i < loop.row_length(); ++i) {
      const int64_t number = numbers[o[0] + i * s0];
      if (static_cast<uint64_t>(number) >= static_cast<uint64_t>(size)) [[unlikely]]
        throw_bounds(number, d, size);
      f(to[o[1] + i * s1 + number * step], from[o[2] + i * s2]);
    }
  });
}

// The same in parallel over the longest other dimension, whose slices never meet.
template <class T, class F>
void for_scattered(const Tensor& given, int64_t d, const Tensor& given_index,
                   const Tensor& given_src, F&& f) {
  if (given_index.numel() == 0) return;
  const Tensor x = at_least_1d(given), src = at_least_1d(given_src);
  const Tensor index = at_least_1d(given_index.to(DType::kInt64));
  int64_t widest = d == 0 && x.rank() > 1 ? 1 : 0;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i != d && index.sizes()[at(i)] > index.sizes()[at(widest)]) widest = i;
  if (widest == d || index.numel() <= kGrain) return scatter_part<T>(x, d, index, src, f);
  const int64_t slices = index.sizes()[at(widest)], slice = index.numel() / slices;
  const auto part = [&](const Tensor& t, int64_t begin, int64_t end) {
    return apply(t, narrowed(geometry_of(t), widest, begin, end - begin));
  };
  parallel_for(0, slices, std::max<int64_t>(1, kGrain / slice), [&](int64_t begin, int64_t end) {
    scatter_part<T>(part(x, begin, end), d, part(index, begin, end), part(src, begin, end), f);
  });
}

enum class Reduce : uint8_t { kPut, kAdd, kMultiply, kMax, kMin };

template <class T>
T combined(Reduce reduce, T a, T b) {
  switch (reduce) {
  case Reduce::kPut:
    return b;
  case Reduce::kAdd:
    return static_cast<T>(a + b);
  case Reduce::kMultiply:
    return static_cast<T>(a * b);
  default:
    break;
  }
  if constexpr (is_complex_type<T>)
    return a;  // no order: scatter_reduce refuses them
  else         // a NaN, which no comparison is true for, stays
    return a != a || (reduce == Reduce::kMax ? a > b : a < b) ? a : b;
}

void scatter(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src, Reduce reduce) {
  const TensorMeta src_meta = src.meta();
  const int64_t d = check_scatter(x.meta(), dim, index.meta(), &src_meta);
  if (reduce == Reduce::kPut) {
    visit_width(x.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      for_scattered<T>(x, d, index, src, [](T& to, T value) { to = value; });
    });
    return;
  }
  visit_any(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_scattered<T>(x, d, index, src,
                     [reduce](T& to, T value) { to = combined(reduce, to, value); });
  });
}

// One value for every place: src with strides of zero.
Tensor value_for(const Tensor& x, const Tensor& index, const Number& value) {
  Tensor one = Tensor::empty({}, x.dtype());
  fill_number(one, value);
  return broadcast_to(one, index.sizes());
}

Reduce reduce_of(const std::string& name) {
  PRONG_CHECK(name == "add" || name == "multiply", kRuntime,
              "reduce argument must be either add or multiply.");
  return name == "add" ? Reduce::kAdd : Reduce::kMultiply;
}

// The value that changes nothing, for elements that do not count themselves.
Number identity_of(Reduce reduce, DType dtype) {
  if (reduce == Reduce::kAdd) return {IValue(0)};
  if (reduce == Reduce::kMultiply) return {IValue(1)};
  const bool lowest = reduce == Reduce::kMax;
  if (is_floating(dtype)) {
    const double inf = std::numeric_limits<double>::infinity();
    return {IValue(lowest ? -inf : inf)};
  }
  return visit(dtype, [&](auto tag) -> Number {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T>)
      return {IValue(static_cast<int64_t>(lowest ? std::numeric_limits<T>::min()
                                                 : std::numeric_limits<T>::max()))};
    else
      return {IValue(0)};
  });
}

Reduce reduction_of(const std::string& name) {
  PRONG_CHECK(name == "sum" || name == "prod" || name == "mean" || name == "amax" || name == "amin",
              kRuntime, "reduce argument must be either sum, prod, mean, amax or amin, got ", name);
  return name == "prod"   ? Reduce::kMultiply
         : name == "amax" ? Reduce::kMax
         : name == "amin" ? Reduce::kMin
                          : Reduce::kAdd;
}

void scatter_reduce(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src,
                    const std::string& name, bool include_self) {
  const bool mean = name == "mean";
  const Reduce reduce = reduction_of(name);
  if (!include_self)
    scatter(x, dim, index, value_for(x, index, identity_of(reduce, x.dtype())), Reduce::kPut);
  scatter(x, dim, index, src, reduce);
  if (!mean) return;
  Tensor counts = Tensor::empty(x.sizes(), x.dtype());
  fill(counts, int64_t{include_self});
  scatter(counts, dim, index, value_for(x, index, {IValue(1)}), Reduce::kAdd);
  visit(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Tensor dense = x.contiguous();
    T* values = dense.data<T>();
    const T* n = counts.data<T>();
    for (int64_t i = 0; i < dense.numel(); ++i) {
      if (n[i] == T(0)) continue;
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {  // towards minus infinity
        T q = static_cast<T>(values[i] / n[i]);
        if (values[i] % n[i] != 0 && (values[i] < 0) != (n[i] < 0)) --q;
        values[i] = q;
      } else {
        values[i] = static_cast<T>(values[i] / n[i]);
      }
    }
    if (!dense.is_same(x)) copy_into(x, dense);
  });
}

// ── gradients ──

Expr gathered(Gradient& g, const Expr& x) { return op<"gather">(x, g.integer("dim"), g["index"]); }
Expr zeros_like(Gradient& g, const Expr& x) { return g.zeros({x.sizes(), x.dtype()}); }
// The part of src that the index reaches, and the gradient of that part as one of all of src.
Expr reached(Gradient& g, Expr src) {
  const Dims sizes = g["index"].sizes();
  for (size_t d = 0; d < sizes.size(); ++d)
    if (src.sizes()[d] > sizes[d])
      src = op<"narrow">(src, static_cast<int64_t>(d), int64_t{0}, sizes[d]);
  return src;
}
Expr for_whole_source(Gradient& g, Expr part) {
  const Dims sizes = g.sizes("src");
  for (size_t d = 0; d < sizes.size(); ++d) {
    Dims grown = part.sizes();
    const int64_t n = grown[d];
    if (n == sizes[d]) continue;
    grown[d] = sizes[d];
    part = op<"slice_backward">(part, grown, static_cast<int64_t>(d), int64_t{0}, n, int64_t{1});
  }
  return part;
}
Expr without_written(Gradient& g, const Expr& x) {
  return op<"scatter.value">(x, g.integer("dim"), g["index"], 0.0);
}

struct Shares {
  Expr input, src;  // of the part of src that the index reaches
};

Shares product_shares(Gradient& g, const Expr& dy, const Expr& x, const Expr& src,
                      bool include_self) {
  const int64_t dim = g.integer("dim");
  const Expr index = g["index"];
  const auto reduced = [&](const Expr& to, const Expr& from) {
    return op<"scatter_reduce">(to, dim, index, from, "prod", include_self);
  };
  Shares shares;
  if (g.needs("input")) {
    const Expr safe = op<"where">(op<"eq">(x, 0.0), 1.0, x);
    shares.input = dy * reduced(safe, src) / safe;
  }
  if (g.needs("src")) {
    // A single zero among those that meet in one place: the product of the others without it.
    const Expr is_zero = op<"eq">(src, 0.0);
    const Expr zeros =
        gathered(g, op<"scatter_add">(zeros_like(g, x), dim, index, op<"to">(is_zero, x.dtype())));
    const Expr is_single = op<"logical_and">(is_zero, op<"eq">(zeros, 1.0));
    const Expr others = reduced(x, op<"where">(is_single, 1.0, src));
    const Expr whole = reduced(x, src);
    shares.src = op<"where">(is_single, gathered(g, dy * others),
                             gathered(g, dy * whole) / op<"where">(is_zero, 1.0, src));
  }
  return shares;
}

Shares mean_shares(Gradient& g, const Expr& dy, bool include_self) {
  const int64_t dim = g.integer("dim");
  const Expr own = include_self ? op<"ones_like">(dy) : op<"zeros_like">(dy);
  const Expr count =
      op<"scatter_add">(own, dim, g["index"], g.full({g["index"].sizes(), dy.dtype()}, 1.0));
  const Expr safe = op<"clamp">(count, int64_t{1});
  return {dy / safe, gathered(g, dy) / gathered(g, safe)};
}

// The elements that are the extreme share its gradient.
Shares extreme_shares(Gradient& g, const Expr& dy, const Expr& x, const Expr& src,
                      const Expr& result) {
  const Expr mine = op<"to">(op<"eq">(x, result), dy.dtype());
  const Expr theirs = op<"to">(op<"eq">(src, gathered(g, result)), dy.dtype());
  const Expr each = dy / op<"scatter_add">(mine, g.integer("dim"), g["index"], theirs);
  return {mine * each, theirs * gathered(g, each)};
}

std::tuple<Expr, Expr> reduce_gradient(Gradient& g, const std::string& how, bool include_self) {
  const Expr dy = g.out();
  if (g.meta("input").numel() == 0 || g["index"].meta().numel() == 0)
    return {dy, g.zeros(g.meta("src"))};
  Shares shares;
  if (how == "sum")
    shares = {dy, gathered(g, dy)};
  else if (how == "mean")
    shares = mean_shares(g, dy, include_self);
  else if (how == "prod")
    shares = product_shares(g, dy, g["input"], reached(g, g["src"]), include_self);
  else
    shares = extreme_shares(g, dy, g["input"], reached(g, g["src"]), g["result"]);
  if (shares.input.defined() && !include_self) shares.input = without_written(g, shares.input);
  if (shares.src.defined()) shares.src = for_whole_source(g, shares.src);
  return {shares.input, shares.src};
}

TensorMeta scatter_shape(const TensorMeta& x, int64_t dim, const TensorMeta& index,
                         const TensorMeta* src) {
  check_scatter(x, dim, index, src);
  return like(x);
}

struct Facets {
  std::string doc;
  std::vector<Sample> samples;
  std::string reference;
  DataCheckFn checks = &check_places;
};

// name and name_ (in Python's spelling) from one action on the tensor that is written.
struct BothForms {
  OpDef &plain, &in_place;
  // Of the form that is not in place, where its result may be larger than its argument.
  template <class Kernel, class Shape>
  BothForms& plain_forms(Kernel kernel, Shape shape) {
    plain.kernel(kernel).shape(shape);
    return *this;
  }
  template <class F>
  BothForms& shape(F rule) {
    plain.shape(rule);
    in_place.shape(rule);
    return *this;
  }
  template <class F>
  BothForms& grad(std::string_view arguments, std::string_view uses, F rule) {
    plain.grad(arguments, uses, rule);
    in_place.grad(arguments, uses, rule);
    return *this;
  }
};
template <class F, class... A>
BothForms both_forms(Registry& r, const std::string& name, const std::string& rest,
                     const Facets& facets, void (F::*)(const Tensor&, A...) const) {
  const std::string base = name.substr(0, name.find('.')), overload = name.substr(base.size());
  const auto meta = [](const OpDef&, std::span<const IValue> args) -> IValue {
    return like(meta_from(args[0]));
  };
  OpDef& plain = scatter_op(r, cat(name, rest), facets.doc);
  plain
      .kernel([](const Tensor& x, const std::remove_cvref_t<A>&... a) {
        const Tensor out = x.clone();
        F{}(out, a...);
        return out;
      })
      .checks(facets.checks)
      .boxed_shape(meta)
      .samples(facets.samples)
      .reference(facets.reference);
  OpDef& in_place = scatter_op(r, cat(base, "_", overload, rest), cat(facets.doc, " In place."));
  in_place.where(kMethodOnly)
      .mutates(0)
      .kernel([](const Tensor& x, const std::remove_cvref_t<A>&... a) {
        F{}(x, a...);
        x.bump_version();
        return x;
      })
      .checks(facets.checks)
      .boxed_shape(meta)
      .samples(facets.samples)
      .reference(facets.reference);
  return {plain, in_place};
}
template <class F>
BothForms both_forms(Registry& r, const std::string& name, const std::string& rest,
                     const Facets& facets, F) {
  return both_forms<F>(r, name, rest, facets, &F::operator());
}

int64_t check_along(const TensorMeta& x, const TensorMeta& indices, int64_t dim) {
  PRONG_CHECK(x.rank() == indices.rank(), kRuntime,
              "torch.take_along_dim(): input and indices should have the same number of "
              "dimensions, but got ",
              x.rank(), " dimensions for input, and ", indices.rank(), " dimensions for indices");
  return wrap_dim(dim, x.rank());
}

void register_scatters(Registry& r) {
  scatter_op(
      r, "gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor",
      "out[i][j] = input[index[i][j]][j] for dim 0; elsewhere likewise.")
      .checks(&check_places)
      .kernel([](const Tensor& x, int64_t dim, const Tensor& index, bool) {
        return gather(x, dim, index);
      })
      .shape([](const TensorMeta& x, int64_t dim, const TensorMeta& index, bool) {
        check_gather(x, dim, index);
        return TensorMeta{index.sizes, x.dtype};
      })
      .grad("input", "index",
            [](Gradient& g) {
              return op<"scatter_add">(g.zeros({g.sizes("input"), g.out().dtype()}),
                                       g.integer("dim"), g["index"], g.out());
            })
      .samples({{"t(2, 3), 1, torch.tensor([[0, 2], [1, 1]])"},
                {"t(2, 3), 0, torch.tensor([[0, 1, 0]])"}})
      .reference(
          "np.take_along_axis(input[tuple(slice(None if d == dim % input.ndim else n) for d, n in "
          "enumerate(index.shape))], index, dim)");
  both_forms(r, "scatter", "(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor",
             {"input[index[i][j]][j] = src[i][j] for dim 0; elsewhere likewise.",
              {{"t(2, 3), 1, torch.tensor([[0, 2], [1, 0]]), t(2, 2)"}},
              ""},
             [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) {
               if (src.is_wrapped_number())
                 return scatter(x, dim, index, broadcast_to(src.to(x.dtype()), index.sizes()),
                                Reduce::kPut);
               scatter(x, dim, index, src, Reduce::kPut);
             })
      .shape([](const TensorMeta& x, int64_t dim, const TensorMeta& index, const TensorMeta& src) {
        return scatter_shape(x, dim, index, src.is_wrapped_number ? nullptr : &src);
      })
      .grad("input", "index", [](Gradient& g) { return without_written(g, g.out()); })
      .grad("src", "index", [](Gradient& g) { return for_whole_source(g, gathered(g, g.out())); });
  both_forms(r, "scatter.value",
             "(input: Tensor, dim: int, index: Tensor, value: Scalar) -> Tensor",
             {"input[index[i][j]][j] = value for dim 0; elsewhere likewise.",
              {{"t(2, 3), 1, torch.tensor([[0, 2], [1, 0]]), 1.5"}},
              ""},
             [](const Tensor& x, int64_t dim, const Tensor& index, const Number& value) {
               scatter(x, dim, index, value_for(x, index, value), Reduce::kPut);
             })
      .shape([](const TensorMeta& x, int64_t dim, const TensorMeta& index, const Number&) {
        return scatter_shape(x, dim, index, nullptr);
      })
      .grad("input", "index", [](Gradient& g) { return without_written(g, g.out()); });
  both_forms(r, "scatter.reduce",
             "(input: Tensor, dim: int, index: Tensor, src: Tensor, *, reduce: str) -> Tensor",
             {"scatter that adds or multiplies where it writes.",
              {{"t(2, 3), 1, torch.tensor([[0, 0], [1, 0]]), t(2, 2), reduce='add'"}},
              ""},
             [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src,
                const std::string& reduce) {
               const Tensor values =
                   src.is_wrapped_number() ? broadcast_to(src.to(x.dtype()), index.sizes()) : src;
               scatter(x, dim, index, values, reduce_of(reduce));
             })
      .shape([](const TensorMeta& x, int64_t dim, const TensorMeta& index, const TensorMeta& src,
                const std::string& reduce) {
        reduce_of(reduce);
        return scatter_shape(x, dim, index, src.is_wrapped_number ? nullptr : &src);
      })
      .grad("input, src", "input, index, src", [](Gradient& g) {
        const bool adds = g.value("reduce").to_string() == "add";
        return reduce_gradient(g, adds ? "sum" : "prod", true);
      });
  both_forms(r, "scatter.value_reduce",
             "(input: Tensor, dim: int, index: Tensor, value: Scalar, *, reduce: str) -> Tensor",
             {"scatter of one value that adds or multiplies where it writes.",
              {{"t(2, 3), 1, torch.tensor([[0, 0], [1, 0]]), 2.0, reduce='multiply'"}},
              ""},
             [](const Tensor& x, int64_t dim, const Tensor& index, const Number& value,
                const std::string& reduce) {
               scatter(x, dim, index, value_for(x, index, value), reduce_of(reduce));
             })
      .shape([](const TensorMeta& x, int64_t dim, const TensorMeta& index, const Number&,
                const std::string& reduce) {
        reduce_of(reduce);
        return scatter_shape(x, dim, index, nullptr);
      })
      .grad("input", "index", [](Gradient& g) {
        if (g.value("reduce").to_string() == "add") return g.out();
        const Expr factors = op<"scatter.value_reduce">(op<"ones_like">(g.out()), g.integer("dim"),
                                                        g["index"], g.value("value"), "multiply");
        return g.out() * factors;
      });
  both_forms(
      r, "scatter_add", "(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor",
      {"input[index[i][j]][j] += src[i][j] for dim 0; elsewhere likewise; equal places add up.",
       {{"t(2, 3), 1, torch.tensor([[0, 0], [1, 0]]), t(2, 2)"}},
       ""},
      [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) {
        scatter(x, dim, index, src, Reduce::kAdd);
      })
      .shape([](const TensorMeta& x, int64_t dim, const TensorMeta& index, const TensorMeta& src) {
        return scatter_shape(x, dim, index, &src);
      })
      .grad("input", "", [](Gradient& g) { return g.out(); })
      .grad("src", "index", [](Gradient& g) { return for_whole_source(g, gathered(g, g.out())); });
  both_forms(r, "scatter_reduce",
             "(input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: "
             "bool = True) -> Tensor",
             {"Reduces (sum, prod, mean, amax, amin) all of src that goes to one place, with what "
              "is there or without.",
              {{"t(2, 3), 1, torch.tensor([[0, 0], [1, 0]]), t(2, 2), 'amax'"},
               {"t(2, 3), 1, torch.tensor([[0, 0], [1, 0]]), t(2, 2), 'mean', include_self=False"}},
              ""},
             [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src,
                const std::string& reduce,
                bool include_self) { scatter_reduce(x, dim, index, src, reduce, include_self); })
      .shape([](const TensorMeta& x, int64_t dim, const TensorMeta& index, const TensorMeta& src,
                const std::string& reduce, bool) {
        reduction_of(reduce);
        return scatter_shape(x, dim, index, &src);
      })
      .grad("input, src", "input, index, src, result", [](Gradient& g) {
        return reduce_gradient(g, g.value("reduce").to_string(), g.flag("include_self"));
      });
  scatter_op(
      r, "take_along_dim(input: Tensor, indices: Tensor, dim: int? = None) -> Tensor",
      "gather after broadcasting the other dimensions, where negative indices count from the "
      "end; over the flat tensor without dim.")
      .kernel([](const Tensor& x, const Tensor& indices, const std::optional<int64_t>& dim) {
        if (!dim)
          return call_tensor("gather", call_tensor("reshape", x, Dims{-1}), int64_t{0},
                             reshape(indices, Dims{-1}));
        const size_t d = at(check_along(x.meta(), indices.meta(), *dim));
        Dims own = x.sizes(), wanted = indices.sizes();
        own[d] = wanted[d] = 1;
        Dims common = broadcast_shapes(own, wanted), index_sizes = common;
        common[d] = x.sizes()[d];
        index_sizes[d] = indices.sizes()[d];
        const Tensor from_end = call_tensor("add", indices, x.sizes()[d]);
        const Tensor places =
            call_tensor("where", call_tensor("lt", indices, int64_t{0}), from_end, indices);
        return call_tensor("gather", call_tensor("expand", x, common), static_cast<int64_t>(d),
                           broadcast_to(places, index_sizes));
      })
      .composite()
      .checks([](DataCheck& c) {
        const IValue& dim = c["dim"];
        const int64_t size = dim.is_none() ? c[0].tensor_impl()->numel : c.size(c[0], dim.to_int());
        c.within(c["indices"], {dim.is_none() ? 0 : -size, size - 1});
      })
      .shape([](const TensorMeta& x, const TensorMeta& indices, const std::optional<int64_t>& dim) {
        check_index_dtype("torch.take_along_dim", indices.dtype);
        if (!dim) return TensorMeta{Dims{indices.numel()}, x.dtype};
        const size_t d = at(check_along(x, indices, *dim));
        Dims own = x.sizes;
        own[d] = 1;
        return TensorMeta{broadcast_shapes(own, indices.sizes), x.dtype};
      })
      .samples({{"t(2, 3), torch.tensor([[2], [-3]]), 1"}, {"t(2, 3), torch.tensor([5, 0])"}})
      .reference("np.take_along_axis(input, indices, dim)");
}

// ── by mask ──

void check_mask(const char* op, DType mask) {
  PRONG_CHECK(mask == DType::kBool, kRuntime, op, ": expected BoolTensor for mask");
}

Tensor masked_select(const Tensor& x, const Tensor& mask) {
  check_mask("masked_select", mask.dtype());
  const Dims common = broadcast_shapes(x.sizes(), mask.sizes());
  return compress(broadcast_to(x, common), broadcast_to(mask, common));
}

void check_masked_scatter(DType x, DType mask, DType source) {
  check_mask("masked_scatter_", mask);
  PRONG_CHECK(x == source, kRuntime,
              "masked_scatter: expected self and source to have same dtypes but got", type_name(x),
              " and ", type_name(source));
}

void masked_scatter(const Tensor& x, const Tensor& given_mask, const Tensor& source) {
  check_masked_scatter(x.dtype(), given_mask.dtype(), source.dtype());
  const Tensor mask = broadcast_to(given_mask, x.sizes()).contiguous(), from = source.contiguous();
  PRONG_CHECK(count_nonzero(mask) <= from.numel(), kRuntime,
              "Number of elements of source < number of ones in mask");
  const Tensor dense = x.contiguous();
  const bool* flags = mask.data<bool>();
  visit_width(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* values = static_cast<const T*>(from.raw());
    T* to = static_cast<T*>(dense.raw());
    for (int64_t i = 0; i < mask.numel(); ++i)
      if (flags[i]) to[i] = *values++;
  });
  if (!dense.is_same(x)) copy_into(x, dense);
}

std::vector<Tensor> nonzero_columns(const Tensor& given) {
  const Tensor x = at_least_1d(given), places = nonzero(x);
  std::vector<Tensor> out;
  for (int64_t d = 0; d < x.rank(); ++d)
    out.push_back(apply(places, selected(geometry_of(places), 1, d)).contiguous());
  return out;
}

// The source has an element for each that the mask names, if it has one for all.
void check_source(DataCheck& c) {
  const TensorImpl &x = *c["input"].tensor_impl(), &mask = *c["mask"].tensor_impl();
  if (c["source"].tensor_impl()->numel < std::max(x.numel, mask.numel)) c.may_fail();
}

void register_masks(Registry& r) {
  scatter_op(r, "masked_select(input: Tensor, mask: Tensor) -> Tensor",
             "The elements where the mask is True, as a vector.")
      .kernel([](const Tensor& x, const Tensor& mask) { return masked_select(x, mask); })
      .grad("input", "mask",
            [](Gradient& g) {
              const Expr mask = g["mask"];
              const Dims sizes = broadcast_shapes(g.sizes("input"), mask.sizes());
              return op<"masked_scatter">(g.zeros({sizes, g.out().dtype()}),
                                          op<"expand">(mask, sizes), g.out());
            })
      .dynamic_shape("the size is the number of True elements")
      .samples({{"t(2, 3), b(2, 3)"}, {"t(2, 3), b(3)"}})
      .reference(
          "np.broadcast_to(input, np.broadcast_shapes(input.shape, mask.shape))"
          "[np.broadcast_to(mask, np.broadcast_shapes(input.shape, mask.shape))]");
  both_forms(r, "masked_scatter", "(input: Tensor, mask: Tensor, source: Tensor) -> Tensor",
             {"Elements where the mask is True become the elements of source, in order.",
              {{"t(2, 3), b(2, 3), t(6)"}},
              "",
              &check_source},
             [](const Tensor& x, const Tensor& mask, const Tensor& source) {
               masked_scatter(x, mask, source);
             })
      .shape([](const TensorMeta& x, const TensorMeta& mask, const TensorMeta& source) {
        check_masked_scatter(x.dtype, mask.dtype, source.dtype);
        check_expands(mask.sizes, x.sizes);
        return like(x);
      })
      .plain_forms(
          [](const Tensor& x, const Tensor& mask, const Tensor& source) {
            const Dims common = broadcast_shapes(x.sizes(), mask.sizes());
            const Tensor out = broadcast_to(x, common).clone().contiguous();
            masked_scatter(out, mask, source);
            return out;
          },
          [](const TensorMeta& x, const TensorMeta& mask, const TensorMeta& source) {
            check_masked_scatter(x.dtype, mask.dtype, source.dtype);
            return TensorMeta{broadcast_shapes(x.sizes, mask.sizes), x.dtype};
          })
      .grad("input", "mask", [](Gradient& g) { return op<"where">(g["mask"], 0.0, g.out()); })
      .grad("source", "mask", [](Gradient& g) {
        const Expr taken = op<"masked_select">(g.out(), op<"expand">(g["mask"], g.out().sizes()));
        const TensorMeta source = g.meta("source");
        const int64_t used = taken.meta().numel();
        return op<"reshape">(op<"slice_backward">(taken, Dims{source.numel()}, int64_t{0},
                                                  int64_t{0}, used, int64_t{1}),
                             source.sizes);
      });
  scatter_op(r, "nonzero(input: Tensor) -> Tensor",
             "The coordinates of the elements that are not zero, a row each.")
      .not_differentiable(kIndices)
      .kernel([](const Tensor& x) { return nonzero(x); })
      .dynamic_shape("the size is the number of elements that are not zero")
      .samples({{"b(2, 3)"}, {"t(4, dtype=int64)"}})
      .reference("np.argwhere(input)");
  scatter_op(r, "nonzero.as_tuple(input: Tensor, *, as_tuple: bool) -> Tensor[]",
             "The coordinates of the elements that are not zero, a tensor a dimension.")
      .not_differentiable(kIndices)
      .boxed_kernel([](const OpDef&, std::span<const IValue> args) -> IValue {
        if (!args[1].to_bool()) return nonzero(args[0].to_tensor());
        return nonzero_columns(args[0].to_tensor());
      })
      .dynamic_shape("the size is the number of elements that are not zero")
      .samples({{"b(2, 3), as_tuple=True"}})
      .reference("np.nonzero(input)");
  scatter_op(r, "where.nonzero(condition: Tensor) -> Tensor[]", "nonzero with as_tuple.")
      .where(kFunctionOnly)
      .not_differentiable(kIndices)
      .kernel([](const Tensor& x) { return nonzero_columns(x); })
      .dynamic_shape("the size is the number of elements that are not zero")
      .samples({{"b(2, 3)"}})
      .reference("np.nonzero(condition)");
  scatter_op(r, "argwhere(input: Tensor) -> Tensor", "nonzero.")
      .not_differentiable(kIndices)
      .kernel([](const Tensor& x) { return nonzero(x); })
      .dynamic_shape("the size is the number of elements that are not zero")
      .samples({{"b(2, 3)"}})
      .reference("np.argwhere(input)");
}

// ── in sorted sequences ──

bool from_right(bool right, const std::optional<std::string>& side) {
  if (!side) return right;
  PRONG_CHECK(*side == "left" || *side == "right", kRuntime,
              "torch.searchsorted(): side can only be 'left' or 'right' but got ", *side);
  PRONG_CHECK(!right || *side == "right", kRuntime,
              "torch.searchsorted(): side and right can't be set to opposites, got side of left "
              "while right was True");
  return *side == "right";
}

void check_search(const TensorMeta& sorted, const TensorMeta& x) {
  bool fits = sorted.rank() == 1 || (sorted.rank() == x.rank() && sorted.rank() > 0);
  for (size_t i = 0; fits && sorted.rank() > 1 && i + 1 < sorted.sizes.size(); ++i)
    fits = sorted.sizes[i] == x.sizes[i];
  PRONG_CHECK(fits, kRuntime,
              "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 "
              "dimensions of "
              "boundaries tensor and input value tensor must match, but we got boundaries tensor ",
              sorted.sizes, " and input value tensor ", x.sizes);
}

Tensor search_sorted(const Tensor& sorted, const Tensor& x, bool int32, bool right) {
  check_search(sorted.meta(), x.meta());
  const DType common = promote(sorted.dtype(), x.is_wrapped_number() ? sorted.dtype() : x.dtype());
  const DType type =
      x.is_wrapped_number() && is_floating(x.dtype()) && !is_floating(common) ? x.dtype() : common;
  const Tensor edges = sorted.to(type).contiguous(), values = x.to(type).contiguous();
  Tensor out = Tensor::empty(x.sizes(), DType::kInt64);
  const int64_t length = sorted.sizes().back(),
                row = sorted.rank() > 1 ? x.sizes().back() : std::max<int64_t>(x.numel(), 1);
  visit(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *e = edges.data<T>(), *v = values.data<T>();
    int64_t* to = out.data<int64_t>();
    // A NaN comes after every number.
    const auto less = [](T a, T b) { return a < b || (b != b && a == a); };
    parallel_for(0, x.numel(), 1024, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T *first = e + i / row * length, *last = first + length;
        to[i] = (right ? std::upper_bound(first, last, v[i], less)
                       : std::lower_bound(first, last, v[i], less)) -
                first;
      }
    });
  });
  return int32 ? out.to(DType::kInt32) : out;
}

void check_boundaries(int64_t rank) {
  PRONG_CHECK(rank == 1, kRuntime, "boundaries tensor must be 1 dimension, but got dim(", rank,
              ")");
}

TensorMeta search_meta(const TensorMeta& x, bool int32) {
  return {x.sizes, int32 ? DType::kInt32 : DType::kInt64};
}

void register_searches(Registry& r) {
  scatter_op(r,
             "searchsorted(sorted_sequence: Tensor, input: Tensor, *, out_int32: bool = False, "
             "right: bool = False, side: str? = None, sorter: Tensor? = None) -> Tensor",
             "Where each element would be put into the sorted last dimension.")
      .where(kFunctionOnly)
      .not_differentiable(kIndices)
      .kernel([](const Tensor& sorted, const Tensor& x, bool int32, bool right,
                 const std::optional<std::string>& side, const std::optional<Tensor>& sorter) {
        return search_sorted(sorter ? gather(sorted, -1, *sorter) : sorted, x, int32,
                             from_right(right, side));
      })
      .shape([](const TensorMeta& sorted, const TensorMeta& x, bool int32, bool,
                const std::optional<std::string>&, const std::optional<TensorMeta>&) {
        check_search(sorted, x);
        return search_meta(x, int32);
      })
      .samples({{"torch.tensor([1., 3., 5.]), t(2, 3)"},
                {"torch.tensor([1, 3, 5]), torch.tensor([3, 0, 9]), right=True"}})
      .reference("np.searchsorted(sorted_sequence, input, 'right' if right else 'left')");
  scatter_op(r,
             "bucketize(input: Tensor, boundaries: Tensor, *, out_int32: bool = False, right: bool "
             "= False) -> Tensor",
             "Where each element would be put into the sorted boundaries.")
      .where(kFunctionOnly)
      .not_differentiable(kIndices)
      .kernel([](const Tensor& x, const Tensor& boundaries, bool int32, bool right) {
        check_boundaries(boundaries.rank());
        return search_sorted(boundaries, x, int32, right);
      })
      .shape([](const TensorMeta& x, const TensorMeta& boundaries, bool int32, bool) {
        check_boundaries(boundaries.rank());
        return search_meta(x, int32);
      })
      .samples({{"t(2, 3), torch.tensor([-1., 0., 1.])"}})
      .reference("np.searchsorted(boundaries, input, 'right' if right else 'left')");
}

}  // namespace

void register_scatter(Registry& r) {
  register_scatters(r);
  register_masks(r);
  register_searches(r);
}

}  // namespace prong
