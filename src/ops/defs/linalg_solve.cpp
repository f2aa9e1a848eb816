// Linear systems: LU, Cholesky, triangles, inverses, determinants. The work is LAPACK's, through
// ops/blas/lapack.h.
#include <algorithm>

#include "ops/blas/lapack.h"
#include "ops/data_check.h"
#include "ops/kernels/matrices.h"
#include "ops/kernels/matrix_gradients.h"

namespace prong {
namespace {

constexpr const char* kNoRule = "prong has no rule for it yet";
constexpr const char* kVmapLater = "vmap is not built yet";
constexpr Spelling kModuleOnly{.function = false, .method = false};

// About n^3 operations a matrix of the first argument.
Cost cubic_cost(const OpDef&, std::span<const IValue> args) {
  const TensorMeta a = meta_from(args[0]);
  const auto n = static_cast<double>(a.numel());
  const double side = a.rank() > 0 ? static_cast<double>(a.sizes.back()) : 1;
  return {2 * n * side, 2 * n * static_cast<double>(size_of(a.dtype))};
}

OpDef& add_op(Registry& r, std::string_view schema) {
  return r.add(schema).takes_complex().cost(cubic_cost).no_vmap(kVmapLater);
}

void check_if_asked(DataCheck& c) {
  if (c["check_errors"].to_bool()) c.may_fail();
}
// Row exchanges are counted from one.
void check_rows(DataCheck& c, const IValue& pivots, int64_t rows) { c.within(pivots, {1, rows}); }

// A well-conditioned square matrix: samples add this to what is random.
#define PRONG_EYE " + 4 * torch.eye(3)"

// ── LU ──

struct Lu {
  Columns factors;
  Tensor pivots;  // int32 [..., min(rows, columns)]
  Tensor info;    // int32 [...]
};

Lu lu_of(const Tensor& a) {
  Lu out{columns_of(a), {}, {}};
  const Dims batch = batch_of(a.meta());
  const int64_t k = std::min(a.size(-2), a.size(-1));
  out.pivots = Tensor::empty(joined(batch, {k}), DType::kInt32);
  out.info = Tensor::empty(batch, DType::kInt32);
  visit_matrix(a.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_matrices(out.factors.batch, [&](int64_t i) {
      out.info.template data<int32_t>()[i] =
          k == 0 ? 0
                 : blas::lu(out.factors.rows, out.factors.columns, out.factors.template at<T>(i),
                            out.pivots.template data<int32_t>() + i * k);
    });
  });
  return out;
}

// The first matrix that failed, or -1.
int64_t first_failure(const Tensor& info) {
  const auto* at = info.data<int32_t>();
  for (int64_t i = 0; i < info.numel(); ++i)
    if (at[i] != 0) return i;
  return -1;
}

struct Solution {
  Tensor x;
  Lu lu;
};

bool is_vector_solve(const TensorMeta& a, const TensorMeta& b) {
  if (b.rank() == 1) return true;
  return a.rank() == b.rank() + 1 &&
         DimsView(a.sizes).first(a.sizes.size() - 1).size() == b.sizes.size() &&
         std::equal(b.sizes.begin(), b.sizes.end(), a.sizes.begin());
}

TensorMeta solve_shape(const TensorMeta& a, const TensorMeta& b, bool left) {
  const std::string op = "linalg.solve";
  check_inexact(op, a);
  check_square(op, a);
  PRONG_CHECK(a.dtype == b.dtype, kRuntime, op,
              ": Expected A and B to have the same dtype, but found A of type ",
              scalar_type_name(a.dtype), " and B of type ", scalar_type_name(b.dtype), " instead");
  const int64_t n = a.sizes.back();
  if (is_vector_solve(a, b)) {
    PRONG_CHECK(left, kRuntime, op,
                ": Vector broadcasting of the left hand side is not supported for left=False. In "
                "this case linalg.solve is equivalent to B / A.squeeze(-1)");
    PRONG_CHECK(b.sizes.back() == n, kRuntime, op,
                ": Incompatible shapes of A and B for the "
                "equation AX = B (",
                n, "x", n, " and ", b.sizes.back(), "x1)");
    return {joined(broadcast_shapes(batch_of(a), DimsView(b.sizes).first(b.sizes.size() - 1)), {n}),
            a.dtype};
  }
  check_matrix(op, b, "B");
  const int64_t rows = b.sizes[b.sizes.size() - 2], columns = b.sizes.back();
  PRONG_CHECK((left ? rows : columns) == n, kRuntime, op,
              ": Incompatible shapes of A and B for "
              "the equation ",
              left ? "AX = B" : "XA = B", " (", n, "x", n, " and ", rows, "x", columns, ")");
  return {joined(broadcast_shapes(batch_of(a), batch_of(b)), {rows, columns}), a.dtype};
}

// B broadcast to the batch, by columns; a vector as one column.
Columns right_side(const Tensor& b, bool is_vector, DimsView batch) {
  const Tensor matrix = is_vector ? call_tensor("unsqueeze", b, int64_t(-1)) : b;
  return columns_of(broadcast_to(matrix, joined(batch, {matrix.size(-2), matrix.size(-1)})));
}

// Overwrites x with the solutions of op(A) X = B.
void solve_in_place(const Columns& factors, const Tensor& pivots, char op, const Columns& x) {
  const int64_t n = factors.rows;
  if (x.stored.numel() == 0) return;
  visit_matrix(x.stored.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_matrices(x.batch, [&](int64_t i) {
      const int64_t from = factors.batch == 1 ? 0 : i;
      blas::lu_solve(op, static_cast<int>(n), x.columns, factors.template at<T>(from),
                     pivots.data<int32_t>() + from * n, x.template at<T>(i));
    });
  });
}

