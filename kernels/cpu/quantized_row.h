// How a quantized row of activations lies in memory, on every instruction set. Four arrays, each
// padded with zeros to a multiple of 64 bytes:
//   float d[k / 32]       the scale of a 32-block
//   float bx[k / 32]      d * (float)B, rounded once; B is the exact sum of the 32-block's q
//   int16 b16[k / 16]     the exact sum of every 16 q; two neighbours add up to B
//   int8  q[k]
// bx serves the minima of contract clause 3, b16 those of sub-blocks of 16 and offsets of weights.
#pragma once

#include "kernels/contract.h"

namespace detrun::kernels {

struct QuantizedRow {
  const float* d;
  const float* bx;
  const std::int16_t* b16;
  const std::int8_t* q;
};

struct QuantizedRowOut {
  float* d;
  float* bx;
  std::int16_t* b16;
  std::int8_t* q;
};

static inline std::uint64_t quantized_row_pad(std::uint64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

/// Bytes of d, as many as of bx and of b16.
static inline std::uint64_t quantized_row_part_bytes(std::uint64_t k) {
  return quantized_row_pad(k / kActivationBlock * sizeof(float));
}

static inline std::uint64_t quantized_row_bytes(std::uint64_t k) {
  return 3 * quantized_row_part_bytes(k) + quantized_row_pad(k);
}

static inline QuantizedRow quantized_row(const void* row, std::uint64_t k) {
  const char* bytes = static_cast<const char*>(row);
  const std::uint64_t part = quantized_row_part_bytes(k);
  const void* bx = bytes + part;
  const void* b16 = bytes + 2 * part;
  const void* q = bytes + 3 * part;
  return {static_cast<const float*>(row), static_cast<const float*>(bx),
          static_cast<const std::int16_t*>(b16), static_cast<const std::int8_t*>(q)};
}

/// The arrays of a row to be written; their padding is zero afterwards.
static inline QuantizedRowOut quantized_row_out(void* row, std::uint64_t k) {
  char* bytes = static_cast<char*>(row);
  const std::uint64_t part = quantized_row_part_bytes(k);
  const std::uint64_t used = k / kActivationBlock * sizeof(float);
  for (std::uint64_t i = 0; i < 3; ++i) std::memset(bytes + i * part + used, 0, part - used);
  std::memset(bytes + 3 * part + k, 0, quantized_row_pad(k) - k);
  void* bx = bytes + part;
  void* b16 = bytes + 2 * part;
  void* q = bytes + 3 * part;
  return {static_cast<float*>(row), static_cast<float*>(bx), static_cast<std::int16_t*>(b16),
          static_cast<std::int8_t*>(q)};
}

/// Writes the sums of 32-block b from its d and q.
static inline void quantized_row_write_sums(const QuantizedRowOut& row, std::uint64_t b) {
  std::int32_t both = 0;
  for (std::uint64_t h = 2 * b; h < 2 * b + 2; ++h) {
    std::int32_t sum = 0;
    for (std::uint64_t i = 16 * h; i < 16 * h + 16; ++i) sum += row.q[i];
    row.b16[h] = static_cast<std::int16_t>(sum);
    both += sum;
  }
  row.bx[b] = f32_mul(row.d[b], static_cast<float>(both));
}

}  // namespace detrun::kernels
