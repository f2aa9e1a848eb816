// Orthogonal and spectral factorisations: QR, SVD, eigenvalues, and what follows from them: pinv,
// rank, least squares.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/blas/lapack.h"
#include "ops/data_check.h"
#include "ops/kernels/matrices.h"
#include "ops/kernels/matrix_gradients.h"

namespace prong {
namespace {

constexpr const char* kVmapLater = "vmap is not built yet";
constexpr Spelling kModuleOnly{.function = false, .method = false};

Cost cubic_cost(const OpDef&, std::span<const IValue> args) {
  const TensorMeta a = meta_from(args[0]);
  const auto n = static_cast<double>(a.numel());
  const double side = a.rank() > 0 ? static_cast<double>(a.sizes.back()) : 1;
  return {10 * n * side, 4 * n * static_cast<double>(size_of(a.dtype))};
}

OpDef& add_op(Registry& r, std::string_view schema) {
  return r.add(schema).takes_complex().cost(cubic_cost).no_vmap(kVmapLater);
}

int64_t rows_of(const TensorMeta& a) { return a.sizes[a.sizes.size() - 2]; }
int64_t columns_of(const TensorMeta& a) { return a.sizes.back(); }

TensorMeta checked_matrix(const char* op, const TensorMeta& a) {
  check_inexact(op, a);
  check_matrix(op, a);
  return a;
}

TensorMeta with_sizes(const TensorMeta& a, std::initializer_list<int64_t> last, DType dtype) {
  return {joined(batch_of(a), last), dtype};
}

void check_converged(const char* op, const Tensor& a, int64_t at, int info) {
  if (info == 0) return;
  const Tensor finite = call_tensor("all", call_tensor("isfinite", a));
  const std::string where = element_prefix(op, a.rank() > 2, at);
  throw_error(ErrorKind::kLinAlg,
              where +
                  (finite.item_int()
                       ? cat("The algorithm failed to converge because the input matrix is "
                             "ill-conditioned or has too many repeated values (error code: ",
                             info, ").")
                       : std::string("The algorithm failed to converge because the input matrix "
                                     "contained non-finite values.")));
}

// Runs body(i) -> info on each matrix; the first failure is raised.
template <class F>
void factorise(const char* op, const Tensor& a, int64_t batch, F&& body) {
  std::vector<int> infos(static_cast<size_t>(batch));
  for_matrices(batch, [&](int64_t i) { infos[static_cast<size_t>(i)] = body(i); });
  for (int64_t i = 0; i < batch; ++i) check_converged(op, a, i, infos[static_cast<size_t>(i)]);
}

// ── QR ──

enum class QrMode : uint8_t { kReduced, kComplete, kOnlyR };

QrMode qr_mode(const std::string& mode) {
  if (mode == "reduced") return QrMode::kReduced;
  if (mode == "complete") return QrMode::kComplete;
  PRONG_CHECK(mode == "r", kRuntime, "qr received unrecognized mode '", mode,
              "' but expected one of 'reduced' (default), 'r', or 'complete'");
  return QrMode::kOnlyR;
}

std::tuple<TensorMeta, TensorMeta> qr_shape(const TensorMeta& a, QrMode mode) {
  checked_matrix("linalg.qr", a);
  const int64_t m = rows_of(a), n = columns_of(a),
                k = mode == QrMode::kComplete ? m : std::min(m, n);
  const TensorMeta q =
      mode == QrMode::kOnlyR ? TensorMeta{{0}, a.dtype} : with_sizes(a, {m, k}, a.dtype);
  return {q, with_sizes(a, {k, n}, a.dtype)};
}

std::tuple<Tensor, Tensor> qr(const Tensor& a, QrMode mode) {
  const auto [q_meta, r_meta] = qr_shape(a.meta(), mode);
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  const Dims batch = batch_of(a.meta());
  const Columns c = prong::columns_of(a);
  const Tensor tau = Tensor::empty(joined(batch, {k}), a.dtype());
  const int64_t width = mode == QrMode::kComplete ? m : k;
  const Columns q = empty_columns(batch, m, mode == QrMode::kOnlyR ? 0 : width, a.dtype());
  const Columns r = empty_columns(batch, r_meta.sizes[r_meta.sizes.size() - 2], n, a.dtype());
  fill(r.stored, int64_t{0});
  visit_matrix(a.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    factorise("linalg.qr", a, c.batch, [&](int64_t i) {
      T* x = c.template at<T>(i);
      T* t = tau.template data<T>() + i * k;
      int info = k ? blas::qr(c.rows, c.columns, x, t) : 0;
      for (int64_t j = 0; j < n; ++j)
        std::copy(x + j * m, x + j * m + std::min(j + 1, k), r.template at<T>(i) + j * r.rows);
      if (mode == QrMode::kOnlyR || info || width == 0) return info;
      T* out = q.template at<T>(i);
      std::copy(x, x + m * k, out);
      for (int64_t j = k * m; j < width * m; ++j) out[j] = T(0);
      return blas::form_q(q.rows, q.columns, static_cast<int>(k), out, t);
    });
  });
  const Tensor first = mode == QrMode::kOnlyR ? Tensor::empty(Dims{0}, a.dtype()) : q.matrix();
  return {first, r.matrix()};
}

// Householder vectors to the first columns of Q.
TensorMeta householder_shape(const TensorMeta& a, const TensorMeta& tau) {
  const char* op = "linalg.householder_product";
  checked_matrix(op, a);
  PRONG_CHECK(rows_of(a) >= columns_of(a), kRuntime, op,
              ": input.shape[-2] must be greater than or equal to input.shape[-1]");
  PRONG_CHECK(tau.rank() == a.rank() - 1, kRuntime, op,
              ": Expected tau to have one dimension less than input");
  PRONG_CHECK(tau.sizes.back() <= columns_of(a), kRuntime, op,
              ": input.shape[-1] must be greater than or equal to tau.shape[-1]");
  const DimsView batch_of_rows = DimsView(tau.sizes).first(tau.sizes.size() - 1);
  PRONG_CHECK(tau.dtype == a.dtype && std::ranges::equal(batch_of(a), batch_of_rows), kRuntime, op,
              ": Expected batch dimensions and dtype of tau to be those of input, but got tau of ",
              tau.dtype, tau.sizes, " and input of ", a.dtype, a.sizes);
  return {a.sizes, a.dtype};
}

Tensor householder_product(const Tensor& a, const Tensor& tau) {
  householder_shape(a.meta(), tau.meta());
  const Columns q = prong::columns_of(a);
  const Tensor t = tau.contiguous();
  visit_matrix(a.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_matrices(q.batch, [&](int64_t i) {
      blas::form_q(q.rows, q.columns, static_cast<int>(t.size(-1)), q.template at<T>(i),
                   static_cast<const T*>(t.template data<T>() + i * t.size(-1)));
    });
  });
  return q.matrix();
}

