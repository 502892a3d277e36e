// Products of several rows of x with interleaved panels (interleaved.h), contract clause 3.
//
// A strip is up to kStripRows rows of x times kMatrixG panels. Along k it is walked in chunks: the
// chunk's weights are *opened* once (opened.h) and stay in the first cache while all rows of the
// strip pass, kMatrixR at a time. The eight lanes of every output lie in memory between chunks, and
// chunks go upwards, so that every output is added up in the order of the contract.
//
// Internal linkage throughout.
#pragma once

#include "kernels/cpu/avx2/opened.h"

namespace detrun::kernels::avx2 {

namespace {

constexpr int kMatrixR = 3;      // rows of x at a time
constexpr int kStripTiles = 43;  // 129 rows, 129 KiB of lanes: they stay in the second cache
constexpr std::uint64_t kStripRows = std::uint64_t{kMatrixR} * kStripTiles;

/// R rows of x at one chunk.
template <int R>
struct MatrixX {
  QuantizedRow row[R];
  /// Where the weights are signed, the q of the chunk.
  alignas(32) std::int16_t wide[R][kWideElems];

  /// The rows from `from`, with n elements of each from element `first` made wide.
  template <class P>
  void read(const MatmulArgs& args, std::uint64_t from, std::uint64_t first, std::uint64_t n) {
    for (std::uint64_t r = 0; r < R; ++r) {
      const char* at = static_cast<const char*>(args.x) + (from + r) * args.x_row_bytes;
      row[r] = quantized_row(at, args.k);
      if constexpr (P::kSigned) {
        for (std::uint64_t i = 0; i < n; i += kActivationBlock) {
          const auto* narrow = reinterpret_cast<const __m128i*>(row[r].q + first + i);
          auto* to = reinterpret_cast<__m256i*>(wide[r] + i);
          _mm256_store_si256(to, _mm256_cvtepi8_epi16(_mm_loadu_si128(narrow)));
          _mm256_store_si256(to + 1, _mm256_cvtepi8_epi16(_mm_loadu_si128(narrow + 1)));
        }
      }
    }
  }
};

/// Sums of products over 32-block `at` of x: chains of pairs in 16 bits, then scaled in 32.
template <class P, int G, int R>
[[gnu::always_inline]] inline void multiply_bytes(const Opened32<P>& w, const QuantizedRow* x,
                                                  std::uint64_t at, int g0, __m256i (&sum)[G][R]) {
  constexpr int kPerScale = Parts<P>::kScales == 2 ? kRuns / 2 : kRuns;
#pragma GCC unroll 8
  for (int run0 = 0; run0 < kRuns; run0 += P::kChain) {
    __m256i pairs[G][R];
#pragma GCC unroll 8
    for (int run = run0; run < run0 + P::kChain; ++run) {
      __m256i weights[G];
#pragma GCC unroll 4
      for (int g = 0; g < G; ++g) weights[g] = load(w.weights[run][g0 + g]);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        const __m256i four = broadcast4(x[r].q + at * kActivationBlock + 4 * run);
#pragma GCC unroll 4
        for (int g = 0; g < G; ++g) {
          const __m256i products = _mm256_maddubs_epi16(weights[g], four);
          pairs[g][r] = run == run0 ? products : _mm256_add_epi16(pairs[g][r], products);
          keep(pairs[g][r]);
        }
      }
    }
#pragma GCC unroll 4
    for (int g = 0; g < G; ++g) {
      const __m256i scale =
          Parts<P>::kScales == 0 ? _mm256_set1_epi16(1) : load(w.scales[run0 / kPerScale][g0 + g]);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        const __m256i scaled = _mm256_madd_epi16(pairs[g][r], scale);
        sum[g][r] = run0 == 0 ? scaled : _mm256_add_epi32(sum[g][r], scaled);
        if constexpr (P::kChain < kRuns) keep(sum[g][r]);
      }
    }
  }
}

/// The same where weights and activations are 16 bits: |w * q_x| <= 4064 * 127, so that no sum
/// leaves 32.
template <class P, int G, int R>
[[gnu::always_inline]] inline void multiply_wide(const Opened32<P>& w, const MatrixX<R>& x,
                                                 int wide_at, int g0, __m256i (&sum)[G][R]) {
#pragma GCC unroll 16
  for (int step = 0; step < 16; ++step) {
    __m256i weights[G];
#pragma GCC unroll 4
    for (int g = 0; g < G; ++g) weights[g] = load(w.weights[step][g0 + g]);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const __m256i two = broadcast4(x.wide[r] + wide_at + 2 * step);
#pragma GCC unroll 4
      for (int g = 0; g < G; ++g) {
        const __m256i products = _mm256_madd_epi16(weights[g], two);
        sum[g][r] = step == 0 ? products : _mm256_add_epi32(sum[g][r], products);
        keep(sum[g][r]);
      }
    }
  }
}

