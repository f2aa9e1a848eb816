// Sums, products, means, logic over dims, counts, variances and norms.
#include <cmath>
#include <limits>

#include "ops/gradient.h"
#include "ops/kernels/folds.h"
#include "ops/kernels/reduce.h"
#include "ops/scalar_math.h"
#include "ops/shape_of.h"

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

std::vector<Sample> dim_samples() {
  return {{"t(3, 4)"},
          {"t(3, 4), dim=1"},
          {"t(2, 3, 4), dim=(0, 2), keepdim=True"},
          {"strided(4, 6), dim=0"},
          {"t()"}};
}

// Folds the reduced dims and gives the results in `dtype`; Fold is made for the type that the work
// is done in.
template <class MakeFold>
Tensor fold_dims(const Tensor& x, const ReducedDims& dims, bool keepdim, DType compute, DType dtype,
                 MakeFold make) {
  const ReduceView v = reduce_view(x, dims, compute);
  return visit_reduced(compute, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto fold = make(tag);
    using Acc = typename decltype(fold)::Acc;
    const Tensor out = Tensor::empty(reduced_sizes(x.sizes(), dims, keepdim), DTypeOf<Acc>::value);
    fold_into<T>(v, fold, out.template data<Acc>());
    return out.to(dtype);
  });
}

TensorMeta reduced_meta(const TensorMeta& x, const IValue& dim, bool keepdim, DType dtype) {
  return {reduced_sizes(x.sizes, reduced_dims(dim, x.rank()), keepdim), dtype};
}

// ── what gradients are made of ──

// The gradient of a result, or the result, against every element that went into it.
Expr spread_out(Gradient& g, const Expr& x) {
  return unreduced(x, g.value("dim"), g.flag("keepdim"), g.sizes("input"));
}
Expr zero_where(const Expr& mask, const Expr& x) { return op<"where">(mask, 0.0, x); }

// How many elements went into each result.
double count_of(Gradient& g, const IValue& dim) {
  const Dims sizes = g.sizes("input");
  const ReducedDims dims = reduced_dims(dim, static_cast<int64_t>(sizes.size()));
  int64_t n = 1;
  for (size_t i = 0; i < sizes.size(); ++i)
    if (dims.is_reduced[i]) n *= sizes[i];
  return static_cast<double>(n);
}

// ── sums and products ──

template <class T>
struct SumOfNumbers : SumFold<T> {
  PRONG_INLINE T lift(T x) const { return x == x ? x : T(0); }
};
template <class T>
struct Product {
  using Acc = T;
  PRONG_INLINE T identity() const { return 1; }
  PRONG_INLINE T lift(T x) const { return x; }
  PRONG_INLINE T combine(T a, T b) const { return a * b; }
};
template <class T>
struct CountNonzero {
  using Acc = int64_t;
  PRONG_INLINE int64_t identity() const { return 0; }
  PRONG_INLINE int64_t lift(T x) const { return x != T(0); }
  PRONG_INLINE int64_t combine(int64_t a, int64_t b) const { return a + b; }
};

// Sums of integers and bools are int64, unless a dtype is asked for.
DType sum_dtype(DType x, std::optional<DType> asked) {
  return asked ? *asked : is_inexact(x) ? x : DType::kInt64;
}

DType mean_dtype(DType x, std::optional<DType> asked) {
  PRONG_CHECK(!asked || is_inexact(*asked), kRuntime,
              "mean(): could not infer output dtype. Optional dtype must be either a floating "
              "point or complex dtype. Got: ",
              asked ? scalar_type_name(*asked) : "");
  PRONG_CHECK(asked || is_inexact(x), kRuntime,
              "mean(): could not infer output dtype. Input dtype must be either a floating point "
              "or complex dtype. Got: ",
              scalar_type_name(x));
  return asked ? *asked : x;
}

// f of the real and of the imaginary parts, together again as `dtype`.
template <class F>
Tensor by_parts(const Tensor& given, DType dtype, F f) {
  const Tensor x = given.to(dtype);
  const Tensor real = f(part_of(x, 0)), imaginary = f(part_of(x, 1));
  const Tensor out = Tensor::empty(real.sizes(), dtype);
  copy_into(part_of(out, 0), real);
  copy_into(part_of(out, 1), imaginary);
  return out;
}

