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
// eight accumulators visited in turn. One row of x: interleaved_vector.h; more:
// interleaved_matrix.h. Internal linkage throughout.
//
// A layout P says:
//   Type                what kernels/quant says about the blocks
//   kHalves, kFirstHalf, kWords, kFirstWord   fields of a block in the file: count, byte offset
//   place(i)            where word i of the file's block is put: in the order of use, so that
//                       memory is read front to back
//   kPeriod             32-blocks J = 0 .. kPeriod - 1 whose words are taken apart by fixed shifts
//   weights<J>(w, i, run)   the bytes of one run of 32-block i + J, with its offset still added; i
//                       is a multiple of kPeriod
//   kSigned             whether those bytes are signed
//   kOffsetLog2         the offset is 2^this; 0: none
//   kChain              products of pairs that int16 can hold when added, the offset among them: a
//                       divisor of 8, and of 4 when a scale is for 16 elements
//   Scales, read_scales(w)   the integer scales and minima of a block, made ready
//   scale(scales, from, s)   scale from + s of the eight rows, twice in 16 bits each; from is that
//                       of a 32-block i, a multiple of kPeriod
//   minimum(scales, s)  minimum s of the eight rows, as binary32
#pragma once

#include "kernels/cpu/avx2/interleaved_matrix.h"
#include "kernels/cpu/avx2/interleaved_vector.h"
#include "kernels/cpu/avx2/panels.h"

namespace detrun::kernels::avx2 {

namespace {

template <class P>
void matmul(const MatmulArgs* args, std::uint64_t g0, std::uint64_t g1) {
  if (args->n_rows == 1) {
    for (std::uint64_t p = g0; p < g1; p += kVectorG) vector_panels<P>(*args, p, g1);
    return;
  }
  for (std::uint64_t p = g0; p < g1; p += kMatrixG) {
    for (std::uint64_t row = 0; row < args->n_rows; row += kStripRows) {
      const std::uint64_t left = args->n_rows - row;
      strip<P>(*args, row, left < kStripRows ? left : kStripRows, p, g1);
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
/// Every 16 bits moved up by kBits, or down where that is negative.
template <int kBits>
inline __m256i moved16(__m256i v) {
  if constexpr (kBits == 0) return v;
  return kBits > 0 ? _mm256_slli_epi16(v, kBits) : _mm256_srli_epi16(v, -kBits);
}
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

/// For _mm256_shuffle_epi8: byte `i` of every 32-bit lane in its lowest byte, zero above.
inline __m256i byte_of_lane(int i) {
  const __m256i first = _mm256_set_epi32(
      static_cast<std::int32_t>(0x8080800cu), static_cast<std::int32_t>(0x80808008u),
      static_cast<std::int32_t>(0x80808004u), static_cast<std::int32_t>(0x80808000u),
      static_cast<std::int32_t>(0x8080800cu), static_cast<std::int32_t>(0x80808008u),
      static_cast<std::int32_t>(0x80808004u), static_cast<std::int32_t>(0x80808000u));
  return _mm256_add_epi32(first, _mm256_set1_epi32(i));
}
/// The same in both 16-bit halves.
inline __m256i unsigned_byte(__m256i v, int i) {
  const __m256i first = _mm256_set_epi32(
      static_cast<std::int32_t>(0x800c800cu), static_cast<std::int32_t>(0x80088008u),
      static_cast<std::int32_t>(0x80048004u), static_cast<std::int32_t>(0x80008000u),
      static_cast<std::int32_t>(0x800c800cu), static_cast<std::int32_t>(0x80088008u),
      static_cast<std::int32_t>(0x80048004u), static_cast<std::int32_t>(0x80008000u));
  return _mm256_shuffle_epi8(v, _mm256_add_epi32(first, _mm256_set1_epi32(0x00010001 * i)));
}

}  // namespace

}  // namespace detrun::kernels::avx2
