// Tensor type F16: IEEE binary16, one element a block, widened exactly.
#pragma once

#include "kernels/fp.h"

namespace detrun::kernels {

struct TypeF16 {
  static constexpr std::uint32_t kGgufId = 1;
  static constexpr int kBlockElems = 1;
  using Block = std::uint16_t;

  DETRUN_HD float widen(Block w) { return f16_to_f32(w); }
  DETRUN_HD void decode(const Block& block, float* out) { out[0] = f16_to_f32(block); }
  /// Masks of four packed elements, see quant.cpp: (w & mask) + step reaches the sign place exactly
  /// when the exponent field is all ones.
  static constexpr std::uint64_t kExponentMask = 0x7c007c007c007c00ull;
  static constexpr std::uint64_t kExponentStep = 0x0400040004000400ull;
  static constexpr std::uint64_t kSignMask = 0x8000800080008000ull;
};

}  // namespace detrun::kernels