Tensor complex_product(const Tensor& x, const ReducedDims& dims, bool keepdim, DType dtype) {
  const ReduceView v = reduce_view(x, dims, dtype);
  const Tensor out = Tensor::empty(reduced_sizes(x.sizes(), dims, keepdim), dtype);
  visit_complex(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = v.data.template data<T>();
    T* to = out.template data<T>();
    for (int64_t o = 0; o < v.outer; ++o)
      for (int64_t i = 0; i < v.inner; ++i) {
        T all = 1;
        for (int64_t k = 0; k < v.length; ++k) all *= from[(o * v.length + k) * v.inner + i];
        to[o * v.inner + i] = all;
      }
  });
  return out;
}

// In the dtype asked for, so that a sum in float64 adds float64 numbers.
template <template <class> class Fold>
Tensor sum_like(const Tensor& x, const IValue& dim, bool keepdim, DType dtype) {
  if (is_complex(dtype)) {
    if constexpr (std::is_same_v<Fold<float>, Product<float>>)
      return complex_product(x.to(dtype), reduced_dims(dim, x.rank()), keepdim, dtype);
    else
      return by_parts(x, dtype,
                      [&](const Tensor& p) { return sum_like<Fold>(p, dim, keepdim, p.dtype()); });
  }
  const Tensor in = is_floating(dtype) ? x.to(dtype) : x;
  return fold_dims(in, reduced_dims(dim, x.rank()), keepdim, reduce_dtype(dtype), dtype,
                   [](auto tag) { return Fold<typename decltype(tag)::type>(); });
}

Tensor mean_of(const Tensor& x, const IValue& dim, bool keepdim, DType dtype) {
  if (is_complex(dtype))
    return by_parts(x, dtype, [&](const Tensor& p) { return mean_of(p, dim, keepdim, p.dtype()); });
  const DType compute = reduce_dtype(dtype);
  const ReducedDims dims = reduced_dims(dim, x.rank());
  const Tensor sum = fold_dims(x.to(dtype), dims, keepdim, compute, compute,
                               [](auto tag) { return SumFold<typename decltype(tag)::type>(); });
  int64_t count = 1;
  for (size_t i = 0; i < x.sizes().size(); ++i)
    if (dims.is_reduced[i]) count *= x.sizes()[i];
  return call_tensor("true_divide", sum, count).to(dtype);
}

// The product of all others, for every element: of those before it and those after it, so that
// zeros do no harm.
Expr product_of_others(const Expr& x, int64_t dim) {
  const Dims sizes = x.sizes();
  const int64_t d = wrap_dim(dim, static_cast<int64_t>(sizes.size())),
                n = sizes[static_cast<size_t>(d)];
  const auto before = [&](const Expr& from) {
    const Expr ones = op<"ones_like">(op<"narrow">(from, d, int64_t{0}, int64_t{1}));
    const Expr rest = op<"narrow">(from, d, int64_t{0}, n - 1);
    return op<"cumprod">(
        Expr(x.builder(),
             x.builder()("cat", {IValue::list({ones.value(), rest.value()}), IValue(d)})),
        d);
  };
  return before(x) * op<"flip">(before(op<"flip">(x, Dims{d})), Dims{d});
}

