// Special functions in double precision: the C++ library's where it has them, series and continued
// fractions elsewhere; see special.h.
#include "ops/kernels/special.h"

#include <cmath>
#include <iterator>
#include <limits>

namespace prong::special {

namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// exp(-x) I_order(x) for large x: 1 / sqrt(2 pi x) times a series in 1 / x.
double bessel_i_scaled_far(double order, double x) {
  const double mu = 4 * order * order;
  double term = 1, sum = 1;
  for (int k = 1; k < 30; ++k) {
    const double odd = 2 * k - 1, next = term * -(mu - odd * odd) / (k * 8 * x);
    if (std::fabs(next) >= std::fabs(term)) break;
    term = next;
    sum += term;
  }
  return sum / std::sqrt(2 * kPi * x);
}

double bessel_i_scaled(int order, double x) {
  const double a = std::fabs(x);
  if (std::isnan(x)) return x;
  if (std::isinf(a)) return 0;
  const double value =
      a > 40 ? bessel_i_scaled_far(order, a) : std::exp(-a) * std::cyl_bessel_i(order, a);
  return order % 2 && x < 0 ? -value : value;
}

double bessel_i(int order, double x) {
  const double a = std::fabs(x);
  if (std::isnan(x)) return x;
  if (std::isinf(a)) return order % 2 && x < 0 ? -kInf : kInf;
  const double value =
      a > 40 ? std::exp(a) * bessel_i_scaled_far(order, a) : std::cyl_bessel_i(order, a);
  return order % 2 && x < 0 ? -value : value;
}

double bessel_k(int order, double x, bool is_scaled) {
  if (std::isnan(x) || x < 0) return kNan;
  if (x == 0) return kInf;
  if (x > 40) {
    // As bessel_i_scaled_far, with all terms of the series positive.
    const double mu = 4.0 * order * order;
    double term = 1, sum = 1;
    for (int k = 1; k < 30; ++k) {
      const double odd = 2 * k - 1, next = term * (mu - odd * odd) / (k * 8 * x);
      if (std::fabs(next) >= std::fabs(term)) break;
      term = next;
      sum += term;
    }
    return sum * std::sqrt(kPi / (2 * x)) * (is_scaled ? 1 : std::exp(-x));
  }
  return std::cyl_bessel_k(order, x) * (is_scaled ? std::exp(x) : 1);
}

// The continued fraction of exp(x^2) erfc(x) for x from 2 on, evaluated from the far end.
double erfcx_far(double x) {
  double tail = 0;
  for (int k = 60; k >= 1; --k) tail = (k / 2.0) / (x + tail);
  return 1 / (std::sqrt(kPi) * (x + tail));
}

// Coefficients B_2k / (2k)! of the Euler-Maclaurin sum.
constexpr double kBernoulli[] = {1.0 / 12,
                                 -1.0 / 720,
                                 1.0 / 30240,
                                 -1.0 / 1209600,
                                 1.0 / 47900160,
                                 -691.0 / 1307674368000,
                                 1.0 / 74724249600,
                                 -3617.0 / 10670622842880000,
                                 43867.0 / 5109094217170944000};

// P(a, x) by its series, for x < a + 1.
double gamma_series(double a, double x) {
  double term = 1 / a, sum = term;
  for (double n = a + 1; std::fabs(term) > std::fabs(sum) * 1e-17; ++n) {
    term *= x / n;
    sum += term;
  }
  return sum * std::exp(-x + a * std::log(x) - std::lgamma(a));
}

// Q(a, x) by Lentz's continued fraction, for x >= a + 1.
double gamma_fraction(double a, double x) {
  constexpr double kTiny = 1e-300;
  double b = x + 1 - a, c = 1 / kTiny, d = 1 / b, h = d;
  for (int i = 1; i < 100000; ++i) {
    const double an = -i * (i - a);
    b += 2;
    d = an * d + b;
    d = 1 / (std::fabs(d) < kTiny ? kTiny : d);
    c = b + an / c;
    if (std::fabs(c) < kTiny) c = kTiny;
    const double step = d * c;
    h *= step;
    if (std::fabs(step - 1) < 1e-16) break;
  }
  return std::exp(-x + a * std::log(x) - std::lgamma(a)) * h;
}

// p_0 = 1, p_1 = first, p_k = step(k, p_(k-1), p_(k-2)).
template <class F>
double recurrence(double n, double first, F step) {
  if (n <= -1 || std::isnan(n)) return 0;
  const auto degree = static_cast<long>(n);
  if (degree == 0) return 1;
  double before = 1, last = first;
  for (long k = 2; k <= degree && !std::isnan(last); ++k) {
    const double next = step(static_cast<double>(k), last, before);
    before = last;
    last = next;
  }
  return last;
}

}  // namespace

