// The inner tiles of attention: R slots times C registers, as an outer product, and the scores'
// tree over it. Internal to kernels/cpu/avx2; everything here has internal linkage.
#pragma once

#include <immintrin.h>

#include "kernels/contract.h"
#include "kernels/cpu/avx2/lanes.h"

namespace detrun::kernels::avx2 {

namespace {

/// a[r][c] = fma(s[r], v[c], a[r][c]). With few slots the scalars stay in registers while the
/// vectors pass, with many the vectors do: 12 accumulators leave four registers.
template <int R, int C, class Type>
[[gnu::always_inline]] inline void outer_product(Type, const float* s, std::uint64_t s_step,
                                                 const typename Type::Block* v, __m256 (&a)[R][C]) {
  if constexpr (R <= C) {
    __m256 scalars[R];
#pragma GCC unroll 6
    for (std::uint64_t r = 0; r < R; ++r) scalars[r] = _mm256_broadcast_ss(s + r * s_step);
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
      const __m256 vector = load8(Type{}, v + 8 * c);
#pragma GCC unroll 6
      for (int r = 0; r < R; ++r) a[r][c] = _mm256_fmadd_ps(scalars[r], vector, a[r][c]);
    }
  } else {
    __m256 vectors[C];
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) vectors[c] = load8(Type{}, v + 8 * c);
#pragma GCC unroll 6
    for (std::uint64_t r = 0; r < R; ++r) {
      const __m256 scalar = _mm256_broadcast_ss(s + r * s_step);
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) a[r][c] = _mm256_fmadd_ps(scalar, vectors[c], a[r][c]);
    }
  }
}

/// One chain of every slot and position of the tile: a[r][c] = fma(q, K, .) over the chain.
template <class Type, int R, int C>
struct ScoreTile {
  const typename Type::Block* k;
  const float* q;
  std::uint64_t chain;
  alignas(32) float stack[3][R * C * 8];

  [[gnu::always_inline]] inline void chains(__m256 (&a)[R][C]) {
    for (int r = 0; r < R; ++r) {
      for (int c = 0; c < C; ++c) a[r][c] = _mm256_setzero_ps();
    }
    for (std::uint64_t left = chain; left != 0; --left) {
      outer_product(Type{}, q, 1, k, a);
      k += kKvBlock;
      q += 8;
    }
  }

  /// T of 2^Level lanes, which follow each other in bit-reversed order: earlier half + later half.
  template <int Level>
  [[gnu::always_inline]] inline void lanes(__m256 (&a)[R][C]) {
    if constexpr (Level == 0) {
      chains(a);
    } else {
      lanes<Level - 1>(a);
      float* waiting = stack[Level - 1];
      for (int i = 0; i < R * C; ++i) _mm256_store_ps(waiting + 8 * i, a[i / C][i % C]);
      lanes<Level - 1>(a);
      for (int i = 0; i < R * C; ++i) {
        a[i / C][i % C] = _mm256_add_ps(_mm256_load_ps(waiting + 8 * i), a[i / C][i % C]);
      }
    }
  }
};

}  // namespace

}  // namespace detrun::kernels::avx2
