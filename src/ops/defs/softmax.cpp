// Probabilities and running sums along a dim: softmax, log_softmax, logsumexp, cumsum, cumprod,
// cummax, cummin.
#include "ops/gradient.h"
#include "ops/kernels/log_sum.h"
#include "ops/kernels/rows.h"
#include "ops/scalar_math.h"

namespace prong {
namespace {

constexpr const char* kVmapLater = "vmap is not built yet";

Cost exp_cost(const OpDef&, std::span<const IValue> args) {
  const TensorMeta x = meta_from(args[0]);
  const auto n = static_cast<double>(x.numel());
  return {20 * n, 2 * n * static_cast<double>(size_of(x.dtype))};
}

OpDef& add_op(Registry& r, std::string_view schema) {
  return r.add(schema).family(Family::kReduce).cost(exp_cost).no_vmap(kVmapLater);
}

TensorMeta softmax_meta(const char* kernel, const TensorMeta& x, int64_t dim,
                        std::optional<DType> dtype) {
  wrap_dim(dim, x.rank());
  const DType result = dtype ? *dtype : x.dtype;
  PRONG_CHECK(is_floating(result), kNotImplemented, '"', kernel, "\" not implemented for '",
              scalar_type_name(result), "'");
  return {x.sizes, result};
}

Expr sum_along(const Expr& x, int64_t dim) { return op<"sum">(x, Dims{dim}, true); }

void register_softmax_slopes(Registry& r) {
  const auto backward = [&](const char* schema, const char* doc) -> OpDef& {
    return add_op(r, schema)
        .doc(doc)
        .where({.function = false, .method = false})
        .shape([](const TensorMeta&, const TensorMeta& y, int64_t) {
          return TensorMeta{y.sizes, y.dtype};
        })
        .samples({{"t(3, 4), t(3, 4), 1"},
                  {"t(2, 3, 4), t(2, 3, 4), dim=1"},
                  {"t(), t(), 0"},
                  {"t(0, 4), t(0, 4), 1"}});
  };
  backward("softmax_backward(grad: Tensor, output: Tensor, dim: int) -> Tensor",
           "What softmax sends back: (grad - sum(grad * output)) * output.")
      .kernel([](const Tensor& g, const Tensor& y, int64_t dim) {
        return softmax_slope_along(g, y, wrap_dim(dim, y.rank()), false);
      })
      .grad("grad", "output",
            [](Gradient& g) {
              return op<"softmax_backward">(g.out(), g["output"], g.integer("dim"));
            })
      .grad("output", "grad, output", [](Gradient& g) {
        const Expr gg = g.out(), dy = g["grad"], y = g["output"];
        const int64_t dim = g.integer("dim");
        return gg * (dy - sum_along(dy * y, dim)) - dy * sum_along(gg * y, dim);
      });
  backward("log_softmax_backward(grad: Tensor, output: Tensor, dim: int) -> Tensor",
           "What log_softmax sends back: grad - exp(output) * sum(grad).")
      .kernel([](const Tensor& g, const Tensor& y, int64_t dim) {
        return softmax_slope_along(g, y, wrap_dim(dim, y.rank()), true);
      })
      .grad("grad", "output",
            [](Gradient& g) {
              return g.out() - sum_along(g.out() * op<"exp">(g["output"]), g.integer("dim"));
            })
      .grad("output", "grad, output", [](Gradient& g) {
        return -g.out() * op<"exp">(g["output"]) * sum_along(g["grad"], g.integer("dim"));
      });
}

void register_softmax_pair(Registry& r) {
  add_op(r, "softmax(input: Tensor, dim: int, dtype: dtype? = None) -> Tensor")
      .takes_complex()
      .doc("exp(input), scaled to sum 1 along dim.")
      .shape([](const TensorMeta& x, int64_t dim, std::optional<DType> dtype) {
        return softmax_meta("softmax_lastdim_kernel_impl", x, dim, dtype);
      })
      .kernel([](const Tensor& x, int64_t dim, std::optional<DType> dtype) {
        softmax_meta("softmax_lastdim_kernel_impl", x.meta(), dim, dtype);
        return softmax_along(dtype ? x.to(*dtype) : x, wrap_dim(dim, x.rank()), false);
      })
      .grad("input", "result",
            [](Gradient& g) {
              return op<"softmax_backward">(g.out(), g["result"], g.integer("dim"));
            })
      .samples({{"t(3, 4), 1"},
                {"t(3, 4), 0"},
                {"t(2, 3, 4), dim=1"},
                {"t(), 0"},
                {"t(0, 4), 1"},
                {"strided(4, 6), -1"}})
      .reference(
          "(lambda e: e / np.sum(e, axis=dim, keepdims=True))(np.exp(input - np.max(input, "
          "axis=dim, keepdims=True)))");
  add_op(r, "log_softmax(input: Tensor, dim: int, dtype: dtype? = None) -> Tensor")
      .takes_complex()
      .doc("log(softmax(input, dim)), without loss for small probabilities.")
      .shape([](const TensorMeta& x, int64_t dim, std::optional<DType> dtype) {
        return softmax_meta("log_softmax_lastdim_kernel_impl", x, dim, dtype);
      })
      .kernel([](const Tensor& x, int64_t dim, std::optional<DType> dtype) {
        softmax_meta("log_softmax_lastdim_kernel_impl", x.meta(), dim, dtype);
        return softmax_along(dtype ? x.to(*dtype) : x, wrap_dim(dim, x.rank()), true);
      })
      .grad("input", "result",
            [](Gradient& g) {
              return op<"log_softmax_backward">(g.out(), g["result"], g.integer("dim"));
            })
      .samples({{"t(3, 4), 1"}, {"t(3, 4), 0"}, {"t(2, 3, 4), dim=1"}, {"t(), 0"}})
      .reference(
          "(lambda d: d - np.log(np.sum(np.exp(d), axis=dim, keepdims=True)))(input - "
          "np.max(input, axis=dim, keepdims=True))");
  add_op(r, "logsumexp(input: Tensor, dim: int[1], keepdim: bool = False) -> Tensor")
      .takes_complex()
      .doc("log(sum(exp(input))) over dim, without overflow.")
      .shape([](const TensorMeta& x, const IValue& dim, bool keepdim) {
        return TensorMeta{reduced_sizes(x.sizes, reduced_dims(dim, x.rank()), keepdim),
                          is_inexact(x.dtype) ? x.dtype : default_dtype()};
      })
      .kernel([](const Tensor& given, const IValue& dim, bool keepdim) {
        const Tensor x = is_inexact(given.dtype()) ? given : given.to(default_dtype());
        const Dims sizes = reduced_sizes(x.sizes(), reduced_dims(dim, x.rank()), keepdim);
        if (x.numel() == 0)
          return call_tensor("log", call_tensor("sum", call_tensor("exp", x), dim, keepdim));
        // An infinite top would make inf - inf.
        const Tensor top =
            call_tensor("amax", is_complex(x.dtype()) ? call_tensor("real", x) : x, dim, true);
        const Tensor shift =
            call_tensor("where", call_tensor("isinf", top), 0.0, top).to(x.dtype());
        const Tensor sum =
            call_tensor("sum", call_tensor("exp", call_tensor("sub", x, shift)), dim, keepdim);
        return call_tensor("add", call_tensor("log", sum), call_tensor("reshape", shift, sizes));
      })
      .grad("input", "input, result",
            [](Gradient& g) {
              const Expr x = g["input"];
              const auto whole = [&](const Expr& y) {
                return unreduced(y, g.value("dim"), g.flag("keepdim"), x.sizes());
              };
              return whole(g.out()) * conj(op<"exp">(x - whole(g["result"])));
            })
      .samples({{"t(3, 4), 1"}, {"t(3, 4), (0, 1)"}, {"t(3, 4), 0, True"}})
      .reference("np.log(np.sum(np.exp(input), axis=tuple(dim), keepdims=keepdim))");
}

// ── running sums ──

Expr sum_from_end(const Expr& x, int64_t dim) {
  return op<"flip">(op<"cumsum">(op<"flip">(x, Dims{dim}), dim), Dims{dim});
}

// out[i] = in[0] + ... + in[i], in a wider type for floats, as PyTorch does.
template <class T, class Wide, class F>
void scan(const ReduceView& v, T* out, F combine) {
  const T* x = static_cast<const T*>(v.data.raw());
  const int64_t work = std::max<int64_t>(1, v.length);
  parallel_for(0, v.outer * v.inner, std::max<int64_t>(1, 16384 / work),
               [&](int64_t begin, int64_t end) {
                 for (int64_t k = begin; k < end; ++k) {
                   const int64_t at = k / v.inner * v.length * v.inner + k % v.inner;
                   Wide a{};
                   for (int64_t i = 0; i < v.length; ++i) {
                     const int64_t j = at + i * v.inner;
                     a = i == 0 ? static_cast<Wide>(x[j]) : combine(a, static_cast<Wide>(x[j]));
                     out[j] = static_cast<T>(a);
                   }
                 }
               });
}

template <class F>
Tensor scan_along(const Tensor& given, int64_t dim, DType dtype, F combine) {
  if (is_complex(dtype))
    return visit_complex(dtype, [&](auto tag) {
      using C = typename decltype(tag)::type;
      const ReduceView v = view_along(given, wrap_dim(dim, given.rank()), dtype);
      const Tensor out = Tensor::empty(given.sizes(), dtype);
      scan<C, C>(v, out.template data<C>(), combine);
      return out;
    });
  const Tensor x = is_floating(dtype) ? given.to(dtype) : given;
  const DType compute = reduce_dtype(dtype);
  const ReduceView v = view_along(x, wrap_dim(dim, x.rank()), compute);
  const Tensor out = Tensor::empty(x.sizes(), compute);
  if (compute == DType::kInt64)
    scan<int64_t, int64_t>(v, out.data<int64_t>(), combine);
  else if (compute == DType::kFloat64)
    scan<double, double>(v, out.data<double>(), combine);
  else
    scan<float, double>(v, out.data<float>(), combine);
  return out.to(dtype);
}

// Of running sums of exponentials, r: sum over i >= j of dy_i exp(x_j - r_i). As logarithms, so
// that no exponential overflows; positive and negative parts apart, as those have none.
Expr log_sum_slopes(const Expr& dy, const Expr& x, const Expr& result, int64_t dim) {
  const auto from_end = [&](const Expr& logs) {
    const Dims along{dim};
    const Expr sums = op<"logcumsumexp">(op<"flip">(logs - result, along), dim);
    return op<"exp">(op<"flip">(sums, along) + x);
  };
  if (is_complex(x.dtype())) return conj(from_end(op<"log">(conj(dy))));
  const double lowest = dy.dtype() == DType::kFloat16   ? -3e4
                        : dy.dtype() == DType::kFloat64 ? -8e307
                                                        : -1.6e38;
  const auto part = [&](const Expr& sized) {
    const Expr counts = op<"gt">(sized, 0);
    return from_end(op<"where">(counts, op<"log">(op<"where">(counts, sized, 1.0)), lowest));
  };
  return part(dy) - part(-dy);
}

DType scan_dtype(DType x, std::optional<DType> asked) {
  return asked ? *asked : is_inexact(x) ? x : DType::kInt64;
}

TensorMeta scan_meta(const TensorMeta& x, int64_t dim, std::optional<DType> dtype) {
  wrap_dim(dim, x.rank());
  return {x.sizes, scan_dtype(x.dtype, dtype)};
}

// The largest (smallest) so far and where it last was; a NaN stays.
std::tuple<Tensor, Tensor> running_extreme(const Tensor& x, int64_t dim, bool is_largest) {
  const ReduceView v = view_along(x, wrap_dim(dim, x.rank()), reduce_dtype(x.dtype()));
  const Tensor values = Tensor::empty(x.sizes(), v.data.dtype()),
               places = Tensor::empty(x.sizes(), DType::kInt64);
  visit_reduced(v.data.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* in = static_cast<const T*>(v.data.raw());
    T* out = values.data<T>();
    auto* where = places.data<int64_t>();
    parallel_for(0, v.outer * v.inner, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, v.length)),
                 [&](int64_t b, int64_t e) {
                   for (int64_t k = b; k < e; ++k) {
                     const int64_t at = k / v.inner * v.length * v.inner + k % v.inner;
                     T best{};
                     int64_t place = 0;
                     for (int64_t i = 0; i < v.length; ++i) {
                       const T c = in[at + i * v.inner];
                       if (i == 0 || c != c ||
                           (best == best && (is_largest ? c >= best : c <= best)))
                         best = c, place = i;
                       out[at + i * v.inner] = best;
                       where[at + i * v.inner] = place;
                     }
                   }
                 });
  });
  return {values.to(x.dtype()), places};
}