void register_sums(Registry& r) {
  add_op(r,
         "sum(input: Tensor, dim: int[1]? = None, keepdim: bool = False, *, dtype: dtype? = None) "
         "-> Tensor")
      .takes_complex()
      .doc(
          "The sum over dim, or over all dims. Added up pairwise, in an order that doesn't depend "
          "on threads.")
      .shape([](const TensorMeta& x, const IValue& dim, bool keepdim, std::optional<DType> dtype) {
        return reduced_meta(x, dim, keepdim, sum_dtype(x.dtype, dtype));
      })
      .kernel([](const Tensor& x, const IValue& dim, bool keepdim, std::optional<DType> dtype) {
        return sum_like<SumFold>(x, dim, keepdim, sum_dtype(x.dtype(), dtype));
      })
      .grad("input", "", [](Gradient& g) { return spread_out(g, g.out()); })
      .samples(dim_samples())
      .reference("np.sum(input, axis=dim, keepdims=keepdim)");
  add_op(r,
         "nansum(input: Tensor, dim: int[1]? = None, keepdim: bool = False, *, dtype: dtype? = "
         "None) -> Tensor")
      .takes_complex()
      .doc("The sum, with NaN counted as 0.")
      .shape([](const TensorMeta& x, const IValue& dim, bool keepdim, std::optional<DType> dtype) {
        return reduced_meta(x, dim, keepdim, sum_dtype(x.dtype, dtype));
      })
      .kernel([](const Tensor& x, const IValue& dim, bool keepdim, std::optional<DType> dtype) {
        return sum_like<SumOfNumbers>(x, dim, keepdim, sum_dtype(x.dtype(), dtype));
      })
      .grad("input", "input",
            [](Gradient& g) { return zero_where(op<"isnan">(g["input"]), spread_out(g, g.out())); })
      .samples(dim_samples())
      .reference("np.nansum(input, axis=dim, keepdims=keepdim)");
  add_op(r,
         "mean(input: Tensor, dim: int[1]? = None, keepdim: bool = False, *, dtype: dtype? = None) "
         "-> Tensor")
      .takes_complex()
      .doc("The mean over dim, or over all dims.")
      .shape([](const TensorMeta& x, const IValue& dim, bool keepdim, std::optional<DType> dtype) {
        return reduced_meta(x, dim, keepdim, mean_dtype(x.dtype, dtype));
      })
      .kernel([](const Tensor& x, const IValue& dim, bool keepdim, std::optional<DType> dtype) {
        return mean_of(x, dim, keepdim, mean_dtype(x.dtype(), dtype));
      })
      .grad("input", "",
            [](Gradient& g) { return spread_out(g, g.out() / count_of(g, g.value("dim"))); })
      .samples(dim_samples())
      .reference("np.mean(input, axis=dim, keepdims=keepdim)");
  add_op(r, "prod(input: Tensor, *, dtype: dtype? = None) -> Tensor")
      .takes_complex()
      .doc("The product of all elements.")
      .shape([](const TensorMeta& x, std::optional<DType> dtype) {
        return TensorMeta{{}, sum_dtype(x.dtype, dtype)};
      })
      .kernel([](const Tensor& x, std::optional<DType> dtype) {
        return sum_like<Product>(x, IValue(), false, sum_dtype(x.dtype(), dtype));
      })
      .grad("input", "input",
            [](Gradient& g) {
              const Expr x = op<"to">(op<"reshape">(g["input"], Dims{-1}), g.out().dtype());
              if (x.meta().numel() == 0) return g.zeros(g.meta("input"));
              return op<"reshape">(g.out() * product_of_others(conj(x), 0), g.sizes("input"));
            })
      .samples({{"t(3, 4)"}, {"t()"}, {"t(0)"}})
      .reference("np.prod(input)");
  add_op(
      r,
      "prod.dim(input: Tensor, dim: int, keepdim: bool = False, *, dtype: dtype? = None) -> Tensor")
      .takes_complex()
      .doc("The product over dim.")
      .shape([](const TensorMeta& x, int64_t dim, bool keepdim, std::optional<DType> dtype) {
        return reduced_meta(x, dim, keepdim, sum_dtype(x.dtype, dtype));
      })
      .kernel([](const Tensor& x, int64_t dim, bool keepdim, std::optional<DType> dtype) {
        return sum_like<Product>(x, dim, keepdim, sum_dtype(x.dtype(), dtype));
      })
      .grad("input", "input",
            [](Gradient& g) {
              const Expr x = op<"to">(g["input"], g.out().dtype());
              if (x.rank() == 0) return g.out();
              if (x.meta().numel() == 0) return g.zeros(x.meta());
              return spread_out(g, g.out()) * product_of_others(conj(x), g.integer("dim"));
            })
      .samples({{"t(3, 4), 1"}, {"t(3, 4), 0, True"}})
      .reference("np.prod(input, axis=dim, keepdims=keepdim)");
  add_op(r, "count_nonzero(input: Tensor, dim: int[1]? = None) -> Tensor")
      .takes_complex()
      .doc("How many elements are not 0.")
      .not_differentiable("a count")
      .shape([](const TensorMeta& x, const IValue& dim) {
        return reduced_meta(x, dim, false, DType::kInt64);
      })
      .kernel([](const Tensor& given, const IValue& dim) {
        const Tensor x = is_complex(given.dtype()) ? given.to(DType::kBool) : given;
        return fold_dims(x, reduced_dims(dim, x.rank()), false, reduce_dtype(x.dtype()),
                         DType::kInt64,
                         [](auto tag) { return CountNonzero<typename decltype(tag)::type>(); });
      })
      .samples({{"t(3, 4)"}, {"t(3, 4), dim=1"}})
      .reference("np.count_nonzero(input, axis=dim)");
}

