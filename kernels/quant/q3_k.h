// Tensor type Q3_K: 256 values of 3 bits, sixteen sub-blocks of 16 with a signed scale each.
//
//   offset 0: hmask[32]; bit i of hmask[l] is the third bit of element 32 i + l
//   offset 32: qs[64]; the lower two bits, as in Q2_K
//   offset 96: scales[12]; of scale s the lower four bits are half s of the first eight bytes (low
//   halves of bytes 0-7, then high halves), the upper two are bits 2 (s / 4) of byte 8 + s mod 4
//   offset 108: d
//   value = d * ((six bits - 32) * (three bits - 4)), exact in binary32
//
// Source: the GGUF format, public documentation of its type 11.
#pragma once

#include "kernels/quant/integer.h"

namespace detrun::kernels {

struct BlockQ3_K {
  std::uint8_t hmask[32];
  std::uint8_t qs[64];
  std::uint8_t scales[12];
  std::uint16_t d;
};
static_assert(sizeof(BlockQ3_K) == 110, "the block as it lies in a file");

struct TypeQ3_K {
  static constexpr std::uint32_t kGgufId = 11;
  static constexpr int kBlockElems = 256;
  static constexpr int kScaleElems = 16;
  static constexpr Minimum kMinimum = Minimum::kNone;
  using Block = BlockQ3_K;

  DETRUN_HD float d(const Block& block) { return f16_to_f32(block.d); }
  DETRUN_HD float floor(const Block&) { return 0.0f; }
  DETRUN_HD int scale(const Block& block, int s) {
    const int low = s < 8 ? block.scales[s] & 15 : block.scales[s - 8] >> 4;
    return (low | (block.scales[8 + s % 4] >> 2 * (s / 4) & 3) << 4) - 32;
  }
  DETRUN_HD void unpack(const Block& block, int i, std::int8_t* q) {
    const std::uint8_t* qs = block.qs + 32 * (i / 4);
    for (int l = 0; l < 32; ++l) {
      const int low = qs[l] >> 2 * (i % 4) & 3;
      q[l] = static_cast<std::int8_t>((low | (block.hmask[l] >> i & 1) << 2) - 4);
    }
  }
  DETRUN_HD bool is_finite(const Block& block) { return f16_is_finite(block.d); }
  DETRUN_HD void decode(const Block& block, float* out) { decode_integer<TypeQ3_K>(block, out); }
};

}  // namespace detrun::kernels
