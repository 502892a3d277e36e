// Activations to int8, 32 elements a scale: contract clause 2. FCVTNS rounds to nearest even
// whatever FPCR says.
#include "kernels/cpu/neon/lanes.h"
#include "kernels/cpu/neon/neon.h"
#include "kernels/cpu/quantized_row.h"

namespace detrun::kernels::neon {

namespace {

/// The sums of 32-block b, from its d and q.
inline void write_sums(const QuantizedRowOut& row, std::uint64_t b) {
  const std::int8_t* q = row.q + b * kActivationBlock;
  const std::int16_t low = vaddlvq_s8(vld1q_s8(q));
  const std::int16_t high = vaddlvq_s8(vld1q_s8(q + 16));
  row.b16[2 * b] = low;
  row.b16[2 * b + 1] = high;
  row.bx[b] = f32_mul(row.d[b], static_cast<float>(low + high));
}

}  // namespace

std::uint64_t quantized_row_bytes(std::uint64_t k) { return kernels::quantized_row_bytes(k); }

bool quantize(const float* x, std::uint64_t k, void* row) {
  constexpr int kRegs = kActivationBlock / 4;
  const QuantizedRowOut out = quantized_row_out(row, k);
  for (std::uint64_t b = 0; b < k / kActivationBlock; ++b) {
    float32x4_t v[kRegs];
    uint32x4_t bits = vdupq_n_u32(0);
    for (int i = 0; i < kRegs; ++i) {
      v[i] = vld1q_f32(x + b * kActivationBlock + 4 * i);
      bits = vmaxq_u32(bits, magnitude_bits(v[i]));
    }
    const std::uint32_t largest = vmaxvq_u32(bits);
    if (largest >= kInfBits) return false;
    std::int8_t* q = out.q + b * kActivationBlock;
    if (largest < kZeroBlockBits) {
      out.d[b] = 0.0f;
      std::memset(q, 0, kActivationBlock);
      write_sums(out, b);
      continue;
    }
    const float amax = f32_from_bits(largest);
    out.d[b] = f32_div(amax, 127.0f);
    const float32x4_t inverse = vdupq_n_f32(f32_div(127.0f, amax));
    int16x4_t n[kRegs];
    for (int i = 0; i < kRegs; ++i) {
      int32x4_t wide = vcvtnq_s32_f32(vmulq_f32(v[i], inverse));
      wide = vminq_s32(wide, vdupq_n_s32(kActivationMax));
      wide = vmaxq_s32(wide, vdupq_n_s32(-kActivationMax));
      n[i] = vmovn_s32(wide);
    }
    for (int i = 0; i < kRegs; i += 2) {
      vst1_s8(q + 4 * i, vmovn_s16(vcombine_s16(n[i], n[i + 1])));
    }
    write_sums(out, b);
  }
  return true;
}

}  // namespace detrun::kernels::neon