void register_qr(Registry& r) {
  const std::vector<Sample> any = {{"t(4, 3)"}, {"t(2, 3, 4)"}, {"t(0, 3)"}};
  add_op(r, "linalg_qr(A: Tensor, mode: str = \"reduced\") -> (Tensor Q, Tensor R)")
      .checks(&any_data_may_fail)
      .doc("A as Q R: orthogonal columns and an upper triangle.")
      .where(kModuleOnly)
      .shape(
          [](const TensorMeta& a, const std::string& mode) { return qr_shape(a, qr_mode(mode)); })
      .kernel([](const Tensor& a, const std::string& mode) { return qr(a, qr_mode(mode)); })
      .grad("A", "result.0, result.1",
            [](Gradient& g) {
              PRONG_CHECK(qr_mode(g.value("mode").to_string()) != QrMode::kOnlyR, kRuntime,
                          "The derivative of linalg.qr depends on Q, which is not computed when "
                          "mode='r'. Please use linalg.qr(A, mode='reduced') if you are going to "
                          "require gradients");
              return matrices::qr_gradient(g, g["result.0"], g["result.1"]);
            })
      .samples(
          {{"t(4, 3)"}, {"t(2, 3, 4)"}, {"t(4, 3), 'complete'"}, {"t(4, 3), 'r'"}, {"t(0, 3)"}});
  add_op(r, "qr(input: Tensor, some: bool = True) -> (Tensor Q, Tensor R)")
      .checks(&any_data_may_fail)
      .doc("As linalg.qr, reduced or complete.")
      .shape([](const TensorMeta& a, bool some) {
        return qr_shape(a, some ? QrMode::kReduced : QrMode::kComplete);
      })
      .kernel([](const Tensor& a, bool some) {
        return qr(a, some ? QrMode::kReduced : QrMode::kComplete);
      })
      .grad("input", "result.0, result.1",
            [](Gradient& g) { return matrices::qr_gradient(g, g["result.0"], g["result.1"]); })
      .samples(any);
  for (const char* name : {"linalg_householder_product", "orgqr"})
    add_op(r, cat(name, "(input: Tensor, tau: Tensor) -> Tensor"))
        .doc("The first columns of the product of Householder matrices.")
        .where(name[0] == 'l' ? kModuleOnly : Spelling{})
        .shape([](const TensorMeta& a, const TensorMeta& tau) { return householder_shape(a, tau); })
        .kernel([](const Tensor& a, const Tensor& tau) { return householder_product(a, tau); })
        .grad("input, tau", "input, tau",
              [](Gradient& g) {
                return matrices::householder_gradient(g.out(), g["input"], g["tau"]);
              })
        .samples({{"t(4, 3), unit(3)"}, {"t(4, 3), unit(2)"}, {"t(2, 3, 3), unit(2, 3)"}});
}

