// The functions of contract clause 4 in four lanes: the same operations in the same order as
// kernels/math.h, both sides of a branch computed and one selected.
#pragma once

#include "kernels/cpu/neon/lanes.h"
#include "kernels/math.h"

namespace detrun::kernels::neon {

static inline float32x4_t splat(float x) { return vdupq_n_f32(x); }
static inline float32x4_t from_bits(std::uint32_t bits) {
  return vreinterpretq_f32_u32(vdupq_n_u32(bits));
}
static inline uint32x4_t bits_of(float32x4_t x) { return vreinterpretq_u32_f32(x); }

/// fma(a, b, c) with the addend last, as the contract writes it.
static inline float32x4_t fma4(float32x4_t a, float32x4_t b, float32x4_t c) {
  return vfmaq_f32(c, a, b);
}
static inline float32x4_t fma4(float32x4_t a, float32x4_t b, float c) {
  return vfmaq_f32(splat(c), a, b);
}

/// x, or 0x7fc00000 where `of` is a NaN.
static inline float32x4_t nan_of(float32x4_t of, float32x4_t x) {
  return select(vceqq_f32(of, of), x, from_bits(kNanBits));
}

/// The magnitude of y with the sign of x; y is not negative.
static inline float32x4_t with_sign(float32x4_t y, float32x4_t x) {
  const uint32x4_t sign = vandq_u32(bits_of(x), vdupq_n_u32(~kAbsMask));
  return vreinterpretq_f32_u32(vorrq_u32(bits_of(y), sign));
}

static inline float32x4_t exp4(float32x4_t x) {
  float32x4_t c = select(vcltq_f32(x, splat(kExpMax)), x, splat(kExpMax));  // NaN too
  c = select(vcgtq_f32(c, splat(kExpMin)), c, splat(kExpMin));
  const float32x4_t t = fma4(c, splat(kLog2e), kRoundMagic);
  const float32x4_t n = vaddq_f32(t, splat(-kRoundMagic));
  float32x4_t r = fma4(n, splat(-kLn2High), c);
  r = fma4(n, splat(-kLn2Low), r);
  float32x4_t p = splat(kExp6);
  p = fma4(p, r, kExp5);
  p = fma4(p, r, kExp4);
  p = fma4(p, r, kExp3);
  p = fma4(p, r, 0.5f);
  p = fma4(p, r, 1.0f);
  p = fma4(p, r, 1.0f);
  const int32x4_t k = vreinterpretq_s32_u32(vsubq_u32(bits_of(t), vdupq_n_u32(kRoundMagicBits)));
  const int32x4_t k1 = vshrq_n_s32(k, 1);
  const int32x4_t k2 = vsubq_s32(k, k1);
  const int32x4_t bias = vdupq_n_s32(127);
  const int32x4_t scale1 = vshlq_n_s32(vaddq_s32(k1, bias), 23);
  const int32x4_t scale2 = vshlq_n_s32(vaddq_s32(k2, bias), 23);
  const float32x4_t y =
      vmulq_f32(vmulq_f32(p, vreinterpretq_f32_s32(scale1)), vreinterpretq_f32_s32(scale2));
  return nan_of(x, y);
}

static inline float32x4_t log4(float32x4_t x) {
  const uint32x4_t x_bits = bits_of(x);
  const uint32x4_t subnormal = vcltq_u32(x_bits, vdupq_n_u32(0x00800000u));
  const uint32x4_t scaled = bits_of(vmulq_f32(x, splat(8388608.0f)));
  const uint32x4_t bits = vbslq_u32(subnormal, scaled, x_bits);
  float32x4_t e = select(subnormal, splat(-23.0f), zero4());
  const uint32x4_t step =
      vandq_u32(vsubq_u32(bits, vdupq_n_u32(0x3f2aaaabu)), vdupq_n_u32(0xff800000u));
  e = vaddq_f32(e, vcvtq_f32_s32(vshrq_n_s32(vreinterpretq_s32_u32(step), 23)));
  const float32x4_t f = vsubq_f32(vreinterpretq_f32_u32(vsubq_u32(bits, step)), splat(1.0f));
  const float32x4_t f2 = vmulq_f32(f, f);
  float32x4_t p = splat(-0.13188140094280243f);
  p = fma4(p, f, 0.1396193653345108f);
  p = fma4(p, f, -0.1211593970656395f);
  p = fma4(p, f, 0.14011041820049286f);
  p = fma4(p, f, -0.16685406863689423f);
  p = fma4(p, f, 0.2001003473997116f);
  p = fma4(p, f, -0.24999690055847168f);
  p = fma4(p, f, 0.33333224058151245f);
  p = fma4(p, f, -0.5f);
  const float32x4_t log1p = fma4(p, f2, f);
  float32x4_t y = fma4(e, splat(kLn2), log1p);
  y = select(vcgtq_u32(x_bits, vdupq_n_u32(kInfBits)), from_bits(kNanBits), y);
  y = select(vceqq_u32(x_bits, vdupq_n_u32(kInfBits)), x, y);
  return select(vceqq_f32(x, zero4()), from_bits(0xff800000u), y);
}

static inline float32x4_t tanh4(float32x4_t x) {
  const float32x4_t t = vreinterpretq_f32_u32(magnitude_bits(x));
  const float32x4_t z = vmulq_f32(x, x);
  float32x4_t p = splat(-0.005900859f);
  p = fma4(p, z, 0.020838568f);
  p = fma4(p, z, -0.05381102f);
  p = fma4(p, z, 0.13332477f);
  p = fma4(p, z, -0.3333333f);
  const float32x4_t small = fma4(vmulq_f32(x, z), p, x);
  const float32x4_t e = exp4(vaddq_f32(t, t));
  const float32x4_t y = vsubq_f32(splat(1.0f), vdivq_f32(splat(2.0f), vaddq_f32(e, splat(1.0f))));
  return nan_of(x, select(vcltq_f32(t, splat(kTanhSmall)), small, with_sign(y, x)));
}

static inline float32x4_t erf4(float32x4_t x) {
  const float32x4_t magnitude = vreinterpretq_f32_u32(magnitude_bits(x));
  const float32x4_t z = vmulq_f32(x, x);
  float32x4_t p = splat(7.648383e-05f);
  p = fma4(p, z, -0.000794175f);
  p = fma4(p, z, 0.0051800134f);
  p = fma4(p, z, -0.02684937f);
  p = fma4(p, z, 0.11283488f);
  p = fma4(p, z, -0.3761262f);
  p = fma4(p, z, 0.12837917f);
  const float32x4_t small = fma4(x, p, x);
  const float32x4_t t = select(vcltq_f32(magnitude, splat(kErfMax)), magnitude, splat(kErfMax));
  float32x4_t q = splat(0.00017059321f);
  q = fma4(q, t, -0.0028053855f);
  q = fma4(q, t, 0.021311956f);
  q = fma4(q, t, -0.10208209f);
  q = fma4(q, t, -0.63925606f);
  q = fma4(q, t, -1.126452f);
  q = fma4(q, t, -0.0004925754f);
  const float32x4_t y = vsubq_f32(splat(1.0f), exp4(q));
  return nan_of(x, select(vcltq_f32(magnitude, splat(kErfSmall)), small, with_sign(y, x)));
}

static inline float32x4_t sigmoid4(float32x4_t x) {
  return vdivq_f32(splat(1.0f), vaddq_f32(splat(1.0f), exp4(vnegq_f32(x))));
}

static inline float32x4_t silu4(float32x4_t x) {
  return vdivq_f32(x, vaddq_f32(splat(1.0f), exp4(vnegq_f32(x))));
}

static inline float32x4_t gelu_tanh4(float32x4_t x) {
  const float32x4_t v = fma4(splat(0.044715f), vmulq_f32(x, x), 1.0f);
  const float32x4_t u = vmulq_f32(vmulq_f32(splat(0.7978845608f), x), v);
  return vmulq_f32(vmulq_f32(splat(0.5f), x), vaddq_f32(splat(1.0f), tanh4(u)));
}

static inline float32x4_t gelu_erf4(float32x4_t x) {
  const float32x4_t t = erf4(vmulq_f32(x, splat(0.7071067812f)));
  return vmulq_f32(vmulq_f32(splat(0.5f), x), vaddq_f32(splat(1.0f), t));
}

static inline float32x4_t softcap4(float32x4_t x, float32x4_t cap) {
  return vmulq_f32(cap, tanh4(vdivq_f32(x, cap)));
}

}  // namespace detrun::kernels::neon
