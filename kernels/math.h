// exp, log, tanh, erf and what is built from them, in binary32: the contract's own functions, the
// same bits on host and device. Contract clause 4. No libm. Only add, multiply, divide and fma,
// each rounded once, in the written order.
#pragma once

#include "kernels/contract.h"

namespace detrun::kernels {

/// 1.5 * 2^23: adding it rounds a small value to an integer (ties to even) in the low bits.
constexpr float kRoundMagic = 12582912.0f;
constexpr std::uint32_t kRoundMagicBits = 0x4b400000u;

constexpr float kExpMax = 89.0f;    ///< exp(89) overflows to infinity
constexpr float kExpMin = -104.0f;  ///< exp(-104) underflows to zero
constexpr float kLog2e = 1.44269504088896341f;
constexpr float kLn2High = 0.693145751953125f;  ///< 16 significant bits: n * kLn2High is exact
constexpr float kLn2Low = 1.428606765330187e-06f;
constexpr float kLn2 = 0.693147182f;
/// exp(r) on |r| <= ln2 / 2, highest power first.
constexpr float kExp6 = 0.0014035551575943828f;
constexpr float kExp5 = 0.008372284471988678f;
constexpr float kExp4 = 0.04166555032134056f;
constexpr float kExp3 = 0.16666488349437714f;

/// Nearest integer, ties to even, for |x| < 2^22. Exact integer result; never a library call.
DETRUN_HD std::int32_t round_to_int(float x) {
  return static_cast<std::int32_t>(f32_bits(f32_add(x, kRoundMagic)) - kRoundMagicBits);
}

/// exp(x), error below 0.92 ulp (measured over all inputs). Subnormal results are rounded once.
/// NaN gives 0x7fc00000.
DETRUN_HD float exp32(float x) {
  float c = x;
  if (!(c < kExpMax)) c = kExpMax;  // NaN too; replaced at the end
  if (!(c > kExpMin)) c = kExpMin;
  const float t = f32_fma(c, kLog2e, kRoundMagic);
  const float n = f32_add(t, -kRoundMagic);
  float r = f32_fma(n, -kLn2High, c);
  r = f32_fma(n, -kLn2Low, r);
  float p = kExp6;
  p = f32_fma(p, r, kExp5);
  p = f32_fma(p, r, kExp4);
  p = f32_fma(p, r, kExp3);
  p = f32_fma(p, r, 0.5f);
  p = f32_fma(p, r, 1.0f);
  p = f32_fma(p, r, 1.0f);
  // 2^k in two steps, so that neither factor leaves the range of binary32.
  const std::int32_t k = static_cast<std::int32_t>(f32_bits(t) - kRoundMagicBits);
  const std::int32_t k1 = k >> 1;
  const std::int32_t k2 = k - k1;
  const float scale1 = f32_from_bits(static_cast<std::uint32_t>(k1 + 127) << 23);
  const float scale2 = f32_from_bits(static_cast<std::uint32_t>(k2 + 127) << 23);
  const float y = f32_mul(f32_mul(p, scale1), scale2);
  return x != x ? f32_from_bits(kNanBits) : y;
}

/// log(x), error below 0.95 ulp (measured over all inputs). log(0) = -inf, log(+inf) = +inf;
/// negative x and NaN give 0x7fc00000. log(1) = +0.
/// Reduction: x = 2^e * m with m in [2/3, 4/3), log x = e * ln2 + log1p(m - 1); the polynomial is
/// our own minimax fit of (log1p(f) - f) / f^2, error below 2^-27 relative to f.
DETRUN_HD float log32(float x) {
  std::uint32_t bits = f32_bits(x);
  if (bits == 0 || bits == 0x80000000u) return f32_from_bits(0xff800000u);
  if (bits == kInfBits) return x;
  if (bits > kInfBits) return f32_from_bits(kNanBits);  // NaN, or the sign bit is set
  float e = 0.0f;
  if (bits < 0x00800000u) {  // subnormal
    bits = f32_bits(f32_mul(x, 8388608.0f));
    e = -23.0f;
  }
  const std::uint32_t step = (bits - 0x3f2aaaabu) & 0xff800000u;  // 0x3f2aaaab = 2/3
  e = f32_add(e, static_cast<float>(static_cast<std::int32_t>(step) >> 23));
  const float f = f32_sub(f32_from_bits(bits - step), 1.0f);  // exact
  const float f2 = f32_mul(f, f);
  float p = -0.13188140094280243f;
  p = f32_fma(p, f, 0.1396193653345108f);
  p = f32_fma(p, f, -0.1211593970656395f);
  p = f32_fma(p, f, 0.14011041820049286f);
  p = f32_fma(p, f, -0.16685406863689423f);
  p = f32_fma(p, f, 0.2001003473997116f);
  p = f32_fma(p, f, -0.24999690055847168f);
  p = f32_fma(p, f, 0.33333224058151245f);
  p = f32_fma(p, f, -0.5f);
  const float log1p = f32_fma(p, f2, f);
  return f32_fma(e, kLn2, log1p);
}

constexpr float kTanhSmall = 0.625f;  ///< below: a polynomial; from here on: through exp
constexpr float kErfSmall = 1.0f;
constexpr float kErfMax = 4.0f;  ///< erf rounds to 1 from about 3.92 on

/// tanh(x), error below 1.37 ulp (measured over all inputs above 2^-13, a sample below). tanh(-0) =
/// +0; NaN gives 0x7fc00000. The polynomial is our own minimax fit of (tanh(x) / x - 1) / x^2.
DETRUN_HD float tanh32(float x) {
  if (x != x) return f32_from_bits(kNanBits);
  const float t = f32_from_bits(f32_bits(x) & kAbsMask);
  if (t < kTanhSmall) {
    const float z = f32_mul(x, x);
    float p = -0.005900859f;
    p = f32_fma(p, z, 0.020838568f);
    p = f32_fma(p, z, -0.05381102f);
    p = f32_fma(p, z, 0.13332477f);
    p = f32_fma(p, z, -0.3333333f);
    return f32_fma(f32_mul(x, z), p, x);
  }
  const float e = exp32(f32_add(t, t));
  const float y = f32_sub(1.0f, f32_div(2.0f, f32_add(e, 1.0f)));
  return f32_from_bits(f32_bits(y) | (f32_bits(x) & ~kAbsMask));
}

/// erf(x), error below 1.12 ulp (measured likewise). erf(-0) = -0; NaN gives 0x7fc00000.
/// Both polynomials are our own minimax fits: of erf(x) / x - 1 in x^2, and of log(1 - erf(x)).
DETRUN_HD float erf32(float x) {
  if (x != x) return f32_from_bits(kNanBits);
  float t = f32_from_bits(f32_bits(x) & kAbsMask);
  if (t < kErfSmall) {
    const float z = f32_mul(x, x);
    float p = 7.648383e-05f;
    p = f32_fma(p, z, -0.000794175f);
    p = f32_fma(p, z, 0.0051800134f);
    p = f32_fma(p, z, -0.02684937f);
    p = f32_fma(p, z, 0.11283488f);
    p = f32_fma(p, z, -0.3761262f);
    p = f32_fma(p, z, 0.12837917f);
    return f32_fma(x, p, x);
  }
  if (!(t < kErfMax)) t = kErfMax;
  float q = 0.00017059321f;
  q = f32_fma(q, t, -0.0028053855f);
  q = f32_fma(q, t, 0.021311956f);
  q = f32_fma(q, t, -0.10208209f);
  q = f32_fma(q, t, -0.63925606f);
  q = f32_fma(q, t, -1.126452f);
  q = f32_fma(q, t, -0.0004925754f);
  const float y = f32_sub(1.0f, exp32(q));
  return f32_from_bits(f32_bits(y) | (f32_bits(x) & ~kAbsMask));
}

/// 1 / (1 + exp(-x)): one addition, one division.
DETRUN_HD float sigmoid32(float x) { return f32_div(1.0f, f32_add(1.0f, exp32(-x))); }

/// x / (1 + exp(-x)): one addition, one division.
DETRUN_HD float silu32(float x) { return f32_div(x, f32_add(1.0f, exp32(-x))); }

/// GELU, the form with tanh: (x / 2) (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
DETRUN_HD float gelu_tanh32(float x) {
  const float v = f32_fma(0.044715f, f32_mul(x, x), 1.0f);
  const float u = f32_mul(f32_mul(0.7978845608f, x), v);
  return f32_mul(f32_mul(0.5f, x), f32_add(1.0f, tanh32(u)));
}

/// GELU, the form with erf: (x / 2) (1 + erf(x / sqrt(2))).
DETRUN_HD float gelu_erf32(float x) {
  const float t = erf32(f32_mul(x, 0.7071067812f));
  return f32_mul(f32_mul(0.5f, x), f32_add(1.0f, t));
}

/// cap * tanh(x / cap), cap > 0.
DETRUN_HD float softcap32(float x, float cap) { return f32_mul(cap, tanh32(f32_div(x, cap))); }

}  // namespace detrun::kernels