// ── SVD ──

struct Svd {
  Tensor u, s, vh;
};

Svd svd(const char* op, const Tensor& a, bool full, bool wants_vectors) {
  checked_matrix(op, a.meta());
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  const Dims batch = batch_of(a.meta());
  const Columns c = prong::columns_of(a);
  const bool is_all = full && wants_vectors;
  const Columns u = empty_columns(batch, m, !wants_vectors ? 0 : is_all ? m : k, a.dtype());
  const Columns vh = empty_columns(batch, !wants_vectors ? 0 : is_all ? n : k, n, a.dtype());
  const Tensor s = Tensor::empty(joined(batch, {k}), real_dtype(a.dtype()));
  if (k == 0 && wants_vectors) {
    if (u.stored.numel()) copy_into(u.matrix(), call_tensor("eye", m, u.columns, a.dtype()));
    if (vh.stored.numel()) copy_into(vh.matrix(), call_tensor("eye", vh.rows, n, a.dtype()));
  }
  visit_matrix(a.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    factorise(op, a, k ? c.batch : 0, [&](int64_t i) {
      return blas::svd(wants_vectors ? (is_all ? 'A' : 'S') : 'N', c.rows, c.columns,
                       c.template at<T>(i), s.template data<blas::Real<T>>() + i * k,
                       u.template at<T>(i), vh.template at<T>(i));
    });
  });
  return {u.matrix(), s, vh.matrix()};
}

TensorMeta values_meta(const TensorMeta& a) {
  return with_sizes(a, {std::min(rows_of(a), columns_of(a))}, real_dtype(a.dtype));
}

void check_driver(const std::optional<std::string>& driver) {
  PRONG_CHECK(!driver, kRuntime,
              "linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with "
              "cuSOLVER backend.");
}

