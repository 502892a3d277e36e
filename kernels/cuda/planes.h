// How weights lie in device memory, and the host code that brings the file's blocks into that form.
// A block of 18, 84 or 210 bytes cannot be loaded 16 bytes at a time, so a quantized weight is
// split into planes, arrays of one field of all groups in the file's order: group g of row r is
// number r * (groups a row) + g. The quants of every type lie in one arrangement for each width,
// 32-block by 32-block, in which four neighbouring elements become a word of four int8 with few
// operations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/quant/all.h"

// DETRUN_QUANT_TYPES(X): X(name) for every type with integer weights, contract clause 3.
#define DETRUN_QUANT_TYPES(X) \
  X(Q4_0)                     \
  X(Q4_1) X(Q5_0) X(Q5_1) X(Q8_0) X(Q2_K) X(Q3_K) X(Q4_K) X(Q5_K) X(Q6_K) X(IQ4_NL) X(IQ4_XS)

namespace detrun::cuda {

/// Images of weights and the planes in them start at multiples of so many bytes.
constexpr std::size_t kImageAlignment = 256;

/// A plane's share of an image.
constexpr std::size_t image_part(std::size_t bytes) {
  return (bytes + kImageAlignment - 1) / kImageAlignment * kImageAlignment;
}

/// m quantized rows (contract clause 2), one after another: quants (m, k), scales (m, k / 32), and
/// for types with minima sums (m, k / 32), the scale times the sum of the quants, and half_sums
/// (m, k / 16), the exact sums of 16. Each starts at a multiple of 16 bytes.
struct QuantizedRows {
  const std::int8_t* quants;
  const float* scales;
  const float* sums;
  const std::int16_t* half_sums;
};

// ---- quantized weights --------------------------------------------------------------------------

/// A quantized weight. Sizes of an element of each plane: QuantLayout.
struct Planes {
  const std::uint16_t* d;  ///< (groups, kHalves) binary16: the scale; the floor, if there is one
  const std::uint8_t* scales;  ///< (groups, kScaleBytes): integer scales, then integer minima
  const std::uint8_t* low;     ///< (32-blocks, 4 * kLowBits): the lower bits of quants
  const std::uint8_t* high;    ///< (32-blocks, 4 * kHighBits): the upper bits
};

/// Bits of a quant in `low` and in `high`, and what was added to it to make it unsigned.
template <class Type>
struct QuantBits;
template <int kLow, int kHigh, int kAdded>
struct QuantBitsOf {
  static constexpr int kLowBits = kLow;
  static constexpr int kHighBits = kHigh;
  static constexpr int kOffset = kAdded;
  static constexpr bool kLevels = false;
};
/// The quants are numbers of IQ4_NL's levels.
struct QuantBitsOfLevels : QuantBitsOf<4, 0, 0> {
  static constexpr bool kLevels = true;
};
template <>
struct QuantBits<kernels::TypeQ4_0> : QuantBitsOf<4, 0, 8> {};
template <>
struct QuantBits<kernels::TypeQ4_1> : QuantBitsOf<4, 0, 0> {};
template <>
struct QuantBits<kernels::TypeQ5_0> : QuantBitsOf<4, 1, 16> {};
template <>
struct QuantBits<kernels::TypeQ5_1> : QuantBitsOf<4, 1, 0> {};
template <>
struct QuantBits<kernels::TypeQ8_0> : QuantBitsOf<8, 0, 0> {};
template <>
struct QuantBits<kernels::TypeQ2_K> : QuantBitsOf<2, 0, 0> {};
template <>
struct QuantBits<kernels::TypeQ3_K> : QuantBitsOf<2, 1, 4> {};
template <>
struct QuantBits<kernels::TypeQ4_K> : QuantBitsOf<4, 0, 0> {};
template <>
struct QuantBits<kernels::TypeQ5_K> : QuantBitsOf<4, 1, 0> {};
template <>
struct QuantBits<kernels::TypeQ6_K> : QuantBitsOf<4, 2, 32> {};
template <>
struct QuantBits<kernels::TypeIQ4_NL> : QuantBitsOfLevels {};
template <>
struct QuantBits<kernels::TypeIQ4_XS> : QuantBitsOfLevels {};

/// `Type::kMinElems` where there are integer minima, else 0.
template <class Type, kernels::Minimum kMinimum = Type::kMinimum>
struct MinimumElems {
  static constexpr int kValue = 0;
};
template <class Type>
struct MinimumElems<Type, kernels::Minimum::kInteger> {
  static constexpr int kValue = Type::kMinElems;
};

constexpr int sub_blocks(int elems, int each) { return each == 0 ? 0 : elems / each; }

/// Everything about a type's planes. A group has kBlocks 32-blocks, kScales integer scales (int8)
/// and kMinima integer minima (unsigned). Where there are 16 of both, a byte holds a scale in its
/// low half and a minimum in its high half.
///
/// Element l of a 32-block, u its unsigned value:
///   8 bits   byte l
///   4 bits   byte l mod 16, its low half for l < 16
///   2 bits   byte 4 (l / 16) + l mod 4, bits 2 ((l mod 16) / 4) and the next
///   1 bit    byte l mod 4, bit l / 4
template <class Type>
struct QuantLayout : QuantBits<Type> {
  using Bits = QuantBits<Type>;
  static constexpr int kBlocks = Type::kBlockElems / 32;
  static constexpr int kHalves = Type::kMinimum == kernels::Minimum::kNone ? 1 : 2;
  static constexpr int kScales = sub_blocks(Type::kBlockElems, Type::kScaleElems);
  static constexpr int kMinElems = MinimumElems<Type>::kValue;
  static constexpr int kMinima = sub_blocks(Type::kBlockElems, kMinElems);
  static constexpr bool kShared = kScales == 16 && kMinima == 16;
  static constexpr int kScaleBytes = kShared ? 16 : kScales + kMinima;
  static constexpr int kLowBytes = 4 * Bits::kLowBits;
  static constexpr int kHighBytes = 4 * Bits::kHighBits;

