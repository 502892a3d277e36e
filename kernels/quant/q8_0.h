// Tensor type Q8_0: 32 int8 values that share one binary16 scale.
//
//   offset 0: d, binary16     offset 2: q[32], int8     value[i] = d * q[i], exact in binary32
//
// q = -128 is legal in a file. Source: the GGUF format, public documentation of its type 8.
#pragma once

#include "kernels/quant/integer.h"

namespace detrun::kernels {

struct BlockQ8_0 {
  std::uint16_t d;
  std::int8_t q[32];
};
static_assert(sizeof(BlockQ8_0) == 34, "the block as it lies in a file");

struct TypeQ8_0 {
  static constexpr std::uint32_t kGgufId = 8;
  static constexpr int kBlockElems = 32;
  static constexpr int kScaleElems = 0;
  static constexpr Minimum kMinimum = Minimum::kNone;
  using Block = BlockQ8_0;

  DETRUN_HD float d(const Block& block) { return f16_to_f32(block.d); }
  DETRUN_HD float floor(const Block&) { return 0.0f; }
  DETRUN_HD int scale(const Block&, int) { return 1; }
  DETRUN_HD void unpack(const Block& block, int /*i*/, std::int8_t* q) {
    for (int l = 0; l < 32; ++l) q[l] = block.q[l];
  }
  DETRUN_HD bool is_finite(const Block& block) { return f16_is_finite(block.d); }
  DETRUN_HD void decode(const Block& block, float* out) { decode_integer<TypeQ8_0>(block, out); }
};

}  // namespace detrun::kernels
