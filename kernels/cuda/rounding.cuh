// Activations rounded to the type of a weight, as profile cublas multiplies them: one thread an
// element. Not of the arithmetic contract, which rounds no activation so. What does not fit is
// reported, never stored in silence.
#pragma once

#include "kernels/cuda/warp.cuh"
#include "kernels/fp.h"

namespace detrun::device {

// The first magnitude that rounds to infinity in bfloat16: half way behind the largest finite one.
constexpr std::uint32_t kBf16OverflowBits = 0x7f7f8000u;

// out (n_all): the first n of x, nearest even, subnormals kept; zeros behind them. n <= n_all. Grid
// ceil(n_all / kRowThreads), here and below.
DETRUN_KERNEL_OF(kRowThreads)
void detrun_round_f16(const float* x, std::size_t n, std::size_t n_all, std::uint16_t* out,
                      int* does_not_fit) {
  const std::size_t i = element_index();
  if (i >= n_all) return;
  const float value = i < n ? x[i] : 0.0f;
  if ((f32_bits(value) & kAbsMask) >= kF16OverflowBits) raise_flag(does_not_fit);
  out[i] = f32_to_f16(value);
}
DETRUN_KERNEL_OF(kRowThreads)
void detrun_round_bf16(const float* x, std::size_t n, std::size_t n_all, std::uint16_t* out,
                       int* does_not_fit) {
  const std::size_t i = element_index();
  if (i >= n_all) return;
  const float value = i < n ? x[i] : 0.0f;
  if ((f32_bits(value) & kAbsMask) >= kBf16OverflowBits) raise_flag(does_not_fit);
  out[i] = f32_to_bf16(value);
}
// Nothing to round: a copy that is checked and filled up.
DETRUN_KERNEL_OF(kRowThreads)
void detrun_round_f32(const float* x, std::size_t n, std::size_t n_all, float* out,
                      int* not_finite) {
  const std::size_t i = element_index();
  if (i >= n_all) return;
  const float value = i < n ? x[i] : 0.0f;
  if (!f32_is_finite(value)) raise_flag(not_finite);
  out[i] = value;
}

}  // namespace detrun::device
