// Products of one row of x with interleaved panels (interleaved.h), contract clause 3: the weights
// are taken apart in registers, once, on their way from memory. kVectorG panels are read at a time,
// which are as many streams; kTogether of them share what is loaded of x.
//
// Internal linkage throughout.
#pragma once

#include "kernels/cpu/avx2/panels.h"

namespace detrun::kernels::avx2 {

namespace {

constexpr int kVectorG = 4;
/// Where the sums of 16 bits are short, those of 32 bits beside them take the registers.
template <class P>
constexpr int kTogether = !P::kSigned && P::kChain <= 2 ? 2 : kVectorG;

/// Sums of two products each. Unsigned: w below 64. Signed: |w| times x with w's sign; w may be
/// -128, x never is, so no pair leaves int16.
template <bool kSigned>
[[gnu::always_inline]] inline __m256i multiply(__m256i w, __m256i x) {
  if constexpr (kSigned) return _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
  return _mm256_maddubs_epi16(w, x);
}

/// One block of G panels against x.
template <class P, int G>
struct VectorBlock {
  const PanelBlock<P>* w[G];
  typename P::Scales scales[G];
  QuantizedRow x;
  std::uint64_t first;  ///< index in a row of the block's first 32-block

  [[gnu::always_inline]] __m256i scale(int g, int i, int run) const {
    if constexpr (P::Type::kScaleElems == 0) {
      return _mm256_set1_epi16(1);
    } else {
      return P::scale(scales[g], (32 * i + 4 * run) / P::Type::kScaleElems);
    }
  }
};

/// e = fma(d_x, S, e) for 32-block i0 + J of the block.
template <class P, int J, int G>
[[gnu::always_inline]] inline void add_32_block(const VectorBlock<P, G>& v, int i0,
                                                __m256 (&e)[G]) {
  const int i = i0 + J;
  const std::uint64_t at = v.first + static_cast<std::uint64_t>(i);
  constexpr int kPerScale = P::Type::kScaleElems == 16 ? kRuns / 2 : kRuns;
  __m256i sum[G];
  __m256i scale[G];
#pragma GCC unroll 8
  for (int run0 = 0; run0 < kRuns; run0 += P::kChain) {
    __m256i pairs[G];
#pragma GCC unroll 8
    for (int run = run0; run < run0 + P::kChain; ++run) {
      const __m256i x = broadcast4(v.x.q + at * kActivationBlock + 4 * run);
#pragma GCC unroll 4
      for (int g = 0; g < G; ++g) {
        const __m256i w = P::template weights<J>(*v.w[g], i0, run);
        const __m256i products = multiply<P::kSigned>(w, x);
        pairs[g] = run == run0 ? products : _mm256_add_epi16(pairs[g], products);
        keep(pairs[g]);
      }
    }
#pragma GCC unroll 4
    for (int g = 0; g < G; ++g) {
      if (run0 % kPerScale == 0) scale[g] = v.scale(g, i, run0);
      const __m256i scaled = _mm256_madd_epi16(pairs[g], scale[g]);
      sum[g] = run0 == 0 ? scaled : _mm256_add_epi32(sum[g], scaled);
    }
  }
  const __m256 d = _mm256_broadcast_ss(v.x.d + at);
#pragma GCC unroll 4
  for (int g = 0; g < G; ++g) {
    if constexpr (P::kOffsetLog2 != 0) {
      // The offset times the activations' sums over both halves of 16, each with its scale.
      const __m256i scales = kPerScale == kRuns
                                 ? scale[g]
                                 : _mm256_blend_epi16(v.scale(g, i, 0), v.scale(g, i, 4), 0xaa);
      const __m256i sums = _mm256_madd_epi16(scales, broadcast4(v.x.b16 + 2 * at));
      sum[g] = _mm256_sub_epi32(sum[g], _mm256_slli_epi32(sums, P::kOffsetLog2));
    }
    e[g] = _mm256_fmadd_ps(d, _mm256_cvtepi32_ps(sum[g]), e[g]);
  }
}

/// 32-blocks i + J .. i + kPeriod - 1 in turn.
template <class P, int J, int G>
[[gnu::always_inline]] inline void add_32_blocks(const VectorBlock<P, G>& v, int i,
                                                 __m256 (&e)[G]) {
  if constexpr (J < P::kPeriod) {
    add_32_block<P, J>(v, i, e);
    add_32_blocks<P, J + 1>(v, i, e);
  }
}

/// f = fma(minimum, bx, f) over the sub-blocks of the block.
template <class P, int G>
[[gnu::always_inline]] inline void add_minima(const VectorBlock<P, G>& v, __m256 (&f)[G]) {
  constexpr int kMinima = P::Type::kBlockElems / P::Type::kMinElems;
#pragma GCC unroll 16
  for (int s = 0; s < kMinima; ++s) {
    const std::uint64_t at = v.first * 32 / P::Type::kMinElems + static_cast<std::uint64_t>(s);
    __m256 bx;
    if constexpr (P::Type::kMinElems == 32) {
      bx = _mm256_broadcast_ss(v.x.bx + at);
    } else {
      bx = _mm256_set1_ps(f32_mul(v.x.d[at / 2], static_cast<float>(v.x.b16[at])));
    }
#pragma GCC unroll 4
    for (int g = 0; g < G; ++g) f[g] = _mm256_fmadd_ps(P::minimum(v.scales[g], s), bx, f[g]);
  }
}

/// One block of G panels added to its lane.
template <class P, int G>
[[gnu::always_inline]] inline void add_block(const VectorBlock<P, G>& v, __m256* lane) {
  __m256 e[G];
  for (__m256& sum : e) sum = _mm256_setzero_ps();
  for (int i = 0; i < P::Type::kBlockElems / 32; i += P::kPeriod) add_32_blocks<P, 0>(v, i, e);
  for (int g = 0; g < G; ++g) lane[g] = _mm256_fmadd_ps(v.w[g]->half(0), e[g], lane[g]);
  if constexpr (P::Type::kMinimum == Minimum::kFloat) {
    const __m256 bx = _mm256_broadcast_ss(v.x.bx + v.first);
    for (int g = 0; g < G; ++g) lane[g] = _mm256_fmadd_ps(v.w[g]->half(1), bx, lane[g]);
  }
  if constexpr (P::Type::kMinimum == Minimum::kInteger) {
    __m256 f[G];
    for (__m256& sum : f) sum = _mm256_setzero_ps();
    add_minima(v, f);
    for (int g = 0; g < G; ++g) lane[g] = _mm256_fnmadd_ps(v.w[g]->half(1), f[g], lane[g]);
  }
}

/// kVectorG panels from `panel` times one row of x. Where fewer are left, the last one is read
/// again and its copies are dropped: one machine code for every tail.
template <class P>
[[gnu::noinline]] void vector_panels(const MatmulArgs& args, std::uint64_t panel,
                                     std::uint64_t end_panel) {
  constexpr int kG = kTogether<P>;
  const std::uint64_t n_blocks = blocks_in_row<P>(args.k);
  const int n_panels =
      end_panel - panel < kVectorG ? static_cast<int>(end_panel - panel) : kVectorG;
  const auto* weight = static_cast<const PanelBlock<P>*>(args.weight) + panel * n_blocks;
  const PanelBlock<P>* w[kVectorG];
  for (int g = 0; g < kVectorG; ++g) {
    w[g] = weight + static_cast<std::uint64_t>(g < n_panels ? g : n_panels - 1) * n_blocks;
  }
  alignas(32) __m256 a[kQuantLanes][kVectorG][1];
  std::memset(a, 0, sizeof a);
  VectorBlock<P, kG> v;
  v.x = quantized_row(args.x, args.k);
  for (std::uint64_t b = 0; b < n_blocks; ++b) {
    v.first = b * (P::Type::kBlockElems / 32);
    for (int g0 = 0; g0 < kVectorG; g0 += kG) {
      for (int g = 0; g < kG; ++g) {
        v.w[g] = w[g0 + g] + b;
        v.scales[g] = P::read_scales(w[g0 + g][b]);
      }
      add_block<P, kG>(v, a[b % kQuantLanes][g0]);
    }
  }
  write_sums<kVectorG, 1>(a, args, 0, panel, n_panels);
}

}  // namespace

}  // namespace detrun::kernels::avx2
