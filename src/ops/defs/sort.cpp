// Orders and what follows from them: sort, argsort, topk, kthvalue, median, mode, quantile.
#include <cmath>

#include "ops/data_check.h"
#include "ops/gradient.h"
#include "ops/kernels/rows.h"
#include "ops/kernels/sorting.h"

namespace prong {
namespace {

constexpr const char* kVmapLater = "vmap is not built yet";

Cost sort_cost(const OpDef&, std::span<const IValue> args) {
  const TensorMeta x = meta_from(args[0]);
  const auto n = static_cast<double>(x.numel());
  return {20 * n, 4 * n * static_cast<double>(size_of(x.dtype))};
}

OpDef& add_op(Registry& r, std::string_view schema) {
  return r.add(schema).family(Family::kReduce).cost(sort_cost).no_vmap(kVmapLater);
}

// Calls f(row, at, stride) for every row along dim, in parallel: its elements are x[at + i *
// stride].
template <class T, class F>
void for_rows(const ReduceView& v, F&& f) {
  const int64_t grain = std::max<int64_t>(1, 2048 / std::max<int64_t>(1, v.length));
  parallel_for(0, v.outer * v.inner, grain, [&](int64_t begin, int64_t end) {
    std::vector<Placed<T>> row, spare;
    for (int64_t k = begin; k < end; ++k) {
      const int64_t at = k / v.inner * v.length * v.inner + k % v.inner;
      f(k, at, row, spare);
    }
  });
}

// ── whole orders ──

std::tuple<Tensor, Tensor> sorted(const Tensor& x, int64_t dim, bool descending) {
  const ReduceView v = view_along(x, wrap_dim(dim, x.rank()), x.dtype());
  const Tensor values = Tensor::empty(x.sizes(), x.dtype()),
               places = Tensor::empty(x.sizes(), DType::kInt64);
  visit(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* in = static_cast<const T*>(v.data.raw());
    T* out = static_cast<T*>(values.raw());
    auto* where = places.data<int64_t>();
    for_rows<T>(v, [&](int64_t, int64_t at, auto& row, auto& spare) {
      place_row(in + at, v.length, v.inner, descending, row);
      sort_placed<T>(row, spare);
      for (int64_t i = 0; i < v.length; ++i) {
        const int64_t place = place_of<T>(row[static_cast<size_t>(i)]);
        out[at + i * v.inner] = in[at + place * v.inner];
        where[at + i * v.inner] = place;
      }
    });
  });
  return {values, places};
}

void register_orders(Registry& r) {
  add_op(r,
         "sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> "
         "(Tensor values, Tensor indices)")
      .doc(
          "The elements along dim in order, and where each was. Always stable; NaN counts as the "
          "largest.")
      .shape([](const TensorMeta& x, int64_t dim, bool, bool) {
        wrap_dim(dim, x.rank());
        return std::tuple(TensorMeta{x.sizes, x.dtype}, TensorMeta{x.sizes, DType::kInt64});
      })
      .kernel([](const Tensor& x, int64_t dim, bool descending, bool) {
        return sorted(x, dim, descending);
      })
      .grad("input", "result.1",
            [](Gradient& g) { return picked_gradient(g, g.integer("dim"), true); })
      .samples(
          {{"t(3, 4)"}, {"t(3, 4), dim=0"}, {"t(3, 4), 1, True"}, {"t(0, 4)"}, {"strided(4, 6)"}})
      .bounds(&bounds_of_places);
  add_op(r,
         "argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> "
         "Tensor")
      .doc("The places of the elements along dim in the order of their values.")
      .not_differentiable("indices")
      .bounds(&bounds_of_places)
      .shape([](const TensorMeta& x, int64_t dim, bool, bool) {
        wrap_dim(dim, x.rank());
        return TensorMeta{x.sizes, DType::kInt64};
      })
      .kernel([](const Tensor& x, int64_t dim, bool descending, bool) {
        return std::get<1>(sorted(x, dim, descending));
      })
      .samples({{"t(3, 4)"}, {"t(3, 4), dim=0, descending=True"}})
      .reference("np.argsort(-input if descending else input, axis=dim, kind='stable')");
  add_op(r, "msort(input: Tensor) -> Tensor")
      .doc("The elements along the first dim in order.")
      .shape([](const TensorMeta& x) { return x; })
      .kernel([](const Tensor& x) {
        return call("sort", x, int64_t{0}, false, false).items()[0].to_tensor();
      })
      .composite()
      .samples({{"t(3, 4)"}})
      .reference("np.sort(input, axis=0)");
}

// ── parts of an order ──

// Sizes with dim set to k (or gone, when k < 0).
Dims with_dim(DimsView sizes, int64_t dim, int64_t k) {
  Dims out(sizes);
  if (out.empty()) return out;
  if (k < 0)
    out.erase(static_cast<size_t>(dim));
  else
    out[static_cast<size_t>(dim)] = k;
  return out;
}

std::tuple<TensorMeta, TensorMeta> topk_meta(const TensorMeta& x, int64_t k, int64_t dim) {
  PRONG_CHECK(x.dtype != DType::kBool, kRuntime, "topk does not support bool dtypes on CPU");
  const int64_t d = wrap_dim(dim, x.rank());
  const int64_t n = x.rank() ? x.sizes[static_cast<size_t>(d)] : 1;
  PRONG_CHECK(k >= 0 && k <= n, kRuntime, "selected index k out of range");
  const Dims sizes = with_dim(x.sizes, d, k);
  return {TensorMeta{sizes, x.dtype}, TensorMeta{sizes, DType::kInt64}};
}

std::tuple<Tensor, Tensor> top(const Tensor& x, int64_t k, int64_t dim, bool largest,
                               bool in_order) {
  const auto [meta, index_meta] = topk_meta(x.meta(), k, dim);
  const ReduceView v = view_along(x, wrap_dim(dim, x.rank()), x.dtype());
  const Tensor values = Tensor::empty(meta.sizes, x.dtype()),
               places = Tensor::empty(meta.sizes, DType::kInt64);
  if (values.numel() == 0) return {values, places};
  visit(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* in = static_cast<const T*>(v.data.raw());
    T* out = static_cast<T*>(values.raw());
    auto* where = places.data<int64_t>();
    for_rows<T>(v, [&](int64_t r, int64_t at, auto& row, auto&) {
      place_row(in + at, v.length, v.inner, largest, row);
      if (k * 16 <= v.length) {  // few of many: a heap of the best so far is hardly ever changed
        std::partial_sort(row.begin(), row.begin() + k, row.end());
      } else {
        if (k < v.length) std::nth_element(row.begin(), row.begin() + k, row.end());
        if (in_order) std::sort(row.begin(), row.begin() + k);
      }
      const int64_t to = r / v.inner * k * v.inner + r % v.inner;
      for (int64_t i = 0; i < k; ++i) {
        const int64_t place = place_of<T>(row[static_cast<size_t>(i)]);
        out[to + i * v.inner] = in[at + place * v.inner];
        where[to + i * v.inner] = place;
      }
    });
  });
  return {values, places};
}