/// The offset times the activations' sums over both halves of 16, each with its scale.
template <class P, int G, int R>
[[gnu::always_inline]] inline void subtract_offset(const Opened32<P>& w, const QuantizedRow* x,
                                                   std::uint64_t at, int g0, __m256i (&sum)[G][R]) {
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
    const __m256i sums = broadcast4(x[r].b16 + 2 * at);
    const __m256i plain = _mm256_madd_epi16(_mm256_set1_epi16(1 << P::kOffsetLog2), sums);
#pragma GCC unroll 4
    for (int g = 0; g < G; ++g) {
      sum[g][r] = _mm256_sub_epi32(
          sum[g][r],
          Parts<P>::kScales == 0 ? plain : _mm256_madd_epi16(load(w.offsets[g0 + g]), sums));
    }
  }
}

/// Exact sums of products over 32-block i of a block, the offset subtracted.
template <class P, int G, int R>
[[gnu::always_inline]] inline void sum_32_block(const OpenedBlock<P>& w, const MatrixX<R>& x,
                                                std::uint64_t first, int i, int wide_at, int g0,
                                                __m256i (&sum)[G][R]) {
  const std::uint64_t at = first + static_cast<std::uint64_t>(i);
  if constexpr (P::kSigned) {
    multiply_wide<P>(w.part[i], x, wide_at + kActivationBlock * i, g0, sum);
  } else {
    multiply_bytes<P>(w.part[i], x.row, at, g0, sum);
    if constexpr (P::kOffsetLog2 != 0) subtract_offset<P>(w.part[i], x.row, at, g0, sum);
  }
}

/// One block added to its lane, panels g0 to g0 + G - 1.
template <class P, int G, int R>
[[gnu::always_inline]] inline void multiply_block(const OpenedBlock<P>& w, const MatrixX<R>& x,
                                                  std::uint64_t first, int wide_at, int g0,
                                                  __m256 (*lane)[R]) {
  using Type = typename P::Type;
  // d_x * S is fma(d_x, S, +0): S is +0 where it is zero, and d_x * S does not underflow.
  if constexpr (Parts<P>::kBlocks == 1) {
    __m256i sum[G][R];
    sum_32_block<P>(w, x, first, 0, wide_at, g0, sum);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const __m256 d_x = _mm256_broadcast_ss(x.row[r].d + first);
#pragma GCC unroll 4
      for (int g = 0; g < G; ++g) {
        const __m256 e = _mm256_mul_ps(d_x, _mm256_cvtepi32_ps(sum[g][r]));
        __m256 a = _mm256_fmadd_ps(load_floats(w.d[g0 + g]), e, lane[g0 + g][r]);
        if constexpr (Type::kMinimum == Minimum::kFloat) {
          const __m256 bx = _mm256_broadcast_ss(x.row[r].bx + first);
          a = _mm256_fmadd_ps(load_floats(w.floor[g0 + g]), bx, a);
        }
        lane[g0 + g][r] = a;
      }
    }
    return;
  }
  alignas(32) __m256 kept[G][R];
  __m256(*e)[R] = kept;
  for (int i = 0; i < Parts<P>::kBlocks; ++i) {
    __m256i sum[G][R];
    sum_32_block<P>(w, x, first, i, wide_at, g0, sum);
    in_memory(e);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const __m256 d_x = _mm256_broadcast_ss(x.row[r].d + first + i);
#pragma GCC unroll 4
      for (int g = 0; g < G; ++g) {
        const __m256 s = _mm256_cvtepi32_ps(sum[g][r]);
        e[g][r] = i == 0 ? _mm256_mul_ps(d_x, s) : _mm256_fmadd_ps(d_x, s, e[g][r]);
      }
    }
  }
#pragma GCC unroll 4
  for (int g = 0; g < G; ++g) {
    const __m256 d = load_floats(w.d[g0 + g]);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) lane[g0 + g][r] = _mm256_fmadd_ps(d, e[g][r], lane[g0 + g][r]);
  }
}

/// lane = fma(-dmin, f, lane), where f = fma(minimum, bx, f) over the sub-blocks of a block.
template <class P, int R>
[[gnu::always_inline]] inline void subtract_minima(const OpenedBlock<P>& w, const MatrixX<R>& x,
                                                   std::uint64_t first, __m256 (*lane)[R]) {
  constexpr int kMinima = Parts<P>::kMinima;
  __m256 f[kMatrixG][R];
  for (auto& panel : f) {
    for (__m256& v : panel) v = _mm256_setzero_ps();
  }
#pragma GCC unroll 8
  for (int i = 0; i < Parts<P>::kBlocks; ++i) {
    const std::uint64_t at = first + static_cast<std::uint64_t>(i);
#pragma GCC unroll 2
    for (int s = 0; s < kMinima; ++s) {
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        const __m256 bx =
            kMinima == 1
                ? _mm256_broadcast_ss(x.row[r].bx + at)
                : _mm256_set1_ps(
                      f32_mul(x.row[r].d[at],
                              static_cast<float>(x.row[r].b16[2 * at + static_cast<unsigned>(s)])));
#pragma GCC unroll 4
        for (int g = 0; g < kMatrixG; ++g) {
          f[g][r] = _mm256_fmadd_ps(load_floats(w.part[i].minima[s][g]), bx, f[g][r]);
          keep(f[g][r]);
        }
      }
    }
  }