// ── logic ──

template <class T, bool kAny>
struct Logic {
  using Acc = uint8_t;
  PRONG_INLINE uint8_t identity() const { return !kAny; }
  PRONG_INLINE uint8_t lift(T x) const { return x != T(0); }
  PRONG_INLINE uint8_t combine(uint8_t a, uint8_t b) const {
    return static_cast<uint8_t>(kAny ? a | b : a & b);
  }
};

template <bool kAny>
Tensor logic_of(const Tensor& given, const ReducedDims& dims, bool keepdim) {
  const Tensor x = is_complex(given.dtype()) ? given.to(DType::kBool) : given;
  // uint8 stays uint8, as in PyTorch; everything else answers with bools.
  const DType result = x.dtype() == DType::kUInt8 ? DType::kUInt8 : DType::kBool;
  const ReduceView v = reduce_view(x, dims,
                                   x.dtype() == DType::kBool || x.dtype() == DType::kUInt8
                                       ? x.dtype()
                                       : reduce_dtype(x.dtype()));
  const Tensor out = Tensor::empty(reduced_sizes(x.sizes(), dims, keepdim), result);
  auto* to = static_cast<uint8_t*>(out.raw());
  if (v.data.item_bytes() == 1) {
    fold_into<uint8_t>(v, Logic<uint8_t, kAny>(), to);
  } else {
    visit_reduced(v.data.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      fold_into<T>(v, Logic<T, kAny>(), to);
    });
  }
  return out;
}

DType logic_dtype(DType x) { return x == DType::kUInt8 ? x : DType::kBool; }

template <bool kAny>
void register_logic(Registry& r, const char* name, const char* doc) {
  add_op(r, cat(name, "(input: Tensor) -> Tensor"))
      .takes_complex()
      .doc(cat(doc, " element is not 0."))
      .not_differentiable("an answer of yes or no")
      .shape([](const TensorMeta& x) {
        return TensorMeta{{}, logic_dtype(x.dtype)};
      })
      .kernel([](const Tensor& x) {
        return logic_of<kAny>(x, reduced_dims(IValue(), x.rank()), false);
      })
      .samples({{"b(3, 4)"}, {"t(0)"}})
      .reference(cat("np.", name, "(input)"));
  add_op(r, cat(name, ".dim(input: Tensor, dim: int[1]?, keepdim: bool = False) -> Tensor"))
      .takes_complex()
      .doc(cat(doc, " element along dim is not 0."))
      .not_differentiable("an answer of yes or no")
      .shape([](const TensorMeta& x, const IValue& dim, bool keepdim) {
        return reduced_meta(x, dim, keepdim, logic_dtype(x.dtype));
      })
      .kernel([](const Tensor& x, const IValue& dim, bool keepdim) {
        return logic_of<kAny>(x, reduced_dims(dim, x.rank()), keepdim);
      })
      .samples({{"b(3, 4), 1"}, {"b(3, 4), dim=0, keepdim=True"}})
      .reference(cat("np.", name, "(input, axis=dim, keepdims=keepdim)"));
}

// ── variance ──

template <class T>
struct Deviation {
  using Acc = T;
  PRONG_INLINE T identity() const { return 0; }
  PRONG_INLINE T lift(T x) const { return x * x; }
  PRONG_INLINE T combine(T a, T b) const { return a + b; }
};

struct Spread {
  Tensor mean, variance;
};

void check_spread(DType dtype) {
  PRONG_CHECK(is_inexact(dtype), kRuntime,
              "std and var only support floating point and complex dtypes");
}

