// Code that brings the blocks of a file into the planes of planes.h: on the host at load, on the
// device for weights that are made up there. Slower than a copy by little: plain loops over 32
// elements, which compilers vectorize.
#pragma once

#include "kernels/cuda/planes.h"

namespace detrun::cuda {

/// The number of a level of IQ4_NL: how many lie below it.
DETRUN_HD int level_number(int level) {
  int number = 0;
  for (int i = 1; i < 16; ++i) number += level >= kernels::iq4_level(i) ? 1 : 0;
  return number;
}

/// 32 values of `kBits` bits to their arrangement: 4 * kBits bytes. Higher bits are dropped.
template <int kBits>
DETRUN_HD void pack_bits(const std::uint8_t* values, std::uint8_t* out) {
  if constexpr (kBits == 8) memcpy(out, values, 32);
  if constexpr (kBits == 4) {
    for (int l = 0; l < 16; ++l) {
      out[l] = static_cast<std::uint8_t>((values[l] & 15) | (values[16 + l] & 15) << 4);
    }
  }
  if constexpr (kBits == 2) {
    for (int b = 0; b < 8; ++b) {
      const std::uint8_t* from = values + b / 4 * 16 + b % 4;
      out[b] = static_cast<std::uint8_t>((from[0] & 3) | (from[4] & 3) << 2 | (from[8] & 3) << 4 |
                                         (from[12] & 3) << 6);
    }
  }
  if constexpr (kBits == 1) {
    for (int b = 0; b < 4; ++b) {
      int byte = 0;
      for (int j = 0; j < 8; ++j) byte |= (values[4 * j + b] & 1) << j;
      out[b] = static_cast<std::uint8_t>(byte);
    }
  }
}

/// The integer scales and minima of a block, kScaleBytes.
template <class Type>
DETRUN_HD void pack_scales(const typename Type::Block& block, std::uint8_t* out) {
  using Layout = QuantLayout<Type>;
  for (int s = 0; s < Layout::kScales; ++s) {
    out[s] = static_cast<std::uint8_t>(Type::scale(block, s));
  }
  if constexpr (Layout::kMinima != 0) {
    for (int s = 0; s < Layout::kMinima; ++s) {
      const auto minimum = static_cast<std::uint8_t>(Type::minimum(block, s));
      if constexpr (Layout::kShared) out[s] = static_cast<std::uint8_t>(out[s] | minimum << 4);
      if constexpr (!Layout::kShared) out[Layout::kScales + s] = minimum;
    }
  }
}

/// Planes are const for all but who packs them.
template <class T>
DETRUN_HD T* writable(const T* plane) {
  return const_cast<T*>(plane);
}

/// Block `group` of the file to its place in the planes of an image.
template <class Type>
DETRUN_HD void pack_group(const typename Type::Block& block, std::size_t group,
                          const Planes& planes) {
  using Layout = QuantLayout<Type>;
  auto* d = writable(planes.d) + group * Layout::kHalves;
  d[0] = block.d;
  if constexpr (Type::kMinimum == kernels::Minimum::kFloat) d[1] = block.m;
  if constexpr (Type::kMinimum == kernels::Minimum::kInteger) d[1] = block.dmin;
  pack_scales<Type>(block, writable(planes.scales) + group * Layout::kScaleBytes);
  for (int i = 0; i < Layout::kBlocks; ++i) {
    std::int8_t q[32];
    std::uint8_t low[32], high[32];
    Type::unpack(block, i, q);
    for (int l = 0; l < 32; ++l) {
      const int u = Layout::kLevels ? level_number(q[l]) : q[l] + Layout::kOffset;
      low[l] = static_cast<std::uint8_t>(u);
      high[l] = static_cast<std::uint8_t>(low[l] >> (Layout::kLowBits & 7));
    }
    const std::size_t at = group * Layout::kBlocks + static_cast<std::size_t>(i);
    pack_bits<Layout::kLowBits>(low, writable(planes.low) + at * Layout::kLowBytes);
    pack_bits<Layout::kHighBits>(high, writable(planes.high) + at * Layout::kHighBytes);
  }
}

/// Blocks [first, last) of the file, any alignment.
template <class Type>
void pack_groups(const void* blocks, std::size_t first, std::size_t last, const Planes& planes) {
  for (std::size_t group = first; group < last; ++group) {
    typename Type::Block block;
    std::memcpy(&block, static_cast<const char*>(blocks) + group * sizeof block, sizeof block);
    pack_group<Type>(block, group, planes);
  }
}

}  // namespace detrun::cuda