// Of products: with P the product of all before i and R_i = g_i + x_{i+1} R_{i+1}, P R_i: right for
// zeros too, in two walks.
template <class T>
void product_slopes(const ReduceView& grad, const ReduceView& x, T* out) {
  const T *g = static_cast<const T*>(grad.data.raw()), *in = static_cast<const T*>(x.data.raw());
  const int64_t n = x.length, inner = x.inner;
  parallel_for(0, x.outer * inner, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, n)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t k = begin; k < end; ++k) {
                   const int64_t at = k / inner * n * inner + k % inner;
                   T rest{};
                   for (int64_t i = n - 1; i >= 0; --i) {
                     rest = g[at + i * inner] + (i + 1 < n ? in[at + (i + 1) * inner] * rest : T());
                     out[at + i * inner] = rest;
                   }
                   T before = 1;
                   for (int64_t i = 0; i < n; ++i) {
                     out[at + i * inner] *= before;
                     before *= in[at + i * inner];
                   }
                 }
               });
}

// partial[.., i, k] = the product of x[0..k] without x[i], 0 where k < i: what out[k] changes by
// when x[i] does.
struct PartialProducts {
  Expr is_own, factors, products, is_counted;

  PartialProducts(const Expr& x, int64_t dim) {
    const int64_t n = x.sizes()[static_cast<size_t>(dim)];
    const Expr places = op<"arange">(Expr(x.builder(), IValue(n)));
    const Expr rows = op<"view">(places, Dims{n, 1}), columns = op<"view">(places, Dims{1, n});
    const Expr last = op<"unsqueeze">(op<"transpose">(x, dim, int64_t{-1}), int64_t{-2});
    is_own = op<"eq">(rows, columns);
    factors = op<"where">(is_own, 1.0, last);
    products = op<"cumprod">(factors, int64_t{-1});
    is_counted = op<"le">(rows, columns);
  }
};