// Picks one element a row: choose(row of keys and places, unordered, length) gives its position in
// the row.
template <class F>
std::tuple<Tensor, Tensor> pick(const Tensor& x, int64_t dim, bool keepdim, F&& choose) {
  const int64_t d = wrap_dim(dim, x.rank());
  const ReduceView v = view_along(x, d, x.dtype());
  const Dims sizes = with_dim(x.sizes(), d, keepdim ? 1 : -1);
  const Tensor values = Tensor::empty(sizes, x.dtype()),
               places = Tensor::empty(sizes, DType::kInt64);
  visit(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* in = static_cast<const T*>(v.data.raw());
    for_rows<T>(v, [&](int64_t r, int64_t at, auto& row, auto&) {
      place_row(in + at, v.length, v.inner, false, row);
      const int64_t place = choose(tag, row);
      static_cast<T*>(values.raw())[r] = in[at + place * v.inner];
      places.data<int64_t>()[r] = place;
    });
  });
  return {values, places};
}

void refuse_bool(const char* kernel, const TensorMeta& x) {
  PRONG_CHECK(x.dtype != DType::kBool, kNotImplemented, '"', kernel,
              "\" not implemented for 'Bool'");
}
void check_has_elements(const char* op, const TensorMeta& x, int64_t dim) {
  PRONG_CHECK(x.rank() == 0 || x.sizes[static_cast<size_t>(dim)] > 0, kIndex, op,
              "(): Expected reduction dim ", dim, " to have non-zero size.");
}

void check_kth(const TensorMeta& x, int64_t k, int64_t dim) {
  const int64_t d = wrap_dim(dim, x.rank());
  const int64_t n = x.rank() ? x.sizes[static_cast<size_t>(d)] : 1;
  PRONG_CHECK(k >= 1 && k <= n, kRuntime,
              "kthvalue(): selected number k out of range for dimension ", d);
  refuse_bool("kthvalue_cpu", x);
}