void register_svd(Registry& r) {
  add_op(r,
         "linalg_svd(A: Tensor, full_matrices: bool = True, *, driver: str? = None) -> (Tensor U, "
         "Tensor S, Tensor Vh)")
      .checks(&any_data_may_fail)
      .doc("A as U diag(S) Vh.")
      .where(kModuleOnly)
      .shape([](const TensorMeta& a, bool full, const std::optional<std::string>&) {
        checked_matrix("linalg.svd", a);
        const int64_t m = rows_of(a), n = columns_of(a), k = std::min(m, n);
        return std::tuple(with_sizes(a, {m, full ? m : k}, a.dtype), values_meta(a),
                          with_sizes(a, {full ? n : k, n}, a.dtype));
      })
      .kernel([](const Tensor& a, bool full, const std::optional<std::string>& driver) {
        check_driver(driver);
        const Svd out = svd("linalg.svd", a, full, true);
        return std::tuple(out.u, out.s, out.vh);
      })
      .grad("A", "result.0, result.1, result.2",
            [](Gradient& g) {
              return matrices::svd_gradient(g, g["result.0"], g["result.1"], g["result.2"],
                                            g.has_out(2) ? g.out(2) : g.none());
            })
      .samples({{"t(3, 3)"}, {"t(4, 3), False"}, {"t(2, 3, 4), False"}, {"t(0, 3)"}});
  add_op(r, "linalg_svdvals(A: Tensor, *, driver: str? = None) -> Tensor")
      .checks(&any_data_may_fail)
      .doc("The singular values, largest first.")
      .where(kModuleOnly)
      .shape([](const TensorMeta& a, const std::optional<std::string>&) {
        return values_meta(checked_matrix("linalg.svdvals", a));
      })
      .kernel([](const Tensor& a, const std::optional<std::string>& driver) {
        check_driver(driver);
        return svd("linalg.svd", a, false, false).s;
      })
      .grad("A", "A",
            [](Gradient& g) {
              const Expr f = op<"linalg_svd">(g["A"], false);
              return op<"matmul">(f[0] * op<"unsqueeze">(g.out(), int64_t(-2)), f[2]);
            })
      .samples({{"t(4, 3)"}, {"t(2, 3, 4)"}})
      .reference("np.linalg.svd(A, compute_uv=False)");
  add_op(r,
         "svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> (Tensor U, Tensor S, "
         "Tensor V)")
      .checks(&any_data_may_fail)
      .doc("As linalg.svd, with V instead of its adjoint, reduced unless some is False.")
      .shape([](const TensorMeta& a, bool some, bool) {
        checked_matrix("linalg.svd", a);
        const int64_t m = rows_of(a), n = columns_of(a), k = std::min(m, n);
        return std::tuple(with_sizes(a, {m, some ? k : m}, a.dtype), values_meta(a),
                          with_sizes(a, {n, some ? k : n}, a.dtype));
      })
      .kernel([](const Tensor& a, bool some, bool compute_uv) {
        const Svd out = svd("linalg.svd", a, !some && compute_uv, compute_uv);
        if (compute_uv) return std::tuple(out.u, out.s, call_tensor("mH", out.vh));
        const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
        const Tensor u = Tensor::empty(joined(batch_of(a.meta()), {m, some ? k : m}), a.dtype());
        const Tensor v = Tensor::empty(joined(batch_of(a.meta()), {n, some ? k : n}), a.dtype());
        fill(u, int64_t{0});
        fill(v, int64_t{0});
        return std::tuple(u, out.s, v);
      })
      .grad("input", "result.0, result.1, result.2",
            [](Gradient& g) {
              PRONG_CHECK(g.flag("compute_uv"), kRuntime,
                          "svd_backward: cannot use compute_uv=False when the input requires grad");
              return matrices::svd_gradient(g, g["result.0"], g["result.1"],
                                            matrices::adjoint(g["result.2"]),
                                            g.has_out(2) ? matrices::adjoint(g.out(2)) : g.none());
            })
      .samples({{"t(4, 3)"}, {"t(3, 3), False"}});
}

// ── eigenvalues ──

struct Eigen {
  Tensor values, vectors;
};

char triangle_of(const std::string& uplo) {
  const char c = uplo.size() == 1 ? static_cast<char>(std::toupper(uplo[0])) : '?';
  PRONG_CHECK(c == 'L' || c == 'U', kRuntime, "Expected UPLO argument to be 'L' or 'U', but got ",
              uplo);
  return c;
}

TensorMeta checked_square(const char* op, const TensorMeta& a) {
  check_inexact(op, a);
  check_square(op, a);
  return a;
}

Eigen eigh(const char* op, const Tensor& a, const std::string& uplo, bool wants_vectors) {
  checked_square(op, a.meta());
  const char triangle = triangle_of(uplo);
  const Columns c = prong::columns_of(a);
  const int64_t n = a.size(-1);
  const Tensor values = Tensor::empty(joined(batch_of(a.meta()), {n}), real_dtype(a.dtype()));
  visit_matrix(a.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    factorise(op, a, n ? c.batch : 0, [&](int64_t i) {
      return blas::eigh(wants_vectors, triangle, c.rows, c.template at<T>(i),
                        values.template data<blas::Real<T>>() + i * n);
    });
  });
  return {values, c.matrix()};
}

Eigen eig(const char* op, const Tensor& a, bool wants_vectors) {
  checked_square(op, a.meta());
  PRONG_CHECK(call_tensor("all", call_tensor("isfinite", a)).item_int() != 0, kRuntime,
              "torch.linalg.eig: input tensor should not contain infs or NaNs.");
  const Columns c = prong::columns_of(a);
  const int64_t n = a.size(-1);
  const DType dtype = complex_dtype(a.dtype());
  const Tensor values = Tensor::empty(joined(batch_of(a.meta()), {n}), dtype);
  const Columns vectors = empty_columns(batch_of(a.meta()), n, wants_vectors ? n : 0, dtype);
  visit_matrix(a.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = std::complex<blas::Real<T>>;
    factorise(op, a, n ? c.batch : 0, [&](int64_t i) {
      return blas::eig(c.rows, c.template at<T>(i), values.template data<C>() + i * n,
                       wants_vectors ? vectors.template at<C>(i) : static_cast<C*>(nullptr));
    });
  });
  return {values, vectors.matrix()};
}

