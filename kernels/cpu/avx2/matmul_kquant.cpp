// Products with the integer types of 256 elements a block: their layouts. The arithmetic and the
// words used here are in interleaved.h; where the bits of an element lie, in kernels/quant.
#include "kernels/cpu/avx2/interleaved.h"
#include "kernels/quant/iq4_xs.h"
#include "kernels/quant/q2_k.h"
#include "kernels/quant/q3_k.h"
#include "kernels/quant/q4_k.h"
#include "kernels/quant/q5_k.h"
#include "kernels/quant/q6_k.h"

namespace detrun::kernels::avx2 {

namespace {

inline __m256i mask32(std::uint32_t mask) {
  return _mm256_set1_epi32(static_cast<std::int32_t>(mask));
}

/// Eight scales and minima of six bits in twelve bytes, see packed6_scale: two words of four each.
struct SixBitScales {
  __m256i scale[2];
  __m256i minimum[2];
};

template <class T, int kWordsOfT>
struct SixBitScaled {
  using Type = T;
  using Scales = SixBitScales;
  static constexpr int kHalves = 2;
  static constexpr int kFirstHalf = 0;
  static constexpr int kWords = kWordsOfT;
  static constexpr int kFirstWord = 4;
  static constexpr int place(int word) { return word; }
  static constexpr bool kSigned = false;
  static constexpr int kOffsetLog2 = 0;

  template <class Block>
  static Scales read_scales(const Block& w) {
    const __m256i six = mask32(0x3f3f3f3fu);
    const __m256i four = mask32(0x0f0f0f0fu);
    const __m256i upper = mask32(0x30303030u);
    const __m256i above0 = _mm256_and_si256(_mm256_srli_epi32(w.word(0), 2), upper);
    const __m256i above1 = _mm256_and_si256(_mm256_srli_epi32(w.word(1), 2), upper);
    const __m256i low = _mm256_and_si256(w.word(2), four);
    const __m256i high = _mm256_and_si256(_mm256_srli_epi32(w.word(2), 4), four);
    return {{_mm256_and_si256(w.word(0), six), _mm256_or_si256(low, above0)},
            {_mm256_and_si256(w.word(1), six), _mm256_or_si256(high, above1)}};
  }
  static __m256i scale(const Scales& s, int from, int i) {
    return unsigned_byte(s.scale[from / 4 + i / 4], i % 4);
  }
  static __m256 minimum(const Scales& s, int i) {
    return _mm256_cvtepi32_ps(_mm256_shuffle_epi8(s.minimum[i / 4], byte_of_lane(i % 4)));
  }
};

struct LayoutQ4_K : SixBitScaled<TypeQ4_K, 35> {
  static constexpr int kPeriod = 8;
  static constexpr int kChain = 8;  // 8 * 2 * 15 * 127 = 30480
  template <int J, class Block>
  static __m256i weights(const Block& w, int i, int run) {
    const __m256i both = w.word(3 + 4 * i + 8 * (J / 2) + run);
    return J % 2 == 0 ? low4(both) : high4(both);
  }
};

struct LayoutQ5_K : SixBitScaled<TypeQ5_K, 43> {
  static constexpr int kPeriod = 8;
  static constexpr int kChain = 4;  // 4 * 2 * 31 * 127 = 31496
  template <int J, class Block>
  static __m256i weights(const Block& w, int /*i*/, int run) {
    const __m256i both = w.word(11 + 8 * (J / 2) + run);
    // Bit J of every byte, moved to bit 4; bits that cross into a neighbour are masked away.
    const __m256i fifth = moved16<4 - J>(w.word(3 + run));
    return _mm256_or_si256(J % 2 == 0 ? low4(both) : high4(both),
                           _mm256_and_si256(fifth, bytes(16)));
  }
};

struct LayoutQ6_K {
  using Type = TypeQ6_K;
  struct Scales {
    __m256i word[4];
  };
  static constexpr int kHalves = 1;
  static constexpr int kFirstHalf = 208;
  static constexpr int kWords = 52;
  static constexpr int kFirstWord = 0;
  /// The scales; then, for each run of each half of 128: two words of lower, one of upper bits.
  static constexpr int place(int word) {
    if (word >= 48) return word - 48;
    if (word >= 32) return 4 + 3 * (word - 32) + 2;
    return 4 + 24 * (word / 16) + 3 * (word % 8) + word % 16 / 8;
  }
  static constexpr int kPeriod = 8;
  static constexpr bool kSigned = false;
  static constexpr int kOffsetLog2 = 5;
  static constexpr int kChain = 2;  // 2 * 2 * 63 * 127 = 32004

  template <class Block>
  static Scales read_scales(const Block& w) {
    return {{w.word(0), w.word(1), w.word(2), w.word(3)}};
  }
  static __m256i scale(const Scales& s, int from, int i) {
    return signed_byte(s.word[from / 4 + i / 4], i % 4);
  }

