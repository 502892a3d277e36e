// Products with the integer types of 32 elements a block: their layouts. The arithmetic and the
// words used here are in interleaved.h.
#include "kernels/cpu/avx2/interleaved.h"
#include "kernels/quant/iq4_nl.h"
#include "kernels/quant/q4_0.h"
#include "kernels/quant/q4_1.h"
#include "kernels/quant/q5_0.h"
#include "kernels/quant/q5_1.h"
#include "kernels/quant/q8_0.h"

namespace detrun::kernels::avx2 {

namespace {

/// One 32-block a block, no integer scales.
template <class T>
struct Plain {
  using Type = T;
  using Scales = NoScales;
  static constexpr int kPeriod = 1;
  static constexpr int kFirstHalf = 0;
  static constexpr int kHalves = T::kMinimum == Minimum::kFloat ? 2 : 1;
  static constexpr int kFirstWord = 2 * kHalves;
  static constexpr int kWords = (static_cast<int>(sizeof(typename T::Block)) - kFirstWord) / 4;
  static constexpr int place(int word) { return word; }
  static constexpr bool kSigned = false;
  static constexpr int kOffsetLog2 = 0;
  static constexpr int kChain = 8;
  template <class Block>
  static Scales read_scales(const Block&) {
    return {};
  }
};

/// Runs 0-3 are low halves of bytes, runs 4-7 high halves of the same bytes.
template <class Block>
inline __m256i nibbles(const Block& w, int first_word, int run) {
  const __m256i both = w.word(first_word + run % 4);
  return run < 4 ? low4(both) : high4(both);
}

/// Bits 4 run .. 4 run + 3 of every 32-bit lane, each as 16 in a byte of its own.
inline __m256i fifth_bits(__m256i qh, int run) {
  const __m256i rows = _mm256_set_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0, 0x0c0c0c0c,
                                        0x08080808, 0x04040404, 0);
  const __m256i eight = _mm256_shuffle_epi8(qh, _mm256_add_epi8(rows, bytes(run / 2)));
  const __m256i own =
      _mm256_set1_epi32(run % 2 == 0 ? 0x08040201 : static_cast<std::int32_t>(0x80402010u));
  const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(eight, own), own);
  return _mm256_and_si256(set, bytes(16));
}

template <class Type>
struct FourBits : Plain<Type> {  // 8 products of pairs: 8 * 2 * 15 * 127 = 30480
  template <int J, class Block>
  static __m256i weights(const Block& w, int /*i*/, int run) {
    return nibbles(w, 0, run);
  }
};

template <class Type>
struct FiveBits : Plain<Type> {
  static constexpr int kChain = 4;  // 4 * 2 * 31 * 127 = 31496
  template <int J, class Block>
  static __m256i weights(const Block& w, int /*i*/, int run) {
    return _mm256_or_si256(nibbles(w, 1, run), fifth_bits(w.word(0), run));
  }
};

struct LayoutQ4_0 : FourBits<TypeQ4_0> {
  static constexpr int kOffsetLog2 = 3;
};
using LayoutQ4_1 = FourBits<TypeQ4_1>;
struct LayoutQ5_0 : FiveBits<TypeQ5_0> {
  static constexpr int kOffsetLog2 = 4;
};
using LayoutQ5_1 = FiveBits<TypeQ5_1>;

struct LayoutIQ4_NL : Plain<TypeIQ4_NL> {
  static constexpr bool kSigned = true;
  static constexpr int kChain = 1;  // 2 * 127 * 127 = 32258
  template <int J, class Block>
  static __m256i weights(const Block& w, int /*i*/, int run) {
    return iq4_levels(nibbles(w, 0, run));
  }
};

struct LayoutQ8_0 : Plain<TypeQ8_0> {
  static constexpr bool kSigned = true;
  static constexpr int kChain = 1;  // 2 * 128 * 127 = 32512
  template <int J, class Block>
  static __m256i weights(const Block& w, int /*i*/, int run) {
    return w.word(run);
  }
};

}  // namespace

const MatmulOps kMatmulQ4_0 = matmul_ops<LayoutQ4_0>();
const MatmulOps kMatmulQ4_1 = matmul_ops<LayoutQ4_1>();
const MatmulOps kMatmulQ5_0 = matmul_ops<LayoutQ5_0>();
const MatmulOps kMatmulQ5_1 = matmul_ops<LayoutQ5_1>();
const MatmulOps kMatmulQ8_0 = matmul_ops<LayoutQ8_0>();
const MatmulOps kMatmulIQ4_NL = matmul_ops<LayoutIQ4_NL>();

}  // namespace detrun::kernels::avx2
