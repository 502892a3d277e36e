// Panels: eight rows of an integer matrix, interleaved (see interleaved.h): packing, unpacking and
// the words of products with them. Internal linkage throughout.
#pragma once

#include "kernels/cpu/avx2/avx2.h"
#include "kernels/cpu/avx2/lanes.h"
#include "kernels/cpu/quantized_row.h"
#include "kernels/quant/integer.h"

namespace detrun::kernels::avx2 {

namespace {

constexpr int kPanelRows = 8;
constexpr int kRuns = 8;  // runs of four k in a 32-block

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
[[gnu::always_inline]] inline void keep(__m256& v) { asm("" : "+x"(v)); }

/// Keeps what p points at in memory: g++ otherwise spills other registers for it.
template <class T>
[[gnu::always_inline]] inline void in_memory(T*& p) {
  asm volatile("" : "+r"(p) : : "memory");
}

/// The eight lanes of clause 3 of G panels and R rows of x.
template <int G, int R>
using OutputLanes = __m256[kQuantLanes][G][R];

/// T_8 of the lanes, written for R rows of x from `row`, the first n_panels panels from `panel`.
template <int G, int R>
void write_sums(const OutputLanes<G, R>& a, const MatmulArgs& args, std::uint64_t row,
                std::uint64_t panel, int n_panels) {
  for (int g = 0; g < n_panels; ++g) {
    const std::uint64_t first = (panel + static_cast<std::uint64_t>(g)) * kPanelRows;
    for (int r = 0; r < R; ++r) {
      const __m256 even = _mm256_add_ps(_mm256_add_ps(a[0][g][r], a[4][g][r]),
                                        _mm256_add_ps(a[2][g][r], a[6][g][r]));
      const __m256 odd = _mm256_add_ps(_mm256_add_ps(a[1][g][r], a[5][g][r]),
                                       _mm256_add_ps(a[3][g][r], a[7][g][r]));
      store_first(args.y + (row + static_cast<std::uint64_t>(r)) * args.n + first, args.n - first,
                  _mm256_add_ps(_mm256_add_ps(even, odd), _mm256_setzero_ps()));
    }
  }
}

}  // namespace

}  // namespace detrun::kernels::avx2