// Two passes: the mean, then the squares of what is left, less what rounding of the mean left in.
Spread spread_of(const Tensor& x, const IValue& dim, double correction, bool keepdim,
                 bool is_root) {
  if (is_complex(x.dtype())) {
    const Spread real = spread_of(part_of(x, 0), dim, correction, keepdim, false);
    const Spread imaginary = spread_of(part_of(x, 1), dim, correction, keepdim, false);
    const Tensor variance = call_tensor("add", real.variance, imaginary.variance);
    return {call_tensor("complex", real.mean, imaginary.mean),
            is_root ? call_tensor("sqrt", variance) : variance};
  }
  check_spread(x.dtype());
  const DType compute = reduce_dtype(x.dtype());
  const ReducedDims dims = reduced_dims(dim, x.rank());
  const Tensor in = x.to(compute);
  const Tensor mean = mean_of(in, dim, true, compute);
  const Tensor rest = call_tensor("sub", in, mean);
  const auto fold = [&](auto make) {
    return fold_dims(rest, dims, keepdim, compute, compute, make);
  };
  const Tensor squares = fold([](auto tag) { return Deviation<typename decltype(tag)::type>(); });
  const Tensor left = fold([](auto tag) { return SumFold<typename decltype(tag)::type>(); });
  int64_t count = 1;
  for (size_t i = 0; i < x.sizes().size(); ++i)
    if (dims.is_reduced[i]) count *= x.sizes()[i];
  const auto n = static_cast<double>(count);
  const Tensor lost = call_tensor("true_divide", call_tensor("square", left), n);
  Tensor variance =
      call_tensor("true_divide", call_tensor("sub", squares, lost), std::max(0.0, n - correction));
  if (is_root) variance = call_tensor("sqrt", variance);
  const Dims sizes = reduced_sizes(x.sizes(), dims, keepdim);
  return {call_tensor("reshape", mean, sizes).to(x.dtype()), variance.to(x.dtype())};
}

double correction_of(const std::optional<Number>& given) {
  return given ? given->as_double() : 1.0;
}

// The gradient of a variance: 2 (x - mean) / (n - correction) of what comes back to it.
Expr grad_of_variance(Gradient& g, const Expr& dy, const IValue& dim, bool keepdim,
                      double correction) {
  const Expr x = g["input"];
  return unreduced(dy * (2 / (count_of(g, dim) - correction)), dim, keepdim, x.sizes()) *
         (x - op<"mean">(x, dim, true));
}
// Of a deviation, from its value; a deviation of 0 has no slope.
Expr grad_of_root(const Expr& dy, const Expr& root) {
  return zero_where(op<"eq">(root, 0.0), dy / (root * 2.0));
}
template <bool kIsRoot>
Expr grad_of_spread(Gradient& g, const IValue& dim, bool keepdim, double correction) {
  return grad_of_variance(g, kIsRoot ? grad_of_root(g.out(), g["result"]) : g.out(), dim, keepdim,
                          correction);
}
double given_correction(Gradient& g) {
  const IValue given = g.value("correction");
  return given.is_none() ? 1.0 : given.to_double();
}

