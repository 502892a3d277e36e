// Products with integer weights, contract clause 3, once for every type: lane of the register =
// output. What differs between types is a layout (matmul_quant.cpp, matmul_kquant.cpp).
//
// Eight rows of the matrix make a panel. In it the rows' blocks are interleaved: first each
// binary16 field for all eight rows, then each word of four bytes for all eight rows: as many bytes
// as in the file, and the same ones. One load then gives the same four bytes of eight rows, and
// once the bits of an element are masked out of them, four neighbouring k (a *run*) of each row,
// ready to be multiplied by four activations in every lane.
//
// The integer sums are exact, so their order is free; the eight canonical lanes of clause 3 are
// eight accumulators visited in turn. Internal linkage throughout.
//
// A layout P says:
//   Type                what kernels/quant says about the blocks
//   kHalves, kFirstHalf, kWords, kFirstWord   fields of a block in the file: count, byte offset
//   place(i)            where word i of the file's block is put: in the order of use, so that
//   memory
//                       is read front to back
//   kPeriod             32-blocks J = 0 .. kPeriod - 1 whose words are taken apart by fixed shifts
//   weights<J>(w, i, run)   the bytes of one run of 32-block i + J, with its offset still added
//   kSigned             whether those bytes are signed
//   kOffsetLog2         the offset is 2^this; 0: none
//   kChain              products of pairs that int16 can hold when added: a divisor of 8, and of 4
//                       when a scale is for 16 elements
//   Scales, read_scales(w)   the integer scales and minima of a block, made ready
//   scale(scales, s)    scale s of the eight rows, twice in 16 bits each
//   minimum(scales, s)  minimum s of the eight rows, as binary32
#pragma once

#include "kernels/cpu/avx2/avx2.h"
#include "kernels/cpu/avx2/lanes.h"
#include "kernels/cpu/quantized_row.h"
#include "kernels/quant/integer.h"

namespace detrun::kernels::avx2 {

namespace {

constexpr int kPanelRows = 8;
constexpr int kRuns = 8;     // runs of four k in a 32-block
constexpr int kVectorG = 4;  // panels at a time for one row of x: four streams from memory
constexpr int kMatrixG = 2;  // panels at a time for several rows of x
constexpr int kMatrixR = 4;  // rows of x at a time

/// One block of each of eight rows.
template <class P>
struct PanelBlock {
  std::uint16_t halves[P::kHalves][kPanelRows];
  std::uint32_t words[P::kWords][kPanelRows];

  __m256i word(int i) const {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words[i]));
  }
  __m256 half(int i) const { return load8(TypeF16{}, halves[i]); }
};

template <class P>
std::uint64_t blocks_in_row(std::uint64_t k) {
  return k / P::Type::kBlockElems;
}

template <class P>
std::uint64_t packed_bytes(std::uint64_t k, std::uint64_t n) {
  static_assert(sizeof(PanelBlock<P>) == kPanelRows * sizeof(typename P::Type::Block),
                "no byte more than the file");
  return (n + kPanelRows - 1) / kPanelRows * blocks_in_row<P>(k) * sizeof(PanelBlock<P>);
}

template <class P>
void pack(const void* rows, std::uint64_t k, std::uint64_t n, std::uint64_t g0, std::uint64_t g1,
          void* packed) {
  const std::uint64_t n_blocks = blocks_in_row<P>(k);
  constexpr std::uint64_t kBytes = sizeof(typename P::Type::Block);
  for (std::uint64_t p = g0; p < g1; ++p) {
    auto* panel = static_cast<PanelBlock<P>*>(packed) + p * n_blocks;
    const std::uint64_t left = n - p * kPanelRows;
    const std::uint64_t n_here = left < kPanelRows ? left : kPanelRows;
    // Outputs beyond n are computed from zeros and dropped.
    if (n_here < kPanelRows) std::memset(panel, 0, n_blocks * sizeof *panel);
    for (std::uint64_t r = 0; r < n_here; ++r) {
      const char* from = static_cast<const char*>(rows) + (p * kPanelRows + r) * n_blocks * kBytes;
      for (std::uint64_t b = 0; b < n_blocks; ++b, from += kBytes) {
        for (int i = 0; i < P::kHalves; ++i) {
          std::memcpy(&panel[b].halves[i][r], from + P::kFirstHalf + 2 * i, 2);
        }
        for (int i = 0; i < P::kWords; ++i) {
          std::memcpy(&panel[b].words[P::place(i)][r], from + P::kFirstWord + 4 * i, 4);
        }
      }
    }
  }
}