double bessel_i0(double x) { return bessel_i(0, x); }
double bessel_i0e(double x) { return bessel_i_scaled(0, x); }
double bessel_i1(double x) { return bessel_i(1, x); }
double bessel_i1e(double x) { return bessel_i_scaled(1, x); }
double bessel_k0(double x) { return bessel_k(0, x, false); }
double bessel_k1(double x) { return bessel_k(1, x, false); }
double bessel_k0e(double x) { return bessel_k(0, x, true); }
double bessel_k1e(double x) { return bessel_k(1, x, true); }
double spherical_j0(double x) {
  if (std::isinf(x)) return 0;
  return x == 0 ? 1 : std::sin(x) / x;
}

// By Bessel functions of order 1/3.
double airy_ai(double x) {
  if (std::isnan(x)) return x;
  if (x == 0) return 0.355028053887817239;
  const double z = 2.0 / 3 * std::pow(std::fabs(x), 1.5);
  if (x > 0) return z > 700 ? 0 : std::sqrt(x / 3) / kPi * std::cyl_bessel_k(1.0 / 3, z);
  if (std::isinf(x)) return 0;
  // J_(-1/3) = cos(pi / 3) J_(1/3) - sin(pi / 3) Y_(1/3)
  const double j = std::cyl_bessel_j(1.0 / 3, z), y = std::cyl_neumann(1.0 / 3, z);
  return std::sqrt(-x) / 3 * (1.5 * j - 0.866025403784438647 * y);
}

double erfcx(double x) {
  if (std::isnan(x)) return x;
  if (x < -26.7) return kInf;
  if (x < 2) return std::exp(x * x) * std::erfc(x);
  return erfcx_far(x);
}

double log_ndtr(double x) {
  const double t = x * 0.707106781186547524;
  if (x < -1) return std::log(erfcx(-t) / 2) - t * t;
  return std::log1p(-std::erfc(t) / 2);
}

// A rational first guess (Acklam's form of it), then Halley's steps.
double ndtri(double p) {
  if (std::isnan(p) || p < 0 || p > 1) return kNan;
  if (p == 0) return -kInf;
  if (p == 1) return kInf;
  if (p > 0.5 && 1 - p < 0.5) return -ndtri(1 - p);
  const double t = std::sqrt(-2 * std::log(p));
  double x = p > 0.3 ? (p - 0.5) * 2.50662827463100050
                     : -(t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                                 (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))));
  for (int i = 0; i < 4; ++i) {
    const double log_density = -x * x / 2 - 0.918938533204672742;
    const double u = std::exp(log_ndtr(x) - log_density) - std::exp(std::log(p) - log_density);
    x -= u / (1 + x * u / 2);
  }
  return x;
}

