// Products of one row of x with interleaved panels (interleaved.h), contract clause 3: the weights
// are taken apart in registers, once, on their way from memory. kVectorG panels are read at a time,
// which are as many streams and share what is loaded of x.
//
// Internal linkage throughout.
#pragma once

#include "kernels/cpu/avx2/panels.h"

namespace detrun::kernels::avx2 {

namespace {

constexpr int kVectorG = 4;
/// How far ahead in every stream memory is asked for: a panel is too short for the machine to find
/// its stream in time.
constexpr std::uint64_t kAheadBytes = 12288;

/// Sums of two products each. Unsigned: w below 64. Signed: |w| times x with w's sign; w may be
/// -128, x never is, so no pair leaves int16.
template <bool kSigned>
[[gnu::always_inline]] inline __m256i multiply(__m256i w, __m256i x) {
  if constexpr (kSigned) return _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
  return _mm256_maddubs_epi16(w, x);
}

/// Products of pairs that are added up in 16 bits. Where weights have an offset, it is subtracted
/// there: a product is then at most 127 times the offset, so that as many as have a scale in common
/// fit, however the sum wraps on its way.
template <class P>
constexpr int vector_chain() {
  constexpr int kPerScale = P::Type::kScaleElems == 16 ? kRuns / 2 : kRuns;
  if constexpr (P::kOffsetLog2 == 0) return P::kChain;
  static_assert(2 * kPerScale * (127 << P::kOffsetLog2) <= 32767, "int16 holds the sum");
  return kPerScale;
}

/// One block of G panels against x.
template <class P, int G>
struct VectorBlock {
  const PanelBlock<P>* w[G];
  std::uint64_t ahead;  ///< bytes from a block to the one to be asked for
  typename P::Scales scales[G];
  QuantizedRow x;
  std::uint64_t first;  ///< index in a row of the block's first 32-block

