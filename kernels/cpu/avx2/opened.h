// The weights of a few panels (panels.h), taken apart for a product with many rows of x
// (interleaved_matrix.h): bytes of four k, or two k of 16 bits where weights are signed, with their
// scales and minima in the form that the multiplication wants. It is written once for all the rows,
// read once for every few of them, and never larger than a first cache.
//
// Internal linkage throughout.
#pragma once

#include "kernels/cpu/avx2/panels.h"

namespace detrun::kernels::avx2 {

namespace {

constexpr int kMatrixG = 4;      // panels at a time
constexpr int kWideElems = 256;  // elements of a chunk where weights are signed, else twice that

/// What of a 32-block there is once for every 16, every 32 elements or not at all; an array of no
/// elements has one.
template <class P>
struct Parts {
  using Type = typename P::Type;
  static constexpr int kBlocks = Type::kBlockElems / 32;
  /// Signed weights are multiplied by their scale when they are opened: at most 32 * 127.
  static constexpr int kScales = P::kSigned || Type::kScaleElems == 0 ? 0 : 32 / Type::kScaleElems;
  static constexpr bool kHasFloor = Type::kMinimum != Minimum::kNone;
  static constexpr int minima() {
    if constexpr (Type::kMinimum == Minimum::kInteger) return 32 / Type::kMinElems;
    return 0;
  }
  static constexpr int kMinima = minima();
  static constexpr int kChunkBlocks =
      (P::kSigned ? kWideElems : 2 * kWideElems) / Type::kBlockElems;
};

constexpr int at_least_one(int n) { return n > 0 ? n : 1; }

/// Every element of a register's worth is for one of eight outputs, as in a panel.
struct alignas(32) Vector {
  std::uint8_t bytes[32];
};
inline __m256i load(const Vector& v) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(v.bytes));
}
inline __m256 load_floats(const Vector& v) { return _mm256_castsi256_ps(load(v)); }
inline void store(Vector& v, __m256i value) {
  _mm256_store_si256(reinterpret_cast<__m256i*>(v.bytes), value);
}

/// A 32-block of the panels, opened.
template <class P>
struct Opened32 {
  static constexpr int kSteps = P::kSigned ? 16 : kRuns;  ///< two or four k each
  Vector weights[kSteps][kMatrixG];
  Vector scales[at_least_one(Parts<P>::kScales)][kMatrixG];
  Vector offsets[kMatrixG];  ///< scales of both halves times the offset: at most 128 * 32
  Vector minima[at_least_one(Parts<P>::kMinima)][kMatrixG];
};

template <class P>
struct OpenedBlock {
  Opened32<P> part[Parts<P>::kBlocks];
  Vector d[kMatrixG];
  Vector floor[kMatrixG];  ///< m or dmin
};

/// The first or second two of a run of four, sign-extended to 16 bits.
inline __m256i signed_pair(__m256i run, int pair) {
  const __m256i first = _mm256_set1_epi32(static_cast<std::int32_t>(0x01800080u));
  const __m256i rows = _mm256_set_epi32(0x0c000c00, 0x08000800, 0x04000400, 0, 0x0c000c00,
                                        0x08000800, 0x04000400, 0);
  const __m256i step = _mm256_set1_epi32(pair == 0 ? 0 : 0x02000200);
  const __m256i order = _mm256_add_epi8(_mm256_add_epi8(first, rows), step);
  return _mm256_srai_epi16(_mm256_shuffle_epi8(run, order), 8);
}

template <class P, int J>
[[gnu::always_inline]] inline void open_32_block(const PanelBlock<P>& w,
                                                 const typename P::Scales& scales, int i0, int g,
                                                 Opened32<P>& out) {
  using Type = typename P::Type;
  const int i = i0 + J;
#pragma GCC unroll 8
  for (int run = 0; run < kRuns; ++run) {
    const __m256i four = P::template weights<J>(w, i0, run);
    if constexpr (P::kSigned) {
      for (int pair = 0; pair < 2; ++pair) {
        __m256i two = signed_pair(four, pair);
        if constexpr (Type::kScaleElems != 0) {
          two = _mm256_mullo_epi16(two, P::scale(scales, 32 * i0 / Type::kScaleElems,
                                                 (32 * J + 4 * run) / Type::kScaleElems));
        }
        store(out.weights[2 * run + pair][g], two);
      }
    } else {
      store(out.weights[run][g], four);
    }
  }
  if constexpr (Parts<P>::kScales != 0) {
    for (int s = 0; s < Parts<P>::kScales; ++s) {
      store(out.scales[s][g], P::scale(scales, i0 * Parts<P>::kScales, J * Parts<P>::kScales + s));
    }
  }
  if constexpr (P::kOffsetLog2 != 0 && Parts<P>::kScales != 0) {
    constexpr int kLast = Parts<P>::kScales - 1;
    const __m256i both =
        _mm256_blend_epi16(load(out.scales[0][g]), load(out.scales[kLast][g]), 0xaa);
    store(out.offsets[g], _mm256_slli_epi16(both, P::kOffsetLog2));
  }
  if constexpr (Parts<P>::kMinima != 0) {
    for (int s = 0; s < Parts<P>::kMinima; ++s) {
      store(out.minima[s][g], _mm256_castps_si256(P::minimum(scales, i * Parts<P>::kMinima + s)));
    }
  }
}

template <class P, int J>
[[gnu::always_inline]] inline void open_32_blocks(const PanelBlock<P>& w,
                                                  const typename P::Scales& scales, int i, int g,
                                                  OpenedBlock<P>& out) {
  if constexpr (J < P::kPeriod) {
    open_32_block<P, J>(w, scales, i, g, out.part[i + J]);
    open_32_blocks<P, J + 1>(w, scales, i, g, out);
  }
}

/// Opens a block of panel g.
template <class P>
[[gnu::noinline]] void open_block(const PanelBlock<P>& w, int g, OpenedBlock<P>& out) {
  const typename P::Scales scales = P::read_scales(w);
  for (int i = 0; i < Parts<P>::kBlocks; i += P::kPeriod) {
    open_32_blocks<P, 0>(w, scales, i, g, out);
  }
  store(out.d[g], _mm256_castps_si256(w.half(0)));
  if constexpr (Parts<P>::kHasFloor) store(out.floor[g], _mm256_castps_si256(w.half(1)));
}

}  // namespace

}  // namespace detrun::kernels::avx2
