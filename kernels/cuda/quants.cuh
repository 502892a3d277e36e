// How kernels read quantized weights: words of the planes of kernels/cuda/planes.h to words of four
// int8, scales, minima and floors by type. One description for GEMV, GEMM and embedding.
#pragma once

#include "kernels/cuda/lanes.cuh"
#include "kernels/cuda/planes.h"

namespace detrun::device {

using cuda::QuantLayout;
using kernels::Minimum;

// ---- quants: a pair of words is elements 4 j .. 4 j + 3 and 16 + 4 j .. 16 + 4 j + 3, j < 4
// ------

// Each byte lowered by `offset`, at most 128. With the sign bit set first no byte borrows from the
// next.
DETRUN_DEVICE int lower_bytes(int word, unsigned offset) {
  return static_cast<int>(((word_bits(word) | 0x80808080u) - offset * 0x01010101u) ^ 0x80808080u);
}

// Levels first .. first + 3 of IQ4_NL as bytes.
DETRUN_DEVICE unsigned level_word(int first) {
  unsigned word = 0;
  DETRUN_UNROLL
  for (int i = 0; i < 4; ++i) {
    word |= (static_cast<unsigned>(iq4_level(first + i)) & 0xffu) << (8 * i);
  }
  return word;
}

// A table would lie in memory: the level is picked out of four words.
DETRUN_DEVICE int level_of(unsigned number) {
  const unsigned words[2] = {pick_bytes(level_word(0), level_word(4), number % 8),
                             pick_bytes(level_word(8), level_word(12), number % 8)};
  return signed_byte(static_cast<int>(number < 8 ? words[0] : words[1]), 0);
}

// The levels of the eight half bytes: the low ones to pair[0], the high ones to pair[1].
DETRUN_DEVICE void look_up_levels(int word, int* pair) {
  const unsigned number = word_bits(word) & 0x77777777u;
  const unsigned upper = 0x32103210u | (word_bits(word) & 0x88888888u) >> 1;
  unsigned mixed[2];  // low, high, low, high of two bytes
  DETRUN_UNROLL
  for (int i = 0; i < 2; ++i) {
    const unsigned below = pick_bytes(level_word(0), level_word(4), number >> (16 * i));
    const unsigned above = pick_bytes(level_word(8), level_word(12), number >> (16 * i));
    mixed[i] = pick_bytes(below, above, upper >> (16 * i));
  }
  pair[0] = static_cast<int>(pick_bytes(mixed[0], mixed[1], 0x6420u));
  pair[1] = static_cast<int>(pick_bytes(mixed[0], mixed[1], 0x7531u));
}

// `bits` (1 or 2) of four bytes, from bit `shift` on, moved to bit `to`.
DETRUN_DEVICE int bits_at(int word, unsigned shift, unsigned mask, int to) {
  return static_cast<int>((word_bits(word) >> shift & mask) << to);
}

// Pair j out of its words: low[0], low[1] and high[0], high[1] as far as the type has them.
template <class Layout>
DETRUN_DEVICE void join_pair(const int* low, const int* high, unsigned j, int* pair) {
  constexpr unsigned kTwo = 0x03030303u;
  constexpr unsigned kOne = 0x01010101u;
  if constexpr (Layout::kLowBits == 8) {
    pair[0] = low[0];
    pair[1] = low[1];
  } else if constexpr (Layout::kLevels) {
    look_up_levels(low[0], pair);
  } else if constexpr (Layout::kLowBits == 4) {
    pair[0] = low_halves(low[0]);
    pair[1] = high_halves(low[0]);
  } else {
    pair[0] = bits_at(low[0], 2 * j, kTwo, 0);
    pair[1] = bits_at(low[1], 2 * j, kTwo, 0);
  }
  if constexpr (Layout::kHighBits == 1) {
    pair[0] |= bits_at(high[0], j, kOne, Layout::kLowBits);
    pair[1] |= bits_at(high[0], j + 4, kOne, Layout::kLowBits);
  }
  if constexpr (Layout::kHighBits == 2) {
    pair[0] |= bits_at(high[0], 2 * j, kTwo, Layout::kLowBits);
    pair[1] |= bits_at(high[1], 2 * j, kTwo, Layout::kLowBits);
  }
  if constexpr (Layout::kOffset != 0) {
    pair[0] = lower_bytes(pair[0], Layout::kOffset);
    pair[1] = lower_bytes(pair[1], Layout::kOffset);
  }
}

DETRUN_DEVICE void load_words2(const void* source, int* words) {
  const Int2 loaded = load_int2(source);
  words[0] = loaded.x;
  words[1] = loaded.y;
}
DETRUN_DEVICE void load_words4(const void* source, int* words) {
  const Int4 loaded = load_int4(source);
  words[0] = loaded.x;
  words[1] = loaded.y;
  words[2] = loaded.z;
  words[3] = loaded.w;
}

// The upper bits of 32-block `block`, for all of its pairs.
template <class Layout>
DETRUN_DEVICE void load_high(const cuda::Planes& w, std::size_t block, int* high) {
  if constexpr (Layout::kHighBits == 1) high[0] = load_int(w.high + block * Layout::kHighBytes);
  if constexpr (Layout::kHighBits == 2) load_words2(w.high + block * Layout::kHighBytes, high);
}

// Pair j of 32-block `block` alone: what a thread of an mma holds.
template <class Layout>
DETRUN_DEVICE void load_pair(const cuda::Planes& w, std::size_t block, unsigned j, int* pair) {
  int low[2], high[2];
  const std::uint8_t* from = w.low + block * Layout::kLowBytes;
  if constexpr (Layout::kLowBits == 8) {
    low[0] = load_int(from + 4 * j);
    low[1] = load_int(from + 16 + 4 * j);
  } else if constexpr (Layout::kLowBits == 4) {
    low[0] = load_int(from + 4 * j);
  } else {
    load_words2(from, low);
  }
  load_high<Layout>(w, block, high);
  join_pair<Layout>(low, high, j, pair);
}

// The sums of 32-block `block` times 32 quants of x, of each half of 16 elements.
template <class Layout>
DETRUN_DEVICE void half_sums_of(const cuda::Planes& w, std::size_t block, const std::int8_t* x,
                                int* sums) {
  int low[8] = {}, high[2], v[8];
  const std::uint8_t* from = w.low + block * Layout::kLowBytes;
  if constexpr (Layout::kLowBits == 8) load_words4(from + 16, low + 4);
  if constexpr (Layout::kLowBits >= 4) load_words4(from, low);
  if constexpr (Layout::kLowBits == 2) load_words2(from, low);
  load_high<Layout>(w, block, high);
  load_words4(x, v);
  load_words4(x + 16, v + 4);
  sums[0] = 0;
  sums[1] = 0;
  DETRUN_UNROLL
  for (unsigned j = 0; j < 4; ++j) {
    int pair[2];
    const int of_eight[2] = {low[j], low[(4 + j) % 8]};
    const int* of_pair = Layout::kLowBits == 2 ? low : of_eight;
    join_pair<Layout>(of_pair, high, j, pair);
    sums[0] = dp4a(pair[0], v[j], sums[0]);
    sums[1] = dp4a(pair[1], v[4 + j], sums[1]);
  }
}

// Element l of 32-block `block`.
template <class Layout>
DETRUN_DEVICE int quant_of(const cuda::Planes& w, std::size_t block, unsigned l) {
  const std::uint8_t* low = w.low + block * Layout::kLowBytes;
  const std::uint8_t* high = w.high + block * Layout::kHighBytes;
  if constexpr (Layout::kLowBits == 8) return static_cast<std::int8_t>(low[l]);
  const unsigned two_byte = l / 16 * 4 + l % 4;
  const unsigned two_shift = l % 16 / 4 * 2;
  unsigned q =
      Layout::kLowBits == 4 ? low[l % 16] >> (l / 16 * 4) & 15u : low[two_byte] >> two_shift & 3u;
  if constexpr (Layout::kHighBits == 1) q |= (high[l % 4] >> (l / 4) & 1u) << Layout::kLowBits;
  if constexpr (Layout::kHighBits == 2) {
    q |= (high[two_byte] >> two_shift & 3u) << Layout::kLowBits;
  }
  if constexpr (Layout::kLevels) return level_of(q);
  return static_cast<int>(q) - Layout::kOffset;
}

// ---- scales, minima, floors ---------------------------------------------------------------------

// The integer scale of sub-block s of a group.
template <class Layout>
DETRUN_DEVICE int scale_of(const cuda::Planes& w, std::size_t group, int s) {
  const int byte = (w.scales + group * Layout::kScaleBytes)[s];
  return Layout::kShared ? byte & 15 : static_cast<std::int8_t>(byte);
}
template <class Layout>
DETRUN_DEVICE int minimum_of(const cuda::Planes& w, std::size_t group, int s) {
  const std::uint8_t* bytes = w.scales + group * Layout::kScaleBytes;
  return Layout::kShared ? bytes[s] >> 4 : bytes[Layout::kScales + s];
}
template <class Layout>
DETRUN_DEVICE float d_of(const cuda::Planes& w, std::size_t group) {
  return half_to_float(w.d[group * Layout::kHalves]);
}
template <class Layout>
DETRUN_DEVICE float floor_of(const cuda::Planes& w, std::size_t group) {
  return half_to_float(w.d[group * Layout::kHalves + 1]);
}

// d_x * B of clause 3 for half `half` (counted over all of x) of 16 elements.
DETRUN_DEVICE float half_sum_of(const cuda::QuantizedRows& x, std::size_t half) {
  return f32_mul(x.scales[half / 2], int_to_float(x.half_sums[half]));
}

}  // namespace detrun::device