Solution solve(const Tensor& a, const Tensor& b, bool left) {
  const TensorMeta result = solve_shape(a.meta(), b.meta(), left);
  const bool is_vector = is_vector_solve(a.meta(), b.meta());
  const Dims batch(DimsView(result.sizes).first(result.sizes.size() - (is_vector ? 1 : 2)));
  const Tensor given = left ? a : call_tensor("transpose", a, -2, -1);
  const Tensor all = product(batch_of(a.meta())) == 1 && !is_vector
                         ? given
                         : broadcast_to(given, joined(batch, {a.size(-2), a.size(-1)}));
  Solution out{{}, lu_of(all)};
  const Columns x = right_side(left ? b : call_tensor("transpose", b, -2, -1), is_vector, batch);
  if (first_failure(out.lu.info) < 0) solve_in_place(out.lu.factors, out.lu.pivots, 'N', x);
  out.x = left ? x.matrix() : x.stored;
  if (is_vector) out.x = call_tensor("squeeze.dim", out.x, int64_t(-1));
  return out;
}

[[noreturn]] void throw_singular(const char* op, const char* text, const Tensor& info, int64_t at) {
  throw_error(ErrorKind::kLinAlg, cat(element_prefix(op, info.rank() > 0, at), text));
}

void check_solved(const Tensor& info) {
  if (const int64_t at = first_failure(info); at >= 0)
    throw_singular("torch.linalg.solve", "The solver failed because the input matrix is singular.",
                   info, at);
}

// ── inverses ──

TensorMeta square_shape(const char* op, const TensorMeta& a) {
  check_inexact(op, a);
  check_square(op, a);
  return {a.sizes, a.dtype};
}

Lu inverse_of(const Tensor& a, Tensor& inverse) {
  square_shape("linalg.inv", a.meta());
  Lu lu = lu_of(a);
  const int64_t n = a.size(-1);
  const Columns x = empty_columns(batch_of(a.meta()), n, n, a.dtype());
  copy_into(x.stored, call_tensor("eye", n, n, a.dtype()));
  if (first_failure(lu.info) < 0) solve_in_place(lu.factors, lu.pivots, 'N', x);
  inverse = x.matrix();
  return lu;
}

Tensor inverse(const Tensor& a) {
  Tensor out;
  const Lu lu = inverse_of(a, out);
  if (const int64_t at = first_failure(lu.info); at >= 0)
    throw_singular("linalg.inv",
                   cat("The diagonal element ", lu.info.data<int32_t>()[at],
                       " is zero, the inversion could not be completed because the input matrix "
                       "is singular.")
                       .c_str(),
                   lu.info, at);
  return out;
}

TensorMeta info_meta(const TensorMeta& a) { return {Dims(batch_of(a)), DType::kInt32}; }

// ── determinants ──

struct Determinant {
  Tensor sign, log_size, value;
};

template <class T>
void accumulate(const T* lu, const int32_t* pivots, int n, T& sign, blas::Real<T>& log_size,
                T& value) {
  using R = blas::Real<T>;
  sign = 1;
  value = 1;
  log_size = 0;
  for (int i = 0; i < n; ++i) {
    const T d = lu[i * n + i];
    const R size = std::abs(d);
    if (pivots[i] != i + 1) {
      sign = -sign;
      value = -value;
    }
    sign *= size == R(0) ? T(0) : d / size;
    log_size += std::log(size);
    value *= d;
  }
}

Determinant determinant(const char* op, const Tensor& a) {
  square_shape(op, a.meta());
  const Lu lu = lu_of(a);
  const Dims batch(batch_of(a.meta()));
  Determinant out{Tensor::empty(batch, a.dtype()), Tensor::empty(batch, real_dtype(a.dtype())),
                  Tensor::empty(batch, a.dtype())};
  const int n = lu.factors.rows;
  visit_matrix(a.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < lu.factors.batch; ++i)
      accumulate<T>(lu.factors.template at<T>(i), lu.pivots.template data<int32_t>() + i * n, n,
                    out.sign.template data<T>()[i], out.log_size.template data<blas::Real<T>>()[i],
                    out.value.template data<T>()[i]);
  });
  return out;
}

TensorMeta det_shape(const char* op, const TensorMeta& a) {
  square_shape(op, a);
  return {Dims(batch_of(a)), a.dtype};
}

// The same rules serve an op of torch and one of torch.linalg, which call their argument otherwise.
const std::string& first_argument(Gradient& g) { return g.op().schema().arguments[0].name; }

