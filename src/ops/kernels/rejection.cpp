// Samplers by rejection and implicit gradients; see rejection.h.
#include "ops/kernels/rejection.h"

#include <array>
#include <cmath>
#include <limits>

#include "ops/kernels/special.h"

namespace prong {

namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

// A value with its derivative to the parameter that a slope is asked for.
struct Dual {
  double v, d = 0;
};
Dual operator+(Dual a, Dual b) { return {a.v + b.v, a.d + b.d}; }
Dual operator-(Dual a, Dual b) { return {a.v - b.v, a.d - b.d}; }
Dual operator*(Dual a, Dual b) { return {a.v * b.v, a.d * b.v + a.v * b.d}; }
Dual operator/(Dual a, Dual b) {
  const double q = a.v / b.v;
  return {q, (a.d - q * b.d) / b.v};
}

// b0 + a1 / (b1 + a2 / (b2 + ...)) by Lentz's method; step(i) gives {a_i, b_i}.
template <class Step>
Dual continued_fraction(Dual b0, int most, Step&& step) {
  constexpr double kTiny = 1e-290;
  const auto off_zero = [](Dual x) { return std::abs(x.v) < kTiny ? Dual{kTiny, x.d} : x; };
  Dual f = off_zero(b0), c = f, d{0};
  for (int i = 1; i < most; ++i) {
    const auto [a, b] = step(i);
    d = Dual{1} / off_zero(b + a * d);
    c = off_zero(b + a / c);
    const Dual factor = c * d;
    f = f * factor;
    if (std::abs(factor.v - 1) < 4 * kEpsilon && std::abs(factor.d) <= 1e-13 * std::abs(f.d / f.v))
      break;
  }
  return f;
}

// ln k! less Stirling's formula for it around k + 1/2.
double stirling_rest(double k) {
  constexpr int kExact = 10;
  static const std::array<double, kExact> table = [] {
    std::array<double, kExact> t;
    for (int i = 0; i < kExact; ++i)
      t[static_cast<size_t>(i)] = static_cast<double>(
          std::lgamma(i + 1.0L) - 0.5L * std::log(2 * 3.14159265358979323846264L) -
          (i + 0.5L) * std::log(i + 1.0L) + (i + 1.0L));
    return t;
  }();
  if (k < kExact) return table[static_cast<size_t>(k)];
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

// Hörmann's transformed rejection: a candidate near the mode and how far it is from the edges.
struct Candidate {
  double k, v, distance;
};
Candidate candidate(Generator& g, double a, double b, double center) {
  const double u = g.uniform() - 0.5, v = g.uniform(), distance = 0.5 - std::abs(u);
  return {std::floor((2 * a / distance + b) * u + center), v, distance};
}

// BTRS, for count * chance of at least 10 and a chance of at most a half.
template <class T>
T binomial_by_rejection(Generator& g, T count, T chance) {
  const double deviation = std::sqrt(count * chance * (1 - chance));
  const double b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * chance;
  const double center = count * chance + 0.5, inside = 0.92 - 4.2 / b;
  const double odds = chance / (1 - chance), alpha = (2.83 + 5.1 / b) * deviation;
  const double mode = std::floor((count + 1) * chance);
  for (;;) {
    const auto [k, v, distance] = candidate(g, a, b, center);
    if (k < 0 || k > count) continue;
    if (distance >= 0.07 && v <= inside) return static_cast<T>(k);
    const double height = std::log(v * alpha / (a / (distance * distance) + b));
    const double bound = (mode + 0.5) * std::log((mode + 1) / (odds * (count - mode + 1))) +
                         (count + 1) * std::log((count - mode + 1) / (count - k + 1)) +
                         (k + 0.5) * std::log(odds * (count - k + 1) / (k + 1)) +
                         stirling_rest(mode) + stirling_rest(count - mode) - stirling_rest(k) -
                         stirling_rest(count - k);
    if (height <= bound) return static_cast<T>(k);
  }
}

// Few successes: jumps from one to the next.
template <class T>
T binomial_by_jumps(Generator& g, T count, T chance) {
  const double log_failure = std::log1p(-chance);
  double trials = 0;
  for (T successes = 0;; ++successes) {
    trials += std::ceil(std::log(g.uniform()) / log_failure);
    if (!(trials <= count)) return successes;
  }
}

template <class T>
T binomial_below_half(Generator& g, T count, T chance) {
  return count * chance >= 10 ? binomial_by_rejection(g, count, chance)
                              : binomial_by_jumps(g, count, chance);
}

}  // namespace

// Marsaglia and Tsang: the cube of a shifted normal. PyTorch has two of its constants in float.
template <class T>
double draw_gamma(Generator& g, T shape) {
  if (shape == 0) return 0;
  double scale = 1;
  if (shape < 1) {
    scale = std::pow(1 - g.uniform(), static_cast<double>(1 / shape));
    shape += 1;
  }
  const double d = static_cast<double>(shape - T(1.0f / 3.0f)), c = 1 / std::sqrt(9 * d);
  for (;;) {
    double x, root;
    do {
      x = g.normal();
      root = 1 + c * x;
    } while (root <= 0);
    const double v = root * root * root, u = 1 - g.uniform(), square = x * x;
    if (u < 1 - static_cast<double>(0.0331f) * square * square ||
        std::log(u) < 0.5 * square + d * (1 - v + std::log(v)))
      return scale * d * v;
  }
}
template double draw_gamma(Generator&, float);
template double draw_gamma(Generator&, double);

double draw_poisson(Generator& g, double rate) {
  if (rate == 0) return 0;
  if (rate < 10) {
    const double floor = std::exp(-rate);
    double product = 1;
    for (double k = 0;; ++k) {
      product *= g.uniform();
      if (!(product > floor)) return k;
    }
  }
  const double b = 0.931 + 2.53 * std::sqrt(rate), a = -0.059 + 0.02483 * b;  // Hörmann's PTRS
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), inside = 0.9277 - 3.6224 / (b - 2);
  const double log_rate = std::log(rate);
  for (;;) {
    const auto [k, v, distance] = candidate(g, a, b, rate + 0.43);
    if (distance >= 0.07 && v <= inside) return k;
    if (k < 0 || (distance < 0.013 && v > distance)) continue;
    if (std::log(v) + std::log(inverse_alpha) - std::log(a / (distance * distance) + b) <=
        -rate + k * log_rate - std::lgamma(k + 1))
      return k;
  }
}

