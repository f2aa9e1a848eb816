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

Expr beside(const Expr& a, const Expr& b, int64_t dim) {
  const IValue both = IValue::list({a.value(), b.value()});
  return Expr(a.builder(), a.builder()("cat", {both, IValue(dim)}));
}

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
  return beside(gx, mm(q, gv), -1);
}

// The product of I - tau_i v_i v_i^H is I - V T V^H, where V has unit diagonal and T is
// (I + D S)^-1 D with D = diag(tau) and S what stands above the diagonal of V^H V (the compact WY
// form, Schreiber and Van Loan 1989). Q are its first n columns: E - V T W^H, W the first n rows of
// V.
std::tuple<Expr, Expr> householder_gradient(const Expr& gradient, const Expr& a, const Expr& tau) {
  const int64_t m = rows(a), n = columns(a), k = tau.sizes().back();
  Builder& b = a.builder();
  const auto eye = [&](int64_t height, int64_t width) {
    return Expr(b, b("eye", {IValue(height), IValue(width), to_ivalue(a.dtype())}));
  };
  const auto above = [](const Expr& x) { return op<"triu">(x, int64_t(1)); };
  const Expr v = tril(op<"narrow">(a, int64_t(-1), int64_t(0), k), -1) + eye(m, k);
  const Expr w = op<"narrow">(v, int64_t(-2), int64_t(0), n);
  const Expr s = above(mm(adjoint(v), v));
  const Expr scaled = column(tau) * s + eye(k, k);
  const Expr t = op<"linalg_solve_triangular">(scaled, diagonal_matrix(tau), true, true, true);

  const Expr gw = mm(gradient, w), to_t = -mm(adjoint(v), gw);
  const Expr x = op<"linalg_solve_triangular">(adjoint(scaled), to_t, false, true, true);
  const Expr to_tau = diagonal(mm(x, adjoint(eye(k, k) - mm(s, t))));
  const Expr to_s = above(-(column(conj(tau)) * mm(x, adjoint(t))));
  const Expr to_w = -mm(adjoint(gradient), mm(v, t));
  Expr to_v = mm(v, to_s + adjoint(to_s)) - mm(gw, adjoint(t));
  to_v = to_v + op<"constant_pad_nd">(to_w, Dims{0, 0, 0, m - n});
  return {op<"constant_pad_nd">(tril(to_v, -1), Dims{0, n - k}), to_tau};
}

namespace {

// P L U = A: dL and dU are the two triangles of L^-1 P^H dA U^-1 times L and U; what is beside the
// square part of a wide U or a tall L is linear in A.
Expr lu_gradient(const Expr& gl, const Expr& gu, const Expr& p, const Expr& l, const Expr& u) {
  const int64_t m = rows(l), n = columns(u), k = std::min(m, n);
  const auto first = [&](const Expr& x, int64_t dim) {
    return op<"narrow">(x, dim, int64_t(0), k);
  };
  const auto rest = [&](const Expr& x, int64_t dim, int64_t size) {
    return op<"narrow">(x, dim, k, size - k);
  };
  const Expr l1 = first(l, -2), u1 = first(u, -1);
  Expr below = mm(adjoint(l1), first(gl, -2)), above = mm(first(gu, -1), adjoint(u1));
  if (n > k) below = below - mm(rest(gu, -1, n), adjoint(rest(u, -1, n)));
  if (m > k) above = above - mm(adjoint(rest(l, -2, m)), rest(gl, -2, m));
  const auto by_l = [&](const Expr& x) {
    return op<"linalg_solve_triangular">(adjoint(l1), x, true, true, true);
  };
  const auto by_u = [&](const Expr& x) {
    return op<"linalg_solve_triangular">(adjoint(u1), x, false, false, false);
  };
  Expr result = by_u(by_l(tril(below, -1) + op<"triu">(above)));
  if (n > k) result = beside(result, by_l(rest(gu, -1, n)), -1);
  if (m > k) result = beside(result, by_u(rest(gl, -2, m)), -2);
  return mm(p, result);
}

}  // namespace

// Of both triangles in one matrix, as lu_factor gives them.
Expr packed_lu_gradient(const Expr& gradient, const Expr& lu, const Expr& pivots) {
  const int64_t m = rows(lu), n = columns(lu), k = std::min(m, n);
  const Expr parts = op<"lu_unpack">(lu, pivots);
  return lu_gradient(tril(op<"narrow">(gradient, int64_t(-1), int64_t(0), k), -1),
                     op<"triu">(op<"narrow">(gradient, int64_t(-2), int64_t(0), k)), parts[0],
                     parts[1], parts[2]);
}

namespace {

// What flows to the packed matrix from its two triangles.
Expr packed(const Expr& gl, const Expr& gu) {
  const int64_t m = rows(gl), n = columns(gu), k = std::min(m, n);
  Expr below = tril(gl, -1), above = op<"triu">(gu);
  const auto zeros = [](const Expr& like, int64_t dim, int64_t size) {
    Dims sizes = like.sizes();
    sizes[sizes.size() - static_cast<size_t>(-dim)] = size;
    return op<"new_zeros">(like, sizes);
  };
  if (n > k) below = beside(below, zeros(below, -1, n - k), -1);
  if (m > k) above = beside(above, zeros(above, -2, m - k), -2);
  return below + above;
}

}  // namespace

