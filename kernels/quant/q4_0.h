// Tensor type Q4_0: 32 values of 4 bits that share one binary16 scale.
//
//   offset 0: d, binary16     offset 2: qs[16]; element i is the low, 16 + i the high half of qs[i]
//   value = d * (half - 8), exact in binary32
//
// Source: the GGUF format, public documentation of its type 2.
#pragma once

#include "kernels/quant/integer.h"

namespace detrun::kernels {

struct BlockQ4_0 {
  std::uint16_t d;
  std::uint8_t qs[16];
};
static_assert(sizeof(BlockQ4_0) == 18, "the block as it lies in a file");

struct TypeQ4_0 {
  static constexpr std::uint32_t kGgufId = 2;
  static constexpr int kBlockElems = 32;
  static constexpr int kScaleElems = 0;
  static constexpr Minimum kMinimum = Minimum::kNone;
  using Block = BlockQ4_0;

  DETRUN_HD float d(const Block& block) { return f16_to_f32(block.d); }
  DETRUN_HD float floor(const Block&) { return 0.0f; }
  DETRUN_HD int scale(const Block&, int) { return 1; }
  DETRUN_HD void unpack(const Block& block, int /*i*/, std::int8_t* q) {
    for (int l = 0; l < 16; ++l) {
      q[l] = static_cast<std::int8_t>((block.qs[l] & 15) - 8);
      q[l + 16] = static_cast<std::int8_t>((block.qs[l] >> 4) - 8);
    }
  }
  DETRUN_HD bool is_finite(const Block& block) { return f16_is_finite(block.d); }
  DETRUN_HD void decode(const Block& block, float* out) { decode_integer<TypeQ4_0>(block, out); }
};

}  // namespace detrun::kernels