template <class P>
void decode_row(const void* packed, std::uint64_t k, std::uint64_t /*n*/, std::uint64_t i,
                float* out) {
  const std::uint64_t n_blocks = blocks_in_row<P>(k);
  const auto* panel = static_cast<const PanelBlock<P>*>(packed) + i / kPanelRows * n_blocks;
  const std::uint64_t r = i % kPanelRows;
  for (std::uint64_t b = 0; b < n_blocks; ++b) {
    typename P::Type::Block block;
    char* bytes = reinterpret_cast<char*>(&block);
    for (int h = 0; h < P::kHalves; ++h) {
      std::memcpy(bytes + P::kFirstHalf + 2 * h, &panel[b].halves[h][r], 2);
    }
    for (int w = 0; w < P::kWords; ++w) {
      std::memcpy(bytes + P::kFirstWord + 4 * w, &panel[b].words[P::place(w)][r], 4);
    }
    P::Type::decode(block, out + b * P::Type::kBlockElems);
  }
}

/// Four bytes in every lane.
inline __m256i broadcast4(const void* p) {
  std::int32_t four;
  std::memcpy(&four, p, sizeof four);
  return _mm256_set1_epi32(four);
}

/// Keeps v in a register: g++ otherwise reorders the additions of an unrolled loop and spills.
[[gnu::always_inline]] inline void keep(__m256i& v) { asm("" : "+x"(v)); }

/// Sums of two products each. Unsigned: w below 64. Signed: |w| times x with w's sign; w may be
/// -128, x never is, so no pair leaves int16.
template <bool kSigned>
[[gnu::always_inline]] inline __m256i multiply(__m256i w, __m256i x) {
  if constexpr (kSigned) return _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
  return _mm256_maddubs_epi16(w, x);
}

/// What a tile reads at one block: G panels, R rows of x.
template <class P, int G, int R>
struct TileBlock {
  const PanelBlock<P>* w[G];
  typename P::Scales scales[G];
  QuantizedRow x[R];
  std::uint64_t first;  ///< index in a row of the block's first 32-block

  [[gnu::always_inline]] __m256i scale(int g, int i, int run) const {
    if constexpr (P::Type::kScaleElems == 0) {
      return _mm256_set1_epi16(1);
    } else {
      return P::scale(scales[g], (32 * i + 4 * run) / P::Type::kScaleElems);
    }
  }
};

/// e = fma(d_x, S, e) for 32-block i + J of the block.
template <class P, int J, int G, int R>
[[gnu::always_inline]] inline void add_32_block(const TileBlock<P, G, R>& t, int i0,
                                                __m256 (&e)[G][R]) {
  const int i = i0 + J;
  const std::uint64_t at = t.first + static_cast<std::uint64_t>(i);
  __m256i sum[G][R];
  for (auto& panel : sum) {
    for (__m256i& v : panel) v = _mm256_setzero_si256();
  }
  __m256i scale[G];
#pragma GCC unroll 8
  for (int run0 = 0; run0 < kRuns; run0 += P::kChain) {
    // With one row there are registers to keep the scales of a half.
    if (R == 1 && run0 % (kRuns / 2) == 0) {
      for (int g = 0; g < G; ++g) scale[g] = t.scale(g, i, run0);
    }
    __m256i pairs[G][R];
#pragma GCC unroll 8
    for (int run = run0; run < run0 + P::kChain; ++run) {
      __m256i x[R];
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) x[r] = broadcast4(t.x[r].q + at * kActivationBlock + 4 * run);
#pragma GCC unroll 4
      for (int g = 0; g < G; ++g) {
        const __m256i w = P::template weights<J>(*t.w[g], i0, run);
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) {
          const __m256i products = multiply<P::kSigned>(w, x[r]);
          pairs[g][r] = run == run0 ? products : _mm256_add_epi16(pairs[g][r], products);
          keep(pairs[g][r]);
        }
      }
    }
#pragma GCC unroll 4
    for (int g = 0; g < G; ++g) {
      if constexpr (R > 1) scale[g] = t.scale(g, i, run0);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        sum[g][r] = _mm256_add_epi32(sum[g][r], _mm256_madd_epi16(pairs[g][r], scale[g]));
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
    const __m256 d = _mm256_broadcast_ss(t.x[r].d + at);
#pragma GCC unroll 4
    for (int g = 0; g < G; ++g) {
      if constexpr (P::kOffsetLog2 != 0) {
        // The offset times the activations' sums over both halves of 16, each with its scale.
        const __m256i scales = _mm256_blend_epi16(t.scale(g, i, 0), t.scale(g, i, 4), 0xaa);
        const __m256i sums = _mm256_madd_epi16(scales, broadcast4(t.x[r].b16 + 2 * at));
        sum[g][r] = _mm256_sub_epi32(sum[g][r], _mm256_slli_epi32(sums, P::kOffsetLog2));
      }
      e[g][r] = _mm256_fmadd_ps(d, _mm256_cvtepi32_ps(sum[g][r]), e[g][r]);
    }
  }
}