void register_eigen(Registry& r) {
  const std::vector<Sample> symmetric = {
      {"torch.tensor([[4., 1.], [1., 3.]])"},
      {"torch.tensor([[[4., 1.], [1., 3.]], [[2., 0.], [0., 5.]]])"},
      {"t(0, 0)"}};
  add_op(r,
         "linalg_eigh(A: Tensor, UPLO: str = \"L\") -> (Tensor eigenvalues, Tensor eigenvectors)")
      .checks(&any_data_may_fail)
      .doc("Eigenvalues, ascending, and eigenvectors of Hermitian matrices.")
      .where(kModuleOnly)
      .shape([](const TensorMeta& a, const std::string&) {
        checked_square("linalg.eigh", a);
        return std::tuple(with_sizes(a, {columns_of(a)}, real_dtype(a.dtype)),
                          TensorMeta{a.sizes, a.dtype});
      })
      .kernel([](const Tensor& a, const std::string& uplo) {
        const Eigen e = eigh("linalg.eigh", a, uplo, true);
        return std::tuple(e.values, e.vectors);
      })
      .grad("A", "result.0, result.1",
            [](Gradient& g) { return matrices::eigh_gradient(g, g["result.0"], g["result.1"]); })
      .samples(symmetric);
  add_op(r, "linalg_eigvalsh(A: Tensor, UPLO: str = \"L\") -> Tensor")
      .checks(&any_data_may_fail)
      .doc("Eigenvalues of Hermitian matrices, ascending.")
      .where(kModuleOnly)
      .shape([](const TensorMeta& a, const std::string&) {
        checked_square("linalg.eigvalsh", a);
        return with_sizes(a, {columns_of(a)}, real_dtype(a.dtype));
      })
      .kernel([](const Tensor& a, const std::string& uplo) {
        return eigh("linalg.eigh", a, uplo, false).values;
      })
      .grad("A", "A",
            [](Gradient& g) {
              const Expr v = op<"linalg_eigh">(g["A"], g.value("UPLO"))[1];
              return op<"matmul">(v * op<"unsqueeze">(g.out(), int64_t(-2)), matrices::adjoint(v));
            })
      .samples(symmetric)
      .reference("np.linalg.eigvalsh(A)");
  add_op(r, "linalg_eig(A: Tensor) -> (Tensor eigenvalues, Tensor eigenvectors)")
      .checks(&any_data_may_fail)
      .doc("Eigenvalues and eigenvectors of square matrices, as complex numbers.")
      .where(kModuleOnly)
      .shape([](const TensorMeta& a) {
        checked_square("linalg.eig", a);
        const DType dtype = complex_dtype(a.dtype);
        return std::tuple(with_sizes(a, {columns_of(a)}, dtype), TensorMeta{a.sizes, dtype});
      })
      .kernel([](const Tensor& a) {
        const Eigen e = eig("linalg.eig", a, true);
        return std::tuple(e.values, e.vectors);
      })
      .grad("A", "result.0, result.1",
            [](Gradient& g) { return matrices::eig_gradient(g, g["result.0"], g["result.1"]); })
      .samples({{"t(3, 3)"}, {"t(2, 3, 3, dtype=float64)"}});
  add_op(r, "linalg_eigvals(A: Tensor) -> Tensor")
      .checks(&any_data_may_fail)
      .doc("Eigenvalues of square matrices, as complex numbers.")
      .where(kModuleOnly)
      .shape([](const TensorMeta& a) {
        checked_square("linalg.eigvals", a);
        return with_sizes(a, {columns_of(a)}, complex_dtype(a.dtype));
      })
      .kernel([](const Tensor& a) { return eig("linalg.eigvals", a, false).values; })
      .grad("A", "A",
            [](Gradient& g) {
              const Expr v = op<"linalg_eig">(g["A"])[1], vh = matrices::adjoint(v);
              return matrices::solve(vh, op<"unsqueeze">(g.out(), int64_t(-1)) * vh);
            })
      .samples({{"t(3, 3)"}, {"t(2, 3, 3)"}});
}

// ── what follows from the singular values ──

