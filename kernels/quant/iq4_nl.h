// Tensor type IQ4_NL: 32 indices into a table of sixteen uneven levels, one binary16 scale.
//
//   offset 0: d     offset 2: qs[16]; element i is the low, 16 + i the high half of qs[i]
//   value = d * level[half], exact in binary32
//
// Source: the GGUF format, public documentation of its type 20.
#pragma once

#include "kernels/quant/integer.h"

namespace detrun::kernels {

struct BlockIQ4_NL {
  std::uint16_t d;
  std::uint8_t qs[16];
};
static_assert(sizeof(BlockIQ4_NL) == 18, "the block as it lies in a file");

struct TypeIQ4_NL {
  static constexpr std::uint32_t kGgufId = 20;
  static constexpr int kBlockElems = 32;
  static constexpr int kScaleElems = 0;
  static constexpr Minimum kMinimum = Minimum::kNone;
  using Block = BlockIQ4_NL;

  DETRUN_HD float d(const Block& block) { return f16_to_f32(block.d); }
  DETRUN_HD float floor(const Block&) { return 0.0f; }
  DETRUN_HD int scale(const Block&, int) { return 1; }
  DETRUN_HD void unpack(const Block& block, int /*i*/, std::int8_t* q) {
    for (int l = 0; l < 16; ++l) {
      q[l] = static_cast<std::int8_t>(iq4_level(block.qs[l] & 15));
      q[l + 16] = static_cast<std::int8_t>(iq4_level(block.qs[l] >> 4));
    }
  }
  DETRUN_HD bool is_finite(const Block& block) { return f16_is_finite(block.d); }
  DETRUN_HD void decode(const Block& block, float* out) { decode_integer<TypeIQ4_NL>(block, out); }
};

}  // namespace detrun::kernels
