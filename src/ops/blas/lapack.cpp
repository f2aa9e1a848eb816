// LAPACK by its C interface, overloaded on the element type. Called through lapack.h.
#include "ops/blas/lapack.h"

// LAPACKE's own complex type is C's.
#define lapack_complex_float std::complex<float>
#define lapack_complex_double std::complex<double>
#include <cblas.h>
#include <lapacke.h>

#include <algorithm>
#include <vector>

namespace prong::blas {
namespace {

constexpr int kColumns = LAPACK_COL_MAJOR;

// OpenBLAS must not start threads of its own under our pool.
void use_one_thread() {
  static const bool done = (scipy_openblas_set_num_threads(1), true);
  (void)done;
}

int at_least_one(int n) { return std::max(1, n); }

// name(arguments...) of the four element types.
#define PRONG_LAPACK(name, s, d, c, z)        \
  template <class... A>                       \
  int name(float, A... a) {                   \
    return scipy_LAPACKE_##s(kColumns, a...); \
  }                                           \
  template <class... A>                       \
  int name(double, A... a) {                  \
    return scipy_LAPACKE_##d(kColumns, a...); \
  }                                           \
  template <class... A>                       \
  int name(std::complex<float>, A... a) {     \
    return scipy_LAPACKE_##c(kColumns, a...); \
  }                                           \
  template <class... A>                       \
  int name(std::complex<double>, A... a) {    \
    return scipy_LAPACKE_##z(kColumns, a...); \
  }
// NaN is no argument to refuse: a factor of it is NaN.
PRONG_LAPACK(getrf, sgetrf_work, dgetrf_work, cgetrf_work, zgetrf_work)
PRONG_LAPACK(getrs, sgetrs_work, dgetrs_work, cgetrs_work, zgetrs_work)
PRONG_LAPACK(potrf, spotrf_work, dpotrf_work, cpotrf_work, zpotrf_work)
PRONG_LAPACK(potrs, spotrs, dpotrs, cpotrs, zpotrs)
PRONG_LAPACK(potri, spotri, dpotri, cpotri, zpotri)
PRONG_LAPACK(geqrf, sgeqrf, dgeqrf, cgeqrf, zgeqrf)
PRONG_LAPACK(ungqr, sorgqr, dorgqr, cungqr, zungqr)
PRONG_LAPACK(gesdd, sgesdd, dgesdd, cgesdd, zgesdd)
PRONG_LAPACK(heevd, ssyevd, dsyevd, cheevd, zheevd)
PRONG_LAPACK(geev, sgeev, dgeev, cgeev, zgeev)
PRONG_LAPACK(gelsd, sgelsd, dgelsd, cgelsd, zgelsd)
#undef PRONG_LAPACK

CBLAS_UPLO triangle(char uplo) { return uplo == 'U' ? CblasUpper : CblasLower; }
CBLAS_TRANSPOSE operation(char op) {
  return op == 'N' ? CblasNoTrans : op == 'T' ? CblasTrans : CblasConjTrans;
}

#define PRONG_TRSM(T, function, one)                                                       \
  void trsm(bool left, char uplo, char op, bool unit, int m, int n, const T* a, T* b) {    \
    const T factor = 1;                                                                    \
    function(CblasColMajor, left ? CblasLeft : CblasRight, triangle(uplo), operation(op),  \
             unit ? CblasUnit : CblasNonUnit, m, n, one, a, at_least_one(left ? m : n), b, \
             at_least_one(m));                                                             \
    (void)factor;                                                                          \
  }
PRONG_TRSM(float, scipy_cblas_strsm, factor)
PRONG_TRSM(double, scipy_cblas_dtrsm, factor)
PRONG_TRSM(std::complex<float>, scipy_cblas_ctrsm, &factor)
PRONG_TRSM(std::complex<double>, scipy_cblas_ztrsm, &factor)
#undef PRONG_TRSM

// LAPACK gives the vectors of a conjugate pair of a real matrix as real and imaginary part.
template <class T>
void unpack_vectors(int n, const std::complex<T>* values, const T* packed,
                    std::complex<T>* vectors) {
  for (int j = 0; j < n; ++j) {
    const bool is_pair = values[j].imag() != 0 && j + 1 < n;
    for (int i = 0; i < n; ++i) {
      const T re = packed[j * n + i], im = is_pair ? packed[(j + 1) * n + i] : T(0);
      vectors[j * n + i] = {re, im};
      if (is_pair) vectors[(j + 1) * n + i] = {re, -im};
    }
    j += is_pair;
  }
}

template <class T>
int eig_of(int n, T* a, std::complex<T>* values, std::complex<T>* vectors) {
  std::vector<T> re(static_cast<size_t>(n)), im(static_cast<size_t>(n));
  std::vector<T> packed(vectors ? static_cast<size_t>(n) * static_cast<size_t>(n) : 0);
  const int info = geev(T(), 'N', vectors ? 'V' : 'N', n, a, at_least_one(n), re.data(), im.data(),
                        static_cast<T*>(nullptr), 1, packed.data(), at_least_one(n));
  for (int i = 0; i < n; ++i) values[i] = {re[static_cast<size_t>(i)], im[static_cast<size_t>(i)]};
  if (vectors) unpack_vectors(n, values, packed.data(), vectors);
  return info;
}
template <class T>
int eig_of(int n, std::complex<T>* a, std::complex<T>* values, std::complex<T>* vectors) {
  return geev(std::complex<T>(), 'N', vectors ? 'V' : 'N', n, a, at_least_one(n), values,
              static_cast<std::complex<T>*>(nullptr), 1, vectors, at_least_one(n));
}

}  // namespace

template <class T>
int lu(int m, int n, T* a, int* pivots) {
  use_one_thread();
  return getrf(T(), m, n, a, at_least_one(m), pivots);
}
template <class T>
int lu_solve(char op, int n, int columns, const T* lu, const int* pivots, T* b) {
  use_one_thread();
  return getrs(T(), op, n, columns, lu, at_least_one(n), pivots, b, at_least_one(n));
}
template <class T>
int cholesky(char uplo, int n, T* a) {
  use_one_thread();
  return potrf(T(), uplo, n, a, at_least_one(n));
}
template <class T>
int cholesky_solve(char uplo, int n, int columns, const T* factor, T* b) {
  use_one_thread();
  return potrs(T(), uplo, n, columns, factor, at_least_one(n), b, at_least_one(n));
}
template <class T>
int cholesky_inverse(char uplo, int n, T* factor) {
  use_one_thread();
  return potri(T(), uplo, n, factor, at_least_one(n));
}
template <class T>
void triangle_solve(bool left, char uplo, char op, bool has_unit_diagonal, int m, int n, const T* a,
                    T* b) {
  use_one_thread();
  trsm(left, uplo, op, has_unit_diagonal, m, n, a, b);
}
template <class T>
int qr(int m, int n, T* a, T* tau) {
  use_one_thread();
  return geqrf(T(), m, n, a, at_least_one(m), tau);
}
template <class T>
int form_q(int m, int n, int k, T* a, const T* tau) {
  use_one_thread();
  return ungqr(T(), m, n, k, a, at_least_one(m), tau);
}
template <class T>
int svd(char job, int m, int n, T* a, Real<T>* s, T* u, T* vh) {
  use_one_thread();
  const int rows_of_vh = job == 'S' ? std::min(m, n) : n;
  return gesdd(T(), job, m, n, a, at_least_one(m), s, u, at_least_one(m), vh,
               at_least_one(rows_of_vh));
}
template <class T>
int eigh(bool wants_vectors, char uplo, int n, T* a, Real<T>* values) {
  use_one_thread();
  return heevd(T(), wants_vectors ? 'V' : 'N', uplo, n, a, at_least_one(n), values);
}
template <class T>
int eig(int n, T* a, std::complex<Real<T>>* values, std::complex<Real<T>>* vectors) {
  use_one_thread();
  return eig_of(n, a, values, vectors);
}
template <class T>
int least_squares(int m, int n, int columns, T* a, T* b, Real<T>* s, double rcond, int* rank) {
  use_one_thread();
  return gelsd(T(), m, n, columns, a, at_least_one(m), b, at_least_one(std::max(m, n)), s,
               static_cast<Real<T>>(rcond), rank);
}

#define PRONG_INSTANTIATE(T)                                                       \
  template int lu<T>(int, int, T*, int*);                                          \
  template int lu_solve<T>(char, int, int, const T*, const int*, T*);              \
  template int cholesky<T>(char, int, T*);                                         \
  template int cholesky_solve<T>(char, int, int, const T*, T*);                    \
  template int cholesky_inverse<T>(char, int, T*);                                 \
  template void triangle_solve<T>(bool, char, char, bool, int, int, const T*, T*); \
  template int qr<T>(int, int, T*, T*);                                            \
  template int form_q<T>(int, int, int, T*, const T*);                             \
  template int svd<T>(char, int, int, T*, Real<T>*, T*, T*);                       \
  template int eigh<T>(bool, char, int, T*, Real<T>*);                             \
  template int eig<T>(int, T*, std::complex<Real<T>>*, std::complex<Real<T>>*);    \
  template int least_squares<T>(int, int, int, T*, T*, Real<T>*, double, int*);
PRONG_INSTANTIATE(float)
PRONG_INSTANTIATE(double)
PRONG_INSTANTIATE(std::complex<float>)
PRONG_INSTANTIATE(std::complex<double>)
#undef PRONG_INSTANTIATE

}  // namespace prong::blas
