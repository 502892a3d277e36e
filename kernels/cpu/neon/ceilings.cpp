// The peaks of NEON without the dot product extension. See kernels/cpu/ceilings.h.
#include "kernels/cpu/ceilings.h"

#include <arm_neon.h>

namespace detrun::kernels::neon {
namespace {

constexpr int kChains = 12;

std::uint64_t read(const void* base, std::uint64_t n_bytes) {
  constexpr std::uint64_t kUnit = kCeilingStreams * kCeilingStreamBytes;
  const auto* bytes = static_cast<const std::uint8_t*>(base);
  uint8x16_t sum[4];
  for (uint8x16_t& part : sum) part = vdupq_n_u8(0);
  for (std::uint64_t unit = 0; unit < n_bytes; unit += kUnit) {
    for (std::uint64_t i = 0; i < kCeilingStreamBytes; i += 64) {
      for (std::uint64_t s = 0; s < kCeilingStreams; ++s) {
        const std::uint8_t* at = bytes + unit + s * kCeilingStreamBytes + i;
        for (int j = 0; j < 4; ++j) sum[j] = veorq_u8(sum[j], vld1q_u8(at + 16 * j));
      }
    }
  }
  const uint64x2_t all =
      vreinterpretq_u64_u8(veorq_u8(veorq_u8(sum[0], sum[1]), veorq_u8(sum[2], sum[3])));
  return vgetq_lane_u64(all, 0) ^ vgetq_lane_u64(all, 1);
}

float fma(std::uint64_t rounds) {
  float32x4_t x = vdupq_n_f32(0.5F);
  const float32x4_t y = vdupq_n_f32(0.25F);
  float32x4_t chain[kChains];
  for (float32x4_t& part : chain) part = vdupq_n_f32(0.0F);
  for (std::uint64_t i = 0; i < rounds; ++i) {
    for (float32x4_t& part : chain) part = vfmaq_f32(part, x, y);
    asm volatile("" : "+w"(x));  // nothing of the next round can be known in this one
  }
  for (int i = 1; i < kChains; ++i) chain[0] = vaddq_f32(chain[0], chain[i]);
  return vgetq_lane_f32(chain[0], 0);
}

std::int32_t int8(std::uint64_t rounds) {
  int8x8_t x = vdup_n_s8(3);
  const int8x8_t y = vdup_n_s8(5);
  int32x4_t chain[kChains];
  for (int32x4_t& part : chain) part = vdupq_n_s32(0);
  for (std::uint64_t i = 0; i < rounds; ++i) {
    for (int32x4_t& part : chain) {
      asm volatile("" : "+w"(x));  // each product is made, not kept from the one before
      part = vpadalq_s16(part, vmull_s8(x, y));
    }
  }
  for (int i = 1; i < kChains; ++i) chain[0] = vaddq_s32(chain[0], chain[i]);
  return vgetq_lane_s32(chain[0], 0);
}

}  // namespace

const CeilingOps kCeilings = {"neon", read, fma, 2 * 4 * kChains, int8, 2 * 8 * kChains};

}  // namespace detrun::kernels::neon
