// Tensor type Q4_1: 32 values of 4 bits with one binary16 scale and one binary16 minimum.
//
//   offset 0: d     offset 2: m     offset 4: qs[16]; element i is the low, 16 + i the high half
//   value = d * half + m, the sum rounded once
//
// Source: the GGUF format, public documentation of its type 3.
#pragma once

#include "kernels/quant/integer.h"

namespace detrun::kernels {

struct BlockQ4_1 {
  std::uint16_t d;
  std::uint16_t m;
  std::uint8_t qs[16];
};
static_assert(sizeof(BlockQ4_1) == 20, "the block as it lies in a file");

struct TypeQ4_1 {
  static constexpr std::uint32_t kGgufId = 3;
  static constexpr int kBlockElems = 32;
  static constexpr int kScaleElems = 0;
  static constexpr Minimum kMinimum = Minimum::kFloat;
  using Block = BlockQ4_1;

  DETRUN_HD float d(const Block& block) { return f16_to_f32(block.d); }
  DETRUN_HD float floor(const Block& block) { return f16_to_f32(block.m); }
  DETRUN_HD int scale(const Block&, int) { return 1; }
  DETRUN_HD void unpack(const Block& block, int /*i*/, std::int8_t* q) {
    for (int l = 0; l < 16; ++l) {
      q[l] = static_cast<std::int8_t>(block.qs[l] & 15);
      q[l + 16] = static_cast<std::int8_t>(block.qs[l] >> 4);
    }
  }
  DETRUN_HD bool is_finite(const Block& block) {
    return f16_is_finite(block.d) && f16_is_finite(block.m);
  }
  DETRUN_HD void decode(const Block& block, float* out) { decode_integer<TypeQ4_1>(block, out); }
};

}  // namespace detrun::kernels