std::tuple<Tensor, Tensor> kth(const Tensor& x, int64_t k, int64_t dim, bool keepdim) {
  check_kth(x.meta(), k, dim);
  const int64_t d = wrap_dim(dim, x.rank());
  return pick(x, d, keepdim, [&](auto tag, auto& row) {
    std::nth_element(row.begin(), row.begin() + (k - 1), row.end());
    return place_of<typename decltype(tag)::type>(row[static_cast<size_t>(k - 1)]);
  });
}

void check_median(const TensorMeta& x, int64_t dim) {
  check_has_elements("median", x, wrap_dim(dim, x.rank()));
  refuse_bool("median_out", x);
}

// The lower of the two in the middle; a NaN if there is one.
std::tuple<Tensor, Tensor> median_along(const Tensor& x, int64_t dim, bool keepdim,
                                        bool skips_nan) {
  const int64_t d = wrap_dim(dim, x.rank());
  check_median(x.meta(), d);
  return pick(x, d, keepdim, [&](auto tag, auto& row) {
    using T = typename decltype(tag)::type;
    const auto is_nan = [](const Placed<T>& p) {
      return is_floating(DTypeOf<T>::value) && key_of<T>(p) == SortKey<T>(~SortKey<T>(0));
    };
    auto last = row.end();
    if (skips_nan) {
      last = std::partition(row.begin(), row.end(), [&](const Placed<T>& p) { return !is_nan(p); });
      if (last == row.begin()) last = row.end();
    } else if (const auto nan = std::find_if(row.begin(), row.end(), is_nan); nan != row.end()) {
      return place_of<T>(*nan);
    }
    const auto middle = row.begin() + (last - row.begin() - 1) / 2;
    std::nth_element(row.begin(), middle, last);
    return place_of<T>(*middle);
  });
}

Tensor flat(const Tensor& x) { return call_tensor("reshape", x, Dims{-1}); }

Tensor median_of(const Tensor& x, bool skips_nan) {
  refuse_bool("median_cpu", x.meta());
  if (x.numel() == 0) {
    const Tensor out = Tensor::empty({}, x.dtype());
    if (is_floating(x.dtype()))
      fill(out, std::nan(""));
    else
      fill(out, int64_t{0});
    return out;
  }
  return std::get<0>(median_along(flat(x), 0, false, skips_nan));
}

// The most frequent value, the smallest of them at a tie, and its last place.
std::tuple<Tensor, Tensor> mode_along(const Tensor& x, int64_t dim, bool keepdim) {
  const int64_t d = wrap_dim(dim, x.rank());
  check_has_elements("mode", x.meta(), d);
  return pick(x, d, keepdim, [&](auto tag, auto& row) {
    using T = typename decltype(tag)::type;
    std::sort(row.begin(), row.end());
    size_t best = 0, best_count = 0;
    for (size_t i = 0; i < row.size();) {
      size_t j = i;
      while (j < row.size() && key_of<T>(row[j]) == key_of<T>(row[i])) ++j;
      if (j - i > best_count) best_count = j - i, best = j - 1;
      i = j;
    }
    return place_of<T>(row[best]);
  });
}

std::tuple<TensorMeta, TensorMeta> picked_meta(const TensorMeta& x, int64_t dim, bool keepdim) {
  const Dims sizes = with_dim(x.sizes, wrap_dim(dim, x.rank()), keepdim ? 1 : -1);
  return {TensorMeta{sizes, x.dtype}, TensorMeta{sizes, DType::kInt64}};
}

// All elements that are the median share its gradient.
Expr grad_of_whole_median(Gradient& g) {
  const Expr x = g["input"], y = g["result"];
  const Expr mask =
      op<"logical_or">(op<"eq">(x, y), op<"logical_and">(op<"isnan">(x), op<"isnan">(y)));
  return op<"where">(mask, g.out() / op<"sum">(mask), 0.0);
}

