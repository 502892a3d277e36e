// How a quantized row of activations lies in memory, on every instruction set:
//   float d[k / 32], padded to a multiple of 64 bytes; int8 q[k], padded likewise.
#pragma once

#include "kernels/contract.h"

namespace detrun::kernels {

struct QuantizedRow {
  const float* d;
  const std::int8_t* q;
};

struct QuantizedRowOut {
  float* d;
  std::int8_t* q;
};

static inline std::uint64_t quantized_row_q_offset(std::uint64_t k) {
  return (k / kActivationBlock * sizeof(float) + 63) / 64 * 64;
}

static inline std::uint64_t quantized_row_bytes(std::uint64_t k) {
  return quantized_row_q_offset(k) + (k + 63) / 64 * 64;
}

static inline QuantizedRow quantized_row(const void* row, std::uint64_t k) {
  const char* bytes = static_cast<const char*>(row);
  const void* q = bytes + quantized_row_q_offset(k);
  return {static_cast<const float*>(row), static_cast<const std::int8_t*>(q)};
}

static inline QuantizedRowOut quantized_row_out(void* row, std::uint64_t k) {
  char* bytes = static_cast<char*>(row);
  void* q = bytes + quantized_row_q_offset(k);
  return {static_cast<float*>(row), static_cast<std::int8_t*>(q)};
}

}  // namespace detrun::kernels