template <bool kIsRoot>
void register_spread(Registry& r, const std::string& name, const std::string& word) {
  constexpr const char* kUses = kIsRoot ? "input, result" : "input";
  add_op(r, cat(name,
                "(input: Tensor, dim: int[1]? = None, *, correction: Scalar? = None, keepdim: bool "
                "= False) -> Tensor"))
      .takes_complex()
      .doc(cat("The ", word,
               " over dim; correction is what is taken from the count, 1 when not given."))
      .shape([](const TensorMeta& x, const IValue& dim, std::optional<Number>, bool keepdim) {
        check_spread(x.dtype);
        return reduced_meta(x, dim, keepdim, real_dtype(x.dtype));
      })
      .kernel(
          [](const Tensor& x, const IValue& dim, std::optional<Number> correction, bool keepdim) {
            return spread_of(x, dim, correction_of(correction), keepdim, kIsRoot).variance;
          })
      .grad("input", kUses,
            [](Gradient& g) {
              return grad_of_spread<kIsRoot>(g, g.value("dim"), g.flag("keepdim"),
                                             given_correction(g));
            })
      .samples(
          {{"t(3, 4)"}, {"t(3, 4), dim=1"}, {"t(3, 4), dim=(0, 1), correction=0, keepdim=True"}})
      .reference(
          cat("np.", name,
              "(input, axis=dim, ddof=1 if correction is None else correction, keepdims=keepdim)"));
  add_op(r, cat(name, ".unbiased(input: Tensor, unbiased: bool) -> Tensor"))
      .takes_complex()
      .doc(cat("The ", word, " of all elements; unbiased divides by the count less 1."))
      .shape([](const TensorMeta& x, bool) {
        check_spread(x.dtype);
        return TensorMeta{{}, real_dtype(x.dtype)};
      })
      .kernel([](const Tensor& x, bool unbiased) {
        return spread_of(x, IValue(), unbiased, false, kIsRoot).variance;
      })
      .grad("input", kUses,
            [](Gradient& g) {
              return grad_of_spread<kIsRoot>(g, IValue(), false, g.flag("unbiased"));
            })
      .samples({{"t(3, 4), False"}})
      .reference(cat("np.", name, "(input, ddof=int(unbiased))"));
  add_op(r,
         cat(name,
             ".dim(input: Tensor, dim: int[1]?, unbiased: bool, keepdim: bool = False) -> Tensor"))
      .takes_complex()
      .doc(cat("The ", word, " over dim; unbiased divides by the count less 1."))
      .shape([](const TensorMeta& x, const IValue& dim, bool, bool keepdim) {
        check_spread(x.dtype);
        return reduced_meta(x, dim, keepdim, real_dtype(x.dtype));
      })
      .kernel([](const Tensor& x, const IValue& dim, bool unbiased, bool keepdim) {
        return spread_of(x, dim, unbiased, keepdim, kIsRoot).variance;
      })
      .grad("input", kUses,
            [](Gradient& g) {
              return grad_of_spread<kIsRoot>(g, g.value("dim"), g.flag("keepdim"),
                                             g.flag("unbiased"));
            })
      .samples({{"t(3, 4), 1, False"}, {"t(3, 4), 0, unbiased=True, keepdim=True"}})
      .reference(cat("np.", name, "(input, axis=dim, ddof=int(unbiased), keepdims=keepdim)"));
  add_op(r, cat(name,
                "_mean(input: Tensor, dim: int[1]? = None, *, correction: Scalar? = None, keepdim: "
                "bool = False) -> "
                "(Tensor, Tensor)"))
      .takes_complex()
      .doc(cat("The ", word, " and the mean over dim."))
      .where({.method = false})
      .shape([](const TensorMeta& x, const IValue& dim, std::optional<Number>, bool keepdim) {
        check_spread(x.dtype);
        return std::tuple(reduced_meta(x, dim, keepdim, real_dtype(x.dtype)),
                          reduced_meta(x, dim, keepdim, x.dtype));
      })
      .kernel(
          [](const Tensor& x, const IValue& dim, std::optional<Number> correction, bool keepdim) {
            const Spread s = spread_of(x, dim, correction_of(correction), keepdim, kIsRoot);
            return std::tuple(s.variance, s.mean);
          })
      .grad("input", kUses,
            [](Gradient& g) {
              const IValue dim = g.value("dim");
              const Expr of_mean = spread_out(g, g.out(1) / count_of(g, dim));
              if (!g.has_out(0)) return of_mean;
              const Expr of_spread =
                  grad_of_spread<kIsRoot>(g, dim, g.flag("keepdim"), given_correction(g));
              return g.has_out(1) ? of_spread + of_mean : of_spread;
            })
      .samples({{"t(3, 4)"}, {"t(3, 4), dim=1, keepdim=True"}})
      .reference(cat("(np.", name,
                     "(input, axis=dim, ddof=1, keepdims=keepdim), np.mean(input, axis=dim, "
                     "keepdims=keepdim))"));
}

// ── norms ──

