// Tensor type Q6_K: 256 values of 6 bits, sixteen sub-blocks of 16 with an int8 scale each.
//
//   element 128 n + 32 j + l, l < 32:
//   offset 0: ql[128]; its lower four bits are the low (j < 2) or high half of ql[64n + 32(j&1) +
//   l] offset 128: qh[64]; its upper two are bits 2 j and 2 j + 1 of qh[32 n + l] offset 192:
//   scales[16], int8     offset 208: d value = d * (scale * (six bits - 32)), exact in binary32
//
// Scale -128 and -32 meet: |sum| <= 32 * 32 * 128 * 127 = 16646144 < 2^24, only because |q_x| <=
// 127. Source: the GGUF format, public documentation of its type 14.
#pragma once

#include "kernels/quant/integer.h"

namespace detrun::kernels {

struct BlockQ6_K {
  std::uint8_t ql[128];
  std::uint8_t qh[64];
  std::int8_t scales[16];
  std::uint16_t d;
};
static_assert(sizeof(BlockQ6_K) == 210, "the block as it lies in a file");

struct TypeQ6_K {
  static constexpr std::uint32_t kGgufId = 14;
  static constexpr int kBlockElems = 256;
  static constexpr int kScaleElems = 16;
  static constexpr Minimum kMinimum = Minimum::kNone;
  using Block = BlockQ6_K;

  DETRUN_HD float d(const Block& block) { return f16_to_f32(block.d); }
  DETRUN_HD float floor(const Block&) { return 0.0f; }
  DETRUN_HD int scale(const Block& block, int s) { return block.scales[s]; }
  DETRUN_HD void unpack(const Block& block, int i, std::int8_t* q) {
    const int n = i / 4;
    const int j = i % 4;
    const std::uint8_t* ql = block.ql + 64 * n + 32 * (j & 1);
    const std::uint8_t* qh = block.qh + 32 * n;
    for (int l = 0; l < 32; ++l) {
      const int low = ql[l] >> (j < 2 ? 0 : 4) & 15;
      q[l] = static_cast<std::int8_t>((low | (qh[l] >> 2 * j & 3) << 4) - 32);
    }
  }
  DETRUN_HD bool is_finite(const Block& block) { return f16_is_finite(block.d); }
  DETRUN_HD void decode(const Block& block, float* out) { decode_integer<TypeQ6_K>(block, out); }
};

}  // namespace detrun::kernels