double epsilon_of(DType dtype) {
  return real_dtype(dtype) == DType::kFloat64
             ? std::numeric_limits<double>::epsilon()
             : static_cast<double>(std::numeric_limits<float>::epsilon());
}

using Tolerance = std::optional<Tensor>;

Tensor scalar_like(const Tensor& values, double x) {
  const Tensor t = Tensor::empty({}, values.dtype());
  fill(t, x);
  return t;
}

// The singular values, or the sizes of eigenvalues, below which all count as 0: max(atol, rtol *
// largest), [..., 1].
Tensor threshold_of(const Tensor& a, const Tensor& sizes, const Tolerance& atol,
                    const Tolerance& rtol) {
  const double side = static_cast<double>(std::max(a.size(-2), a.size(-1)));
  const Tensor absolute = atol ? atol->to(sizes.dtype()) : scalar_like(sizes, 0);
  const bool no_rtol =
      !rtol && atol && call_tensor("any", call_tensor("gt", absolute, 0)).item_int();
  const Tensor relative = rtol      ? rtol->to(sizes.dtype())
                          : no_rtol ? scalar_like(sizes, 0)
                                    : scalar_like(sizes, side * epsilon_of(a.dtype()));
  const Tensor largest = call_tensor("amax", sizes, Dims{-1}, false);
  const Tensor bound = call_tensor("maximum", absolute, call_tensor("mul", relative, largest));
  return call_tensor("unsqueeze", bound, int64_t(-1));
}

Tensor pinv(const Tensor& a, const Tolerance& atol, const Tolerance& rtol, bool hermitian) {
  checked_matrix("linalg.pinv", a.meta());
  if (a.numel() == 0)
    return Tensor::empty(joined(batch_of(a.meta()), {a.size(-1), a.size(-2)}), a.dtype());
  Tensor left, values, right;
  if (hermitian) {
    const Eigen e = eigh("linalg.eigh", a, "L", true);
    left = e.vectors, values = e.values, right = call_tensor("mH", e.vectors);
  } else {
    const Svd f = svd("linalg.svd", a, false, true);
    left = call_tensor("mH", f.vh), values = f.s, right = call_tensor("mH", f.u);
  }
  const Tensor sizes = call_tensor("abs", values);
  const Tensor keep = call_tensor("gt", sizes, threshold_of(a, sizes, atol, rtol));
  const Tensor inverse = call_tensor("where", keep, call_tensor("reciprocal", values), 0.0);
  const Tensor scaled =
      call_tensor("mul", left, call_tensor("unsqueeze", inverse, int64_t(-2)).to(a.dtype()));
  return call_tensor("matmul", scaled, right);
}

Tensor rank_of(const Tensor& a, const Tolerance& atol, const Tolerance& rtol, bool hermitian) {
  checked_matrix("linalg.matrix_rank", a.meta());
  if (a.numel() == 0) {
    const Tensor none = Tensor::empty(batch_of(a.meta()), DType::kInt64);
    fill(none, int64_t{0});
    return none;
  }
  const Tensor sizes = hermitian ? call_tensor("abs", eigh("linalg.eigvalsh", a, "L", false).values)
                                 : svd("linalg.svd", a, false, false).s;
  return call_tensor("sum", call_tensor("gt", sizes, threshold_of(a, sizes, atol, rtol)), Dims{-1});
}

Tolerance tolerance(const std::optional<double>& x, const Tensor& a) {
  if (!x) return std::nullopt;
  const Tensor t = Tensor::empty({}, real_dtype(a.dtype()));
  fill(t, *x);
  return t;
}

TensorMeta pinv_shape(const TensorMeta& a) {
  checked_matrix("linalg.pinv", a);
  return with_sizes(a, {columns_of(a), rows_of(a)}, a.dtype);
}