/// 32-blocks i + J .. i + kPeriod - 1 in turn.
template <class P, int J, int G, int R>
[[gnu::always_inline]] inline void add_32_blocks(const TileBlock<P, G, R>& t, int i,
                                                 __m256 (&e)[G][R]) {
  if constexpr (J < P::kPeriod) {
    add_32_block<P, J>(t, i, e);
    add_32_blocks<P, J + 1>(t, i, e);
  }
}

/// f = fma(minimum, bx, f) over the sub-blocks of the block.
template <class P, int G, int R>
[[gnu::always_inline]] inline void add_minima(const TileBlock<P, G, R>& t, __m256 (&f)[G][R]) {
  constexpr int kMinima = P::Type::kBlockElems / P::Type::kMinElems;
#pragma GCC unroll 16
  for (int s = 0; s < kMinima; ++s) {
    const std::uint64_t at = t.first * 32 / P::Type::kMinElems + static_cast<std::uint64_t>(s);
    __m256 bx[R];
    for (int r = 0; r < R; ++r) {
      if constexpr (P::Type::kMinElems == 32) {
        bx[r] = _mm256_broadcast_ss(t.x[r].bx + at);
      } else {
        bx[r] = _mm256_set1_ps(f32_mul(t.x[r].d[at / 2], static_cast<float>(t.x[r].b16[at])));
      }
    }
#pragma GCC unroll 4
    for (int g = 0; g < G; ++g) {
      const __m256 minimum = P::minimum(t.scales[g], s);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) f[g][r] = _mm256_fmadd_ps(minimum, bx[r], f[g][r]);
    }
  }
}

/// One block added to its lane.
template <class P, int G, int R>
[[gnu::always_inline]] inline void add_block(const TileBlock<P, G, R>& t, __m256 (&lane)[G][R]) {
  __m256 e[G][R];
  for (auto& panel : e) {
    for (__m256& v : panel) v = _mm256_setzero_ps();
  }
  for (int n = 0; n < P::Type::kBlockElems / 32 / P::kPeriod; ++n) {
    add_32_blocks<P, 0>(t, n * P::kPeriod, e);
  }
  for (int g = 0; g < G; ++g) {
    const __m256 d = t.w[g]->half(0);
    for (int r = 0; r < R; ++r) lane[g][r] = _mm256_fmadd_ps(d, e[g][r], lane[g][r]);
  }
  if constexpr (P::Type::kMinimum == Minimum::kFloat) {
    for (int g = 0; g < G; ++g) {
      const __m256 m = t.w[g]->half(1);
      for (int r = 0; r < R; ++r) {
        lane[g][r] = _mm256_fmadd_ps(m, _mm256_broadcast_ss(t.x[r].bx + t.first), lane[g][r]);
      }
    }
  }
  if constexpr (P::Type::kMinimum == Minimum::kInteger) {
    __m256 f[G][R];
    for (auto& panel : f) {
      for (__m256& v : panel) v = _mm256_setzero_ps();
    }
    add_minima(t, f);
    for (int g = 0; g < G; ++g) {
      const __m256 dmin = t.w[g]->half(1);
      for (int r = 0; r < R; ++r) lane[g][r] = _mm256_fnmadd_ps(dmin, f[g][r], lane[g][r]);
    }
  }
}

