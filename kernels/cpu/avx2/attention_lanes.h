// What the two forms of attention share: the visible positions of a block, as lanes, and the
// largest of eight lanes. Internal to kernels/cpu/avx2; everything here has internal linkage.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace detrun::kernels::avx2 {

namespace {

inline std::uint64_t padded(std::uint64_t head_dim) { return (head_dim + 7) / 8 * 8; }

/// Positions begin <= j < end <= 64 of a block.
struct Visible {
  std::uint64_t begin, end;
};

/// The largest of eight lanes; none is a NaN.
inline float largest_lane(__m256 v) {
  __m128 h = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  h = _mm_max_ps(h, _mm_movehl_ps(h, h));
  h = _mm_max_ss(h, _mm_shuffle_ps(h, h, 1));
  return _mm_cvtss_f32(h);
}

/// All ones in the lanes of j .. j + 7 that are visible.
inline __m256 visible_lanes(Visible visible, std::uint64_t j) {
  const __m256i lane = _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                                        _mm256_set1_epi32(static_cast<int>(j)));
  const __m256i before =
      _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(visible.begin)), lane);
  const __m256i within = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(visible.end)), lane);
  return _mm256_castsi256_ps(_mm256_andnot_si256(before, within));
}

}  // namespace

}  // namespace detrun::kernels::avx2
