// Distinct values, counts and equality of whole tensors: unique, bincount, histc, equal, allclose,
// isclose, isin.
#include <cmath>
#include <cstring>
#include <limits>

#include "ops/data_check.h"
#include "ops/kernels/pointwise.h"
#include "ops/kernels/sorting.h"

namespace prong {
namespace {

constexpr const char* kNoSlope = "the result is not a continuous number";
constexpr const char* kVmapLater = "vmap is not built yet";

Cost linear_cost(const OpDef&, std::span<const IValue> args) {
  const TensorMeta x = meta_from(args[0]);
  const auto n = static_cast<double>(x.numel());
  return {4 * n, 2 * n * static_cast<double>(size_of(x.dtype))};
}

OpDef& add_op(Registry& r, std::string_view schema) {
  return r.add(schema)
      .cost(linear_cost)
      .not_differentiable(kNoSlope)
      .no_grad(kNoSlope)
      .no_vmap(kVmapLater);
}

// ── distinct values ──

struct Distinct {
  Tensor values, inverse, counts;
};

// Of all elements: in order, or (consecutive) each run of equal ones.
Distinct distinct_values(const Tensor& given, bool is_consecutive) {
  const Tensor x = given.contiguous();
  const int64_t n = x.numel();
  Distinct d;
  d.inverse = Tensor::empty(x.sizes(), DType::kInt64);
  std::vector<int64_t> firsts, counts;
  auto* inverse = d.inverse.data<int64_t>();
  visit(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* in = static_cast<const T*>(x.raw());
    std::vector<Placed<T>> row, spare;
    place_row(in, n, 1, false, row);
    if (!is_consecutive) sort_placed<T>(row, spare);
    for (int64_t i = 0; i < n; ++i) {
      const Placed<T>& p = row[static_cast<size_t>(i)];
      // A NaN is not equal to another.
      const T value = in[place_of<T>(p)];
      const bool is_new =
          i == 0 || key_of<T>(p) != key_of<T>(row[static_cast<size_t>(i - 1)]) || value != value;
      if (is_new) firsts.push_back(place_of<T>(p)), counts.push_back(0);
      ++counts.back();
      inverse[place_of<T>(p)] = static_cast<int64_t>(counts.size()) - 1;
    }
    d.values = Tensor::empty({{static_cast<int64_t>(firsts.size())}}, x.dtype());
    for (size_t i = 0; i < firsts.size(); ++i) static_cast<T*>(d.values.raw())[i] = in[firsts[i]];
  });
  d.counts = Tensor::empty({{static_cast<int64_t>(counts.size())}}, DType::kInt64);
  std::copy(counts.begin(), counts.end(), d.counts.data<int64_t>());
  return d;
}

// Of the slices along dim, compared element by element.
Distinct distinct_slices(const Tensor& given, int64_t dim, bool is_consecutive) {
  const int64_t d = wrap_dim(dim, given.rank());
  const Tensor x = call_tensor("transpose", given, int64_t{0}, d).contiguous();
  const int64_t n = x.sizes()[0], width = n ? x.numel() / n : 0;
  std::vector<int64_t> order(static_cast<size_t>(n)), firsts, counts;
  for (int64_t i = 0; i < n; ++i) order[static_cast<size_t>(i)] = i;
  Distinct out;
  out.inverse = Tensor::empty({{n}}, DType::kInt64);
  visit(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* in = static_cast<const T*>(x.raw());
    const auto compare = [&](int64_t a, int64_t b) {
      for (int64_t i = 0; i < width; ++i) {
        const auto p = sort_key(in[a * width + i]), q = sort_key(in[b * width + i]);
        if (p != q) return p < q ? -1 : 1;
      }
      return 0;
    };
    if (!is_consecutive)
      std::stable_sort(order.begin(), order.end(),
                       [&](int64_t a, int64_t b) { return compare(a, b) < 0; });
    for (size_t i = 0; i < order.size(); ++i) {
      if (i == 0 || compare(order[i - 1], order[i]) != 0)
        firsts.push_back(order[i]), counts.push_back(0);
      ++counts.back();
      out.inverse.data<int64_t>()[order[i]] = static_cast<int64_t>(counts.size()) - 1;
    }
    Dims sizes = x.sizes();
    sizes[0] = static_cast<int64_t>(firsts.size());
    const Tensor rows = Tensor::empty(sizes, x.dtype());
    for (size_t i = 0; i < firsts.size(); ++i)
      std::copy(in + firsts[i] * width, in + (firsts[i] + 1) * width,
                static_cast<T*>(rows.raw()) + static_cast<int64_t>(i) * width);
    out.values = call_tensor("transpose", rows, int64_t{0}, d).contiguous();
  });
  out.counts = Tensor::empty({{static_cast<int64_t>(counts.size())}}, DType::kInt64);
  std::copy(counts.begin(), counts.end(), out.counts.data<int64_t>());
  return out;
}