void register_inverses(Registry& r) {
  const std::vector<Sample> square = {{"t(3, 3)" PRONG_EYE},
                                      {"t(2, 3, 3)" PRONG_EYE},
                                      {"t(0, 0)"},
                                      {"t(2, 2, 3, 3, dtype=float64)" PRONG_EYE}};
  for (const char* name : {"linalg_inv", "inverse"})
    add_op(r, cat(name, name[0] == 'l' ? "(A: Tensor) -> Tensor" : "(input: Tensor) -> Tensor"))
        .checks(&any_data_may_fail)
        .doc("The inverse of each square matrix.")
        .where(name[0] == 'l' ? kModuleOnly : Spelling{})
        .shape([](const TensorMeta& a) { return square_shape("linalg.inv", a); })
        .kernel([](const Tensor& a) { return inverse(a); })
        .grad(name[0] == 'l' ? "A" : "input", "result",
              [](Gradient& g) { return matrices::inverse_gradient(g.out(), g["result"]); })
        .samples(square)
        .reference(name[0] == 'l' ? "np.linalg.inv(A)" : "np.linalg.inv(input)");
  add_op(r,
         "linalg_inv_ex(A: Tensor, *, check_errors: bool = False) -> (Tensor inverse, Tensor info)")
      .checks(&check_if_asked)
      .doc("The inverse of each square matrix, and LAPACK's info: 0, or where it is singular.")
      .where(kModuleOnly)
      .shape([](const TensorMeta& a, bool) {
        return std::tuple(square_shape("linalg.inv", a), info_meta(a));
      })
      .kernel([](const Tensor& a, bool check_errors) {
        if (check_errors) inverse(a);
        Tensor out;
        const Lu lu = inverse_of(a, out);
        return std::tuple(out, lu.info);
      })
      .grad("A", "result.0",
            [](Gradient& g) { return matrices::inverse_gradient(g.out(), g["result.0"]); })
      .samples({{"t(3, 3)" PRONG_EYE}})
      .reference("(np.linalg.inv(A), np.int32(0))");
  for (const char* name : {"linalg_det", "det"})
    add_op(r, cat(name, name[0] == 'l' ? "(A: Tensor) -> Tensor" : "(input: Tensor) -> Tensor"))
        .doc("The determinant of each square matrix.")
        .where(name[0] == 'l' ? kModuleOnly : Spelling{})
        .shape([](const TensorMeta& a) { return det_shape("linalg.det", a); })
        .kernel([](const Tensor& a) { return determinant("linalg.det", a).value; })
        .grad(name[0] == 'l' ? "A" : "input", name[0] == 'l' ? "A, result" : "input, result",
              [](Gradient& g) {
                return matrices::determinant_gradient(g.out() * conj(g["result"]),
                                                      g[first_argument(g)]);
              })
        .samples(square)
        .reference(name[0] == 'l' ? "np.linalg.det(A)" : "np.linalg.det(input)");
  add_op(r, "logdet(input: Tensor) -> Tensor")
      .doc("The logarithm of the determinant; NaN where that is negative.")
      .shape([](const TensorMeta& a) { return det_shape("logdet", a); })
      .kernel([](const Tensor& a) {
        const Determinant d = determinant("logdet", a);
        if (is_complex(a.dtype()))
          return call_tensor("add", call_tensor("log", d.sign), d.log_size);
        const double nan = std::numeric_limits<double>::quiet_NaN();
        return call_tensor("where", call_tensor("lt", d.sign, 0), nan, d.log_size);
      })
      .grad("input", "input",
            [](Gradient& g) { return matrices::determinant_gradient(g.out(), g["input"]); })
      .samples({{"t(3, 3)" PRONG_EYE}, {"t(2, 3, 3)" PRONG_EYE}})
      .reference("np.log(np.linalg.det(input))");
  for (const char* name : {"linalg_slogdet", "slogdet"})
    add_op(r, cat(name, name[0] == 'l' ? "(A: Tensor)" : "(input: Tensor)",
                  " -> (Tensor sign, Tensor logabsdet)"))
        .doc("Sign and logarithm of the size of the determinant.")
        .where(name[0] == 'l' ? kModuleOnly : Spelling{})
        .shape([](const TensorMeta& a) {
          const TensorMeta sign = det_shape("linalg.slogdet", a);
          return std::tuple(sign, TensorMeta{sign.sizes, real_dtype(a.dtype)});
        })
        .kernel([](const Tensor& a) {
          const Determinant d = determinant("linalg.slogdet", a);
          return std::tuple(d.sign, d.log_size);
        })
        .grad(name[0] == 'l' ? "A" : "input", name[0] == 'l' ? "A, result.0" : "input, result.0",
              [](Gradient& g) {
                const Expr a = g[first_argument(g)];
                Expr slope = g.out(1);
                // With t = tr(A^-1 dA), log|det| changes by Re t and the sign by i Im t times it.
                if (is_complex(a.dtype()) && g.has_out(0)) {
                  const Expr turn = g.out(0) * conj(g["result.0"]);
                  slope = slope + (turn - conj(turn)) * 0.5;
                }
                return matrices::determinant_gradient(slope, a);
              })
        .samples(square)
        .reference(name[0] == 'l' ? "tuple(np.linalg.slogdet(A))"
                                  : "tuple(np.linalg.slogdet(input))");
}

