// binary16 and bfloat16 to binary32 and back, in integer arithmetic: the same bits whatever the
// control register of the thread says. Widening is exact; narrowing rounds to nearest even.
#pragma once

#include "kernels/contract.h"

namespace detrun::kernels {

/// Exact. Infinities and NaNs keep their sign and payload.
DETRUN_HD float f16_to_f32(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  std::uint32_t exponent = (half >> 10) & 0x1fu;
  std::uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0x1fu) return f32_from_bits(sign | kInfBits | (mantissa << 13));
  if (exponent == 0) {
    if (mantissa == 0) return f32_from_bits(sign);
    // A subnormal half is a normal binary32: shift the leading one into the hidden place.
    exponent = 1;
    while ((mantissa & 0x400u) == 0) {
      mantissa <<= 1;
      --exponent;  // wraps below zero; the bias below brings it back
    }
    mantissa &= 0x3ffu;
  }
  return f32_from_bits(sign | ((exponent + 112u) << 23) | (mantissa << 13));
}

/// Nearest even, subnormals kept; 65520 and above become infinity; NaN becomes 0x7e00 with sign.
DETRUN_HD std::uint16_t f32_to_f16(float value) {
  const std::uint32_t bits = f32_bits(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & kAbsMask;
  if (magnitude > kInfBits) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (magnitude >= kF16OverflowBits) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (magnitude <= 0x33000000u) return static_cast<std::uint16_t>(sign);  // 2^-25 ties to zero
  const int exponent = static_cast<int>(magnitude >> 23) - 127;
  const std::uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
  const int shift = exponent < -14 ? 13 + (-14 - exponent) : 13;
  const std::uint32_t rest = significand & ((1u << shift) - 1u);
  const std::uint32_t half_unit = 1u << (shift - 1);
  std::uint32_t rounded = significand >> shift;
  if (rest > half_unit || (rest == half_unit && (rounded & 1u) != 0)) ++rounded;
  // `rounded` still has its hidden bit, worth one exponent step, and may have carried into the
  // next.
  if (exponent >= -14) rounded += static_cast<std::uint32_t>(exponent + 14) << 10;
  return static_cast<std::uint16_t>(sign | rounded);
}

/// Exact.
DETRUN_HD float bf16_to_f32(std::uint16_t bits) {
  return f32_from_bits(static_cast<std::uint32_t>(bits) << 16);
}

/// Nearest even; NaN stays a NaN.
DETRUN_HD std::uint16_t f32_to_bf16(float value) {
  const std::uint32_t bits = f32_bits(value);
  if ((bits & kAbsMask) > kInfBits) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace detrun::kernels
