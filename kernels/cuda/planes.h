// How weights lie in device memory, and the host code that brings the file's blocks into that form.
// A block of 34, 144 or 210 bytes cannot be loaded 16 bytes at a time, so each quantized type is
// split into planes, arrays of one field of all blocks in the file's order: block b is row
// b / n_groups, group b % n_groups. Every plane starts at a multiple of 16 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/quant/q4_k.h"
#include "kernels/quant/q6_k.h"
#include "kernels/quant/q8_0.h"

namespace detrun::cuda {

/// Q8_0: scales (n_blocks) binary16, quants (n_blocks, 32).
struct PlanesQ8_0 {
  const std::uint16_t* scales;
  const std::int8_t* quants;
};

/// Q4_K, 148 bytes a block of 256: d (n_blocks, 2) binary16, the scale and that of the minima;
/// scales (n_blocks, 16), the eight scales and the eight minima as bytes; quants (n_blocks, 128) as
/// in the file.
struct PlanesQ4K {
  const std::uint16_t* d;
  const std::uint8_t* scales;
  const std::uint8_t* quants;
};

/// Q6_K, 210 bytes a block of 256: d (n_blocks) binary16, scales (n_blocks, 16), low (n_blocks,
/// 128) and high (n_blocks, 64) as in the file.
struct PlanesQ6K {
  const std::uint16_t* d;
  const std::int8_t* scales;
  const std::uint8_t* low;
  const std::uint8_t* high;
};

/// m quantized rows (contract clause 2), one after another: quants (m, k), scales (m, k / 32), and
/// sums (m, k / 32), the scale times the sum of the quants, for types with minima. Each starts at a
/// multiple of 16 bytes.
struct QuantizedRows {
  const std::int8_t* quants;
  const float* scales;
  const float* sums;
};

inline void split_q8_0(const kernels::BlockQ8_0* blocks, std::size_t n_blocks,
                       std::uint16_t* scales, std::int8_t* quants) {
  for (std::size_t b = 0; b < n_blocks; ++b) {
    scales[b] = blocks[b].d;
    std::memcpy(quants + 32 * b, blocks[b].q, 32);
  }
}

inline void split_q4_k(const kernels::BlockQ4_K* blocks, std::size_t n_blocks, std::uint16_t* d,
                       std::uint8_t* scales, std::uint8_t* quants) {
  for (std::size_t b = 0; b < n_blocks; ++b) {
    d[2 * b] = blocks[b].d;
    d[2 * b + 1] = blocks[b].dmin;
    for (int s = 0; s < 8; ++s) {
      std::uint8_t* of_block = scales + 16 * b;
      of_block[s] = static_cast<std::uint8_t>(kernels::TypeQ4_K::scale(blocks[b], s));
      of_block[8 + s] = static_cast<std::uint8_t>(kernels::TypeQ4_K::minimum(blocks[b], s));
    }
    std::memcpy(quants + 128 * b, blocks[b].qs, 128);
  }
}

inline void split_q6_k(const kernels::BlockQ6_K* blocks, std::size_t n_blocks, std::uint16_t* d,
                       std::int8_t* scales, std::uint8_t* low, std::uint8_t* high) {
  for (std::size_t b = 0; b < n_blocks; ++b) {
    d[b] = blocks[b].d;
    std::memcpy(scales + 16 * b, blocks[b].scales, 16);
    std::memcpy(low + 128 * b, blocks[b].ql, 128);
    std::memcpy(high + 64 * b, blocks[b].qh, 64);
  }
}

// ---- panels: float weights of the SIMT GEMM -----------------------------------------------------
// A panel is `width` rows. Element (row, k) of a matrix lies at
//   ((row / width * 32 + k mod 32) * ceil(K / 32) + k / 32) * width + row mod width,
// so that a chain of contract clause 1 (one k mod 32) is contiguous for all rows of a panel. Rows
// and elements beyond the matrix are +0, which by the contract changes no bit.

constexpr unsigned kPanelOutputs = 128;  ///< width of a panel of weights
constexpr unsigned kPanelRows = 64;      ///< width of a panel of activations

constexpr std::size_t panel_elements(std::size_t n_rows, std::size_t k, std::size_t width) {
  return (n_rows + width - 1) / width * 32 * ((k + 31) / 32) * width;
}

/// rows (n_rows, k), binary32 or 16 raw bits an element, to panels of kPanelOutputs rows.
template <class Element>
void pack_panels(const Element* rows, std::size_t n_rows, std::size_t k, Element* panels) {
  const std::size_t steps = (k + 31) / 32;
  std::memset(panels, 0, panel_elements(n_rows, k, kPanelOutputs) * sizeof(Element));
  for (std::size_t row = 0; row < n_rows; ++row) {
    Element* panel = panels + row / kPanelOutputs * 32 * steps * kPanelOutputs;
    for (std::size_t i = 0; i < k; ++i) {
      panel[(i % 32 * steps + i / 32) * kPanelOutputs + row % kPanelOutputs] = rows[row * k + i];
    }
  }
}

}  // namespace detrun::cuda