// ── LU as users see it ──

void check_pivots(const char* op, DType pivots) {
  PRONG_CHECK(pivots == DType::kInt32, kRuntime, op,
              ": Expected pivots to be of dtype int32, but got ", pivots);
}
void check_pivoting(bool pivot) {
  PRONG_CHECK(pivot, kRuntime,
              "linalg.lu_factor: LU without pivoting is not implemented on the CPU");
}

TensorMeta pivots_meta(const TensorMeta& a) {
  return {joined(batch_of(a), {std::min(a.sizes.back(), a.sizes[a.sizes.size() - 2])}),
          DType::kInt32};
}

TensorMeta lu_meta(const TensorMeta& a) {
  check_matrix("torch.lu_factor", a);
  check_inexact("torch.lu_factor", a);
  return {a.sizes, a.dtype};
}

// The permutation matrix [..., m, m] of row exchanges.
Tensor permutation(const Tensor& pivots, int64_t m, DType dtype) {
  check_pivots("lu_unpack", pivots.dtype());
  const Tensor swaps = pivots.contiguous();
  const int64_t k = swaps.size(-1);
  const Dims batch(DimsView(swaps.sizes()).first(swaps.sizes().size() - 1));
  const Tensor p = Tensor::empty(joined(batch, {m, m}), dtype);
  fill(p, int64_t{0});
  for (int64_t b = 0; b < product(batch); ++b) {
    const int32_t* const from = swaps.data<int32_t>() + b * k;
    PRONG_CHECK(std::all_of(from, from + k, [m](int32_t r) { return r >= 1 && r <= m; }), kRuntime,
                "lu_unpack: pivots must be between 1 and ", m, ", the rows of LU");
    std::vector<int64_t> rows(static_cast<size_t>(m));
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int64_t>(i);
    for (int64_t i = 0; i < k; ++i)
      std::swap(rows[static_cast<size_t>(i)], rows[static_cast<size_t>(from[i] - 1)]);
    for (int64_t i = 0; i < m; ++i)
      fill(p.as_strided({}, {}, p.offset() + (b * m + rows[static_cast<size_t>(i)]) * m + i),
           int64_t{1});
  }
  return p;
}

// P and the two triangles; made of ops.
std::tuple<Tensor, Tensor, Tensor> unpacked(const Tensor& lu, const Tensor& pivots) {
  const int64_t m = lu.size(-2), n = lu.size(-1), k = std::min(m, n);
  const Tensor left = n == k ? lu : call_tensor("narrow", lu, -1, int64_t{0}, k);
  const Tensor top = m == k ? lu : call_tensor("narrow", lu, -2, int64_t{0}, k);
  const Tensor lower = call_tensor("add", call_tensor("tril", left, int64_t{-1}),
                                   call_tensor("eye", m, k, lu.dtype()));
  const Tensor swaps = call_tensor("expand", pivots, pivots_meta(lu.meta()).sizes);
  return {call_tensor("lu_permutation", swaps, m, lu.dtype()), lower, call_tensor("triu", top)};
}

std::tuple<TensorMeta, TensorMeta, TensorMeta> lu_parts_meta(const TensorMeta& a) {
  const int64_t m = a.sizes[a.sizes.size() - 2], n = a.sizes.back(), k = std::min(m, n);
  return {{joined(batch_of(a), {m, m}), a.dtype},
          {joined(batch_of(a), {m, k}), a.dtype},
          {joined(batch_of(a), {k, n}), a.dtype}};
}

TensorMeta lu_solve_shape(const TensorMeta& lu, const TensorMeta& pivots, const TensorMeta& b,
                          bool left) {
  const char* op = "linalg.lu_solve";
  check_inexact(op, lu);
  check_square(op, lu, "LU");
  check_matrix(op, b, "B");
  PRONG_CHECK(lu.dtype == b.dtype, kRuntime, op, ": Expected LU and B to have the same dtype");
  const Dims batch = broadcast_shapes(batch_of(lu), batch_of(b));
  const int64_t rows = b.sizes[b.sizes.size() - 2], columns = b.sizes.back(), n = lu.sizes.back();
  PRONG_CHECK((left ? rows : columns) == n, kRuntime, op, ": Incompatible shapes of LU and B for ",
              left ? "LU X = B" : "X LU = B", ": ", lu.sizes, " and ", b.sizes);
  check_pivots(op, pivots.dtype);
  check_expands(pivots.sizes, joined(batch, {n}));
  return {joined(batch, {rows, columns}), b.dtype};
}

