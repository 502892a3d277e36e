// K of a block of 64 positions, transposed as stored: [step][64 positions], step = place of the
// canonical lane in bit-reversed order * chain + d / 8. Internal to kernels/cpu/avx2.
#pragma once

#include <immintrin.h>

#include "kernels/contract.h"
#include "kernels/cpu/ops.h"
#include "kernels/quant/f16.h"
#include "kernels/quant/f32.h"

namespace detrun::kernels::avx2 {

/// Place of canonical lane d mod 8 of the scores in the order of visits 0, 4, 2, 6, 1, 5, 3, 7.
constexpr std::uint64_t kScoreOrder[kScoreLanes] = {0, 4, 2, 6, 1, 5, 3, 7};

/// Elements d .. d + 7 of 16 positions: out[e] = element d + e.
static inline void transpose_positions(const std::uint16_t* const (&row)[16], std::uint64_t d,
                                       __m256i (&out)[8]) {
  __m256i r[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row[i] + d));
    const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row[i + 8] + d));
    r[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
  }
  __m256i a[8];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    a[2 * i] = _mm256_unpacklo_epi16(r[2 * i], r[2 * i + 1]);
    a[2 * i + 1] = _mm256_unpackhi_epi16(r[2 * i], r[2 * i + 1]);
  }
#pragma GCC unroll 2
  for (int h = 0; h < 2; ++h) {  // elements 4 h .. 4 h + 3
    const __m256i b0 = _mm256_unpacklo_epi32(a[h], a[2 + h]);
    const __m256i b1 = _mm256_unpackhi_epi32(a[h], a[2 + h]);
    const __m256i b2 = _mm256_unpacklo_epi32(a[4 + h], a[6 + h]);
    const __m256i b3 = _mm256_unpackhi_epi32(a[4 + h], a[6 + h]);
    out[4 * h] = _mm256_unpacklo_epi64(b0, b2);
    out[4 * h + 1] = _mm256_unpackhi_epi64(b0, b2);
    out[4 * h + 2] = _mm256_unpacklo_epi64(b1, b3);
    out[4 * h + 3] = _mm256_unpackhi_epi64(b1, b3);
  }
}

/// Elements d .. d + 7 of 8 positions: out[e] = element d + e.
static inline void transpose_positions(const float* const* row, std::uint64_t d, __m256 (&out)[8]) {
#pragma GCC unroll 2
  for (std::uint64_t h = 0; h < 2; ++h) {  // elements 4 h .. 4 h + 3
    __m256 r[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      r[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(row[i] + d + 4 * h)),
                                  _mm_loadu_ps(row[i + 4] + d + 4 * h), 1);
    }
    const __m256 lo01 = _mm256_unpacklo_ps(r[0], r[1]);
    const __m256 hi01 = _mm256_unpackhi_ps(r[0], r[1]);
    const __m256 lo23 = _mm256_unpacklo_ps(r[2], r[3]);
    const __m256 hi23 = _mm256_unpackhi_ps(r[2], r[3]);
    out[4 * h] = _mm256_shuffle_ps(lo01, lo23, 0x44);
    out[4 * h + 1] = _mm256_shuffle_ps(lo01, lo23, 0xee);
    out[4 * h + 2] = _mm256_shuffle_ps(hi01, hi23, 0x44);
    out[4 * h + 3] = _mm256_shuffle_ps(hi01, hi23, 0xee);
  }
}

static inline void store_positions(const std::uint16_t* const (&row)[16], std::uint64_t d,
                                   std::uint64_t chain, std::uint16_t* out) {
  __m256i column[8];
  transpose_positions(row, d, column);
#pragma GCC unroll 8
  for (std::uint64_t e = 0; e < 8; ++e) {
    std::uint16_t* to = out + (kScoreOrder[e] * chain + d / 8) * kKvBlock;
    _mm256_store_si256(reinterpret_cast<__m256i*>(to), column[e]);
  }
}
static inline void store_positions(const float* const (&row)[16], std::uint64_t d,
                                   std::uint64_t chain, float* out) {
#pragma GCC unroll 2
  for (std::uint64_t half = 0; half < 2; ++half) {
    __m256 column[8];
    transpose_positions(row + 8 * half, d, column);
#pragma GCC unroll 8
    for (std::uint64_t e = 0; e < 8; ++e) {
      _mm256_store_ps(out + (kScoreOrder[e] * chain + d / 8) * kKvBlock + 8 * half, column[e]);
    }
  }
}

/// Fills `panel` with K of the positions of the block at `first`. No position from `n` on is read:
/// the last one before stands in for it.
template <class Type>
static inline void transpose_block(Type, const AttentionTileArgs& args, std::uint64_t first,
                                   std::uint64_t n, typename Type::Block* panel) {
  const auto* k = static_cast<const typename Type::Block*>(args.k);
  const std::uint64_t dim = (args.head_dim + 7u) / 8u * 8u;
  // V of the same positions is wanted next: every step asks the memory for its share.
  const auto* v = static_cast<const typename Type::Block*>(args.v) + first * args.stride;
  for (std::uint64_t j = 0; j < kKvBlock && first + j < n; j += 16) {
    const typename Type::Block* row[16];
    for (std::uint64_t i = 0; i < 16; ++i) {
      const std::uint64_t at = first + j + i;
      row[i] = k + (at < n ? at : n - 1) * args.stride;
    }
    const char* ahead =
        reinterpret_cast<const char*>(v + (first + j + 16 <= n ? j * args.stride : 0));
    for (std::uint64_t d = 0; d < dim; d += 8) {
      for (std::uint64_t i = 0; i < 128 * sizeof(*v); i += 64) _mm_prefetch(ahead + i, _MM_HINT_T0);
      ahead += 128 * sizeof(*v);
      store_positions(row, d, dim / kScoreLanes, panel + j);
    }
  }
}

}  // namespace detrun::kernels::avx2
