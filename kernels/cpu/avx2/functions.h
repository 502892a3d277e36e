// The functions of contract clause 4 in eight lanes of AVX2 + FMA: the same operations in the same
// order as kernels/math.h. Where that has a branch, both sides are computed and a comparison
// selects. Internal to kernels/cpu/avx2; everything here has internal linkage.
#pragma once

#include <immintrin.h>

#include "kernels/contract.h"
#include "kernels/math.h"

namespace detrun::kernels::avx2 {

static inline __m256 all_bits(std::uint32_t bits) {
  return _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(bits)));
}

/// value where x is a number, 0x7fc00000 where it is a NaN.
static inline __m256 or_nan(__m256 value, __m256 x) {
  return _mm256_blendv_ps(value, all_bits(kNanBits), _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

/// c[0] x^(n-1) + ... + c[n-1] by Horner's rule, one fma a step.
template <int N>
static inline __m256 horner8(const float (&c)[N], __m256 x) {
  __m256 p = _mm256_set1_ps(c[0]);
#pragma GCC unroll 16
  for (int i = 1; i < N; ++i) p = _mm256_fmadd_ps(p, x, _mm256_set1_ps(c[i]));
  return p;
}

/// exp32 of x, where c is x limited from above.
static inline __m256 exp8_limited(__m256 x, __m256 c) {
  c = _mm256_max_ps(c, _mm256_set1_ps(kExpMin));
  const __m256 magic = _mm256_set1_ps(kRoundMagic);
  const __m256 t = _mm256_fmadd_ps(c, _mm256_set1_ps(kLog2e), magic);
  const __m256 n = _mm256_add_ps(t, _mm256_set1_ps(-kRoundMagic));
  __m256 r = _mm256_fmadd_ps(n, _mm256_set1_ps(-kLn2High), c);
  r = _mm256_fmadd_ps(n, _mm256_set1_ps(-kLn2Low), r);
  const __m256 p = horner8({kExp6, kExp5, kExp4, kExp3, 0.5f, 1.0f, 1.0f}, r);
  const __m256i magic_bits = _mm256_set1_epi32(static_cast<int>(kRoundMagicBits));
  const __m256i k = _mm256_sub_epi32(_mm256_castps_si256(t), magic_bits);
  const __m256i k1 = _mm256_srai_epi32(k, 1);
  const __m256i k2 = _mm256_sub_epi32(k, k1);
  const __m256i bias = _mm256_set1_epi32(127);
  const __m256i scale1 = _mm256_slli_epi32(_mm256_add_epi32(k1, bias), 23);
  const __m256i scale2 = _mm256_slli_epi32(_mm256_add_epi32(k2, bias), 23);
  const __m256 y =
      _mm256_mul_ps(_mm256_mul_ps(p, _mm256_castsi256_ps(scale1)), _mm256_castsi256_ps(scale2));
  return or_nan(y, x);
}

/// exp32 in every lane.
static inline __m256 exp8(__m256 x) {
  // min and max return their second operand for NaN, as the comparisons of exp32 do.
  return exp8_limited(x, _mm256_min_ps(x, _mm256_set1_ps(kExpMax)));
}

/// exp32 where no lane is above 0; a NaN gives one as there.
static inline __m256 exp8_not_positive(__m256 x) { return exp8_limited(x, x); }

/// log32 in every lane.
static inline __m256 log8(__m256 x) {
  const __m256 zero = _mm256_setzero_ps();
  const __m256 one = _mm256_set1_ps(1.0f);
  const __m256 subnormal = _mm256_cmp_ps(x, all_bits(0x00800000u), _CMP_LT_OQ);
  const __m256 normal =
      _mm256_blendv_ps(x, _mm256_mul_ps(x, _mm256_set1_ps(8388608.0f)), subnormal);
  __m256 e = _mm256_and_ps(_mm256_set1_ps(-23.0f), subnormal);
  const __m256i bits = _mm256_castps_si256(normal);
  const __m256i from_two_thirds = _mm256_sub_epi32(bits, _mm256_set1_epi32(0x3f2aaaab));
  const __m256i step =
      _mm256_and_si256(from_two_thirds, _mm256_set1_epi32(static_cast<int>(0xff800000u)));
  e = _mm256_add_ps(e, _mm256_cvtepi32_ps(_mm256_srai_epi32(step, 23)));
  const __m256 f = _mm256_sub_ps(_mm256_castsi256_ps(_mm256_sub_epi32(bits, step)), one);
  const __m256 p = horner8({-0.13188140094280243f, 0.1396193653345108f, -0.1211593970656395f,
                            0.14011041820049286f, -0.16685406863689423f, 0.2001003473997116f,
                            -0.24999690055847168f, 0.33333224058151245f, -0.5f},
                           f);
  const __m256 log1p = _mm256_fmadd_ps(p, _mm256_mul_ps(f, f), f);
  const __m256 y = _mm256_fmadd_ps(e, _mm256_set1_ps(kLn2), log1p);
  const __m256 inf = all_bits(kInfBits);
  const __m256 no_log = _mm256_cmp_ps(x, zero, _CMP_NGE_UQ);  // negative or NaN
  __m256 out = _mm256_blendv_ps(y, inf, _mm256_cmp_ps(x, inf, _CMP_EQ_OQ));
  out = _mm256_blendv_ps(out, all_bits(0xff800000u), _mm256_cmp_ps(x, zero, _CMP_EQ_OQ));
  return _mm256_blendv_ps(out, all_bits(kNanBits), no_log);
}

/// tanh32 in every lane.
static inline __m256 tanh8(__m256 x) {
  const __m256 one = _mm256_set1_ps(1.0f);
  const __m256 sign = _mm256_set1_ps(-0.0f);
  const __m256 t = _mm256_andnot_ps(sign, x);
  const __m256 z = _mm256_mul_ps(x, x);
  const __m256 p =
      horner8({-0.005900859f, 0.020838568f, -0.05381102f, 0.13332477f, -0.3333333f}, z);
  const __m256 small = _mm256_fmadd_ps(_mm256_mul_ps(x, z), p, x);
  const __m256 e = exp8(_mm256_add_ps(t, t));
  const __m256 y = _mm256_sub_ps(one, _mm256_div_ps(_mm256_set1_ps(2.0f), _mm256_add_ps(e, one)));
  const __m256 large = _mm256_or_ps(y, _mm256_and_ps(sign, x));
  const __m256 is_small = _mm256_cmp_ps(t, _mm256_set1_ps(kTanhSmall), _CMP_LT_OQ);
  return or_nan(_mm256_blendv_ps(large, small, is_small), x);
}

/// erf32 in every lane.
static inline __m256 erf8(__m256 x) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  const __m256 t = _mm256_andnot_ps(sign, x);
  const __m256 p = horner8({7.648383e-05f, -0.000794175f, 0.0051800134f, -0.02684937f, 0.11283488f,
                            -0.3761262f, 0.12837917f},
                           _mm256_mul_ps(x, x));
  const __m256 small = _mm256_fmadd_ps(x, p, x);
  const __m256 q = horner8({0.00017059321f, -0.0028053855f, 0.021311956f, -0.10208209f,
                            -0.63925606f, -1.126452f, -0.0004925754f},
                           _mm256_min_ps(t, _mm256_set1_ps(kErfMax)));
  const __m256 y = _mm256_sub_ps(_mm256_set1_ps(1.0f), exp8(q));
  const __m256 large = _mm256_or_ps(y, _mm256_and_ps(sign, x));
  const __m256 is_small = _mm256_cmp_ps(t, _mm256_set1_ps(kErfSmall), _CMP_LT_OQ);
  return or_nan(_mm256_blendv_ps(large, small, is_small), x);
}

/// 1 + exp(-x) in every lane.
static inline __m256 one_plus_exp_minus8(__m256 x) {
  return _mm256_add_ps(_mm256_set1_ps(1.0f), exp8(_mm256_xor_ps(x, _mm256_set1_ps(-0.0f))));
}

static inline __m256 sigmoid8(__m256 x) {
  return _mm256_div_ps(_mm256_set1_ps(1.0f), one_plus_exp_minus8(x));
}

static inline __m256 silu8(__m256 x) { return _mm256_div_ps(x, one_plus_exp_minus8(x)); }

static inline __m256 gelu_tanh8(__m256 x) {
  const __m256 one = _mm256_set1_ps(1.0f);
  const __m256 v = _mm256_fmadd_ps(_mm256_set1_ps(0.044715f), _mm256_mul_ps(x, x), one);
  const __m256 u = _mm256_mul_ps(_mm256_mul_ps(_mm256_set1_ps(0.7978845608f), x), v);
  return _mm256_mul_ps(_mm256_mul_ps(_mm256_set1_ps(0.5f), x), _mm256_add_ps(one, tanh8(u)));
}

static inline __m256 gelu_erf8(__m256 x) {
  const __m256 e = erf8(_mm256_mul_ps(x, _mm256_set1_ps(0.7071067812f)));
  const __m256 half = _mm256_mul_ps(_mm256_set1_ps(0.5f), x);
  return _mm256_mul_ps(half, _mm256_add_ps(_mm256_set1_ps(1.0f), e));
}

static inline __m256 softcap8(__m256 x, __m256 cap) {
  return _mm256_mul_ps(cap, tanh8(_mm256_div_ps(x, cap)));
}

}  // namespace detrun::kernels::avx2
