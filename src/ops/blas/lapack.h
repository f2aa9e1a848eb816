// Factorisations of one matrix, stored by columns without gaps. Called by the kernels of linalg;
// may run on several threads at once. Each returns LAPACK's info: 0, or what went wrong.
#pragma once

#include <complex>

namespace prong::blas {

template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using type = T;
};
template <class T>
using Real = typename RealOf<T>::type;

// All are there for float, double and the complex numbers of both.

// [m, n] into L and U; pivots[i] is the row, counted from 1, that row i changed places with.
template <class T>
int lu(int m, int n, T* a, int* pivots);
// Solves op(A) X = B, with B [n, columns] overwritten; op: 'N', 'T' or 'C'.
template <class T>
int lu_solve(char op, int n, int columns, const T* lu, const int* pivots, T* b);

// uplo: which triangle is read and written, 'L' or 'U'.
template <class T>
int cholesky(char uplo, int n, T* a);
template <class T>
int cholesky_solve(char uplo, int n, int columns, const T* factor, T* b);
template <class T>
int cholesky_inverse(char uplo, int n, T* factor);

// Solves op(A) X = B, or X op(A) = B where !left, for a triangle A; B is [m, n] and overwritten.
template <class T>
void triangle_solve(bool left, char uplo, char op, bool has_unit_diagonal, int m, int n, const T* a,
                    T* b);

// [m, n] into R and Householder vectors; then the first `n` columns of Q from `k` of them.
template <class T>
int qr(int m, int n, T* a, T* tau);
template <class T>
int form_q(int m, int n, int k, T* a, const T* tau);

// job: 'A' all of U [m, m] and Vh [n, n], 'S' the first min(m, n), 'N' only s. Destroys a.
template <class T>
int svd(char job, int m, int n, T* a, Real<T>* s, T* u, T* vh);

// Eigenvalues of a Hermitian matrix, ascending; a becomes the eigenvectors where wanted.
template <class T>
int eigh(bool wants_vectors, char uplo, int n, T* a, Real<T>* values);
// Of any square matrix; vectors may be null. Destroys a.
template <class T>
int eig(int n, T* a, std::complex<Real<T>>* values, std::complex<Real<T>>* vectors);

// Least squares by singular values: b [max(m, n), columns] becomes the solution in its first n
// rows.
template <class T>
int least_squares(int m, int n, int columns, T* a, T* b, Real<T>* s, double rcond, int* rank);

}  // namespace prong::blas