Tensor solve_with_lu(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left,
                     bool adjoint) {
  lu_solve_shape(lu.meta(), pivots.meta(), b.meta(), left);
  const Dims batch = broadcast_shapes(batch_of(lu.meta()), batch_of(b.meta()));
  const int64_t n = lu.size(-1);
  const Columns factors = columns_of(broadcast_to(lu, joined(batch, {n, n})));
  const Tensor swaps = broadcast_to(pivots, joined(batch, {n})).contiguous();
  const auto* rows = swaps.data<int32_t>();
  PRONG_CHECK(std::all_of(rows, rows + swaps.numel(), [&](int32_t r) { return r >= 1 && r <= n; }),
              kRuntime, "linalg.lu_solve: pivots given to lu_solve must all be between 1 and ", n);
  const bool is_transposed = left == adjoint;
  const Tensor side = left ? b : call_tensor("mH", b);
  const Columns x = columns_of(broadcast_to(side, joined(batch, {side.size(-2), side.size(-1)})));
  solve_in_place(factors, swaps, is_transposed ? 'C' : 'N', x);
  return left ? x.matrix() : call_tensor("mH", x.matrix());
}

void register_lu(Registry& r) {
  const std::vector<Sample> any = {{"t(3, 3)" PRONG_EYE}, {"t(2, 4, 3)"}, {"t(3, 4)"}};
  add_op(r, "linalg_lu_factor(A: Tensor, *, pivot: bool = True) -> (Tensor LU, Tensor pivots)")
      .checks(&any_data_may_fail)
      .doc("L and U in one matrix, and the row exchanges.")
      .where(kModuleOnly)
      .shape([](const TensorMeta& a, bool) { return std::tuple(lu_meta(a), pivots_meta(a)); })
      .kernel([](const Tensor& a, bool pivot) {
        check_pivoting(pivot);
        lu_meta(a.meta());
        const Lu lu = lu_of(a);
        if (const int64_t at = first_failure(lu.info); at >= 0)
          throw_singular("torch.linalg.lu_factor",
                         "U has a zero on its diagonal, and using it on lu_solve would result in a "
                         "division by zero. If you still want to perform the factorization, "
                         "consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)",
                         lu.info, at);
        return std::tuple(lu.factors.matrix(), lu.pivots);
      })
      .grad("A", "result.0, result.1",
            [](Gradient& g) {
              return matrices::packed_lu_gradient(g.out(), g["result.0"], g["result.1"]);
            })
      .samples(any);
  add_op(r,
         "linalg_lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> "
         "(Tensor LU, Tensor pivots, Tensor info)")
      .checks(&check_if_asked)
      .doc("L and U in one matrix, the row exchanges, and LAPACK's info.")
      .where(kModuleOnly)
      .shape([](const TensorMeta& a, bool, bool) {
        return std::tuple(lu_meta(a), pivots_meta(a), info_meta(a));
      })
      .kernel([](const Tensor& a, bool pivot, bool check_errors) {
        check_pivoting(pivot);
        lu_meta(a.meta());
        const Lu lu = lu_of(a);
        if (check_errors) check_solved(lu.info);
        return std::tuple(lu.factors.matrix(), lu.pivots, lu.info);
      })
      .grad("A", "result.0, result.1",
            [](Gradient& g) {
              return matrices::packed_lu_gradient(g.out(), g["result.0"], g["result.1"]);
            })
      .samples(any);
  add_op(r, "lu_permutation(pivots: Tensor, size: int, dtype: dtype) -> Tensor")
      .checks([](DataCheck& c) { check_rows(c, c["pivots"], c["size"].to_int()); })
      .doc("The permutation matrix of the row exchanges of an LU.")
      .where(kModuleOnly)
      .not_differentiable("of whole numbers")
      .shape([](const TensorMeta& pivots, int64_t m, DType dtype) {
        return TensorMeta{joined(DimsView(pivots.sizes).first(pivots.sizes.size() - 1), {m, m}),
                          dtype};
      })
      .kernel([](const Tensor& pivots, int64_t m, DType dtype) {
        return permutation(pivots, m, dtype);
      })
      .samples({{"torch.tensor([2, 2, 3], dtype=int32), 3, float32"}});
  add_op(r, "linalg_lu(A: Tensor, *, pivot: bool = True) -> (Tensor P, Tensor L, Tensor U)")
      .doc("A as P L U: a permutation and two triangles.")
      .where(kModuleOnly)
      .shape([](const TensorMeta& a, bool) { return lu_parts_meta(lu_meta(a)); })
      .kernel([](const Tensor& a, bool pivot) {
        check_pivoting(pivot);
        lu_meta(a.meta());
        const IValue factors = call("linalg_lu_factor_ex", a, pivot, false);
        return unpacked(factors.items()[0].to_tensor(), factors.items()[1].to_tensor());
      })
      .composite()
      .samples(any);
  add_op(r,
         "lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: "
         "bool = True) -> (Tensor P, Tensor L, Tensor U)")
      .checks([](DataCheck& c) { check_rows(c, c["LU_pivots"], c.size(c["LU_data"], -2)); })
      .doc("P, L and U from what linalg.lu_factor gave.")
      .where({.method = false})
      .shape([](const TensorMeta& lu, const TensorMeta& pivots, bool, bool) {
        check_pivots("lu_unpack", pivots.dtype);
        check_expands(pivots.sizes, pivots_meta(lu).sizes);
        return lu_parts_meta(lu);
      })
      .kernel(
          [](const Tensor& lu, const Tensor& pivots, bool, bool) { return unpacked(lu, pivots); })
      .composite()
      .samples({{"t(3, 3), torch.tensor([2, 2, 3], dtype=int32)"}});
  add_op(r,
         "linalg_lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: "
         "bool = False) -> Tensor")
      .checks([](DataCheck& c) { check_rows(c, c["pivots"], c.size(c["LU"], -2)); })
      .doc("Solves A X = B (X A = B where not left) with the LU of A.")
      .where(kModuleOnly)
      .shape([](const TensorMeta& lu, const TensorMeta& pivots, const TensorMeta& b, bool left,
                bool) { return lu_solve_shape(lu, pivots, b, left); })
      .kernel([](const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left, bool adjoint) {
        return solve_with_lu(lu, pivots, b, left, adjoint);
      })
      .grad("LU, B", "LU, pivots, result",
            [](Gradient& g) {
              const bool left = g.flag("left"), adjoint = g.flag("adjoint");
              const Expr lu = g["LU"], pivots = g["pivots"];
              const Expr to_b = op<"linalg_lu_solve">(lu, pivots, g.out(), left, !adjoint);
              return std::tuple(g.needs("LU") ? matrices::lu_solve_gradient(to_b, g["result"], lu,
                                                                            pivots, left, adjoint)
                                              : g.none(),
                                to_b);
            })
      .samples(
          {{"t(3, 3)" PRONG_EYE ", torch.tensor([2, 2, 3], dtype=int32), t(3, 2)"},
           {"t(3, 3)" PRONG_EYE ", torch.tensor([2, 2, 3], dtype=int32), t(2, 3), left=False"}});
  add_op(r, "lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor")
      .checks([](DataCheck& c) { check_rows(c, c["LU_pivots"], c.size(c["LU_data"], -2)); })
      .doc("Solves A X = input with the LU of A.")
      .shape([](const TensorMeta& b, const TensorMeta& lu, const TensorMeta& pivots) {
        return lu_solve_shape(lu, pivots, b, true);
      })
      .kernel([](const Tensor& b, const Tensor& lu, const Tensor& pivots) {
        return solve_with_lu(lu, pivots, b, true, false);
      })
      .grad("input, LU_data", "LU_data, LU_pivots, result",
            [](Gradient& g) {
              const Expr lu = g["LU_data"], pivots = g["LU_pivots"];
              const Expr to_b = op<"linalg_lu_solve">(lu, pivots, g.out(), true, true);
              return std::tuple(to_b, g.needs("LU_data")
                                          ? matrices::lu_solve_gradient(to_b, g["result"], lu,
                                                                        pivots, true, false)
                                          : g.none());
            })
      .samples({{"t(3, 2), t(3, 3)" PRONG_EYE ", torch.tensor([2, 2, 3], dtype=int32)"}});
  add_op(r, "linalg_solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor")
      .checks(&any_data_may_fail)
      .doc("X of A X = B, or of X A = B where not left; B may be vectors.")
      .where(kModuleOnly)
      .shape([](const TensorMeta& a, const TensorMeta& b, bool left) {
        return solve_shape(a, b, left);
      })
      .kernel([](const Tensor& a, const Tensor& b, bool left) {
        const Solution s = solve(a, b, left);
        check_solved(s.lu.info);
        return s.x;
      })
      .grad("A, B", "A, result",
            [](Gradient& g) {
              const bool left = g.flag("left");
              const bool is_vector = is_vector_solve(g.meta("A"), g.meta("B"));
              const Expr to_b = matrices::solve(matrices::adjoint(g["A"]), g.out(0), left);
              return std::tuple(matrices::solve_gradient(to_b, g["result"], left, is_vector), to_b);
            })
      .samples({{"t(3, 3)" PRONG_EYE ", t(3)"},
                {"t(2, 3, 3)" PRONG_EYE ", t(2, 3, 2)"},
                {"t(3, 3)" PRONG_EYE ", t(2, 3, 2)"},
                {"t(3, 3)" PRONG_EYE ", t(2, 3), left=False"}})
      .reference(
          "np.linalg.solve(A, B) if left else np.linalg.solve(A.swapaxes(-1, -2), B.swapaxes(-1, "
          "-2)).swapaxes(-1, -2)");
  add_op(r,
         "linalg_solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) "
         "-> (Tensor result, Tensor info)")
      .checks(&check_if_asked)
      .doc("X of A X = B, and LAPACK's info: 0, or where A is singular.")
      .where(kModuleOnly)
      .shape([](const TensorMeta& a, const TensorMeta& b, bool left, bool) {
        return std::tuple(solve_shape(a, b, left), info_meta(a));
      })
      .kernel([](const Tensor& a, const Tensor& b, bool left, bool check_errors) {
        const Solution s = solve(a, b, left);
        if (check_errors) check_solved(s.lu.info);
        return std::tuple(s.x, s.lu.info);
      })
      .grad("A, B", "A, result.0",
            [](Gradient& g) {
              const bool left = g.flag("left");
              const bool is_vector = is_vector_solve(g.meta("A"), g.meta("B"));
              const Expr to_b = matrices::solve(matrices::adjoint(g["A"]), g.out(0), left);
              return std::tuple(matrices::solve_gradient(to_b, g["result.0"], left, is_vector),
                                to_b);
            })
      .samples({{"t(3, 3)" PRONG_EYE ", t(3, 2)"}})
      .reference("(np.linalg.solve(A, B), np.int32(0))");
}