double digamma(double x) {
  if (x == 0) return std::signbit(x) ? kInf : -kInf;
  if (std::isnan(x)) return x;
  if (x < 0) {
    if (x == std::floor(x)) return kNan;
    return digamma(1 - x) - kPi / std::tan(kPi * (x - std::floor(x)));
  }
  double sum = 0;
  for (; x < 10; ++x) sum -= 1 / x;
  const double y = 1 / (x * x);
  return sum + std::log(x) - 0.5 / x -
         y * (1.0 / 12 -
              y * (1.0 / 120 -
                   y * (1.0 / 252 -
                        y * (1.0 / 240 - y * (1.0 / 132 - y * (691.0 / 32760 - y / 12))))));
}

// Euler-Maclaurin: the first terms one by one, the rest as an integral and corrections.
double zeta(double x, double q) {
  if (x == 1) return kInf;
  if (x < 1 || std::isnan(x) || std::isnan(q)) return kNan;
  if (q <= 0) {
    if (q == std::floor(q)) return kInf;
    if (x != std::floor(x)) return kNan;
  }
  double sum = 0, a = q;
  for (int i = 0; i < 9 || a <= 9; ++i, ++a) {
    const double term = std::pow(a, -x);
    sum += term;
    if (std::fabs(term) < std::fabs(sum) * 1e-18) return sum;
  }
  const double tail = std::pow(a, -x);
  sum += tail * a / (x - 1) + tail / 2;
  double factor = x * tail / a;
  for (size_t k = 0; k < std::size(kBernoulli); ++k) {
    sum += kBernoulli[k] * factor;
    const auto j = static_cast<double>(2 * k + 1);
    factor *= (x + j) * (x + j + 1) / (a * a);
  }
  return sum;
}

double polygamma(int n, double x) {
  if (n == 0) return digamma(x);
  const double size = std::exp(std::lgamma(n + 1.0)) * zeta(n + 1.0, x);
  return n % 2 ? size : -size;
}

double gamma_lower(double a, double x) {
  if (std::isnan(a) || std::isnan(x) || x < 0 || a < 0) return kNan;
  if (a == 0) return x > 0 ? 1 : kNan;
  if (x == 0) return 0;
  if (std::isinf(a)) return std::isinf(x) ? kNan : 0;
  if (std::isinf(x)) return 1;
  return x < a + 1 ? gamma_series(a, x) : 1 - gamma_fraction(a, x);
}

double gamma_upper(double a, double x) {
  if (std::isnan(a) || std::isnan(x) || x < 0 || a < 0) return kNan;
  if (a == 0) return x > 0 ? 0 : kNan;
  if (x == 0) return 1;
  if (std::isinf(a)) return std::isinf(x) ? kNan : 1;
  if (std::isinf(x)) return 0;
  return x < a + 1 ? 1 - gamma_series(a, x) : gamma_fraction(a, x);
}

double chebyshev_t(double x, double n) {
  return recurrence(n, x, [x](double, double p, double q) { return 2 * x * p - q; });
}
double chebyshev_u(double x, double n) {
  return recurrence(n, 2 * x, [x](double, double p, double q) { return 2 * x * p - q; });
}
double chebyshev_v(double x, double n) {
  return recurrence(n, 2 * x - 1, [x](double, double p, double q) { return 2 * x * p - q; });
}
double chebyshev_w(double x, double n) {
  return recurrence(n, 2 * x + 1, [x](double, double p, double q) { return 2 * x * p - q; });
}
double hermite_h(double x, double n) {
  return recurrence(n, 2 * x,
                    [x](double k, double p, double q) { return 2 * x * p - 2 * (k - 1) * q; });
}
double hermite_he(double x, double n) {
  return recurrence(n, x, [x](double k, double p, double q) { return x * p - (k - 1) * q; });
}
double laguerre_l(double x, double n) {
  return recurrence(n, 1 - x, [x](double k, double p, double q) {
    return ((2 * k - 1 - x) * p - (k - 1) * q) / k;
  });
}
double legendre_p(double x, double n) {
  return recurrence(
      n, x, [x](double k, double p, double q) { return ((2 * k - 1) * x * p - (k - 1) * q) / k; });
}

}  // namespace prong::special
