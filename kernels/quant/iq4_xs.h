// Tensor type IQ4_XS: 256 indices into the table of IQ4_NL, eight sub-blocks of 32.
//
//   offset 0: d     offset 2: scales_h, bits 2s and 2s + 1 are the upper two bits of scale s
//   offset 4: scales_l[4], half s (low half first) holds the lower four bits of scale s
//   offset 8: qs[128]; element 32 s + i is the low, 32 s + 16 + i the high half of qs[16 s + i]
//   value = d * ((six bits - 32) * level[half]), exact in binary32
//
// Source: the GGUF format, public documentation of its type 23.
#pragma once

#include "kernels/quant/integer.h"

namespace detrun::kernels {

struct BlockIQ4_XS {
  std::uint16_t d;
  std::uint16_t scales_h;
  std::uint8_t scales_l[4];
  std::uint8_t qs[128];
};
static_assert(sizeof(BlockIQ4_XS) == 136, "the block as it lies in a file");

struct TypeIQ4_XS {
  static constexpr std::uint32_t kGgufId = 23;
  static constexpr int kBlockElems = 256;
  static constexpr int kScaleElems = 32;
  static constexpr Minimum kMinimum = Minimum::kNone;
  using Block = BlockIQ4_XS;

  DETRUN_HD float d(const Block& block) { return f16_to_f32(block.d); }
  DETRUN_HD float floor(const Block&) { return 0.0f; }
  DETRUN_HD int scale(const Block& block, int s) {
    const int low = block.scales_l[s / 2] >> 4 * (s % 2) & 15;
    return (low | (block.scales_h >> 2 * s & 3) << 4) - 32;
  }
  DETRUN_HD void unpack(const Block& block, int i, std::int8_t* q) {
    for (int l = 0; l < 16; ++l) {
      const int byte = block.qs[16 * i + l];
      q[l] = static_cast<std::int8_t>(iq4_level(byte & 15));
      q[l + 16] = static_cast<std::int8_t>(iq4_level(byte >> 4));
    }
  }
  DETRUN_HD bool is_finite(const Block& block) { return f16_is_finite(block.d); }
  DETRUN_HD void decode(const Block& block, float* out) { decode_integer<TypeIQ4_XS>(block, out); }
};

}  // namespace detrun::kernels