// What was asked for: the values alone, or a tuple.
IValue asked(const Distinct& d, bool inverse, bool counts) {
  if (!inverse && !counts) return IValue(d.values);
  std::vector<IValue> items = {IValue(d.values)};
  if (inverse) items.push_back(IValue(d.inverse));
  if (counts) items.push_back(IValue(d.counts));
  return IValue::tuple(std::move(items));
}

void register_unique(Registry& r) {
  add_op(r,
         "unique(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: "
         "bool = False, dim: int? = None) -> Any")
      .doc(
          "The distinct values in order, or the distinct slices along dim; with their places and "
          "counts where asked.")
      .dynamic_shape("as many as there are distinct values")
      .kernel([](const Tensor& x, bool, bool inverse, bool counts, std::optional<int64_t> dim) {
        return asked(dim ? distinct_slices(x, *dim, false) : distinct_values(x, false), inverse,
                     counts);
      })
      .samples({{"t(3, 8, dtype=int64)"},
                {"t(9, dtype=int64), return_inverse=True, return_counts=True"},
                {"t(0)"},
                {"t(6, 2, dtype=int64), dim=0"}});
  add_op(r,
         "unique_consecutive(input: Tensor, return_inverse: bool = False, return_counts: bool = "
         "False, dim: int? = None) -> Any")
      .doc("The first of each run of equal values (or slices along dim).")
      .dynamic_shape("as many as there are runs")
      .kernel([](const Tensor& x, bool inverse, bool counts, std::optional<int64_t> dim) {
        return asked(dim ? distinct_slices(x, *dim, true) : distinct_values(x, true), inverse,
                     counts);
      })
      .samples({{"t(9, dtype=int64)"}, {"t(9, dtype=int64), True, True"}});
}

// ── counts ──

void check_bins(DType dtype, int64_t bins) {
  PRONG_CHECK(is_floating(dtype), kNotImplemented, "\"histogram_cpu\" not implemented for '",
              scalar_type_name(dtype), "'");
  PRONG_CHECK(bins > 0, kRuntime, "torch.histogram(): bins must be > 0, but got ", bins);
}