template <class T>
struct SumOfSizes {
  using Acc = T;
  PRONG_INLINE T identity() const { return 0; }
  PRONG_INLINE T lift(T x) const { return math::abs(x); }
  PRONG_INLINE T combine(T a, T b) const { return a + b; }
};
template <class T>
struct SumOfPowers {
  using Acc = T;
  T p;
  PRONG_INLINE T identity() const { return 0; }
  PRONG_INLINE T lift(T x) const { return math::pow(math::abs(x), p); }
  PRONG_INLINE T combine(T a, T b) const { return a + b; }
};
template <class T>
struct SumOfNonzeros {
  using Acc = T;
  PRONG_INLINE T identity() const { return 0; }
  PRONG_INLINE T lift(T x) const { return x != 0 ? T(1) : T(0); }
  PRONG_INLINE T combine(T a, T b) const { return a + b; }
};
template <class T>
struct LargestSize : SumOfSizes<T> {
  PRONG_INLINE T combine(T a, T b) const { return math::larger(a, b); }
};
template <class T>
struct SmallestSize : SumOfSizes<T> {
  PRONG_INLINE T identity() const { return std::numeric_limits<T>::infinity(); }
  PRONG_INLINE T combine(T a, T b) const { return math::smaller(a, b); }
};

// Norms are for floating dtypes; the integer type is only there for the visitor.
template <template <class> class Fold>
Tensor norm_fold(const Tensor& x, const ReducedDims& dims, bool keepdim, Fold<float> f = {},
                 Fold<double> d = {}) {
  const DType compute = reduce_dtype(x.dtype());
  const ReduceView v = reduce_view(x, dims, compute);
  const Tensor out = Tensor::empty(reduced_sizes(x.sizes(), dims, keepdim), compute);
  if (compute == DType::kFloat64)
    fold_into<double>(v, d, out.data<double>());
  else
    fold_into<float>(v, f, out.data<float>());
  return out;
}

void check_norm(DType given, std::optional<DType> dtype) {
  PRONG_CHECK(is_inexact(given) || (dtype && is_floating(*dtype)), kRuntime,
              "linalg.vector_norm: Expected a floating point or complex tensor as input. Got ",
              scalar_type_name(given));
}

Tensor norm_of(const Tensor& given, double p, const IValue& dim, bool keepdim,
               std::optional<DType> dtype) {
  if (is_complex(given.dtype())) {
    const auto real = dtype ? std::optional(real_dtype(*dtype)) : dtype;
    return norm_of(call_tensor("abs", given), p, dim, keepdim, real);
  }
  check_norm(given.dtype(), dtype);
  const Tensor x = dtype ? given.to(*dtype) : given;
  const ReducedDims dims = reduced_dims(dim, x.rank());
  Tensor out;
  if (p == 2)
    out = call_tensor("sqrt", norm_fold<Deviation>(x, dims, keepdim));
  else if (p == 1)
    out = norm_fold<SumOfSizes>(x, dims, keepdim);
  else if (p == 0)
    out = norm_fold<SumOfNonzeros>(x, dims, keepdim);
  else if (p == std::numeric_limits<double>::infinity())
    out = norm_fold<LargestSize>(x, dims, keepdim);
  else if (p == -std::numeric_limits<double>::infinity())
    out = norm_fold<SmallestSize>(x, dims, keepdim);
  else
    out = call_tensor("pow", norm_fold<SumOfPowers>(x, dims, keepdim, {static_cast<float>(p)}, {p}),
                      1 / p);
  return out.to(x.dtype());
}

TensorMeta norm_meta(const TensorMeta& x, const IValue& dim, bool keepdim,
                     std::optional<DType> dtype) {
  check_norm(x.dtype, dtype);
  return reduced_meta(x, dim, keepdim, real_dtype(dtype ? *dtype : x.dtype));
}