/// G panels from `panel` times R rows of x from `row`. Where fewer are left, the last one is read
/// again and its copies are dropped: one machine code for every tail.
template <class P, int G, int R>
[[gnu::noinline]] void tile(const MatmulArgs& args, std::uint64_t row, std::uint64_t panel,
                            std::uint64_t end_panel) {
  const std::uint64_t n_blocks = blocks_in_row<P>(args.k);
  const int n_panels = end_panel - panel < G ? static_cast<int>(end_panel - panel) : G;
  const int n_rows = args.n_rows - row < R ? static_cast<int>(args.n_rows - row) : R;
  const auto* weight = static_cast<const PanelBlock<P>*>(args.weight) + panel * n_blocks;
  const char* rows = static_cast<const char*>(args.x) + row * args.x_row_bytes;
  TileBlock<P, G, R> t;
  for (int r = 0; r < R; ++r) {
    const int from = r < n_rows ? r : n_rows - 1;
    t.x[r] = quantized_row(rows + static_cast<std::uint64_t>(from) * args.x_row_bytes, args.k);
  }
  const PanelBlock<P>* w[G];
  for (int g = 0; g < G; ++g) {
    w[g] = weight + static_cast<std::uint64_t>(g < n_panels ? g : n_panels - 1) * n_blocks;
  }
  __m256 a[kQuantLanes][G][R];
  for (auto& lane : a) {
    for (auto& of_panel : lane) {
      for (__m256& v : of_panel) v = _mm256_setzero_ps();
    }
  }
  for (std::uint64_t b = 0; b < n_blocks; ++b) {
    t.first = b * (P::Type::kBlockElems / 32);
    for (int g = 0; g < G; ++g) {
      t.w[g] = w[g] + b;
      t.scales[g] = P::read_scales(w[g][b]);
    }
    add_block<P, G, R>(t, a[b % kQuantLanes]);
  }
  for (int g = 0; g < n_panels; ++g) {
    const std::uint64_t first = (panel + static_cast<std::uint64_t>(g)) * kPanelRows;
    for (int r = 0; r < n_rows; ++r) {
      for (int off = kQuantLanes / 2; off >= 1; off /= 2) {
        for (int l = 0; l < off; ++l) a[l][g][r] = _mm256_add_ps(a[l][g][r], a[l + off][g][r]);
      }
      store_first(args.y + (row + static_cast<std::uint64_t>(r)) * args.n + first, args.n - first,
                  _mm256_add_ps(a[0][g][r], _mm256_setzero_ps()));
    }
  }
}

template <class P>
void matmul(const MatmulArgs* args, std::uint64_t g0, std::uint64_t g1) {
  if (args->n_rows == 1) {
    for (std::uint64_t p = g0; p < g1; p += kVectorG) tile<P, kVectorG, 1>(*args, 0, p, g1);
    return;
  }
  for (std::uint64_t p = g0; p < g1; p += kMatrixG) {  // panels stay in the cache for all rows
    for (std::uint64_t row = 0; row < args->n_rows; row += kMatrixR) {
      tile<P, kMatrixG, kMatrixR>(*args, row, p, g1);
    }
  }
}

template <class P>
constexpr MatmulOps matmul_ops() {
  return {P::Type::kGgufId, InputForm::kQuantized, kPanelRows, packed_bytes<P>,
          pack<P>,          decode_row<P>,         matmul<P>};
}

// Parts of layouts.

struct NoScales {};

inline __m256i bytes(int value) { return _mm256_set1_epi8(static_cast<char>(value)); }
inline __m256i low4(__m256i v) { return _mm256_and_si256(v, bytes(15)); }
inline __m256i high4(__m256i v) { return _mm256_and_si256(_mm256_srli_epi16(v, 4), bytes(15)); }
inline __m256i shift_right16(__m256i v, int n) { return _mm256_srl_epi16(v, _mm_cvtsi32_si128(n)); }
inline __m256i shift_right32(__m256i v, int n) { return _mm256_srl_epi32(v, _mm_cvtsi32_si128(n)); }

/// The levels of IQ4_NL and IQ4_XS for sixteen indices.
inline __m256i iq4_levels(__m256i index) {
  std::int8_t levels[16];
  for (int i = 0; i < 16; ++i) levels[i] = static_cast<std::int8_t>(iq4_level(i));
  const __m128i table = _mm_loadu_si128(reinterpret_cast<const __m128i*>(levels));
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), index);
}

/// Byte `i` of every 32-bit lane, in the upper half of both its 16-bit halves; zero below.
inline __m256i byte_above(__m256i v, int i) {
  const __m256i first = _mm256_set_epi32(0x0c800c80, 0x08800880, 0x04800480, 0x00800080, 0x0c800c80,
                                         0x08800880, 0x04800480, 0x00800080);
  return _mm256_shuffle_epi8(v, _mm256_add_epi32(first, _mm256_set1_epi32(0x01000100 * i)));
}
inline __m256i signed_byte(__m256i v, int i) { return _mm256_srai_epi16(byte_above(v, i), 8); }
inline __m256i unsigned_byte(__m256i v, int i) { return _mm256_srli_epi16(byte_above(v, i), 8); }

}  // namespace

}  // namespace detrun::kernels::avx2