void register_counts(Registry& r) {
  add_op(r, "bincount(input: Tensor, weights: Tensor? = None, minlength: int = 0) -> Tensor")
      .doc("How often each non-negative integer occurs, or the sum of its weights.")
      .dynamic_shape("one more than the largest element")
      .checks([](DataCheck& c) {
        c.within(c[0], {0, std::numeric_limits<int64_t>::max()});
      })
      .kernel([](const Tensor& x, std::optional<Tensor> weights, int64_t minlength) {
        PRONG_CHECK(x.rank() == 1 && !is_floating(x.dtype()), kRuntime,
                    "bincount only supports 1-d non-negative integral inputs.");
        PRONG_CHECK(minlength >= 0, kRuntime, "minlength should be >= 0");
        PRONG_CHECK(!weights || weights->sizes() == x.sizes(), kRuntime,
                    "weights should be 1-d and have the same length as input");
        const Tensor values = x.to(DType::kInt64).contiguous();
        const auto* v = values.data<int64_t>();
        int64_t size = minlength;
        for (int64_t i = 0; i < x.numel(); ++i) {
          PRONG_CHECK(v[i] >= 0, kRuntime,
                      "bincount only supports 1-d non-negative integral inputs.");
          size = std::max(size, v[i] + 1);
        }
        if (!weights) {
          const Tensor out = Tensor::empty({{size}}, DType::kInt64);
          fill(out, int64_t{0});
          for (int64_t i = 0; i < x.numel(); ++i) ++out.data<int64_t>()[v[i]];
          return out;
        }
        const Tensor w = weights->to(DType::kFloat64).contiguous(),
                     out = Tensor::empty({{size}}, DType::kFloat64);
        fill(out, 0.0);
        for (int64_t i = 0; i < x.numel(); ++i) out.data<double>()[v[i]] += w.data<double>()[i];
        return weights->dtype() == DType::kFloat32 ? out.to(DType::kFloat32) : out;
      })
      .samples({{"t(9, dtype=int64, low=0, high=5)"},
                {"t(9, dtype=int64, low=0, high=5), minlength=8"},
                {"t(0, dtype=int64)"}})
      .reference("np.bincount(input, weights, minlength)");
  add_op(r, "histc(input: Tensor, bins: int = 100, min: Scalar = 0, max: Scalar = 0) -> Tensor")
      .doc(
          "How many elements fall into each of `bins` equal parts of [min, max]; of the whole "
          "range where both are equal.")
      .checks(&any_data_may_fail)
      .shape([](const TensorMeta& x, int64_t bins, Number, Number) {
        check_bins(x.dtype, bins);
        return TensorMeta{{bins}, x.dtype};
      })
      .kernel([](const Tensor& x, int64_t bins, Number min, Number max) {
        check_bins(x.dtype(), bins);
        const Tensor values = x.to(DType::kFloat64).contiguous();
        const auto* v = values.data<double>();
        double low = min.as_double(), high = max.as_double();
        if (low == high && x.numel() > 0) {
          low = *std::min_element(v, v + x.numel());
          high = *std::max_element(v, v + x.numel());
        }
        if (low == high) low -= 1, high += 1;
        PRONG_CHECK(std::isfinite(low) && std::isfinite(high), kRuntime,
                    "torch.histogram: range of [", low, ", ", high, "] is not finite");
        PRONG_CHECK(low <= high, kRuntime,
                    "torch.histogram: min should not exceed max, but got min ", low, " max ", high);
        std::vector<double> counts(static_cast<size_t>(bins));
        for (int64_t i = 0; i < x.numel(); ++i) {
          if (!(v[i] >= low && v[i] <= high)) continue;
          const auto bin =
              static_cast<int64_t>((v[i] - low) / (high - low) * static_cast<double>(bins));
          ++counts[static_cast<size_t>(std::min(bin, bins - 1))];
        }
        const Tensor out = Tensor::empty({{bins}}, DType::kFloat64);
        std::copy(counts.begin(), counts.end(), out.data<double>());
        return out.to(x.dtype());
      })
      .samples({{"t(20), 5, -1, 1"}, {"t(20), bins=4"}})
      .reference(
          "np.histogram(input, bins, None if min == max else (min, max))[0].astype(input.dtype)");
}

// ── equality ──

TensorMeta close_shape(const TensorMeta& x, const TensorMeta& y, double rtol, double atol) {
  PRONG_CHECK(x.dtype == y.dtype, kRuntime, scalar_type_name(x.dtype), " did not match ",
              scalar_type_name(y.dtype));
  PRONG_CHECK(rtol >= 0, kRuntime, "rtol must be greater than or equal to zero, but got ", rtol);
  PRONG_CHECK(atol >= 0, kRuntime, "atol must be greater than or equal to zero, but got ", atol);
  return {broadcast_shapes(x.sizes, y.sizes), DType::kBool};
}

Tensor close(const Tensor& x, const Tensor& y, double rtol, double atol, bool equal_nan) {
  close_shape(x.meta(), y.meta(), rtol, atol);
  Tensor same = call_tensor("eq", x, y);
  if (!is_floating(x.dtype()) && rtol == 0 && atol == 0) return same;
  if (equal_nan && is_floating(x.dtype()))
    same =
        call_tensor("logical_or", same,
                    call_tensor("logical_and", call_tensor("isnan", x), call_tensor("isnan", y)));
  const DType wide = is_floating(x.dtype()) ? x.dtype() : DType::kFloat64;
  const Tensor a = x.to(wide), b = y.to(wide);
  const Tensor allowed = call_tensor("add", call_tensor("mul", call_tensor("abs", b), rtol), atol);
  const Tensor error = call_tensor("abs", call_tensor("sub", a, b));
  const Tensor near =
      call_tensor("logical_and", call_tensor("isfinite", error), call_tensor("le", error, allowed));
  return call_tensor("logical_or", same, near);
}

