// Four binary32 lanes of NEON on AArch64: loads that widen exactly, the contract's summation trees.
// Every comparison is written out: FMIN and FMAX have an opinion of their own about NaN.
// Internal to kernels/cpu/neon; everything here has internal linkage.
#pragma once

#include <arm_neon.h>

#include "kernels/contract.h"
#include "kernels/quant/bf16.h"
#include "kernels/quant/f16.h"
#include "kernels/quant/f32.h"

namespace detrun::kernels::neon {

constexpr std::uint64_t kLanes = 4;

// load4: four stored weights, widened exactly.
static inline float32x4_t load4(TypeF32, const float* p) { return vld1q_f32(p); }
static inline float32x4_t load4(TypeF16, const std::uint16_t* p) {
  return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
}
static inline float32x4_t load4(TypeBF16, const std::uint16_t* p) {
  return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16));
}

static inline float32x4_t zero4() { return vdupq_n_f32(0.0f); }

/// All ones in the first n lanes, all of them when n >= 4.
static inline uint32x4_t first_lanes(std::uint64_t n) {
  alignas(16) static const std::uint32_t kIndex[4] = {0, 1, 2, 3};
  return vcltq_u32(vld1q_u32(kIndex), vdupq_n_u32(n < kLanes ? static_cast<std::uint32_t>(n) : 4));
}

/// Four values from p, or the first n < 4 and +0 behind them: the contract lets +0 stand for a
/// missing element.
static inline float32x4_t load_padded(const float* p, std::uint64_t n) {
  if (n >= kLanes) return vld1q_f32(p);
  alignas(16) float rest[kLanes] = {};
  std::memcpy(rest, p, n * sizeof rest[0]);
  return vld1q_f32(rest);
}

static inline void store_first(float* p, std::uint64_t n, float32x4_t v) {
  if (n >= kLanes) {
    vst1q_f32(p, v);
    return;
  }
  alignas(16) float rest[kLanes];
  vst1q_f32(rest, v);
  std::memcpy(p, rest, n * sizeof rest[0]);
}

/// The lanes of v where mask is set, of other where it is not.
static inline float32x4_t select(uint32x4_t mask, float32x4_t v, float32x4_t other) {
  return vbslq_f32(mask, v, other);
}

/// The magnitudes' bits; ordered like the magnitudes, with infinities and NaNs on top.
static inline uint32x4_t magnitude_bits(float32x4_t v) {
  return vandq_u32(vreinterpretq_u32_f32(v), vdupq_n_u32(kAbsMask));
}

/// T_4 of the lanes of one register, without the closing + 0.
static inline float half_tree4(float32x4_t a) {
  const float32x2_t pair = vadd_f32(vget_low_f32(a), vget_high_f32(a));
  return vget_lane_f32(vpadd_f32(pair, pair), 0);
}

/// T_4 of each of four registers without the closing + 0; lane i of the result belongs to a[i].
static inline float32x4_t half_trees4(const float32x4_t (&a)[4]) {
  const float32x4_t pairs01 = vaddq_f32(vcombine_f32(vget_low_f32(a[0]), vget_low_f32(a[1])),
                                        vcombine_f32(vget_high_f32(a[0]), vget_high_f32(a[1])));
  const float32x4_t pairs23 = vaddq_f32(vcombine_f32(vget_low_f32(a[2]), vget_low_f32(a[3])),
                                        vcombine_f32(vget_high_f32(a[2]), vget_high_f32(a[3])));
  return vpaddq_f32(pairs01, pairs23);
}

/// T_32 of lanes 0-3, 4-7, ..., 28-31.
static inline float tree32(const float32x4_t (&a)[8]) {
  float32x4_t b[4];
  for (int i = 0; i < 4; ++i) b[i] = vaddq_f32(a[i], a[i + 4]);
  const float32x4_t sum = vaddq_f32(vaddq_f32(b[0], b[2]), vaddq_f32(b[1], b[3]));
  return f32_add(half_tree4(sum), 0.0f);
}

}  // namespace detrun::kernels::neon