  template <int J, class Block>
  static __m256i weights(const Block& w, int /*i*/, int run) {
    constexpr int kFirst = 4 + 24 * (J / 4);
    const __m256i both = w.word(kFirst + 3 * run + J % 2);
    const __m256i upper = moved16<4 - 2 * (J % 4)>(w.word(kFirst + 3 * run + 2));
    return _mm256_or_si256(J % 4 < 2 ? low4(both) : high4(both),
                           _mm256_and_si256(upper, bytes(0x30)));
  }
};

struct LayoutQ2_K {
  using Type = TypeQ2_K;
  struct Scales {
    __m256i word[4];  // of every byte the low half is a scale, the high half a minimum
  };
  static constexpr int kHalves = 2;
  static constexpr int kFirstHalf = 80;
  static constexpr int kWords = 20;
  static constexpr int kFirstWord = 0;
  static constexpr int place(int word) { return word; }
  static constexpr int kPeriod = 4;
  static constexpr bool kSigned = false;
  static constexpr int kOffsetLog2 = 0;
  static constexpr int kChain = 4;  // 4 * 2 * 3 * 127 = 3048

  template <class Block>
  static Scales read_scales(const Block& w) {
    return {{w.word(0), w.word(1), w.word(2), w.word(3)}};
  }
  static __m256i scale(const Scales& s, int from, int i) {
    return _mm256_and_si256(unsigned_byte(s.word[from / 4 + i / 4], i % 4), _mm256_set1_epi16(15));
  }
  static __m256 minimum(const Scales& s, int i) {
    const __m256i m = shift_right32(s.word[i / 4], 8 * (i % 4) + 4);
    return _mm256_cvtepi32_ps(_mm256_and_si256(m, mask32(15)));
  }
  template <int J, class Block>
  static __m256i weights(const Block& w, int i, int run) {
    return _mm256_and_si256(moved16<-2 * J>(w.word(4 + 2 * i + run)), bytes(3));
  }
};

struct LayoutQ3_K {
  using Type = TypeQ3_K;
  struct Scales {
    __m256i word[4];
  };
  static constexpr int kHalves = 1;
  static constexpr int kFirstHalf = 108;
  static constexpr int kWords = 27;
  static constexpr int kFirstWord = 0;
  static constexpr int place(int word) { return (word + 3) % kWords; }  // the scales first
  static constexpr int kPeriod = 8;
  static constexpr bool kSigned = false;
  static constexpr int kOffsetLog2 = 2;
  static constexpr int kChain = 4;  // 4 * 2 * 7 * 127 = 7112

  template <class Block>
  static Scales read_scales(const Block& w) {
    Scales scales;
    for (int i = 0; i < 4; ++i) {
      const __m256i low = shift_right32(w.word(i % 2), 4 * (i / 2));
      const __m256i high = _mm256_slli_epi32(shift_right32(w.word(2), 2 * i), 4);
      const __m256i six = _mm256_or_si256(_mm256_and_si256(low, mask32(0x0f0f0f0fu)),
                                          _mm256_and_si256(high, mask32(0x30303030u)));
      scales.word[i] = _mm256_sub_epi8(six, bytes(32));
    }
    return scales;
  }
  static __m256i scale(const Scales& s, int from, int i) {
    return signed_byte(s.word[from / 4 + i / 4], i % 4);
  }

  template <int J, class Block>
  static __m256i weights(const Block& w, int /*i*/, int run) {
    const __m256i low =
        _mm256_and_si256(moved16<-2 * (J % 4)>(w.word(11 + 8 * (J / 4) + run)), bytes(3));
    const __m256i third = moved16<2 - J>(w.word(3 + run));
    return _mm256_or_si256(low, _mm256_and_si256(third, bytes(4)));
  }
};

struct LayoutIQ4_XS {
  using Type = TypeIQ4_XS;
  struct Scales {
    __m256i low;   // four bits a scale
    __m256i high;  // two bits a scale, moved up by four
  };
  static constexpr int kHalves = 2;
  static constexpr int kFirstHalf = 0;
  static constexpr int kWords = 33;
  static constexpr int kFirstWord = 4;
  static constexpr int place(int word) { return word; }
  static constexpr int kPeriod = 1;
  static constexpr bool kSigned = true;
  static constexpr int kOffsetLog2 = 0;
  static constexpr int kChain = 1;  // 2 * 127 * 127 = 32258

  template <class Block>
  static Scales read_scales(const Block& w) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(w.halves[1]));
    return {w.word(0), _mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 4)};
  }
  static __m256i scale(const Scales& s, int i, int /*within*/) {
    const __m256i low = _mm256_and_si256(shift_right32(s.low, 4 * i), mask32(0x0fu));
    const __m256i high = _mm256_and_si256(shift_right32(s.high, 2 * i), mask32(0x30u));
    const __m256i value = _mm256_sub_epi32(_mm256_or_si256(low, high), mask32(32));
    return _mm256_blend_epi16(value, _mm256_slli_epi32(value, 16), 0xaa);
  }
  template <int J, class Block>
  static __m256i weights(const Block& w, int i, int run) {
    const __m256i both = w.word(1 + 4 * i + run % 4);
    return iq4_levels(run < 4 ? low4(both) : high4(both));
  }
};

}  // namespace

const MatmulOps kMatmulQ2_K = matmul_ops<LayoutQ2_K>();
const MatmulOps kMatmulQ3_K = matmul_ops<LayoutQ3_K>();
const MatmulOps kMatmulQ4_K = matmul_ops<LayoutQ4_K>();
const MatmulOps kMatmulQ5_K = matmul_ops<LayoutQ5_K>();
const MatmulOps kMatmulQ6_K = matmul_ops<LayoutQ6_K>();
const MatmulOps kMatmulIQ4_XS = matmul_ops<LayoutIQ4_XS>();

}  // namespace detrun::kernels::avx2
