// The three transforms that torch.fft is made of: complex to complex, real to half a spectrum, and
// back.
#include "ops/fft/transform.h"

#include <cmath>

#include "ops/gradient.h"
#include "runtime/parallel.h"

namespace prong {
namespace {

constexpr const char* kVmapLater = "vmap is not built yet";
constexpr Spelling kFunctionOnly{.method = false};

Cost transform_cost(const OpDef&, std::span<const IValue> args) {
  const TensorMeta x = meta_from(args[0]);
  const auto n = static_cast<double>(x.numel());
  return {5 * n * std::log2(std::max(2.0, n)), 4 * n * static_cast<double>(size_of(x.dtype))};
}

OpDef& add_op(Registry& r, std::string_view schema) {
  return r.add(schema)
      .takes_complex()
      .where(kFunctionOnly)
      .cost(transform_cost)
      .no_vmap(kVmapLater);
}

// What normalization stands for, as in PyTorch: 0 nothing, 1 divide by the root of n, 2 by n.
double scale_of(int64_t normalization, double n) {
  PRONG_CHECK(normalization >= 0 && normalization <= 2, kRuntime,
              "fft: normalization must be 0, 1 or 2, got ", normalization);
  return normalization == 0 ? 1.0 : normalization == 1 ? 1.0 / std::sqrt(n) : 1.0 / n;
}

size_t checked_dim(const TensorMeta& x, int64_t dim) {
  const auto d = static_cast<size_t>(wrap_dim(dim, x.rank()));
  PRONG_CHECK(x.rank() > 0 && x.sizes[d] >= 1, kRuntime, "Invalid number of data points (",
              x.rank() > 0 ? x.sizes[d] : 0, ") specified");
  return d;
}

// A view with dim last.
Tensor with_last(const Tensor& x, size_t dim) {
  return call_tensor("movedim", x, Dims{static_cast<int64_t>(dim)}, Dims{-1});
}

// f(in, out) for each line along dim: `in` of n elements of In, `out` of m of Out.
template <class In, class Out, class F>
Tensor for_lines(const Tensor& given, size_t dim, int64_t m, DType out_dtype, F&& f) {
  const Tensor in = with_last(given, dim).contiguous();
  Dims sizes = in.sizes();
  const int64_t n = sizes.back();
  sizes.back() = m;
  const Tensor out = Tensor::empty(sizes, out_dtype);
  const In* from = in.data<In>();
  Out* to = out.data<Out>();
  const int64_t lines = n ? in.numel() / n : 0;
  parallel_for(0, lines, std::max<int64_t>(1, 4096 / std::max<int64_t>(1, n)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) f(from + i * n, to + i * m);
               });
  return call_tensor("movedim", out, Dims{-1}, Dims{static_cast<int64_t>(dim)});
}

Tensor scaled(const Tensor& x, double scale) {
  return scale == 1.0 ? x.contiguous() : call_tensor("mul", x, scale).contiguous();
}

void check_complex_dtype(const char* op, DType dtype) {
  PRONG_CHECK(is_complex(dtype), kRuntime, op, " expects a complex tensor, got ", dtype);
}

// n real numbers come of the first n / 2 + 1 of their spectrum.
void check_to_real(const TensorMeta& x, const Dims& dims, int64_t n) {
  check_complex_dtype("_fft_c2r", x.dtype);
  PRONG_CHECK(n >= 1, kRuntime, "Invalid number of data points (", n, ") specified");
  const size_t dim = checked_dim(x, dims.back());
  const int64_t m = n / 2 + 1;
  PRONG_CHECK(x.sizes[dim] >= m, kRuntime, "_fft_c2r: needs ", m, " elements along dim ", dim,
              " for ", n, " points, got ", x.sizes[dim]);
}

Tensor complex_to_complex(const Tensor& given, const Dims& dims, bool forward) {
  check_complex_dtype("_fft_c2c", given.dtype());
  Tensor x = given;
  for (const int64_t d : dims) {
    const size_t dim = checked_dim(x.meta(), d);
    const int64_t n = x.sizes()[dim];
    x = visit_complex(x.dtype(), [&](auto tag) {
      using C = typename decltype(tag)::type;
      return for_lines<C, C>(x, dim, n, x.dtype(),
                             [&](const C* in, C* out) { fft::transform(forward, n, in, out); });
    });
  }
  return x;
}

double points(const TensorMeta& x, const Dims& dims) {
  double n = 1;
  for (const int64_t d : dims) n *= static_cast<double>(x.sizes[checked_dim(x, d)]);
  return n;
}

void check_real(DType dtype) {
  PRONG_CHECK(dtype == DType::kFloat32 || dtype == DType::kFloat64, kRuntime,
              "_fft_r2c expects float32 or float64, got ", dtype);
}

template <class F>
decltype(auto) visit_real(DType dtype, F&& f) {
  if (dtype == DType::kFloat64) return f(TypeTag<double>{});
  return f(TypeTag<float>{});
}

// The other half of the spectrum along the dims that were transformed: the conjugate, seen from the
// other side.
Tensor both_sides(const Tensor& half, const Dims& dims, int64_t n) {
  const int64_t last = dims.back();
  const int64_t missing = n - half.size(last);
  if (missing <= 0) return half;
  Tensor rest = call_tensor("conj", call_tensor("narrow", half, last, int64_t(1), missing));
  rest = call_tensor("flip", rest, Dims{last});
  for (size_t i = 0; i + 1 < dims.size(); ++i) {
    rest = call_tensor("flip", rest, Dims{dims[i]});
    rest = call_tensor("roll", rest, Dims{1}, Dims{dims[i]});
  }
  return call_tensor("cat", std::vector<Tensor>{half, rest}, last);
}

Tensor real_to_complex(const Tensor& given, const Dims& dims, bool onesided) {
  check_real(given.dtype());
  const size_t dim = checked_dim(given.meta(), dims.back());
  const int64_t n = given.sizes()[dim], m = n / 2 + 1;
  const DType dtype = complex_dtype(given.dtype());
  Tensor x = visit_real(given.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = std::complex<T>;
    return for_lines<T, C>(given, dim, m, dtype,
                           [&](const T* in, C* out) { fft::transform_real(n, in, out); });
  });
  Dims others = dims;
  others.pop_back();
  x = complex_to_complex(x, others, true);
  return onesided ? x : both_sides(x, dims, n);
}

