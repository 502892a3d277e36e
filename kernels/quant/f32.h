// Tensor type F32: binary32, one element a block.
#pragma once

#include "kernels/contract.h"

namespace detrun::kernels {

struct TypeF32 {
  static constexpr std::uint32_t kGgufId = 0;
  static constexpr int kBlockElems = 1;
  using Block = float;

  DETRUN_HD float widen(Block w) { return w; }
  DETRUN_HD void decode(const Block& block, float* out) { out[0] = block; }
  /// Masks of two packed elements, see quant.cpp: (w & mask) + step reaches the sign place exactly
  /// when the exponent field is all ones.
  static constexpr std::uint64_t kExponentMask = 0x7f8000007f800000ull;
  static constexpr std::uint64_t kExponentStep = 0x0080000000800000ull;
  static constexpr std::uint64_t kSignMask = 0x8000000080000000ull;
};

}  // namespace detrun::kernels