// ── Cholesky and triangles ──

struct Factor {
  Tensor factor, info;
};

Factor cholesky(const char* op, const Tensor& a, bool upper) {
  square_shape(op, a.meta());
  const Columns c = columns_of(a);
  const Tensor info = Tensor::empty(batch_of(a.meta()), DType::kInt32);
  visit_matrix(a.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_matrices(c.batch, [&](int64_t i) {
      info.template data<int32_t>()[i] =
          blas::cholesky(upper ? 'U' : 'L', c.rows, c.template at<T>(i));
    });
  });
  return {call_tensor(upper ? "triu" : "tril", c.matrix()), info};
}

void check_positive(const char* op, const Tensor& info) {
  if (const int64_t at = first_failure(info); at >= 0)
    throw_singular(op,
                   cat("The factorization could not be completed because the input is not "
                       "positive-definite (the leading minor of order ",
                       info.data<int32_t>()[at], " is not positive-definite).")
                       .c_str(),
                   info, at);
}

TensorMeta triangle_shape(const TensorMeta& a, const TensorMeta& b, bool left) {
  const char* name = "linalg.solve_triangular";
  check_inexact(name, a);
  check_square(name, a);
  check_matrix(name, b, "B");
  PRONG_CHECK(a.dtype == b.dtype, kRuntime, name, ": Expected A and B to have the same dtype");
  const int64_t rows = b.sizes[b.sizes.size() - 2], columns = b.sizes.back(), n = a.sizes.back();
  PRONG_CHECK((left ? rows : columns) == n, kRuntime, name,
              ": Incompatible shapes of A and B for the equation ", left ? "AX = B" : "XA = B",
              " (", n, "x", n, " and ", rows, "x", columns, ")");
  return {joined(broadcast_shapes(batch_of(a), batch_of(b)), {rows, columns}), b.dtype};
}