  static constexpr std::size_t image_bytes(std::size_t groups) {
    return image_part(groups * kHalves * 2) + image_part(groups * kScaleBytes) +
           image_part(groups * kBlocks * kLowBytes) + image_part(groups * kBlocks * kHighBytes);
  }
  static Planes planes(const void* image, std::size_t groups) {
    const auto* d = static_cast<const std::uint8_t*>(image);
    const std::uint8_t* scales = d + image_part(groups * kHalves * 2);
    const std::uint8_t* low = scales + image_part(groups * kScaleBytes);
    const std::uint8_t* high = low + image_part(groups * kBlocks * kLowBytes);
    return {reinterpret_cast<const std::uint16_t*>(d), scales, low, high};
  }
};

// ---- several matrices in one GEMV ---------------------------------------------------------------

/// Most matrices that one launch multiplies with the same row: q, k and v of a layer. A small one
/// alone could not keep a device's memory busy.
constexpr unsigned kGemvMatrices = 3;

/// One of them: `weight` as kernels of its type take it.
template <class Weight>
struct GemvMatrix {
  Weight weight;
  float* y;  ///< (n_rows)
  unsigned n_rows;
};
/// Thread blocks of a launch: matrix i has those before end[i], from end[i - 1] on.
template <class Weight>
struct GemvMatrices {
  GemvMatrix<Weight> matrix[kGemvMatrices];
  unsigned end[kGemvMatrices];
};

// ---- panels: operands of the SIMT GEMM ----------------------------------------------------------
// A panel is `width` rows. Element (row, k) of a matrix lies at
//   ((row / width * 32 + k mod 32) * ceil(K / 32) + k / 32) * width + row mod width,
// so that a chain of contract clause 1 (one k mod 32) is contiguous for all rows of a panel. Rows
// and elements beyond the matrix are +0, which by the contract changes no bit.

constexpr unsigned kPanelOutputs = 128;  ///< width of a panel of weights
constexpr unsigned kPanelRows = 64;      ///< width of a panel of activations

constexpr std::size_t panel_elements(std::size_t n_rows, std::size_t k, std::size_t width) {
  return (n_rows + width - 1) / width * 32 * ((k + 31) / 32) * width;
}

}  // namespace detrun::cuda