void register_parts(Registry& r) {
  add_op(r,
         "topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> "
         "(Tensor values, Tensor indices)")
      .doc("The k largest (or smallest) elements along dim, and where they are.")
      .shape([](const TensorMeta& x, int64_t k, int64_t dim, bool, bool) {
        return topk_meta(x, k, dim);
      })
      .kernel([](const Tensor& x, int64_t k, int64_t dim, bool largest, bool in_order) {
        return top(x, k, dim, largest, in_order);
      })
      .grad("input", "result.1",
            [](Gradient& g) { return picked_gradient(g, g.integer("dim"), true); })
      .samples({{"t(3, 4), 2"}, {"t(3, 4), 2, 0, False"}, {"t(6), 6"}, {"t(3, 4), 0"}})
      .bounds(&bounds_of_places);
  add_op(r,
         "kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> (Tensor values, "
         "Tensor indices)")
      .doc("The k-th smallest element along dim, and where it is.")
      .shape([](const TensorMeta& x, int64_t k, int64_t dim, bool keepdim) {
        check_kth(x, k, dim);
        return picked_meta(x, dim, keepdim);
      })
      .kernel([](const Tensor& x, int64_t k, int64_t dim, bool keepdim) {
        return kth(x, k, dim, keepdim);
      })
      .grad("input", "result.1",
            [](Gradient& g) { return picked_gradient(g, g.integer("dim"), g.flag("keepdim")); })
      .samples({{"t(3, 4), 2"}, {"t(3, 4), 1, 0, True"}})
      .bounds(&bounds_of_places);
  for (const bool skips_nan : {false, true}) {
    const char* name = skips_nan ? "nanmedian" : "median";
    OpDef& whole = add_op(r, cat(name, "(input: Tensor) -> Tensor"));
    OpDef& along = add_op(r, cat(name,
                                 ".dim(input: Tensor, dim: int, keepdim: bool = False) -> (Tensor "
                                 "values, Tensor indices)"));
    whole
        .doc(skips_nan ? "The median of the numbers that are not NaN."
                       : "The lower median; NaN if there is one.")
        .shape([](const TensorMeta& x) {
          refuse_bool("median_cpu", x);
          return TensorMeta{{}, x.dtype};
        })
        .grad("input", "input, result", [](Gradient& g) { return grad_of_whole_median(g); })
        .samples({{"t(3, 5)"}, {"t(4)"}});
    along.doc("The lower median along dim, and where it is.")
        .shape([](const TensorMeta& x, int64_t dim, bool keepdim) {
          check_median(x, dim);
          return picked_meta(x, dim, keepdim);
        })
        .grad("input", "result.1",
              [](Gradient& g) { return picked_gradient(g, g.integer("dim"), g.flag("keepdim")); })
        .samples({{"t(3, 5), 1"}, {"t(4, 3), 0, True"}});
    if (skips_nan) {
      whole.kernel([](const Tensor& x) { return median_of(x, true); });
      along.kernel([](const Tensor& x, int64_t dim, bool keepdim) {
        return median_along(x, dim, keepdim, true);
      });
    } else {
      whole.kernel([](const Tensor& x) { return median_of(x, false); });
      along.kernel([](const Tensor& x, int64_t dim, bool keepdim) {
        return median_along(x, dim, keepdim, false);
      });
    }
  }
  add_op(r,
         "mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> (Tensor values, Tensor "
         "indices)")
      .doc(
          "The most frequent value along dim (the smallest of them at a tie), and where it last "
          "is.")
      .shape([](const TensorMeta& x, int64_t dim, bool keepdim) {
        check_has_elements("mode", x, wrap_dim(dim, x.rank()));
        return picked_meta(x, dim, keepdim);
      })
      .kernel(
          [](const Tensor& x, int64_t dim, bool keepdim) { return mode_along(x, dim, keepdim); })
      .grad("input", "result.1",
            [](Gradient& g) { return picked_gradient(g, g.integer("dim"), g.flag("keepdim")); })
      .samples({{"t(3, 8, dtype=int64)"}, {"t(6, 3, dtype=int64), 0, True"}});
}

// ── quantiles ──

void check_quantile(const TensorMeta& x, const TensorMeta& q, std::optional<int64_t> dim,
                    const std::string& how) {
  PRONG_CHECK(x.dtype == DType::kFloat32 || x.dtype == DType::kFloat64, kRuntime,
              "quantile() input tensor must be either float or double dtype");
  PRONG_CHECK(q.rank() <= 1, kRuntime, "quantile() q must be a scalar or 1D tensor");
  PRONG_CHECK(how == "linear" || how == "lower" || how == "higher" || how == "midpoint" ||
                  how == "nearest",
              kRuntime,
              "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, "
              "but got ",
              how);
  const int64_t n =
      dim && x.rank() ? x.sizes[static_cast<size_t>(wrap_dim(*dim, x.rank()))] : x.numel();
  PRONG_CHECK(n > 0, kRuntime, "quantile() input tensor must be non-empty");
}
// A share is known beforehand where it is a number.
void check_share(DataCheck& c) {
  const IValue& q = c["q"];
  if (q.is_tensor() && !q.tensor_impl()->is_wrapped_number) return c.may_fail();
  const double share = q.is_tensor() ? q.to_tensor().item_double() : q.to_double();
  if (!(share >= 0 && share <= 1)) c.may_fail();
}