  [[gnu::always_inline]] __m256i scale(int g, int i, int j, int run) const {
    if constexpr (P::Type::kScaleElems == 0) {
      return _mm256_set1_epi16(1);
    } else {
      return P::scale(scales[g], 32 * i / P::Type::kScaleElems,
                      (32 * j + 4 * run) / P::Type::kScaleElems);
    }
  }
};

/// Asks for the lines of memory that belong to 32-block i + J of a later block. Not for weights of
/// a byte: they wait for nothing but memory, and asking took a tenth of their decode speed.
template <class P, int J, int G>
[[gnu::always_inline]] inline void ask_ahead(const VectorBlock<P, G>& v, int i) {
  constexpr int kLine = 64;
  constexpr int kParts = P::Type::kBlockElems / 32;
  constexpr int kBytes = static_cast<int>(sizeof(PanelBlock<P>));
  constexpr int kFirst = (J * kBytes / kParts + kLine - 1) / kLine * kLine;
  if constexpr (kBytes / kParts >= kPanelRows * 32) return;
  const int before = i * (kBytes / kParts);
#pragma GCC unroll 8
  for (int at = kFirst; at < (J + 1) * kBytes / kParts; at += kLine) {
#pragma GCC unroll 4
    for (int g = 0; g < G; ++g) {
      _mm_prefetch(reinterpret_cast<const char*>(v.w[g]) + v.ahead + before + at, _MM_HINT_T0);
    }
  }
}

/// The offset times what the pairs of x add up to in each of both halves of 16 of a 32-block; where
/// one chain holds both, the whole in either.
template <class P>
[[gnu::always_inline]] inline void offset_sums(const std::int8_t* q, __m256i (&sums)[2]) {
  const __m256i all = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(q));
  __m256i s = _mm256_maddubs_epi16(_mm256_set1_epi8(1 << P::kOffsetLog2), all);
  s = _mm256_add_epi16(s, _mm256_shuffle_epi32(s, 0x4e));
  s = _mm256_add_epi16(s, _mm256_shuffle_epi32(s, 0xb1));
  sums[0] = _mm256_permute2x128_si256(s, s, 0x00);
  sums[1] = _mm256_permute2x128_si256(s, s, 0x11);
  if constexpr (vector_chain<P>() == kRuns) sums[0] = _mm256_add_epi16(sums[0], sums[1]);
}

/// e = fma(d_x, S, e) for 32-block i + J of the block.
template <class P, int J, int G>
[[gnu::always_inline]] inline void add_32_block(const VectorBlock<P, G>& v, int i, __m256 (&e)[G]) {
  constexpr int kChain = vector_chain<P>();
  constexpr int kPerScale = P::Type::kScaleElems == 16 ? kRuns / 2 : kRuns;
  const std::uint64_t at = v.first + static_cast<std::uint64_t>(i + J);
  ask_ahead<P, J>(v, i);
  __m256i offset[2];
  if constexpr (P::kOffsetLog2 != 0) offset_sums<P>(v.x.q + at * kActivationBlock, offset);
  __m256i sum[G];
  __m256i scale[G];
#pragma GCC unroll 8
  for (int run0 = 0; run0 < kRuns; run0 += kChain) {
    __m256i pairs[G];
#pragma GCC unroll 8
    for (int run = run0; run < run0 + kChain; ++run) {
      const __m256i x = broadcast4(v.x.q + at * kActivationBlock + 4 * run);
#pragma GCC unroll 4
      for (int g = 0; g < G; ++g) {
        const __m256i w = P::template weights<J>(*v.w[g], i, run);
        const __m256i products = multiply<P::kSigned>(w, x);
        if (run != run0) {
          pairs[g] = _mm256_add_epi16(pairs[g], products);
        } else if constexpr (P::kOffsetLog2 != 0) {
          pairs[g] = _mm256_sub_epi16(products, offset[run0 / kChain]);
        } else {
          pairs[g] = products;
        }
        keep(pairs[g]);
      }
    }
#pragma GCC unroll 4
    for (int g = 0; g < G; ++g) {
      if (run0 % kPerScale == 0) scale[g] = v.scale(g, i, J, run0);
      const __m256i scaled = _mm256_madd_epi16(pairs[g], scale[g]);
      sum[g] = run0 == 0 ? scaled : _mm256_add_epi32(sum[g], scaled);
    }
  }
  constexpr bool kOnly = P::Type::kBlockElems == 32;
  const __m256 d = _mm256_broadcast_ss(v.x.d + at);
#pragma GCC unroll 4
  for (int g = 0; g < G; ++g) {
    // fma(d_x, S, +0) is d_x * S: S is +0 where it is zero, and the product does not underflow.
    const __m256 s = _mm256_cvtepi32_ps(sum[g]);
    e[g] = kOnly ? _mm256_mul_ps(d, s) : _mm256_fmadd_ps(d, s, e[g]);
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
  VectorBlock<P, kVectorG> v;
  v.x = quantized_row(args.x, args.k);
  // Behind the end of a panel lies one that is read beside it: the streams go on behind them all,
  // in the panels of the next call. Asking for what is not there does no harm.
  constexpr std::uint64_t kBytes = sizeof(PanelBlock<P>);
  constexpr std::uint64_t kAhead = (kAheadBytes + kBytes - 1) / kBytes;
  for (std::uint64_t b = 0; b < n_blocks; ++b) {
    v.first = b * (P::Type::kBlockElems / 32);
    v.ahead = kAhead * kBytes;
    if (b + kAhead >= n_blocks) v.ahead += (kVectorG - 1) * n_blocks * kBytes;
    for (int g = 0; g < kVectorG; ++g) {
      v.w[g] = w[g] + b;
      v.scales[g] = P::read_scales(w[g][b]);
    }
    add_block<P, kVectorG>(v, a[b % kQuantLanes][0]);
  }
  write_sums<kVectorG, 1>(a, args, 0, panel, n_panels);
}

}  // namespace

}  // namespace detrun::kernels::avx2
