// Tensor type BF16: the upper half of a binary32, one element a block, widened exactly.
#pragma once

#include "kernels/fp.h"

namespace detrun::kernels {

struct TypeBF16 {
  static constexpr std::uint32_t kGgufId = 30;
  static constexpr int kBlockElems = 1;
  using Block = std::uint16_t;

  DETRUN_HD float widen(Block w) { return bf16_to_f32(w); }
  DETRUN_HD void decode(const Block& block, float* out) { out[0] = bf16_to_f32(block); }
  /// Masks of four packed elements, see quant.cpp: (w & mask) + step reaches the sign place exactly
  /// when the exponent field is all ones.
  static constexpr std::uint64_t kExponentMask = 0x7f807f807f807f80ull;
  static constexpr std::uint64_t kExponentStep = 0x0080008000800080ull;
  static constexpr std::uint64_t kSignMask = 0x8000800080008000ull;
};

}  // namespace detrun::kernels
