// Mathematical functions of float32 as bodies: branch-free polynomials of our own (within 2 ulp),
// made with minimax fits; loops over them vectorise. Included by scalar_math.h, which gives them
// their names.
#pragma once

#include <limits>

#include "ops/scalar.h"

namespace prong::math {

template <class T>
PRONG_INLINE T infinity_like(const T& x) {
  return lit(x, std::numeric_limits<double>::infinity());
}
template <class T>
PRONG_INLINE T nan_like(const T& x) {
  return lit(x, std::numeric_limits<double>::quiet_NaN());
}

// A condition as a bool: & and | of C++ bools give int.
PRONG_INLINE bool truth(int condition) { return condition != 0; }
inline Scalar truth(const Scalar& condition) { return condition; }

// c0 + x * (c1 + x * (...)), with fused steps.
template <class T>
PRONG_INLINE T horner(const T& x, double c0) {
  return lit(x, c0);
}
template <class T, class... C>
PRONG_INLINE T horner(const T& x, double c0, C... more) {
  return fma(horner(x, more...), x, lit(x, c0));
}

// The sign bit of `sign` put onto the non-negative x.
PRONG_INLINE float with_sign(float x, float sign) {
  return from_bits(to_bits(x) | (to_bits(sign) & std::numeric_limits<int32_t>::min()));
}
PRONG_INLINE double with_sign(double x, double sign) {
  return from_bits(to_bits(x) | (to_bits(sign) & std::numeric_limits<int64_t>::min()));
}
inline Scalar with_sign(const Scalar& x, const Scalar& sign) {
  const Scalar bits = to_bits(sign);
  const int64_t mask = bits.dtype() == DType::kInt32 ? std::numeric_limits<int32_t>::min()
                                                     : std::numeric_limits<int64_t>::min();
  return from_bits(to_bits(x) | (bits & Scalar::constant(mask, bits.dtype())));
}
template <class T>
PRONG_INLINE T copysign(const T& x, const T& sign) {
  return with_sign(abs(x), sign);
}

// ── exponentials, float32 ──

// x = n ln2 + r with |r| <= ln2 / 2; `shifted` carries n in the low bits of its pattern.
template <class T>
struct ExpParts {
  T shifted, n, r;
};
template <class T>
PRONG_INLINE ExpParts<T> split_exp(const T& x) {
  const T magic = lit(x, 12582912.0);  // 1.5 * 2^23: adding it rounds to an integer
  const T shifted = fma(x, lit(x, 1.44269504088896341), magic);
  const T n = shifted - magic;
  T r = fma(n, lit(x, -0.693145751953125), x);
  r = fma(n, lit(x, -1.428606765330187e-6), r);
  return {shifted, n, r};
}

// e^r for |r| <= ln2 / 2.
template <class T>
PRONG_INLINE T exp_core(const T& r) {
  const T q = horner(r, 0.4999999815495543, 0.16666543661362757, 0.04166719968107265,
                     0.008366515148936982, 0.0013882522891065347);
  return fma(r * r, q, r) + 1;
}
// p 2^n with the n in the low bits of `shifted`, in two factors: n alone can pass the exponent
// range where the result does not. Far below the answer is 0, as an underflow would cost the
// processor a hundred cycles.
template <class T, class C>
PRONG_INLINE T times_power(const T& p, const T& shifted, const C& is_far_below) {
  const auto n = (to_bits(shifted) << 8) >> 8;
  const auto half = n >> 1;
  const T last = select(is_far_below, lit(p, 0.0), from_bits((n - half + 127) << 23));
  return p * from_bits((half + 127) << 23) * last;
}

template <class T>
PRONG_INLINE T exp_f32(const T& x) {
  // Past these ends the result is 0 or infinity anyway; a NaN passes both selects.
  T y = select(x > 89.0f, lit(x, 89.0), x);
  y = select(y < -104.0f, lit(x, -104.0), y);
  const ExpParts<T> e = split_exp(y);
  return times_power(exp_core(e.r), e.shifted, x < -103.98f);
}

// The same bits for x in [-87, 88]; anything for other numbers.
template <class T>
PRONG_INLINE T exp_between_f32(const T& x) {
  const ExpParts<T> e = split_exp(x);
  return exp_core(e.r) * from_bits((to_bits(e.shifted) + 127) << 23);
}

// x = n + r with |r| <= 1/2.
template <class T>
PRONG_INLINE T exp2_f32(const T& x) {
  T y = select(x > 129.0f, lit(x, 129.0), x);
  y = select(y < -151.0f, lit(x, -151.0), y);
  const T magic = lit(x, 12582912.0);  // as in split_exp()
  const T shifted = y + magic;
  const T r = y - (shifted - magic);
  const T q =
      horner(r, 0.6931471807045387, 0.24022651066569142, 0.055504103659732545, 0.009618038131142372,
             0.0013333935068907542, 0.0001546675656353924, 1.5196153685531215e-05);
  return times_power(T(fma(r, q, lit(x, 1.0))), shifted, x < -150.0f);
}

template <class T>
PRONG_INLINE T expm1_f32(const T& x) {
  T y = select(x > 89.0f, lit(x, 89.0), x);
  y = select(y < -26.0f, lit(x, -26.0), y);
  const ExpParts<T> e = split_exp(y);
  const T& r = e.r;
  const T q = horner(r, 0.5000000044141525, 0.16666666370591754, 0.04166636101595701,
                     0.00833338935706891, 0.0013940618695904732, 0.0001984587292957225);
  const T p = fma(r * r, q, r);  // expm1(r)
  // Half of 2^n, so that n = 128 still has a factor.
  const T scale = from_bits((((to_bits(e.shifted) << 8) >> 8) + 126) << 23);
  const T result = 2 * fma(p, scale, scale - 0.5f);
  return select(abs(x) < 1e-10f, x, result);  // keeps -0 and the last bit of denormals
}

// ── logarithms, float32 ──

// x = 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); x > 0, finite, normal.
template <class T>
struct LogParts {
  T e, f;
};
template <class T>
PRONG_INLINE LogParts<T> split_log(const T& x) {
  const auto bits = to_bits(x);
  const auto k = (bits - 0x3f3504f3) >> 23;
  const T f = from_bits(bits - (k << 23)) - 1;
  return {convert<float>(k), f};
}
// (log(1 + f) - f) for f in [sqrt(1/2) - 1, sqrt(2) - 1].
template <class T>
PRONG_INLINE T log_tail(const T& f) {
  const T q = horner(f, 0.3333331260153424, -0.2500000959695663, 0.20002118859251017,
                     -0.16667996182188122, 0.14219547959968826, -0.12405578865914424,
                     0.1188818816316145, -0.11675734719906677, 0.06746685894730818);
  const T square = f * f;
  return fma(square * f, q, square * -0.5f);
}
// What logarithms answer outside (0, inf).
template <class T>
PRONG_INLINE T log_ends(const T& x, const T& inside) {
  T y = select(x == 0, -infinity_like(x), inside);
  y = select(x < 0, nan_like(x), y);
  return select(x < infinity_like(x), y, x);  // infinity and NaN
}
template <class T>
PRONG_INLINE LogParts<T> split_log_any(const T& x) {
  const auto is_small = x < 1.17549435e-38f;  // denormals are scaled up
  const LogParts<T> parts = split_log(select(is_small, x * 8388608.0f, x));
  return {select(is_small, parts.e - 23, parts.e), parts.f};
}

template <class T>
PRONG_INLINE T log_f32(const T& x) {
  const auto [e, f] = split_log_any(x);
  const T low = fma(e, lit(x, 1.428606765330187e-6), log_tail(f));
  return log_ends<T>(x, fma(e, lit(x, 0.693145751953125), f + low));
}
template <class T>
PRONG_INLINE T log2_f32(const T& x) {
  const auto [e, f] = split_log_any(x);
  // (f + tail) / ln2, with 1/ln2 in two parts; f * 1.4375 is near exact.
  const T tail = log_tail(f);
  const T high = lit(x, 1.44140625);
  const T low = fma(tail, lit(x, 1.44269504088896341), f * lit(x, 0.00128879088896341));
  const T product = f * high;
  const T rest = fma(f, high, -product);
  return log_ends<T>(x, e + product + (low + rest));
}
template <class T>
PRONG_INLINE T log10_f32(const T& x) {
  const auto [e, f] = split_log_any(x);
  const T tail = log_tail(f);
  const T high = lit(x, 0.43359375);
  const T product = f * high;
  T low = fma(f, high, -product);
  low = low + fma(tail, lit(x, 0.434294481903251828), f * lit(x, 0.000700731903251828));
  low = fma(e, lit(x, 4.605038981195214e-6), low);
  return log_ends<T>(x, fma(e, lit(x, 0.3010253906250000), product + low));
}
template <class T>
PRONG_INLINE T log1p_f32(const T& x) {
  const T u = 1 + x;
  const T lost = select(abs(x) < 1, x - (u - 1), 1 - (u - x));  // u + lost is 1 + x exactly
  const auto bits = to_bits(u);
  const auto k = (bits - 0x3f3504f3) >> 23;
  T f = from_bits(bits - (k << 23)) - 1;
  const auto room = select(k > 125, k - k + 125, k);  // 2^-k must be a normal number
  f = f + lost * from_bits((127 - room) << 23);
  const T e = convert<float>(k);
  const T low = fma(e, lit(x, 1.428606765330187e-6), log_tail(f));
  T y = fma(e, lit(x, 0.693145751953125), f + low);
  y = select(abs(x) < 1e-10f, x, y);
  y = select(x == -1, -infinity_like(x), y);
  y = select(x < -1, nan_like(x), y);
  return select(x < infinity_like(x), y, x);
}

// ── hyperbolic and logistic, float32 ──

template <class T>
PRONG_INLINE T tanh_f32(const T& x) {
  const T e = expm1_f32(-2 * abs(x));
  const T y = -e / (2 + e);
  return select(abs(x) < 1e-4f, x, with_sign(y, x));
}

// ── error function, float32 ──

// erf(x) for |x| < 1.
template <class T>
PRONG_INLINE T erf_core(const T& x) {
  return x * horner(x * x, 1.1283791670620311, -0.37612638449301433, 0.11283782129455074,
                    -0.02686540732923093, 0.005220963025815102, -0.0008483056775435195,
                    0.00011258454147437088, -9.645502582503355e-06);
}
// -log(1 - erf(a)) for a in [1, 4].
template <class T>
PRONG_INLINE T erfc_exponent(const T& a) {
  return horner(a, -0.0001880362387269175, 1.1295784066054158, 0.6332199260040667,
                0.10841854386219192, -0.025208236698988275, 0.004204554814959197,
                -0.00044133502307903424, 2.1686740899618253e-05);
}
template <class T>
PRONG_INLINE T erf_f32(const T& x) {
  const T a = abs(x);
  const T q = erfc_exponent(select(a > 4, lit(x, 4.0), a));
  const T large = with_sign(1 - exp_between_f32(-q), x);
  return select(a < 1, erf_core(x), select(x == x, large, x));
}

// 1 + erf(x), keeping its digits where erf(x) is near -1; 0 below -4.
template <class T>
PRONG_INLINE T one_plus_erf_f32(const T& x) {
  const T a = abs(x);
  const T tail = exp_between_f32(-erfc_exponent(select(a > 4, lit(x, 4.0), a)));
  const T below = select(x < -4, lit(x, 0.0), tail);
  const T outside = select(x < 0, below, 2 - tail);
  return select(a < 1, 1 + erf_core(x), select(x == x, outside, x));
}

// ── trigonometric, float32 ──

// x = n pi/2 + r, |r| <= pi/4, done in double: right up to |x| of about 1e15. quadrant is n modulo
// 4, in [-2, 2].
template <class T, class D>
struct TrigParts {
  T quadrant;
  D r;
};
template <class T>
PRONG_INLINE auto split_trig_wide(const T& x) {  // r is double
  const auto d = convert<double>(x);
  const auto magic = lit(d, 6755399441055744.0);  // 1.5 * 2^52
  const auto n = fma(d, lit(d, 0.63661977236758134308), magic) - magic;
  auto r = fma(n, lit(d, -1.5707963267948966), d);
  r = fma(n, lit(d, -6.123233995736766e-17), r);
  const auto quarter = fma(n, lit(d, 0.25), magic) - magic;
  const auto is_far = abs(d) > 1125899906842624.0;  // 2^50: n would not be exact any more
  r = select(is_far, nan_like(d), r);
  return TrigParts<T, decltype(r)>{convert<float>(fma(quarter, lit(d, -4.0), n)), r};
}
template <class T>
PRONG_INLINE TrigParts<T, T> split_trig(const T& x) {
  const auto [quadrant, r] = split_trig_wide(x);
  return {quadrant, convert<float>(r)};
}
template <class T>
PRONG_INLINE T sin_core(const T& r) {
  const T s = r * r;
  const T q = horner(s, -0.16666666641371491, 0.008333329355794917, -0.00019839325024484708,
                     2.7182169448640665e-06);
  return fma(s * r, q, r);
}
template <class T>
PRONG_INLINE T cos_core(const T& r) {
  const T s = r * r;
  const T q = horner(s, 0.041666646715255246, -0.001388735979011634, 2.4437532881627347e-05);
  return fma(s * s, q, fma(s, lit(r, -0.5), lit(r, 1.0)));
}
template <class T>
PRONG_INLINE T sin_f32(const T& x) {
  const auto [quadrant, r] = split_trig(x);
  const T y = select(abs(quadrant) == 1, cos_core(r), sin_core(r));
  const auto is_negative = (quadrant == -1) | (abs(quadrant) == 2);
  return select(x == 0, x, select(is_negative, -y, y));
}
template <class T>
PRONG_INLINE T cos_f32(const T& x) {
  const auto [quadrant, r] = split_trig(x);
  const T y = select(abs(quadrant) == 1, sin_core(r), cos_core(r));
  const auto is_negative = (quadrant == 1) | (abs(quadrant) == 2);
  return select(is_negative, -y, y);
}
// In double, so that the quotient adds no rounding of its own.
template <class T>
PRONG_INLINE T tan_f32(const T& x) {
  const auto [quadrant, r] = split_trig_wide(x);
  const auto s = sin_core(r), c = cos_core(r);
  const auto is_odd = abs(convert<double>(quadrant)) == 1;
  const T y = convert<float>(select(is_odd, -c, s) / select(is_odd, s, c));
  return select(x == 0, x, y);
}

// asin(t) - t for 0 <= t <= 1/2, where s = t * t.
template <class T>
PRONG_INLINE T asin_tail(const T& t, const T& s) {
  const T q = horner(s, 0.16666659991715696, 0.075005041631093, 0.04451695875281282,
                     0.03180769171553782, 0.014438696970978913, 0.03751633061609336);
  return s * t * q;
}
// asin(|x|) is that of t where |x| <= 1/2, and pi/2 less twice that of t beyond.
template <class C, class T>
struct ArcParts {
  C is_far;
  T t, tail;
};
template <class T>
PRONG_INLINE auto split_arc(const T& a) {
  const auto is_far = a > 0.5f;
  const T half = (1 - a) * 0.5f;  // below 0, and so NaN, where a is no sine
  const T t = select(is_far, sqrt(half), a);
  return ArcParts<decltype(is_far), T>{is_far, t, asin_tail(t, select(is_far, half, a * a))};
}
template <class T>
PRONG_INLINE T asin_f32(const T& x) {
  const auto [is_far, t, tail] = split_arc(T(abs(x)));
  const T far = (lit(x, 1.57079632679489662) - (t + t)) - (tail + tail + 4.37113883e-8f);
  return with_sign(select(is_far, far, t + tail), x);
}
template <class T>
PRONG_INLINE T acos_f32(const T& x) {
  const auto [is_far, t, tail] = split_arc(T(abs(x)));
  const T y = t + tail;
  const T left = (lit(x, 3.14159265358979324) - (t + t)) - (tail + tail + 8.74227766e-8f);
  const T far = select(x < 0, left, y + y);
  const T near = lit(x, 1.57079632679489662) - (with_sign(y, x) + 4.37113883e-8f);
  return select(is_far, far, near);
}

// atan(t) for 0 <= t <= 1, or pi/2 less it where the ratio was turned upside down.
template <class C, class T>
PRONG_INLINE T atan_core(const C& is_steep, const T& t) {
  const T s = t * t;
  const T q = horner(s, -0.3333330186296085, 0.19998638532515614, -0.14265244555652914,
                     0.10957572212503082, -0.0841944824164873, 0.05823437470062764,
                     -0.03145553563015924, 0.011064355899932933, -0.0018271947218842038);
  const T y = fma(s * t, q, t);
  return select(is_steep, lit(t, 1.57079632679489662) - (y + 4.37113883e-8f), y);
}
template <class T>
PRONG_INLINE T atan_f32(const T& x) {
  const T a = abs(x);
  const T inverse = 1 / a;
  const auto is_steep = a > 1;
  return with_sign(atan_core(is_steep, select(is_steep, inverse, a)), x);
}
template <class T>
PRONG_INLINE T atan2_f32(const T& y, const T& x) {
  const T ay = abs(y);
  const T ax = abs(x);
  const auto both_infinite = (ay == infinity_like(x)) & (ax == infinity_like(x));
  const auto both_zero = (ay == 0) & (ax == 0);
  const T num = select(both_infinite, lit(x, 1.0), ay);
  const T den = select(both_infinite | both_zero, lit(x, 1.0), ax);
  const auto is_steep = num > den;
  T angle = atan_core(is_steep, select(is_steep, den, num) / select(is_steep, num, den));
  const auto is_left = to_bits(x) < 0;
  angle = select(is_left, lit(x, 3.14159265358979324) - (angle + 8.74227766e-8f), angle);
  return select((x != x) | (y != y), x + y, with_sign(angle, y));
}

// ── powers, float32: in double arithmetic, so that the error of the logarithm does not grow with
// the exponent ──

template <class T>  // x: float or its Scalar, positive and finite; the result is double
PRONG_INLINE auto log2_wide(const T& x) {
  const LogParts<T> parts = split_log_any(x);
  const auto f = convert<double>(parts.f);
  const auto s = f / (f + 2);
  const auto q = horner(s * s, 2.8853900817779268, 0.96179669392597561, 0.57707801635558536,
                        0.41219858311113240, 0.32059889797532520, 0.26230818925253880,
                        0.22195308321368668, 0.19235933878519512);
  return fma(s, q, convert<double>(parts.e));
}

template <class T>
PRONG_INLINE T exp2_wide(const T& t) {
  T y = select(t > 200.0, lit(t, 200.0), t);
  y = select(y < -200.0, lit(t, -200.0), y);
  const T magic = lit(t, 6755399441055744.0);
  const T shifted = y + magic;
  const T r = y - (shifted - magic);
  const T p = horner(r, 1.0, 0.69314718055994531, 0.24022650695910071, 0.055504108664821580,
                     0.0096181291076284772, 0.0013333558146428443, 0.00015403530393381610,
                     1.5252733804059841e-05, 1.3215486790144307e-06, 1.0178086009239699e-07);
  const T scale = from_bits((to_bits(shifted) + 1023) << 52);
  return p * select(t < -151.0, lit(t, 0.0),
                    scale);  // 0 in float too, without the cost of an underflow
}
template <class T>
PRONG_INLINE T pow_f32(const T& x, const T& y) {
  const T a = abs(x);
  const T one = lit(x, 1.0);
  const T infinity = infinity_like(x);
  T result = convert<float>(exp2_wide(convert<double>(y) * log2_wide(a)));
  result = select(a == 0, select(y < 0, infinity, lit(x, 0.0)), result);
  result = select(a == infinity, select(y < 0, lit(x, 0.0), infinity), result);
  result = select(a == 1, one, result);
  const auto is_whole = floor(y) == y;
  const T half = y * 0.5f;
  const auto is_odd = is_whole & (floor(half) != half);
  result = select((to_bits(x) < 0) & is_odd, -result, result);
  result = select((x < 0) & (a != infinity) & !is_whole, nan_like(x), result);
  result = select((x != x) | (y != y), x + y, result);
  return select((y == 0) | (x == 1), one, result);
}

// ── hyperbolic functions and their inverses, float32: in double, where e^x - e^-x loses little ──

template <class T>
PRONG_INLINE T sinh_f32(const T& x) {
  const auto a = abs(convert<double>(x));
  const auto e = exp2_wide(a * lit(a, 1.4426950408889634));
  const auto large = (e - 1 / e) * 0.5;
  const auto small = fma(a * a, a * lit(a, 0.16666666666666666), a);
  return with_sign(convert<float>(select(a < 1e-3, small, large)), x);
}
template <class T>
PRONG_INLINE T cosh_f32(const T& x) {
  const auto a = abs(convert<double>(x));
  const auto e = exp2_wide(a * lit(a, 1.4426950408889634));
  return convert<float>((e + 1 / e) * 0.5);
}
// log(1 + u), or log(2 a) where a is so large that u would pass the range.
template <class C, class T>
PRONG_INLINE T log1p_or_log_twice(const C& is_large, const T& a, const T& u) {
  const T y = log1p_f32(select(is_large, a, u));
  return y + select(is_large, lit(a, 0.69314718055994531), lit(a, 0.0));
}
template <class T>
PRONG_INLINE T asinh_f32(const T& x) {
  const T a = abs(x);
  const auto d = convert<double>(a);
  const auto s = d * d;
  const T u = convert<float>(d + s / (1 + sqrt(s + 1)));
  const T y = log1p_or_log_twice(a > 1e18f, a, u);
  return select(a < 1e-4f, x, with_sign(y, x));
}
template <class T>
PRONG_INLINE T acosh_f32(const T& x) {
  const auto d = convert<double>(x) - 1;
  const T u = convert<float>(d + sqrt(d * (d + 2)));
  return select(x < 1, nan_like(x), log1p_or_log_twice(x > 1e18f, x, u));
}
template <class T>
PRONG_INLINE T atanh_f32(const T& x) {
  const auto a = abs(convert<double>(x));
  const T y = log1p_f32(convert<float>((a + a) / (1 - a))) * 0.5f;
  return select(abs(x) < 1e-4f, x, with_sign(y, x));
}

// ── the error function's complement and inverse, float32 ──

// exp(p(t) - a^2) t with t = 1 / (1 + a / 2), for a = |x|.
template <class T>
PRONG_INLINE T erfc_f32(const T& x) {
  const auto a = abs(convert<double>(x));
  const auto t = 1 / fma(a, lit(a, 0.5), lit(a, 1.0));
  const auto p =
      horner(t, -1.2655705571792182, 1.001636259917863, 0.3551032525476221, 0.22166177533366876,
             -0.6942227758996246, 1.6178976345098273, -3.462140035991229, 4.133016087378956,
             -2.711884977108665, 0.9408914480090665, -0.1363881054232618);
  const auto y = t * exp2_wide(fma(-a, a, p) * lit(a, 1.4426950408889634));
  const T tail = convert<float>(y), whole = convert<float>(2 - y);
  const T bounded = select(abs(x) == infinity_like(x), lit(x, 0.0), tail);
  return select(x < 0, select(bounded == 0, lit(x, 2.0), whole), bounded);
}
// By the logarithm of 1 - x^2, after Giles (2010): x p(w) in the middle, x p(sqrt(w)) in the tails.
template <class T>
PRONG_INLINE T erfinv_f32(const T& x) {
  const T w = -log_f32((1 - x) * (1 + x));
  const auto c = convert<double>(w) - 2.5;
  const auto middle = horner(c, 1.5014093592824909, 0.2466402861534042, -0.004177386781088127,
                             -0.001252741878346752, 0.0002183444394238153, -4.963347908829596e-06,
                             -3.46270475598208e-06, 4.661706744810514e-07, 2.3232643927677292e-08,
                             -8.791057137273934e-09);
  const T d = sqrt(w) - 3;
  const T tails =
      horner(d, 2.8329767961309473, 1.001675070994179, 0.009445647168516855, -0.007639115915282244,
             0.005683558883303394, -0.00358847744837745, 0.0014946932966995047,
             -7.375659616961574e-05, -0.00031768924179266663, 0.00012706833324661044);
  const T y = x * select(w < 5, T(convert<float>(middle)), tails);
  return select(abs(x) == 1, with_sign(infinity_like(x), x), y);
}

}  // namespace prong::math