void register_pinv(Registry& r) {
  add_op(r,
         "linalg_pinv(A: Tensor, *, atol: float? = None, rtol: float? = None, hermitian: bool = "
         "False) -> Tensor")
      .checks(&any_data_may_fail)
      .doc("The pseudo-inverse, by singular values.")
      .where(kModuleOnly)
      .shape([](const TensorMeta& a, std::optional<double>, std::optional<double>, bool) {
        return pinv_shape(a);
      })
      .kernel(
          [](const Tensor& a, std::optional<double> atol, std::optional<double> rtol,
             bool hermitian) { return pinv(a, tolerance(atol, a), tolerance(rtol, a), hermitian); })
      .grad("A", "A, result",
            [](Gradient& g) { return matrices::pinv_gradient(g.out(), g["A"], g["result"]); })
      .samples(
          {{"t(4, 3)"}, {"t(2, 3, 4)"}, {"torch.tensor([[4., 1.], [1., 3.]]), hermitian=True"}})
      .reference("np.linalg.pinv(A)");
  add_op(r, "linalg_pinv.rcond(A: Tensor, rcond: float, hermitian: bool = False) -> Tensor")
      .checks(&any_data_may_fail)
      .doc("The pseudo-inverse, with singular values below rcond times the largest as 0.")
      .where(kModuleOnly)
      .shape([](const TensorMeta& a, double, bool) { return pinv_shape(a); })
      .kernel([](const Tensor& a, double rcond, bool hermitian) {
        return pinv(a, std::nullopt, tolerance(rcond, a), hermitian);
      })
      .grad("A", "A, result",
            [](Gradient& g) { return matrices::pinv_gradient(g.out(), g["A"], g["result"]); })
      .samples({{"t(4, 3), 1e-3"}})
      .reference("np.linalg.pinv(A, rcond)");
  add_op(r, "pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor")
      .checks(&any_data_may_fail)
      .doc("The pseudo-inverse.")
      .shape([](const TensorMeta& a, double) { return pinv_shape(a); })
      .kernel([](const Tensor& a, double rcond) {
        return pinv(a, std::nullopt, tolerance(rcond, a), false);
      })
      .grad("input", "input, result",
            [](Gradient& g) { return matrices::pinv_gradient(g.out(), g["input"], g["result"]); })
      .samples({{"t(4, 3)"}})
      .reference("np.linalg.pinv(input)");
  add_op(r,
         "linalg_matrix_rank(A: Tensor, *, atol: float? = None, rtol: float? = None, hermitian: "
         "bool = False) -> Tensor")
      .checks(&any_data_may_fail)
      .doc("How many singular values are not 0.")
      .not_differentiable("a count")
      .where(kModuleOnly)
      .shape([](const TensorMeta& a, std::optional<double>, std::optional<double>, bool) {
        return with_sizes(checked_matrix("linalg.matrix_rank", a), {}, DType::kInt64);
      })
      .kernel([](const Tensor& a, std::optional<double> atol, std::optional<double> rtol,
                 bool hermitian) {
        return rank_of(a, tolerance(atol, a), tolerance(rtol, a), hermitian);
      })
      .samples(
          {{"t(4, 3)"}, {"t(2, 3, 4)"}, {"torch.tensor([[4., 1.], [1., 3.]]), hermitian=True"}})
      .reference("np.linalg.matrix_rank(A)");
  add_op(r, "linalg_matrix_rank.tol(A: Tensor, tol: float, hermitian: bool = False) -> Tensor")
      .checks(&any_data_may_fail)
      .doc("How many singular values are above tol.")
      .not_differentiable("a count")
      .where(kModuleOnly)
      .shape([](const TensorMeta& a, double, bool) {
        return with_sizes(checked_matrix("linalg.matrix_rank", a), {}, DType::kInt64);
      })
      .kernel([](const Tensor& a, double tol, bool hermitian) {
        return rank_of(a, tolerance(tol, a), tolerance(0.0, a), hermitian);
      })
      .samples({{"t(4, 3), 0.1"}})
      .reference("np.linalg.matrix_rank(A, tol)");
}

// ── least squares ──

struct LeastSquares {
  Tensor solution, residuals, rank, values;
};