void register_product_slope(Registry& r) {
  add_op(r, "cumprod_backward(grad: Tensor, input: Tensor, dim: int) -> Tensor")
      .doc("What cumprod sends back.")
      .takes_complex()
      .where({.function = false, .method = false})
      .shape([](const TensorMeta&, const TensorMeta& x, int64_t) {
        return TensorMeta{x.sizes, x.dtype};
      })
      .kernel([](const Tensor& g, const Tensor& given, int64_t dim) {
        if (is_complex(given.dtype()))
          return visit_complex(given.dtype(), [&](auto tag) {
            using C = typename decltype(tag)::type;
            const int64_t d = wrap_dim(dim, given.rank());
            const Tensor conjugate = call_tensor("conj_physical", given);
            const Tensor out = Tensor::empty(given.sizes(), given.dtype());
            product_slopes<C>(view_along(g, d, given.dtype()),
                              view_along(conjugate, d, given.dtype()), out.template data<C>());
            return out;
          });
        const DType compute = reduce_dtype(given.dtype());
        const int64_t d = wrap_dim(dim, given.rank());
        const ReduceView dy = view_along(g, d, compute), x = view_along(given, d, compute);
        const Tensor out = Tensor::empty(given.sizes(), compute);
        if (compute == DType::kFloat64)
          product_slopes<double>(dy, x, out.data<double>());
        else
          product_slopes<float>(dy, x, out.data<float>());
        return out.to(given.dtype());
      })
      .grad("grad, input", "grad, input",
            [](Gradient& g) {
              const Expr x = g["input"], dy = g["grad"], gg = g.out();
              PRONG_CHECK(!is_complex(x.dtype()), kNotImplemented,
                          "prong has no second derivative of cumprod of complex numbers yet");
              if (x.rank() == 0) return std::tuple(gg, g.zeros(x.meta()));
              const int64_t dim = wrap_dim(g.integer("dim"), x.rank());
              const PartialProducts p(x, dim);
              const auto turned = [&](const Expr& e, int64_t at) {
                return op<"unsqueeze">(op<"transpose">(e, dim, int64_t{-1}), at);
              };
              const auto back = [&](const Expr& e) { return op<"transpose">(e, dim, int64_t{-1}); };
              const Expr each = op<"where">(p.is_counted, turned(gg, -1), 0.0);
              const Expr to_grad = op<"sum">(each * p.products, Dims{-2});
              const Expr through =
                  op<"cumprod_backward">(each * turned(dy, -2), p.factors, int64_t{-1});
              const Expr to_input = op<"sum">(op<"where">(p.is_own, 0.0, through), Dims{-2});
              return std::tuple(back(to_grad), back(to_input));
            })
      .samples({{"t(3, 4), t(3, 4), 1"}, {"t(3, 4), t(3, 4), 0"}, {"t(), t(), 0"}});
}