Tensor complex_to_real(const Tensor& given, const Dims& dims, int64_t n) {
  check_to_real(given.meta(), dims, n);
  Dims others = dims;
  others.pop_back();
  const Tensor x = complex_to_complex(given, others, false);
  const size_t dim = checked_dim(x.meta(), dims.back());
  const int64_t m = n / 2 + 1;
  const Tensor half = call_tensor("narrow", x, static_cast<int64_t>(dim), int64_t(0), m);
  return visit_complex(x.dtype(), [&](auto tag) {
    using C = typename decltype(tag)::type;
    using T = typename C::value_type;
    return for_lines<C, T>(half, dim, n, real_dtype(x.dtype()),
                           [&](const C* in, T* out) { fft::transform_to_real(n, in, out); });
  });
}

Expr joined(std::initializer_list<Expr> parts, int64_t dim) {
  std::vector<IValue> items;
  for (const Expr& e : parts) items.push_back(e.value());
  const IValue args[] = {IValue::list(std::move(items)), IValue(dim)};
  Builder& builder = parts.begin()->builder();
  return Expr(builder, builder.apply(registry().get("cat"), args));
}

}  // namespace

void register_fft(Registry& r) {
  add_op(r, "_fft_c2c(input: Tensor, dim: int[], normalization: int, forward: bool) -> Tensor")
      .doc("The Fourier transform over dims, or its inverse.")
      .shape([](const TensorMeta& x, const Dims& dims, int64_t, bool) {
        check_complex_dtype("_fft_c2c", x.dtype);
        points(x, dims);
        return TensorMeta{x.sizes, x.dtype};
      })
      .kernel([](const Tensor& x, const Dims& dims, int64_t normalization, bool forward) {
        const double scale = scale_of(normalization, points(x.meta(), dims));
        return scaled(complex_to_complex(x, dims, forward), scale);
      })
      .grad("input", "",
            [](Gradient& g) {
              return op<"_fft_c2c">(g.out(), g.dims("dim"), g.value("normalization"),
                                    !g.flag("forward"));
            })
      .samples({{"t(3, 8, dtype=complex64), [1], 0, True"},
                {"t(6, 5, dtype=complex128), [0, 1], 2, False"},
                {"t(2, 47, dtype=complex64), [1], 1, True"}})
      .reference(
          "(np.fft.fftn if forward else np.fft.ifftn)(input, axes=dim, norm=[None if forward else "
          "'forward', 'ortho', 'forward' if forward else None][normalization])");
  add_op(r, "_fft_r2c(input: Tensor, dim: int[], normalization: int, onesided: bool) -> Tensor")
      .doc(
          "The Fourier transform of real numbers over dims; of the last one the first half, if "
          "onesided.")
      .shape([](const TensorMeta& x, const Dims& dims, int64_t, bool onesided) {
        check_real(x.dtype);
        points(x, dims);
        Dims sizes = x.sizes;
        int64_t& last = sizes[checked_dim(x, dims.back())];
        if (onesided) last = last / 2 + 1;
        return TensorMeta{sizes, complex_dtype(x.dtype)};
      })
      .kernel([](const Tensor& x, const Dims& dims, int64_t normalization, bool onesided) {
        const double scale = scale_of(normalization, points(x.meta(), dims));
        return scaled(real_to_complex(x, dims, onesided), scale);
      })
      .grad("input", "",
            [](Gradient& g) {
              const Dims dims = g.dims("dim");
              Expr dy = g.out();
              const int64_t n =
                  g.sizes("input")[static_cast<size_t>(wrap_dim(dims.back(), dy.rank()))];
              if (g.flag("onesided")) {  // the other half was not given: nothing flows from it
                Dims sizes = dy.sizes();
                int64_t& last = sizes[static_cast<size_t>(wrap_dim(dims.back(), dy.rank()))];
                last = n - last;
                if (last > 0) dy = joined({dy, op<"new_zeros">(dy, sizes)}, dims.back());
              }
              return op<"real">(op<"_fft_c2c">(dy, dims, g.value("normalization"), false));
            })
      .samples({{"t(3, 8), [1], 0, True"},
                {"t(6, 5, dtype=float64), [0, 1], 2, False"},
                {"t(6, 8), [1, 0], 1, False"},
                {"t(2, 47), [1], 1, True"}})
      .reference(
          "(np.fft.rfftn if onesided else np.fft.fftn)(input, axes=dim, norm=[None, 'ortho', "
          "'forward'][normalization])");
  add_op(r, "_fft_c2r(input: Tensor, dim: int[], normalization: int, last_dim_size: int) -> Tensor")
      .doc(
          "Real numbers from half of their spectrum; not normalised, the transform times their "
          "number.")
      .shape([](const TensorMeta& x, const Dims& dims, int64_t, int64_t n) {
        check_to_real(x, dims, n);
        points(x, dims);
        Dims sizes = x.sizes;
        sizes[checked_dim(x, dims.back())] = n;
        return TensorMeta{sizes, real_dtype(x.dtype)};
      })
      .kernel([](const Tensor& x, const Dims& dims, int64_t normalization, int64_t n) {
        const Tensor y = complex_to_real(x, dims, n);
        return scaled(y, scale_of(normalization, points(y.meta(), dims)));
      })
      .grad("input", "",
            [](Gradient& g) {
              const Dims dims = g.dims("dim");
              const Expr dy = op<"_fft_r2c">(g.out(), dims, g.value("normalization"), true);
              const int64_t n = g.integer("last_dim_size"), last = dims.back();
              const int64_t have = dy.sizes()[static_cast<size_t>(wrap_dim(last, dy.rank()))];
              const int64_t twice = n - have;  // these stand for their mirror images too
              if (twice <= 0) return dy;
              const Expr first = op<"narrow">(dy, last, int64_t(0), int64_t(1)),
                         middle = op<"narrow">(dy, last, int64_t(1), twice) * 2.0;
              const int64_t rest = have - 1 - twice;
              if (rest == 0) return joined({first, middle}, last);
              return joined({first, middle, op<"narrow">(dy, last, 1 + twice, rest)}, last);
            })
      .samples(
          {{"t(3, 5, dtype=complex64), [1], 2, 8"}, {"t(6, 4, dtype=complex128), [0, 1], 1, 7"}})
      .reference(
          "np.fft.irfftn(input, s=[last_dim_size if d == dim[-1] else input.shape[d] for d in "
          "dim], "
          "axes=dim, norm=['forward', 'ortho', None][normalization])");
}

}  // namespace prong