// Where the norm is 0 its slope is taken as 0, as PyTorch does.
Expr grad_of_norm(Gradient& g, double p) {
  if (p == 0) return g.zeros(g.meta("input"));
  const Expr x = g["input"], norm = spread_out(g, g["result"]), dy = spread_out(g, g.out());
  if (p == 1) return op<"sign">(x) * dy;
  if (p == 2) return dy * zero_where(op<"eq">(norm, 0.0), x / norm);
  if (std::isinf(p)) {  // the elements that are the extreme share it
    const Expr at = op<"logical_or">(op<"eq">(op<"abs">(x), norm),
                                     op<"logical_and">(op<"isnan">(x), op<"isnan">(norm)));
    const Expr count = op<"sum">(at, g.value("dim"), true);
    return op<"where">(at, op<"sign">(x) * (dy / count), 0.0);
  }
  const Expr sized =
      p < 2 ? op<"sign">(x) * op<"pow">(op<"abs">(x), p - 1) : x * op<"pow">(op<"abs">(x), p - 2);
  if (p < 1) return zero_where(op<"eq">(x, 0.0), sized) * (dy * op<"pow">(norm, 1 - p));
  return sized * zero_where(op<"eq">(norm, 0.0), dy / op<"pow">(norm, p - 1));
}

void register_norms(Registry& r) {
  add_op(r,
         "norm(input: Tensor, p: Scalar? = 2, dim: int[1]? = None, keepdim: bool = False, *, "
         "dtype: dtype? = None) -> Tensor")
      .takes_complex()
      .doc(
          "The p-norm over dim: (sum |x|^p)^(1/p); the largest size for p = inf, the count of "
          "non-zeros for p = 0.")
      .shape([](const TensorMeta& x, std::optional<Number>, const IValue& dim, bool keepdim,
                std::optional<DType> dtype) { return norm_meta(x, dim, keepdim, dtype); })
      .kernel([](const Tensor& x, std::optional<Number> p, const IValue& dim, bool keepdim,
                 std::optional<DType> dtype) {
        return norm_of(x, p ? p->as_double() : 2.0, dim, keepdim, dtype);
      })
      .grad("input", "input, result",
            [](Gradient& g) {
              const IValue p = g.value("p");
              return grad_of_norm(g, p.is_none() ? 2.0 : p.to_double());
            })
      .samples({{"t(3, 4)"},
                {"t(3, 4), 1, dim=1"},
                {"t(3, 4), 3, dim=0, keepdim=True"},
                {"t(3, 4), inf"}})
      .reference(
          "np.linalg.norm(np.ravel(input) if dim is None else input, ord=p, axis=dim, "
          "keepdims=keepdim)");
  add_op(r,
         "norm.fro(input: Tensor, p: str, dim: int[1]? = None, keepdim: bool = False, *, dtype: "
         "dtype? = None) -> Tensor")
      .takes_complex()
      .doc("The Frobenius norm ('fro'): the 2-norm of the elements.")
      .shape([](const TensorMeta& x, const std::string&, const IValue& dim, bool keepdim,
                std::optional<DType> dtype) { return norm_meta(x, dim, keepdim, dtype); })
      .kernel([](const Tensor& x, const std::string& p, const IValue& dim, bool keepdim,
                 std::optional<DType> dtype) {
        PRONG_CHECK(p == "fro", kNotImplemented, "norm: prong has p='fro' and numbers, not p='", p,
                    "' yet");
        return norm_of(x, 2.0, dim, keepdim, dtype);
      })
      .grad("input", "input, result", [](Gradient& g) { return grad_of_norm(g, 2.0); })
      .samples({{"t(3, 4), 'fro'"}})
      .reference("np.sqrt(np.sum(input * input))");
  add_op(r, "dist(input: Tensor, other: Tensor, p: Scalar = 2) -> Tensor")
      .doc("The p-norm of input - other.")
      .shape([](const TensorMeta& x, const TensorMeta& y, Number) {
        const TensorMeta difference = shape_of("sub", x, y);
        check_norm(difference.dtype, {});
        return TensorMeta{{}, real_dtype(difference.dtype)};
      })
      .kernel([](const Tensor& x, const Tensor& y, Number p) {
        return call_tensor("norm", call_tensor("sub", x, y), p);
      })
      .composite()
      .samples({{"t(3, 4), t(3, 4)"}, {"t(3, 4), t(4), 1"}})
      .reference("np.linalg.norm(np.ravel(input - other), ord=p)");
}

}  // namespace

void register_reduce(Registry& r) {
  register_sums(r);
  register_logic<true>(r, "any", "True if any");
  register_logic<false>(r, "all", "True if every");
  register_spread<false>(r, "var", "variance");
  register_spread<true>(r, "std", "standard deviation");
  register_norms(r);
}

}  // namespace prong
