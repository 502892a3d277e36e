// Eight binary32 lanes of AVX2 + FMA + F16C: loads that widen exactly, the contract's summation
// trees. Internal to kernels/cpu/avx2; everything here has internal linkage.
#pragma once

#include <immintrin.h>

#include "kernels/contract.h"
#include "kernels/quant/bf16.h"
#include "kernels/quant/f16.h"
#include "kernels/quant/f32.h"

namespace detrun::kernels::avx2 {

// load8: eight stored weights, widened exactly.
static inline __m256 load8(TypeF32, const float* p) { return _mm256_loadu_ps(p); }
static inline __m256 load8(TypeF16, const std::uint16_t* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
static inline __m256 load8(TypeBF16, const std::uint16_t* p) {
  const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}

/// All ones in the first n < 8 lanes.
static inline __m256i first_lanes(std::uint64_t n) {
  alignas(32) static const std::int32_t kMask[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kMask + 8 - n));
}

/// Eight values from p, or the first n < 8 and +0 behind them: the contract lets +0 stand for a
/// missing element.
static inline __m256 load_padded(const float* p, std::uint64_t n) {
  return n >= 8 ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, first_lanes(n));
}

static inline void store_first(float* p, std::uint64_t n, __m256 v) {
  if (n >= 8) {
    _mm256_storeu_ps(p, v);
  } else {
    _mm256_maskstore_ps(p, first_lanes(n), v);
  }
}

/// T_8 of the lanes of one register.
static inline float tree8(__m256 a) {
  __m128 h = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  h = _mm_add_ps(h, _mm_movehl_ps(h, h));
  h = _mm_add_ss(h, _mm_shuffle_ps(h, h, 1));
  return f32_add(_mm_cvtss_f32(h), 0.0f);
}

/// T_32 of lanes 0-7, 8-15, 16-23, 24-31.
static inline float tree32(const __m256 (&a)[4]) {
  return tree8(_mm256_add_ps(_mm256_add_ps(a[0], a[2]), _mm256_add_ps(a[1], a[3])));
}

/// The largest of eight unsigned lanes.
static inline std::uint32_t max_lane_u32(__m256i v) {
  __m128i m = _mm_max_epu32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0x4e));
  m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0xb1));
  return static_cast<std::uint32_t>(_mm_cvtsi128_si32(m));
}

/// The magnitudes' bits; ordered like the magnitudes, with infinities and NaNs on top.
static inline __m256i magnitude_bits(__m256 v) {
  return _mm256_and_si256(_mm256_castps_si256(v), _mm256_set1_epi32(static_cast<int>(kAbsMask)));
}

}  // namespace detrun::kernels::avx2