LeastSquares least_squares(const Tensor& a, const Tensor& b, std::optional<double> rcond,
                           const std::string& driver) {
  const char* op = "torch.linalg.lstsq";
  checked_matrix(op, a.meta());
  PRONG_CHECK(driver == "gelsd" || driver == "gelsy" || driver == "gelss" || driver == "gels",
              kRuntime, op, ": parameter `driver` should be one of (gels, gelsy, gelsd, gelss)");
  const bool is_vector = b.rank() == a.rank() - 1;
  const Tensor side = is_vector ? call_tensor("unsqueeze", b, int64_t(-1)) : b;
  PRONG_CHECK(a.dtype() == b.dtype(), kRuntime, op,
              ": Expected input and other to have the same dtype, but got input's dtype ",
              scalar_type_name(a.dtype()), " and other's dtype ", scalar_type_name(b.dtype()));
  PRONG_CHECK(side.rank() >= 2 && side.size(-2) == a.size(-2), kRuntime, op,
              ": input.size(-2) should match other.size(", is_vector ? -1 : -2, ")");
  const Dims batch = broadcast_shapes(batch_of(a.meta()), batch_of(side.meta()));
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n), width = side.size(-1);
  const Columns c = prong::columns_of(broadcast_to(a, joined(batch, {m, n})));
  const Columns x = empty_columns(batch, std::max(m, n), width, a.dtype());
  fill(x.stored, int64_t{0});
  copy_into(call_tensor("narrow", x.matrix(), int64_t(-2), int64_t(0), m), side);
  LeastSquares out;
  const Tensor rank = Tensor::empty(batch, DType::kInt64);
  const Tensor values = Tensor::empty(joined(batch, {k}), real_dtype(a.dtype()));
  const double bound = rcond.value_or(epsilon_of(a.dtype()) * static_cast<double>(std::max(m, n)));
  if (k > 0)
    visit_matrix(a.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      factorise(op, a, c.batch, [&](int64_t i) {
        int found = 0;
        const int info = blas::least_squares(
            c.rows, c.columns, x.columns, c.template at<T>(i), x.template at<T>(i),
            values.template data<blas::Real<T>>() + i * k, bound, &found);
        rank.data<int64_t>()[i] = found;
        return info;
      });
    });
  out.solution = call_tensor("narrow", x.matrix(), int64_t(-2), int64_t(0), n).clone();
  const DType real = real_dtype(a.dtype());
  out.residuals = Tensor::empty(Dims{0}, real);
  const bool is_full =
      k > 0 && (driver == "gels" || call_tensor("all", call_tensor("eq", rank, n)).item_int());
  if (m > n && driver != "gelsy" && is_full) {
    const Tensor rest = call_tensor("narrow", x.matrix(), int64_t(-2), n, m - n);
    out.residuals = call_tensor("sum", call_tensor("square", call_tensor("abs", rest)), Dims{-2});
  }
  if (is_vector) out.solution = call_tensor("squeeze.dim", out.solution, int64_t(-1));
  out.rank = driver == "gels" ? Tensor::empty(Dims{0}, DType::kInt64) : rank;
  out.values = driver == "gelsd" || driver == "gelss" ? values : Tensor::empty(Dims{0}, real);
  return out;
}

void register_least_squares(Registry& r) {
  const char* rest =
      "(A: Tensor, B: Tensor, rcond: float? = None, *, driver: str? = None) -> "
      "(Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)";
  const char* why = "there are residuals only where A has full rank";
  const std::vector<Sample> samples = {{"t(4, 3), t(4, 2)"},
                                       {"t(3, 3) + 4 * torch.eye(3), t(3, 1), driver='gelsd'"}};
  add_op(r, cat("least_squares", rest))
      .checks(&any_data_may_fail)
      .doc("linalg.lstsq, whose singular values have no gradient.")
      .where(kModuleOnly)
      .dynamic_shape(why)
      .kernel([](const Tensor& a, const Tensor& b, std::optional<double> rcond,
                 const std::optional<std::string>& driver) {
        const LeastSquares out = least_squares(a, b, rcond, driver.value_or("gelsy"));
        return std::tuple(out.solution, out.residuals, out.rank, out.values);
      })
      .grad("A, B", "A, B, result.0",
            [](Gradient& g) {
              return matrices::least_squares_gradient(g, g["A"], g["B"], g["result.0"]);
            })
      .samples({samples[0]});
  add_op(r, cat("linalg_lstsq", rest))
      .checks(&any_data_may_fail)
      .doc("The X with the smallest |A X - B|.")
      .where(kModuleOnly)
      .dynamic_shape(why)
      .kernel([](const Tensor& a, const Tensor& b, std::optional<double> rcond,
                 const std::optional<std::string>& driver) {
        const IValue found = call("least_squares", a, b, rcond, driver);
        const auto result = [&](size_t i) { return found.items()[i].to_tensor(); };
        return std::tuple(result(0), result(1), result(2), call_tensor("detach", result(3)));
      })
      .composite()
      .samples(samples);
}

}  // namespace

void register_linalg_spectrum(Registry& r) {
  register_qr(r);
  register_svd(r);
  register_eigen(r);
  register_pinv(r);
  register_least_squares(r);
}

}  // namespace prong