Tensor quantile_of(const Tensor& x, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                   const std::string& how) {
  check_quantile(x.meta(), q.meta(), dim, how);
  const Tensor in = dim && x.rank() ? x : flat(x);
  const int64_t d = dim ? wrap_dim(*dim, x.rank()) : 0, n = in.size(d);
  const Tensor levels = q.to(DType::kFloat64).contiguous();
  for (int64_t j = 0; j < levels.numel(); ++j)
    PRONG_CHECK(levels.data<double>()[j] >= 0 && levels.data<double>()[j] <= 1, kRuntime,
                "quantile() q values must be in the range [0, 1]");
  // Between the elements of an order: ops, so that gradients find their way.
  const Tensor values =
      call_tensor("to", call("sort", in, d, false, false).items()[0].to_tensor(), DType::kFloat64);
  const Tensor rank =
      call_tensor("mul", call_tensor("reshape", call_tensor("to", q, DType::kFloat64), Dims{-1}),
                  static_cast<double>(n - 1));
  const Tensor low = call_tensor("floor", rank), high = call_tensor("ceil", rank);
  Tensor weight = call_tensor("sub", rank, low);
  if (how == "lower" || how == "higher")
    weight = call_tensor("full_like", low, how == "lower" ? 0.0 : 1.0);
  else if (how == "midpoint")
    weight = call_tensor("full_like", low, 0.5);
  else if (how == "nearest")
    weight = call_tensor("sub", call_tensor("round", rank), low);
  Dims along(in.sizes().size(), 1);
  along[static_cast<size_t>(d)] = levels.numel();
  weight = call_tensor("reshape", weight, along);
  const auto at = [&](const Tensor& places) {
    return call_tensor("index_select", values, d, call_tensor("to", places, DType::kInt64));
  };
  const Tensor below = at(low), above = at(high);
  const Tensor is_exact = call_tensor("reshape", call_tensor("eq", low, high),
                                      along);  // no arithmetic there: it may be infinite
  Tensor out = call_tensor(
      "add", below,
      call_tensor("mul", weight,
                  call_tensor("where", is_exact, 0.0, call_tensor("sub", above, below))));
  const Tensor last = call_tensor("narrow", values, d, n - 1, int64_t{1});
  out = call_tensor("where", call_tensor("isnan", last), last, out);
  out = call_tensor("movedim", out, Dims{d}, Dims{0});
  Dims sizes = dim       ? with_dim(x.sizes(), d, keepdim ? 1 : -1)
               : keepdim ? Dims(static_cast<size_t>(x.rank()), 1)
                         : Dims();
  if (q.rank() == 1) sizes.insert(0, levels.numel());
  return call_tensor("to", call_tensor("reshape", out, sizes), x.dtype());
}

void register_quantile(Registry& r) {
  add_op(r,
         "quantile(input: Tensor, q: Tensor, dim: int? = None, keepdim: bool = False, *, "
         "interpolation: str = \"linear\") -> Tensor")
      .doc("The value that a share q of the elements lies below, along dim or of all.")
      .shape([](const TensorMeta& x, const TensorMeta& q, std::optional<int64_t> dim, bool keepdim,
                const std::string& how) {
        check_quantile(x, q, dim, how);
        Dims sizes = dim       ? with_dim(x.sizes, wrap_dim(*dim, x.rank()), keepdim ? 1 : -1)
                     : keepdim ? Dims(static_cast<size_t>(x.rank()), 1)
                               : Dims();
        if (q.rank() == 1) sizes.insert(0, q.numel());
        return TensorMeta{sizes, x.dtype};
      })
      .kernel([](const Tensor& x, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                 const std::string& how) { return quantile_of(x, q, dim, keepdim, how); })
      .composite()
      .checks(&check_share)
      .samples({{"t(3, 5), 0.3"},
                {"t(3, 5), 0.5, dim=1, keepdim=True"},
                {"t(3, 5), torch.tensor([0.3, 0.55]), 1"}})
      .reference("np.quantile(input, q, axis=dim, keepdims=keepdim)");
}

}  // namespace

void register_sort(Registry& r) {
  register_orders(r);
  register_parts(r);
  register_quantile(r);
}

}  // namespace prong
