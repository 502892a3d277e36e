// Tensor type Q5_K: 256 values of 5 bits, eight sub-blocks of 32 with a scale and a minimum each.
//
//   offset 0: d     offset 2: dmin     offset 4: scales[12], see packed6_scale and packed6_minimum
//   offset 16: qh[32]; bit i of qh[l] is the fifth bit of element 32 i + l
//   offset 48: qs[128]; the other four bits, as in Q4_K
//   value = d * (scale * five bits) - dmin * minimum: exact products, the difference rounded once
//
// Source: the GGUF format, public documentation of its type 13.
#pragma once

#include "kernels/quant/integer.h"

namespace detrun::kernels {

struct BlockQ5_K {
  std::uint16_t d;
  std::uint16_t dmin;
  std::uint8_t scales[12];
  std::uint8_t qh[32];
  std::uint8_t qs[128];
};
static_assert(sizeof(BlockQ5_K) == 176, "the block as it lies in a file");

struct TypeQ5_K {
  static constexpr std::uint32_t kGgufId = 13;
  static constexpr int kBlockElems = 256;
  static constexpr int kScaleElems = 32;
  static constexpr Minimum kMinimum = Minimum::kInteger;
  static constexpr int kMinElems = 32;
  using Block = BlockQ5_K;

  DETRUN_HD float d(const Block& block) { return f16_to_f32(block.d); }
  DETRUN_HD float floor(const Block& block) { return f16_to_f32(block.dmin); }
  DETRUN_HD int scale(const Block& block, int s) { return packed6_scale(block.scales, s); }
  DETRUN_HD int minimum(const Block& block, int s) { return packed6_minimum(block.scales, s); }
  DETRUN_HD void unpack(const Block& block, int i, std::int8_t* q) {
    const std::uint8_t* qs = block.qs + 32 * (i / 2);
    for (int l = 0; l < 32; ++l) {
      const int low = qs[l] >> 4 * (i % 2) & 15;
      q[l] = static_cast<std::int8_t>(low | (block.qh[l] >> i & 1) << 4);
    }
  }
  DETRUN_HD bool is_finite(const Block& block) {
    return f16_is_finite(block.d) && f16_is_finite(block.dmin);
  }
  DETRUN_HD void decode(const Block& block, float* out) { decode_integer<TypeQ5_K>(block, out); }
};

}  // namespace detrun::kernels