#pragma GCC unroll 4
  for (int g = 0; g < kMatrixG; ++g) {
    const __m256 dmin = load_floats(w.floor[g]);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) lane[g][r] = _mm256_fnmadd_ps(dmin, f[g][r], lane[g][r]);
  }
}

template <int R>
using Lanes = OutputLanes<kMatrixG, R>;

/// n blocks from block b of the rows, for R rows of x.
template <class P, int R>
[[gnu::noinline]] void multiply_chunk(const OpenedBlock<P>* w, std::uint64_t b, std::uint64_t n,
                                      const MatmulArgs& args, std::uint64_t row, Lanes<R>& lanes) {
  constexpr std::uint64_t kBlocks = Parts<P>::kBlocks;
  // Sums of 32 bits beside those of 16 take registers.
  constexpr int kG = P::kChain == 8 || P::kSigned ? kMatrixG : kMatrixG / 2;
  constexpr std::uint64_t kElems = P::Type::kBlockElems;
  MatrixX<R> x;
  x.template read<P>(args, row, b * kElems, n * kElems);
  for (std::uint64_t i = 0; i < n; ++i) {
    __m256(*lane)[R] = lanes[(b + i) % kQuantLanes];
    const int wide_at = static_cast<int>(i * kElems);
    for (int g = 0; g < kMatrixG; g += kG) {
      multiply_block<P, kG, R>(w[i], x, (b + i) * kBlocks, wide_at, g, lane);
    }
    if constexpr (Parts<P>::kMinima != 0) {
      subtract_minima<P>(w[i], x, (b + i) * kBlocks, lane);
    }
  }
}

/// kMatrixG panels from `panel` (where fewer are left, the last one is read again and its copies
/// are dropped) times n_rows <= kStripRows rows of x from `row`.
template <class P>
void strip(const MatmulArgs& args, std::uint64_t row, std::uint64_t n_rows, std::uint64_t panel,
           std::uint64_t end_panel) {
  constexpr std::uint64_t kChunk = Parts<P>::kChunkBlocks;
  const std::uint64_t n_blocks = blocks_in_row<P>(args.k);
  const int n_panels =
      end_panel - panel < kMatrixG ? static_cast<int>(end_panel - panel) : kMatrixG;
  const auto* weight = static_cast<const PanelBlock<P>*>(args.weight) + panel * n_blocks;
  const std::uint64_t n_tiles = n_rows / kMatrixR;
  const std::uint64_t tail_row = row + n_tiles * kMatrixR;
  alignas(64) Lanes<kMatrixR> lanes[kStripTiles];
  alignas(64) Lanes<2> two;
  alignas(64) Lanes<1> one;
  alignas(64) OpenedBlock<P> opened[kChunk];
  std::memset(lanes, 0, n_tiles * sizeof lanes[0]);
  std::memset(two, 0, sizeof two);
  std::memset(one, 0, sizeof one);
  for (std::uint64_t b = 0; b < n_blocks; b += kChunk) {
    const std::uint64_t n = n_blocks - b < kChunk ? n_blocks - b : kChunk;
    for (int g = 0; g < kMatrixG; ++g) {
      const int from = g < n_panels ? g : n_panels - 1;
      const PanelBlock<P>* w = weight + static_cast<std::uint64_t>(from) * n_blocks + b;
      for (std::uint64_t i = 0; i < n; ++i) open_block(w[i], g, opened[i]);
    }
    for (std::uint64_t t = 0; t < n_tiles; ++t) {
      multiply_chunk<P, kMatrixR>(opened, b, n, args, row + t * kMatrixR, lanes[t]);
    }
    if (n_rows % kMatrixR == 2) multiply_chunk<P, 2>(opened, b, n, args, tail_row, two);
    if (n_rows % kMatrixR == 1) multiply_chunk<P, 1>(opened, b, n, args, tail_row, one);
  }
  for (std::uint64_t t = 0; t < n_tiles; ++t) {
    write_sums(lanes[t], args, row + t * kMatrixR, panel, n_panels);
  }
  if (n_rows % kMatrixR == 2) write_sums(two, args, tail_row, panel, n_panels);
  if (n_rows % kMatrixR == 1) write_sums(one, args, tail_row, panel, n_panels);
}

}  // namespace

}  // namespace detrun::kernels::avx2
