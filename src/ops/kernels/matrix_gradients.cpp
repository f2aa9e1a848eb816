// The derivatives of factorisations, in the notation of their ops; see matrix_gradients.h. G stands
// for the gradient that comes in, H for the conjugate transpose.
#include "ops/kernels/matrix_gradients.h"

namespace prong::matrices {

namespace {

Expr mm(const Expr& a, const Expr& b) { return op<"matmul">(a, b); }
Expr tril(const Expr& a, int64_t diagonal = 0) { return op<"tril">(a, diagonal); }
Expr diagonal(const Expr& a) { return op<"diagonal">(a, int64_t(0), int64_t(-2), int64_t(-1)); }
Expr unsqueeze(const Expr& a, int64_t dim) { return op<"unsqueeze">(a, dim); }

bool is_complex_valued(const Expr& a) { return is_complex(a.dtype()); }

Expr skew(const Expr& x) { return x - adjoint(x); }

int64_t rows(const Expr& a) { return a.sizes()[a.sizes().size() - 2]; }
int64_t columns(const Expr& a) { return a.sizes().back(); }

}  // namespace

Expr adjoint(const Expr& a) { return conj(op<"transpose">(a, int64_t(-2), int64_t(-1))); }
Expr operator_product(const Expr& a, const Expr& b) { return mm(a, b); }
Expr column(const Expr& v) { return unsqueeze(v, -1); }
Expr as_matrix_factor(const Expr& v) { return unsqueeze(unsqueeze(v, -1), -1); }
Expr diagonal_matrix(const Expr& v) { return op<"diag_embed">(v); }
Expr solve(const Expr& a, const Expr& b, bool left) { return op<"linalg_solve">(a, b, left); }

// A^-1 changes by -A^-1 dA A^-1.
Expr inverse_gradient(const Expr& gradient, const Expr& inverse) {
  const Expr h = adjoint(inverse);
  return -mm(h, mm(gradient, h));
}

// log det A changes by the trace of A^-1 dA.
Expr determinant_gradient(const Expr& gradient, const Expr& a) {
  return as_matrix_factor(gradient) * adjoint(op<"linalg_inv_ex">(a)[0]);
}

// L L^H = A: L changes by L phi(L^-1 dA L^-H), where phi takes the lower triangle and half of the
// diagonal.
Expr cholesky_gradient(const Expr& given, const Expr& factor, bool upper) {
  const Expr l = upper ? adjoint(factor) : factor;
  const Expr gradient = upper ? adjoint(given) : given;
  const Expr product = mm(adjoint(l), gradient);
  const Expr phi = (tril(product) + adjoint(tril(product, -1))) * 0.5;
  const Expr left = op<"linalg_solve_triangular">(adjoint(l), phi, true, true, false);
  return op<"linalg_solve_triangular">(l, left, false, false, false);
}

namespace {

// Where R is square.
Expr square_qr_gradient(const Expr& gq, const Expr& gr, const Expr& q, const Expr& r) {
  const Expr m = mm(r, adjoint(gr)) - mm(adjoint(gq), q);
  // Both triangles from the lower one, and a real diagonal.
  const Expr below = tril(m, -1), middle = diagonal(m);
  const Expr symmetric = below + adjoint(below) + diagonal_matrix((middle + conj(middle)) * 0.5);
  return op<"linalg_solve_triangular">(adjoint(r), gq + mm(q, symmetric), false, false, false);
}

}  // namespace

Expr qr_gradient(Gradient& g, const Expr& q, const Expr& r) {
  const Expr gq = g.out(0), gr = g.out(1);
  const int64_t m = rows(r), n = columns(r);
  PRONG_CHECK(m <= n, kNotImplemented,
              "the QR decomposition is not differentiable when mode='complete' and nrows > ncols");
  if (m == n) return square_qr_gradient(gq, gr, q, r);
  // A = [X Y] = Q [U V]: X is Q U, and V is Q^H Y.
  const auto first = [&](const Expr& a) { return op<"narrow">(a, int64_t(-1), int64_t(0), m); };
  const auto rest = [&](const Expr& a) { return op<"narrow">(a, int64_t(-1), m, n - m); };
  const Expr y = mm(q, rest(r)), gv = rest(gr);
  const Expr gx = square_qr_gradient(gq + mm(y, adjoint(gv)), first(gr), q, first(r));
  const IValue parts[] = {IValue::list({gx.value(), mm(q, gv).value()}), IValue(int64_t(-1))};
  return g.expr(g.builder().apply(registry().get("cat"), parts));
}

// dV = V (F o V^H dA V), with F_ij = 1 / (l_j - l_i) off the diagonal.
Expr eigh_gradient(Gradient& g, const Expr& values, const Expr& vectors) {
  const Expr vh = adjoint(vectors);
  Expr inner = diagonal_matrix(g.out(0));
  if (is_complex_valued(vectors)) inner = op<"to">(inner, vectors.dtype());
  if (g.has_out(1)) {
    const Expr gaps = unsqueeze(values, -2) - unsqueeze(values, -1);
    const Expr eye = diagonal_matrix(op<"ones_like">(values));
    const Expr turned = skew(mm(vh, g.out(1))) * 0.5;  // along what keeps V unitary
    inner = inner + op<"where">(op<"eq">(eye, 1), 0.0, turned / op<"add">(gaps, eye));
  }
  return mm(vectors, mm(inner, vh));
}

Expr svd_gradient(Gradient& g, const Expr& u, const Expr& s, const Expr& vh, const Expr& to_vh) {
  const int64_t m = rows(u), n = columns(vh), k = columns(s);
  PRONG_CHECK(columns(u) == k && rows(vh) == k, kNotImplemented,
              "prong has no gradient yet of the svd with full_matrices=True of matrices that are "
              "not square");
  const Expr v = adjoint(vh), row = unsqueeze(s, -2), col = column(s);
  const auto typed = [&](const Expr& x) {
    return is_complex_valued(u) ? op<"to">(x, u.dtype()) : x;
  };
  Expr inner = typed(diagonal_matrix(g.out(1)));
  const Expr eye = diagonal_matrix(op<"ones_like">(s));
  const Expr gaps =
      op<"square">(row) - op<"square">(col) + eye;  // s_j^2 - s_i^2, 1 on the diagonal
  Expr left, right;
  if (g.has_out(0)) {
    left = mm(adjoint(u), g.out(0));
    inner = inner + skew(left) / gaps * row;
  }
  if (to_vh.defined()) {
    right = mm(vh, adjoint(to_vh));
    inner = inner + skew(right) / gaps * col;
  }
  if (is_complex_valued(u) && left.defined())
    inner = inner + diagonal_matrix((diagonal(left) - conj(diagonal(left))) / (s * 2.0));
  Expr result = mm(u, mm(inner, vh));
  if (left.defined() && m > k) {
    const Expr rest = g.out(0) - mm(u, left);
    result = result + mm(rest / row, vh);
  }
  if (right.defined() && n > k) {
    const Expr rest = to_vh - mm(adjoint(right), vh);
    result = result + mm(u / row, rest);
  }
  return result;
}

Expr pinv_gradient(const Expr& gradient, const Expr& a, const Expr& p) {
  const Expr ph = adjoint(p), gh = adjoint(gradient);
  if (rows(a) <= columns(a)) {
    const Expr k = mm(gh, p), kph = mm(k, ph);
    return -adjoint(mm(p, k)) + kph - mm(mm(a, p), kph) + mm(mm(ph, p), gh - mm(k, a));
  }
  const Expr k = mm(p, gh), phk = mm(ph, k);
  return -adjoint(mm(k, p)) + mm(mm(gh - mm(a, k), p), ph) + phk - mm(mm(phk, p), a);
}

Expr solve_gradient(const Expr& to_right_side, const Expr& x, bool left, bool is_vector) {
  if (is_vector) return -mm(column(to_right_side), adjoint(column(x)));
  return left ? -mm(to_right_side, adjoint(x)) : -mm(adjoint(x), to_right_side);
}

}  // namespace prong::matrices
