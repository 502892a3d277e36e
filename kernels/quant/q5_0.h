// Tensor type Q5_0: 32 values of 5 bits that share one binary16 scale.
//
//   offset 0: d     offset 2: qh[4], a little-endian word whose bit i is the fifth bit of element i
//   offset 6: qs[16]; the other four bits of element i are the low, of 16 + i the high half of
//   qs[i] value = d * (five bits - 16), exact in binary32
//
// Source: the GGUF format, public documentation of its type 6.
#pragma once

#include "kernels/quant/integer.h"

namespace detrun::kernels {

struct BlockQ5_0 {
  std::uint16_t d;
  std::uint8_t qh[4];  // bytes: a word at offset 2 would be padded
  std::uint8_t qs[16];
};
static_assert(sizeof(BlockQ5_0) == 22, "the block as it lies in a file");

struct TypeQ5_0 {
  static constexpr std::uint32_t kGgufId = 6;
  static constexpr int kBlockElems = 32;
  static constexpr int kScaleElems = 0;
  static constexpr Minimum kMinimum = Minimum::kNone;
  using Block = BlockQ5_0;

  DETRUN_HD float d(const Block& block) { return f16_to_f32(block.d); }
  DETRUN_HD float floor(const Block&) { return 0.0f; }
  DETRUN_HD int scale(const Block&, int) { return 1; }
  DETRUN_HD void unpack(const Block& block, int /*i*/, std::int8_t* q) {
    for (int l = 0; l < 16; ++l) {
      const int fifth = (block.qh[l / 8] >> l % 8 & 1) << 4;
      const int fifth_16 = (block.qh[2 + l / 8] >> l % 8 & 1) << 4;
      q[l] = static_cast<std::int8_t>(((block.qs[l] & 15) | fifth) - 16);
      q[l + 16] = static_cast<std::int8_t>((block.qs[l] >> 4 | fifth_16) - 16);
    }
  }
  DETRUN_HD bool is_finite(const Block& block) { return f16_is_finite(block.d); }
  DETRUN_HD void decode(const Block& block, float* out) { decode_integer<TypeQ5_0>(block, out); }
};

}  // namespace detrun::kernels
