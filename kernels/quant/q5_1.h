// Tensor type Q5_1: 32 values of 5 bits with one binary16 scale and one binary16 minimum.
//
//   offset 0: d     offset 2: m     offset 4: qh[4], bit i of the little-endian word is the fifth
//   bit of element i     offset 8: qs[16], the other four bits as in Q5_0
//   value = d * five bits + m, the sum rounded once
//
// Source: the GGUF format, public documentation of its type 7.
#pragma once

#include "kernels/quant/integer.h"

namespace detrun::kernels {

struct BlockQ5_1 {
  std::uint16_t d;
  std::uint16_t m;
  std::uint8_t qh[4];
  std::uint8_t qs[16];
};
static_assert(sizeof(BlockQ5_1) == 24, "the block as it lies in a file");

struct TypeQ5_1 {
  static constexpr std::uint32_t kGgufId = 7;
  static constexpr int kBlockElems = 32;
  static constexpr int kScaleElems = 0;
  static constexpr Minimum kMinimum = Minimum::kFloat;
  using Block = BlockQ5_1;

  DETRUN_HD float d(const Block& block) { return f16_to_f32(block.d); }
  DETRUN_HD float floor(const Block& block) { return f16_to_f32(block.m); }
  DETRUN_HD int scale(const Block&, int) { return 1; }
  DETRUN_HD void unpack(const Block& block, int /*i*/, std::int8_t* q) {
    for (int l = 0; l < 16; ++l) {
      const int fifth = (block.qh[l / 8] >> l % 8 & 1) << 4;
      const int fifth_16 = (block.qh[2 + l / 8] >> l % 8 & 1) << 4;
      q[l] = static_cast<std::int8_t>((block.qs[l] & 15) | fifth);
      q[l + 16] = static_cast<std::int8_t>(block.qs[l] >> 4 | fifth_16);
    }
  }
  DETRUN_HD bool is_finite(const Block& block) {
    return f16_is_finite(block.d) && f16_is_finite(block.m);
  }
  DETRUN_HD void decode(const Block& block, float* out) { decode_integer<TypeQ5_1>(block, out); }
};

}  // namespace detrun::kernels