Tensor triangle_solve(const Tensor& a, const Tensor& b, bool upper, bool left, bool unit) {
  triangle_shape(a.meta(), b.meta(), left);
  const Dims batch = broadcast_shapes(batch_of(a.meta()), batch_of(b.meta()));
  const Columns t = columns_of(broadcast_to(a, joined(batch, {a.size(-2), a.size(-1)})));
  const Columns x = columns_of(broadcast_to(b, joined(batch, {b.size(-2), b.size(-1)})));
  if (x.stored.numel() > 0)
    visit_matrix(a.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      for_matrices(x.batch, [&](int64_t i) {
        blas::triangle_solve(left, upper ? 'U' : 'L', 'N', unit, x.rows, x.columns,
                             static_cast<const T*>(t.template at<T>(i)), x.template at<T>(i));
      });
    });
  return x.matrix();
}

// X of L L^H X = B, or of U^H U X = B.
Tensor solve_twice(const Tensor& factor, const Tensor& b, bool upper) {
  const Tensor h = call_tensor("adjoint", factor);
  const Tensor y =
      call_tensor("linalg_solve_triangular", upper ? h : factor, b, false, true, false);
  return call_tensor("linalg_solve_triangular", upper ? factor : h, y, true, true, false);
}

void register_cholesky(Registry& r) {
  const std::vector<Sample> positive = {
      {"torch.tensor([[4., 1.], [1., 3.]])"},
      {"torch.tensor([[[4., 1.], [1., 3.]], [[2., 0.5], [0.5, 2.]]])"},
      {"torch.tensor([[4., 1.], [1., 3.]]), upper=True"},
      {"t(0, 0)"}};
  for (const char* name : {"linalg_cholesky", "cholesky"})
    add_op(r, name[0] == 'l' ? "linalg_cholesky(A: Tensor, *, upper: bool = False) -> Tensor"
                             : "cholesky(input: Tensor, upper: bool = False) -> Tensor")
        .checks(&any_data_may_fail)
        .doc("The triangle L with L L^H = A, of Hermitian positive-definite matrices.")
        .where(name[0] == 'l' ? kModuleOnly : Spelling{})
        .shape([](const TensorMeta& a, bool) { return square_shape("linalg.cholesky", a); })
        .kernel([](const OpDef& op, const Tensor& a, bool upper) {
          const char* shown = op.base_name() == "cholesky" ? "cholesky" : "linalg.cholesky";
          const Factor f = cholesky(shown, a, upper);
          check_positive(shown, f.info);
          return f.factor;
        })
        .grad(name[0] == 'l' ? "A" : "input", "result",
              [](Gradient& g) {
                return matrices::cholesky_gradient(g.out(), g["result"], g.flag("upper"));
              })
        .samples(positive)
        .reference(
            name[0] == 'l'
                ? "(lambda l: l.swapaxes(-1, -2) if upper else l)(np.linalg.cholesky(A))"
                : "(lambda l: l.swapaxes(-1, -2) if upper else l)(np.linalg.cholesky(input))");
  add_op(r,
         "linalg_cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> "
         "(Tensor L, Tensor info)")
      .checks(&check_if_asked)
      .doc("The Cholesky factor, and LAPACK's info: 0, or where A is not positive-definite.")
      .where(kModuleOnly)
      .shape([](const TensorMeta& a, bool, bool) {
        return std::tuple(square_shape("linalg.cholesky", a), info_meta(a));
      })
      .kernel([](const Tensor& a, bool upper, bool check_errors) {
        const Factor f = cholesky("linalg.cholesky", a, upper);
        if (check_errors) check_positive("linalg.cholesky_ex", f.info);
        return std::tuple(f.factor, f.info);
      })
      .grad("A", "result.0",
            [](Gradient& g) {
              return matrices::cholesky_gradient(g.out(), g["result.0"], g.flag("upper"));
            })
      .samples({{"torch.tensor([[4., 1.], [1., 3.]])"}})
      .reference("(np.linalg.cholesky(A), np.int32(0))");
  add_op(r, "cholesky_solve(input: Tensor, L: Tensor, upper: bool = False) -> Tensor")
      .doc("X of A X = input with the Cholesky factor of A.")
      .shape(
          [](const TensorMeta& b, const TensorMeta& l, bool) { return triangle_shape(l, b, true); })
      .kernel([](const Tensor& b, const Tensor& l, bool upper) { return solve_twice(l, b, upper); })
      .composite()
      .samples({{"t(2, 3), torch.tensor([[2., 0.], [1., 3.]])"},
                {"t(2, 3), torch.tensor([[2., 1.], [0., 3.]]), True"}})
      .reference("np.linalg.solve(L.T @ L if upper else L @ L.T, input)");
  add_op(r, "cholesky_inverse(input: Tensor, upper: bool = False) -> Tensor")
      .doc("The inverse of A from its Cholesky factor.")
      .shape([](const TensorMeta& l, bool) { return square_shape("cholesky_inverse", l); })
      .kernel([](const Tensor& l, bool upper) {
        square_shape("cholesky_inverse", l.meta());
        const Tensor eye = call_tensor("eye", l.size(-1), l.size(-1), l.dtype());
        return solve_twice(l, eye, upper);
      })
      .composite()
      .samples({{"torch.tensor([[2., 0.], [1., 3.]])"}})
      .reference("np.linalg.inv(input @ input.T)");
  add_op(r,
         "linalg_solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, "
         "unitriangular: bool = False) -> Tensor")
      .doc("X of A X = B (X A = B where not left) for a triangle A.")
      .where(kModuleOnly)
      .shape([](const TensorMeta& a, const TensorMeta& b, bool, bool left, bool) {
        return triangle_shape(a, b, left);
      })
      .kernel([](const Tensor& a, const Tensor& b, bool upper, bool left, bool unit) {
        return triangle_solve(a, b, upper, left, unit);
      })
      .grad("A, B", "A, result",
            [](Gradient& g) {
              const bool upper = g.flag("upper"), left = g.flag("left"),
                         unit = g.flag("unitriangular");
              const Expr to_b = op<"linalg_solve_triangular">(matrices::adjoint(g["A"]), g.out(),
                                                              !upper, left, unit);
              const Expr to_a = matrices::solve_gradient(to_b, g["result"], left, false);
              const int64_t edge = unit ? 1 : 0;
              return std::tuple(upper ? op<"triu">(to_a, edge) : op<"tril">(to_a, -edge), to_b);
            })
      .samples({{"torch.tensor([[2., 0.], [1., 3.]]), t(2, 3), upper=False"},
                {"torch.tensor([[2., 1.], [0., 3.]]), t(3, 2), upper=True, left=False"}})
      .reference("np.linalg.solve(A, B) if left else np.linalg.solve(A.T, B.T).T");
  add_op(r,
         "triangular_solve(input: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, "
         "unitriangular: bool = False) -> (Tensor solution, Tensor cloned_coefficient)")
      .doc("X of A X = input for a triangle A, and a copy of A.")
      .shape([](const TensorMeta& b, const TensorMeta& a, bool, bool, bool) {
        return std::tuple(triangle_shape(a, b, true), TensorMeta{a.sizes, a.dtype});
      })
      .kernel([](const Tensor& b, const Tensor& a, bool upper, bool transpose, bool unit) {
        const Tensor t = transpose ? call_tensor("transpose", a, int64_t(-2), int64_t(-1)) : a;
        return std::tuple(
            call_tensor("linalg_solve_triangular", t, b, upper != transpose, true, unit),
            call_tensor("clone", a));
      })
      .composite()
      .samples({{"t(2, 3), torch.tensor([[2., 1.], [0., 3.]])"}})
      .reference("(np.linalg.solve(A, input), A)");
}

}  // namespace

void register_linalg_solve(Registry& r) {
  register_inverses(r);
  register_lu(r);
  register_cholesky(r);
}

}  // namespace prong
