// Tensor type Q8_0: 32 int8 values that share one binary16 scale.
//
//   offset 0: d, binary16     offset 2: q[32], int8     value[i] = d * q[i], exact in binary32
//
// q = -128 is legal in a file. Source: the GGUF format, public documentation of its type 8.
#pragma once

#include "kernels/fp.h"

namespace detrun::kernels {

struct BlockQ8_0 {
  std::uint16_t d;
  std::int8_t q[32];
};
static_assert(sizeof(BlockQ8_0) == 34, "the block as it lies in a file");

struct TypeQ8_0 {
  static constexpr std::uint32_t kGgufId = 8;
  static constexpr int kBlockElems = 32;
  using Block = BlockQ8_0;

  DETRUN_HD void decode(const Block& block, float* out) {
    const float d = f16_to_f32(block.d);
    for (int i = 0; i < kBlockElems; ++i) out[i] = f32_mul(d, static_cast<float>(block.q[i]));
  }
};

}  // namespace detrun::kernels