// A has the factors, op(A) X = B or X op(A) = B; to_b is what flows to B.
Expr lu_solve_gradient(const Expr& to_b, const Expr& x, const Expr& lu, const Expr& pivots,
                       bool left, bool is_adjoint) {
  Expr to_a = solve_gradient(to_b, x, left, false);
  if (is_adjoint) to_a = adjoint(to_a);
  const Expr parts = op<"lu_unpack">(lu, pivots);
  const Expr turned = mm(op<"mT">(parts[0]), to_a);
  return packed(mm(turned, adjoint(parts[2])), mm(adjoint(parts[1]), turned));
}

// A V = V diag(l), columns of V of length one: with F_ij = 1 / (l_j - l_i) off the diagonal.
Expr eig_gradient(Gradient& g, const Expr& values, const Expr& vectors) {
  const Expr vh = adjoint(vectors);
  Expr inner = diagonal_matrix(g.out(0));
  if (g.has_out(1)) {
    const Expr slope = mm(vh, g.out(1));
    const Expr along = op<"real">(diagonal(slope));  // changes no length
    const Expr turned = slope - mm(vh, vectors * op<"to">(unsqueeze(along, -2), slope.dtype()));
    const Expr eye = diagonal_matrix(op<"ones_like">(values));
    const Expr gaps = conj(unsqueeze(values, -2) - unsqueeze(values, -1));
    inner = inner + op<"where">(op<"eq">(eye, 1), 0.0, turned / (gaps + eye));
  }
  return solve(vh, mm(inner, vh));
}

// X = A^+ B, and the squares of A X - B, which X makes as small as they can be.
std::tuple<Expr, Expr> least_squares_gradient(Gradient& g, const Expr& a, const Expr& given_b,
                                              const Expr& given_x) {
  const bool is_vector = given_b.rank() == a.rank() - 1;
  const auto matrix = [&](const Expr& v) { return is_vector ? column(v) : v; };
  const Expr b = matrix(given_b), x = matrix(given_x), p = op<"linalg_pinv">(a);
  const Expr gx = matrix(g.out(0));
  Expr to_a = pinv_gradient(mm(gx, adjoint(b)), a, p), to_b = mm(adjoint(p), gx);
  if (g.has_out(1) && g.out(1).meta().numel() > 0) {
    const Expr rest = (mm(a, x) - b) * unsqueeze(g.out(1), -2) * 2.0;
    to_a = to_a + mm(rest, adjoint(x));
    to_b = to_b - rest;
  }
  return {to_a, is_vector ? op<"squeeze.dim">(to_b, int64_t(-1)) : to_b};
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

// The vectors past the singular values, of full_matrices, may be any basis of what is left: their
// gradients are ignored.
Expr svd_gradient(Gradient& g, const Expr& full_u, const Expr& s, const Expr& full_vh,
                  const Expr& to_vh) {
  const int64_t m = rows(full_u), n = columns(full_vh), k = columns(s);
  const auto first = [&](const Expr& x, int64_t dim) {
    return x.sizes()[x.sizes().size() - static_cast<size_t>(-dim)] == k
               ? x
               : op<"narrow">(x, dim, int64_t(0), k);
  };
  const Expr u = first(full_u, -1), vh = first(full_vh, -2);
  const Expr gu = g.has_out(0) ? first(g.out(0), -1) : g.none();
  const Expr gvh = to_vh.defined() ? first(to_vh, -2) : to_vh;
  const Expr v = adjoint(vh), row = unsqueeze(s, -2), col = column(s);
  const auto typed = [&](const Expr& x) {
    return is_complex_valued(u) ? op<"to">(x, u.dtype()) : x;
  };
  Expr inner = typed(diagonal_matrix(g.out(1)));
  const Expr eye = diagonal_matrix(op<"ones_like">(s));
  const Expr gaps =
      op<"square">(row) - op<"square">(col) + eye;  // s_j^2 - s_i^2, 1 on the diagonal
  Expr left, right;
  if (gu.defined()) {
    left = mm(adjoint(u), gu);
    inner = inner + skew(left) / gaps * row;
  }
  if (gvh.defined()) {
    right = mm(vh, adjoint(gvh));
    inner = inner + skew(right) / gaps * col;
  }
  if (is_complex_valued(u) && left.defined())
    inner = inner + diagonal_matrix((diagonal(left) - conj(diagonal(left))) / (s * 2.0));
  Expr result = mm(u, mm(inner, vh));
  if (left.defined() && m > k) {
    const Expr rest = gu - mm(u, left);
    result = result + mm(rest / row, vh);
  }
  if (right.defined() && n > k) {
    const Expr rest = gvh - mm(adjoint(right), vh);
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
