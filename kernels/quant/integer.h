// What the integer weight types share: the form in which each describes its blocks, and decoding.
// Not here: the layouts (one header a type) and products (kernels/cpu, kernels/cuda).
//
// A block in a file is the *group* of contract clause 3: 32 elements, or 256 (eight 32-blocks).
// Such a type says, as static members usable on host and device:
//   kGgufId, Block
//   kBlockElems        32 or 256
//   kScaleElems        elements under one integer scale: 16 or 32, or 0 when there are none
//   kMinimum           what is added beside d * scale * q
//   kMinElems          Minimum::kInteger only: elements under one integer minimum, 16 or 32
//   d(block)           the scale of the group
//   unpack(block, i, q)  the 32 integers of 32-block i, the type's offset subtracted
//   scale(block, s)    the integer scale of sub-block s; 1 when there are none
//   minimum(block, s)  Minimum::kInteger: the integer minimum of sub-block s
//   floor(block)       f32(dmin) for Minimum::kInteger, f32(m) for Minimum::kFloat, else 0
//   is_finite(block)   whether its binary16 fields are
#pragma once

#include "kernels/fp.h"

namespace detrun::kernels {

enum class Minimum : int {
  kNone = 0,
  kFloat,    ///< value = d * q + m
  kInteger,  ///< value = d * (scale * q) - dmin * minimum
};

DETRUN_HD bool f16_is_finite(std::uint16_t half) { return (half & 0x7c00u) != 0x7c00u; }

/// The values of a block. Every product is exact in binary32 (11 bits times at most 13); with a
/// minimum the one addition or subtraction rounds once.
template <class Type>
DETRUN_HD void decode_integer(const typename Type::Block& block, float* out) {
  const float d = Type::d(block);
  for (int i = 0; i < Type::kBlockElems / 32; ++i) {
    std::int8_t q[32];
    Type::unpack(block, i, q);
    for (int l = 0; l < 32; ++l) {
      const int e = 32 * i + l;
      auto scaled = std::int32_t{q[l]};
      if constexpr (Type::kScaleElems != 0) scaled *= Type::scale(block, e / Type::kScaleElems);
      float value = f32_mul(d, static_cast<float>(scaled));
      if constexpr (Type::kMinimum == Minimum::kFloat) value = f32_add(value, Type::floor(block));
      if constexpr (Type::kMinimum == Minimum::kInteger) {
        const int minimum = Type::minimum(block, e / Type::kMinElems);
        const float below = f32_mul(Type::floor(block), static_cast<float>(minimum));
        value = f32_sub(value, below);
      }
      out[e] = value;
    }
  }
}

/// The sixteen levels of IQ4_NL and IQ4_XS; a 4-bit value is an index. Source: ggml's public table.
DETRUN_HD int iq4_level(int index) {
  constexpr std::int8_t kLevels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                       1,    13,   25,  38,  53,  69,  89,  113};
  return kLevels[index];
}

/// Scale s of 8 among the twelve bytes of Q4_K and Q5_K: six bits.
DETRUN_HD int packed6_scale(const std::uint8_t* scales, int s) {
  if (s < 4) return scales[s] & 63;
  return (scales[s + 4] & 15) | (scales[s - 4] >> 6) << 4;
}

/// Minimum s of 8 among the twelve bytes of Q4_K and Q5_K: six bits.
DETRUN_HD int packed6_minimum(const std::uint8_t* scales, int s) {
  if (s < 4) return scales[s + 4] & 63;
  return scales[s + 4] >> 4 | (scales[s] >> 6) << 4;
}

}  // namespace detrun::kernels
