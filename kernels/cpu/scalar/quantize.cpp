// Activations to int8, 32 elements a scale: contract clause 2.
#include "kernels/contract.h"
#include "kernels/cpu/quantized_row.h"
#include "kernels/cpu/scalar/scalar.h"
#include "kernels/math.h"

namespace detrun::kernels::scalar {

std::uint64_t quantized_row_bytes(std::uint64_t k) { return kernels::quantized_row_bytes(k); }

bool quantize(const float* x, std::uint64_t k, void* row) {
  const QuantizedRowOut out = quantized_row_out(row, k);
  for (std::uint64_t b = 0; b < k / kActivationBlock; ++b) {
    const float* xb = x + b * kActivationBlock;
    std::int8_t* qb = out.q + b * kActivationBlock;
    std::uint32_t largest = 0;
    for (int i = 0; i < kActivationBlock; ++i) {
      const std::uint32_t magnitude = f32_bits(xb[i]) & kAbsMask;
      if (magnitude > largest) largest = magnitude;
    }
    if (largest >= kInfBits) return false;
    if (largest < kZeroBlockBits) {
      out.d[b] = 0.0f;
      for (int i = 0; i < kActivationBlock; ++i) qb[i] = 0;
      quantized_row_write_sums(out, b);
      continue;
    }
    const float amax = f32_from_bits(largest);
    out.d[b] = f32_div(amax, 127.0f);
    const float inverse = f32_div(127.0f, amax);
    for (int i = 0; i < kActivationBlock; ++i) {
      std::int32_t q = round_to_int(f32_mul(xb[i], inverse));
      if (q > kActivationMax) q = kActivationMax;
      if (q < -kActivationMax) q = -kActivationMax;
      qb[i] = static_cast<std::int8_t>(q);
    }
    quantized_row_write_sums(out, b);
  }
  return true;
}

}  // namespace detrun::kernels::scalar
