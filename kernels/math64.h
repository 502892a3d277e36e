// log, exp, pow and sin/cos in binary64 for tables made on the host (RoPE). Contract clause 8.
// Own polynomials, fma and single operations in the written order, no libm; not for a device.
// Not general-purpose: each function states the range it is good for.
#pragma once

#include "kernels/contract.h"

namespace detrun::kernels {

constexpr double kLn2High64 = 0.69314718036912382;  ///< low 32 bits zero: n * high is exact
constexpr double kLn2Low64 = 1.9082149292705877e-10;
constexpr double kPiHalfHigh64 = 1.5707963267948966;
constexpr double kPiHalfLow64 = 6.123233995736766e-17;
/// 1.5 * 2^52: adding it rounds |x| < 2^51 to an integer, ties to even.
constexpr double kRoundMagic64 = 6755399441055744.0;

static inline std::uint64_t f64_bits(double a) {
  std::uint64_t bits;
  std::memcpy(&bits, &a, sizeof bits);
  return bits;
}
static inline double f64_from_bits(std::uint64_t bits) {
  double a;
  std::memcpy(&a, &bits, sizeof a);
  return a;
}
static inline double f64_fma(double a, double b, double c) { return __builtin_fma(a, b, c); }

/// c[0] x^(n-1) + ... + c[n-1] by Horner's rule, one fma a step.
template <int N>
static inline double horner64(const double (&c)[N], double x) {
  double p = c[0];
  for (int i = 1; i < N; ++i) p = f64_fma(p, x, c[i]);
  return p;
}

/// log(x) for positive normal x: 2 artanh(s) with s = (m - 1) / (m + 1), m in [sqrt(1/2), sqrt 2].
static inline double log64(double x) {
  const std::uint64_t bits = f64_bits(x);
  int e = static_cast<int>(bits >> 52) - 1023;
  double m = f64_from_bits((bits & 0xfffffffffffffull) | 0x3ff0000000000000ull);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++e;
  }
  const double f = m - 1.0;
  const double s = f / (m + 1.0);
  const double z = s * s;
  const double p = horner64({1.0 / 27, 1.0 / 25, 1.0 / 23, 1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15,
                             1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3},
                            z);
  const double t = s * z;
  double l = f64_fma(2.0 * t, p, 2.0 * s);
  l = f64_fma(static_cast<double>(e), kLn2Low64, l);
  return f64_fma(static_cast<double>(e), kLn2High64, l);
}

/// exp(x) for |x| < 700: Cody-Waite reduction, Taylor series of degree 13.
static inline double exp64(double x) {
  const double n = f64_fma(x, 1.4426950408889634, kRoundMagic64) - kRoundMagic64;
  double r = f64_fma(n, -kLn2High64, x);
  r = f64_fma(n, -kLn2Low64, r);
  const double p = horner64(
      {1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0,
       1.0 / 40320.0, 1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0},
      r);
  const std::int64_t k = static_cast<std::int64_t>(n);
  return p * f64_from_bits(static_cast<std::uint64_t>(k + 1023) << 52);
}

/// base^exponent for positive normal base and |exponent * log(base)| < 700.
static inline double pow64(double base, double exponent) { return exp64(exponent * log64(base)); }

/// sin(x) and cos(x) for |x| < 2^32: Cody-Waite reduction by pi/2 in two parts, Taylor series.
static inline void sincos64(double x, double* sin_x, double* cos_x) {
  const double n = f64_fma(x, 0.63661977236758134, kRoundMagic64) - kRoundMagic64;
  double r = f64_fma(n, -kPiHalfHigh64, x);
  r = f64_fma(n, -kPiHalfLow64, r);
  const double z = r * r;
  const double ps = horner64({-1.0 / 1307674368000.0, 1.0 / 6227020800.0, -1.0 / 39916800.0,
                              1.0 / 362880.0, -1.0 / 5040.0, 1.0 / 120.0, -1.0 / 6.0},
                             z);
  const double s = f64_fma(ps * z, r, r);
  const double c = horner64({1.0 / 20922789888000.0, -1.0 / 87178291200.0, 1.0 / 479001600.0,
                             -1.0 / 3628800.0, 1.0 / 40320.0, -1.0 / 720.0, 1.0 / 24.0, -0.5, 1.0},
                            z);
  const int quadrant = static_cast<int>(static_cast<std::int64_t>(n) & 3);
  const double a = (quadrant & 1) != 0 ? c : s;
  const double b = (quadrant & 1) != 0 ? s : c;
  *sin_x = (quadrant & 2) != 0 ? -a : a;
  *cos_x = quadrant == 1 || quadrant == 2 ? -b : b;
}

}  // namespace detrun::kernels
