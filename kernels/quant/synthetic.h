// Weights that are made up: the bytes of pseudo-random tensors as a file would hold them, to
// measure speed without one. Every byte is a function of a key and of the index of its block alone,
// of its eight bytes for float types; the same on host and device, and in
// scripts/make_synthetic_model.py. No arithmetic on floats: bits only. Scales are such that
// activations of a model stay finite.
#pragma once

#include <cstring>

#include "kernels/quant/all.h"

// DETRUN_SYNTHETIC_TYPES(X): X(name) for every type with integer weights that can be made up.
#define DETRUN_SYNTHETIC_TYPES(X) X(Q4_0) X(Q4_1) X(Q5_0) X(Q5_1) X(Q8_0) X(Q4_K) X(Q5_K) X(Q6_K)

namespace detrun::kernels {

/// Word i of a tensor: splitmix64 (Steele, Lea, Flood 2014) as a function of a counter.
DETRUN_HD std::uint64_t synthetic_word(std::uint64_t key, std::uint64_t i) {
  std::uint64_t x = key + (i + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Of a float type: its width, the bits of its mantissa, and the exponent field of the largest
/// values (below 2^-5).
struct SyntheticFloat {
  std::uint32_t gguf_id;
  int bits, mantissa_bits;
  std::uint32_t exponent;
};
constexpr SyntheticFloat kSyntheticF32 = {0, 32, 23, 121};
constexpr SyntheticFloat kSyntheticF16 = {1, 16, 10, 9};
constexpr SyntheticFloat kSyntheticBf16 = {30, 16, 7, 121};

/// Eight bytes of elements, number i of the tensor: random sign and mantissa, one of four
/// exponents.
DETRUN_HD std::uint64_t synthetic_floats(const SyntheticFloat& kind, std::uint64_t key,
                                         std::uint64_t i) {
  const std::uint64_t word = synthetic_word(key, i);
  const std::uint64_t mantissa = (std::uint64_t{1} << kind.mantissa_bits) - 1;
  const std::uint64_t kept = std::uint64_t{1} << (kind.bits - 1) | mantissa;
  std::uint64_t values = 0;
  for (int at = 0; at < 64; at += kind.bits) {
    const std::uint64_t random = word >> at;
    const std::uint64_t exponent = kind.exponent - (random >> kind.mantissa_bits & 3);
    values |= ((random & kept) | exponent << kind.mantissa_bits) << at;
  }
  return values;
}

/// Where a type's scale lies in a block, its fixed and its random bits; where a minimum lies (-1:
/// nowhere), its fixed bits and the shift of the scale's random bits for it.
struct SyntheticBlock {
  std::uint32_t gguf_id;
  int scale_at;
  std::uint32_t scale_fixed, scale_random;
  int min_at;
  std::uint32_t min_fixed;
  int min_shift;
};
constexpr std::uint32_t kSyntheticNegative = 0x8000;
constexpr SyntheticBlock kSyntheticBlocks[] = {
    {TypeQ4_0::kGgufId, 0, 6 << 10, 1023, -1, 0, 0},
    {TypeQ4_1::kGgufId, 0, 6 << 10, 1023, 2, kSyntheticNegative | 9 << 10, 0},
    {TypeQ5_0::kGgufId, 0, 5 << 10, 1023, -1, 0, 0},
    {TypeQ5_1::kGgufId, 0, 5 << 10, 1023, 2, kSyntheticNegative | 9 << 10, 0},
    {TypeQ8_0::kGgufId, 0, 2 << 10, 1023, -1, 0, 0},
    {TypeQ4_K::kGgufId, 0, 512, 511, 2, 3 << 10, 1},
    {TypeQ5_K::kGgufId, 0, 256, 255, 2, 3 << 10, 2},
    {TypeQ6_K::kGgufId, 208, 64, 63, -1, 0, 0},
};
/// The row of a type; a row without scale for a type that is never made up.
constexpr SyntheticBlock synthetic_block_of(std::uint32_t gguf_id) {
  for (const SyntheticBlock& kind : kSyntheticBlocks) {
    if (kind.gguf_id == gguf_id) return kind;
  }
  return {gguf_id, -1, 0, 0, -1, 0, 0};
}

/// The same for device code, which cannot call a function of the host, be it constexpr.
template <class Type>
constexpr SyntheticBlock kSyntheticBlockOf = synthetic_block_of(Type::kGgufId);

/// Block `index` of a tensor: random bytes, but for the scales.
DETRUN_HD void synthetic_block(const SyntheticBlock& kind, std::uint64_t key, std::uint64_t index,
                               std::uint8_t* bytes, int n_bytes) {
  const int n_words = (n_bytes + 7) / 8;
  for (int i = 0; i < n_words; ++i) {
    const std::uint64_t word =
        synthetic_word(key, index * static_cast<std::uint64_t>(n_words) + static_cast<unsigned>(i));
    if (8 * i + 8 <= n_bytes) {
      memcpy(bytes + 8 * i, &word, 8);
    } else {
      for (int b = 8 * i; b < n_bytes; ++b)
        bytes[b] = static_cast<std::uint8_t>(word >> 8 * (b % 8));
    }
  }
  if (kind.gguf_id == TypeQ8_0::kGgufId) {  // quantizers never write -128
    for (int b = 2; b < n_bytes; ++b) {
      if (bytes[b] == 0x80) bytes[b] = 0x81;
    }
  }
  const auto store = [bytes](int at, std::uint32_t half) {
    bytes[at] = static_cast<std::uint8_t>(half);
    bytes[at + 1] = static_cast<std::uint8_t>(half >> 8);
  };
  const std::uint32_t found = bytes[kind.scale_at] | std::uint32_t{bytes[kind.scale_at + 1]} << 8;
  const std::uint32_t random = found & kind.scale_random;
  store(kind.scale_at, random | kind.scale_fixed);
  if (kind.min_at >= 0) store(kind.min_at, random << kind.min_shift | kind.min_fixed);
}

}  // namespace detrun::kernels