template <class T>
T draw_binomial(Generator& g, T count, T chance) {
  if (count <= 0 || chance <= 0) return 0;
  if (chance >= 1) return count;
  if (chance <= T(0.5)) return binomial_below_half(g, count, chance);
  if (chance > T(0.5)) return count - binomial_below_half(g, count, T(1 - chance));
  return std::numeric_limits<T>::quiet_NaN();
}
template float draw_binomial(Generator&, float, float);
template double draw_binomial(Generator&, double, double);

// x = F^-1(u; shape) gives dx/dshape = -(dF/dshape) / p. Below the mean F / p is a series, above it
// (1 - F) / p is a continued fraction: there the terms have one sign, so that nothing cancels.
double gamma_slope(double shape, double x) {
  if (!(shape > 0) || !(x >= 0)) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0) return 0;
  if (shape > 1e8) {  // the cube of a normal (Wilson and Hilferty), at a fixed normal
    const double root = std::cbrt(x / shape), third = 1 / (9 * shape);
    const double z = root - 1 + third;  // = normal / (3 sqrt(shape))
    return root * root * root + 3 * shape * root * root * (third / shape - z / (2 * shape));
  }
  constexpr int kMost = 200000;
  const Dual a{shape, 1};
  if (x <= std::max(shape, 2.0)) {
    Dual term{1}, sum{1};
    for (int n = 1; n < kMost; ++n) {
      term = term * Dual{x} / (a + Dual{static_cast<double>(n)});
      sum = sum + term;
      if (term.v <= kEpsilon * sum.v && std::abs(term.d) <= kEpsilon * std::abs(sum.d)) break;
    }
    return -x / shape * (sum.v * (std::log(x) - special::digamma(shape + 1)) + sum.d);
  }
  const Dual fraction = continued_fraction(Dual{x + 1} - a, kMost, [&](int i) {
    const double n = i;
    return std::array{Dual{n} * (a - Dual{n}), Dual{x + 2 * n + 1} - a};
  });
  const Dual tail = Dual{1} / fraction;
  return x * (tail.v * (std::log(x) - special::digamma(shape)) + tail.d);
}

// The incomplete beta function of (p, q) at y is y^p (1-y)^q / (p B(p, q)) times this.
static Dual beta_series(Dual p, Dual q, double y) {
  const Dual fraction = continued_fraction(Dual{1}, 200000, [&](int i) {
    const double m = i / 2;  // NOLINT(bugprone-integer-division)
    const Dual twice = p + Dual{2 * m};
    const Dual a = i % 2
                       ? Dual{-y} * (p + Dual{m}) * (p + q + Dual{m}) / (twice * (twice + Dual{1}))
                       : Dual{m * y} * (q - Dual{m}) / ((twice - Dual{1}) * twice);
    return std::array{a, Dual{1}};
  });
  return Dual{1} / fraction;
}

double dirichlet_slope(double x, double a, double total) {
  const double b = total - a;
  if (!(a > 0 && b > 0 && x >= 0 && x <= 1)) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0) return 0;
  const double log_odds = std::log(x) + special::digamma(total);
  if (x < (a + 1) / (total + 2)) {
    const Dual s = beta_series({a, 1}, {b}, x);
    return -x / a * (s.v * (log_odds - special::digamma(a + 1)) + s.d);
  }
  const Dual s = beta_series({b}, {a, 1}, 1 - x);
  return x / b * (s.v * (log_odds - special::digamma(a)) + s.d);
}

}  // namespace prong
