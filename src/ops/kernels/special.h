// Special functions of one or two numbers that are too rare for SIMD: plain doubles. Used by
// defs/special.cpp.
#pragma once

namespace prong::special {

double bessel_i0(double x);
double bessel_i0e(double x);  // exp(-|x|) I0(x)
double bessel_i1(double x);
double bessel_i1e(double x);
double bessel_k0(double x);
double bessel_k1(double x);
double bessel_k0e(double x);  // exp(x) K0(x)
double bessel_k1e(double x);
double spherical_j0(double x);  // sin(x) / x
double airy_ai(double x);
double erfcx(double x);     // exp(x^2) erfc(x)
double log_ndtr(double x);  // log of the normal distribution function
double ndtri(double p);     // its inverse
double digamma(double x);
double zeta(double x, double q);  // Hurwitz
double polygamma(int n, double x);
double gamma_lower(double a, double x);  // regularised incomplete gamma functions
double gamma_upper(double a, double x);

// The polynomial of degree n at x.
double chebyshev_t(double x, double n);
double chebyshev_u(double x, double n);
double chebyshev_v(double x, double n);
double chebyshev_w(double x, double n);
double hermite_h(double x, double n);
double hermite_he(double x, double n);
double laguerre_l(double x, double n);
double legendre_p(double x, double n);

}  // namespace prong::special