bool equal_tensors(const Tensor& x, const Tensor& y) {
  if (!(x.sizes() == y.sizes())) return false;
  PRONG_CHECK(x.dtype() == y.dtype(), kRuntime, "Expected object of data type ", x.dtype(),
              " but got data type ", y.dtype(), " for argument #2 'other' in call to equal");
  if (x.numel() == 0) return true;
  return call_tensor("all", call_tensor("eq", x, y)).item_int() != 0;
}

void register_equality(Registry& r) {
  add_op(r, "equal(input: Tensor, other: Tensor) -> bool")
      .doc("True if both have the same shape and the same elements.")
      .family(Family::kHost)
      .dynamic_shape("a bool read from the data")
      .kernel([](const Tensor& x, const Tensor& y) { return equal_tensors(x, y); })
      .samples({{"t(3, 4), t(3, 4)"}, {"t(3, 4), t(4)"}, {"t(0), t(0)"}})
      .reference("np.array_equal(input, other)");
  add_op(r,
         "isclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, "
         "equal_nan: bool = False) -> Tensor")
      .takes_complex()
      .doc("True where |input - other| <= atol + rtol * |other|.")
      .shape([](const TensorMeta& x, const TensorMeta& y, double rtol, double atol, bool) {
        return close_shape(x, y, rtol, atol);
      })
      .kernel([](const Tensor& x, const Tensor& y, double rtol, double atol, bool equal_nan) {
        return close(x, y, rtol, atol, equal_nan);
      })
      .samples({{"t(3, 4), t(3, 4)"}, {"t(3, 4), t(4), 0.5, 0.5"}})
      .reference("np.isclose(input, other, rtol, atol, equal_nan)");
  add_op(r,
         "allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, "
         "equal_nan: bool = False) -> bool")
      .doc("True if isclose everywhere.")
      .family(Family::kHost)
      .dynamic_shape("a bool read from the data")
      .kernel([](const Tensor& x, const Tensor& y, double rtol, double atol, bool equal_nan) {
        return call_tensor("all", close(x, y, rtol, atol, equal_nan)).item_int() != 0;
      })
      .samples({{"t(3, 4), t(3, 4)"}, {"t(3, 4), t(3, 4), 1.0, 10.0"}})
      .reference("np.allclose(input, other, rtol, atol, equal_nan)");
  add_op(r,
         "isin(elements: Tensor, test_elements: Tensor, *, assume_unique: bool = False, invert: "
         "bool = False) -> Tensor")
      .doc("True for elements that are among test_elements.")
      .where({.method = false})
      .shape([](const TensorMeta& x, const TensorMeta&, bool, bool invert) {
        (void)invert;
        return TensorMeta{x.sizes, DType::kBool};
      })
      .kernel([](const Tensor& x, const Tensor& among, bool, bool invert) {
        ResultType type;
        type.add(x);
        type.add(among);
        const Tensor a = x.to(type.get()).contiguous(), b = among.to(type.get()).contiguous();
        const Tensor out = Tensor::empty(x.sizes(), DType::kBool);
        visit(type.get(), [&](auto tag) {
          using T = typename decltype(tag)::type;
          const T *p = static_cast<const T*>(a.raw()), *q = static_cast<const T*>(b.raw());
          std::vector<SortKey<T>> keys;
          for (int64_t i = 0; i < b.numel(); ++i)
            if (q[i] == q[i]) keys.push_back(sort_key(q[i]));
          std::sort(keys.begin(), keys.end());
          for (int64_t i = 0; i < a.numel(); ++i)
            out.data<bool>()[i] =
                std::binary_search(keys.begin(), keys.end(), sort_key(p[i])) != invert;
        });
        return out;
      })
      .samples({{"t(3, 8, dtype=int64), t(4, dtype=int64)"},
                {"t(6, dtype=int64), t(3, dtype=int64), invert=True"}})
      .reference("np.isin(elements, test_elements, invert=invert)");
}

}  // namespace

void register_count(Registry& r) {
  register_unique(r);
  register_counts(r);
  register_equality(r);
}

}  // namespace prong
