// Tensor type Q2_K: 256 values of 2 bits, sixteen sub-blocks of 16 with a scale and a minimum each.
//
//   offset 0: scales[16]; of sub-block s the low half is its scale, the high half its minimum
//   offset 16: qs[64]; element 128 n + 32 j + l is bits 2 j and 2 j + 1 of qs[32 n + l], l < 32
//   offset 80: d     offset 82: dmin
//   value = d * (scale * bits) - dmin * minimum: exact products, the difference rounded once
//
// Source: the GGUF format, public documentation of its type 10.
#pragma once

#include "kernels/quant/integer.h"

namespace detrun::kernels {

struct BlockQ2_K {
  std::uint8_t scales[16];
  std::uint8_t qs[64];
  std::uint16_t d;
  std::uint16_t dmin;
};
static_assert(sizeof(BlockQ2_K) == 84, "the block as it lies in a file");

struct TypeQ2_K {
  static constexpr std::uint32_t kGgufId = 10;
  static constexpr int kBlockElems = 256;
  static constexpr int kScaleElems = 16;
  static constexpr Minimum kMinimum = Minimum::kInteger;
  static constexpr int kMinElems = 16;
  using Block = BlockQ2_K;

  DETRUN_HD float d(const Block& block) { return f16_to_f32(block.d); }
  DETRUN_HD float floor(const Block& block) { return f16_to_f32(block.dmin); }
  DETRUN_HD int scale(const Block& block, int s) { return block.scales[s] & 15; }
  DETRUN_HD int minimum(const Block& block, int s) { return block.scales[s] >> 4; }
  DETRUN_HD void unpack(const Block& block, int i, std::int8_t* q) {
    const std::uint8_t* qs = block.qs + 32 * (i / 4);
    for (int l = 0; l < 32; ++l) q[l] = static_cast<std::int8_t>(qs[l] >> 2 * (i % 4) & 3);
  }
  DETRUN_HD bool is_finite(const Block& block) {
    return f16_is_finite(block.d) && f16_is_finite(block.dmin);
  }
  DETRUN_HD void decode(const Block& block, float* out) { decode_integer<TypeQ2_K>(block, out); }
};

}  // namespace detrun::kernels