void check_log_scan(DType dtype) {
  PRONG_CHECK(is_inexact(dtype), kNotImplemented, "\"logcumsumexp_out_cpu\" not implemented for '",
              scalar_type_name(dtype), "'");
}

void register_scans(Registry& r) {
  register_product_slope(r);
  add_op(r, "cumsum(input: Tensor, dim: int, *, dtype: dtype? = None) -> Tensor")
      .takes_complex()
      .doc("The sum of all elements up to each, along dim.")
      .where({.inplace = true})
      .shape([](const TensorMeta& x, int64_t dim, std::optional<DType> dtype) {
        return scan_meta(x, dim, dtype);
      })
      .kernel([](const Tensor& x, int64_t dim, std::optional<DType> dtype) {
        return scan_along(x, dim, scan_dtype(x.dtype(), dtype),
                          [](auto a, auto b) { return a + b; });
      })
      .grad("input", "",
            [](Gradient& g) {
              const Expr dy = g.out();
              return dy.rank() == 0 ? dy : sum_from_end(dy, g.integer("dim"));
            })
      .samples({{"t(3, 4), 1"}, {"t(3, 4), 0"}, {"t(), 0"}, {"t(0, 4), 1"}})
      .reference("np.cumsum(input, axis=dim) if input.ndim else input");
  add_op(r, "logcumsumexp(input: Tensor, dim: int) -> Tensor")
      .takes_complex()
      .doc("log of the running sum of exp along dim, without overflow.")
      .shape([](const TensorMeta& x, int64_t dim) {
        check_log_scan(x.dtype);
        return scan_meta(x, dim, x.dtype);
      })
      .kernel([](const Tensor& x, int64_t dim) {
        check_log_scan(x.dtype());
        return scan_along(x, dim, x.dtype(), [](auto a, auto b) { return log_add_exp(a, b); });
      })
      .grad("input", "input, result",
            [](Gradient& g) {
              const Expr dy = g.out();
              return dy.rank() == 0 ? dy
                                    : log_sum_slopes(dy, g["input"], g["result"], g.integer("dim"));
            })
      .samples({{"t(3, 4), 1"}, {"t(3, 4), 0"}, {"t(), 0"}, {"t(0, 4), 1"}})
      .reference("np.logaddexp.accumulate(input, axis=dim) if input.ndim else input");
  add_op(r, "cumprod(input: Tensor, dim: int, *, dtype: dtype? = None) -> Tensor")
      .takes_complex()
      .doc("The product of all elements up to each, along dim.")
      .where({.inplace = true})
      .shape([](const TensorMeta& x, int64_t dim, std::optional<DType> dtype) {
        return scan_meta(x, dim, dtype);
      })
      .kernel([](const Tensor& x, int64_t dim, std::optional<DType> dtype) {
        return scan_along(x, dim, scan_dtype(x.dtype(), dtype),
                          [](auto a, auto b) { return a * b; });
      })
      .grad(
          "input", "input",
          [](Gradient& g) { return op<"cumprod_backward">(g.out(), g["input"], g.integer("dim")); })
      .samples({{"t(3, 4), 1"}, {"t(3, 4), 0"}})
      .reference("np.cumprod(input, axis=dim)");
  add_op(r, "cummax(input: Tensor, dim: int) -> (Tensor values, Tensor indices)")
      .doc("The largest element so far along dim, and where it last was.")
      .shape([](const TensorMeta& x, int64_t dim) {
        wrap_dim(dim, x.rank());
        return std::tuple(x, TensorMeta{x.sizes, DType::kInt64});
      })
      .kernel([](const Tensor& x, int64_t dim) { return running_extreme(x, dim, true); })
      .grad("input", "result.1",
            [](Gradient& g) {
              return op<"scatter_add">(g.zeros(g.meta("input")), g.integer("dim"), g["result.1"],
                                       g.out());
            })
      .samples({{"t(3, 4), 1"}});
  add_op(r, "cummin(input: Tensor, dim: int) -> (Tensor values, Tensor indices)")
      .doc("The smallest element so far along dim, and where it last was.")
      .shape([](const TensorMeta& x, int64_t dim) {
        wrap_dim(dim, x.rank());
        return std::tuple(x, TensorMeta{x.sizes, DType::kInt64});
      })
      .kernel([](const Tensor& x, int64_t dim) { return running_extreme(x, dim, false); })
      .grad("input", "result.1",
            [](Gradient& g) {
              return op<"scatter_add">(g.zeros(g.meta("input")), g.integer("dim"), g["result.1"],
                                       g.out());
            })
      .samples({{"t(3, 4), 1"}});
}

}  // namespace

void register_softmax(Registry& r) {
  register_softmax_slopes(r);
  register_softmax_pair(r);
  register_scans(r);
}

}  // namespace prong
