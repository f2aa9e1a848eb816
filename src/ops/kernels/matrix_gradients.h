// Gradient rules of linalg as functions of expressions. Used by defs/linalg*.cpp.
#pragma once

#include "ops/gradient.h"

namespace prong::matrices {

Expr adjoint(const Expr& a);                          // conjugate transpose
Expr operator_product(const Expr& a, const Expr& b);  // matmul
Expr column(const Expr& v);                           // [...] → [..., 1]
Expr as_matrix_factor(const Expr& v);                 // [...] → [..., 1, 1]
Expr diagonal_matrix(const Expr& v);
Expr solve(const Expr& a, const Expr& b, bool left = true);

Expr inverse_gradient(const Expr& gradient, const Expr& inverse);
Expr determinant_gradient(const Expr& gradient,
                          const Expr& a);  // of the logarithm of the determinant
Expr cholesky_gradient(const Expr& gradient, const Expr& factor, bool upper);
Expr qr_gradient(Gradient& g, const Expr& q, const Expr& r);
std::tuple<Expr, Expr> householder_gradient(const Expr& gradient, const Expr& a, const Expr& tau);
Expr packed_lu_gradient(const Expr& gradient, const Expr& lu, const Expr& pivots);
Expr lu_solve_gradient(const Expr& to_b, const Expr& x, const Expr& lu, const Expr& pivots,
                       bool left, bool is_adjoint);
std::tuple<Expr, Expr> least_squares_gradient(Gradient& g, const Expr& a, const Expr& b,
                                              const Expr& x);
Expr eig_gradient(Gradient& g, const Expr& values, const Expr& vectors);
Expr eigh_gradient(Gradient& g, const Expr& values, const Expr& vectors);
// to_vh: the gradient to vh, or undefined.
Expr svd_gradient(Gradient& g, const Expr& u, const Expr& s, const Expr& vh, const Expr& to_vh);
Expr pinv_gradient(const Expr& gradient, const Expr& a, const Expr& pinv);
// Of X in A X = B (X A = B): what flows to A, from what flows to B.
Expr solve_gradient(const Expr& to_right_side, const Expr& x, bool left, bool is_vector);

}  // namespace prong::matrices
