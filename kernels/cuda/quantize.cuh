// Activations to int8, contract clause 2: one warp a block of 32 elements, one thread an element.
// Beside quants and scale it writes what some types of clause 3 need: the scale times the sum of
// the 32 quants, rounded once, and the exact sum of each half of them.
#pragma once

#include "kernels/cuda/warp.cuh"
#include "kernels/math.h"

namespace detrun::device {

// x, quants (n_blocks, 32); scales (n_blocks); sums (n_blocks) and half_sums (n_blocks, 2), either
// of which may be nullptr. Rows follow each other, for their length is a multiple of 32. A block
// with an element that is not finite is reported and gets zeros. Grid ceil(n_blocks / kRowWarps).
DETRUN_KERNEL_OF(kRowThreads)
void detrun_quantize(const float* x, std::size_t n_blocks, std::int8_t* quants, float* scales,
                     float* sums, std::int16_t* half_sums, int* not_finite) {
  const std::size_t block = warp_index();
  if (block >= n_blocks) return;  // the same for the whole warp
  const float value = x[block * kActivationBlock + lane_id()];
  const unsigned largest = warp_max(f32_bits(value) & kAbsMask);
  const bool finite = largest < kInfBits;
  const bool live = finite && largest >= kZeroBlockBits;
  // A dead block divides by 127 instead, and its results are dropped.
  const float amax = live ? f32_from_bits(largest) : 127.0f;
  const float scale = live ? f32_div(amax, 127.0f) : 0.0f;
  const float inverse = f32_div(127.0f, amax);
  int q = live ? float_to_int(f32_mul(value, inverse)) : 0;
  q = int_max(int_min(q, kActivationMax), -kActivationMax);
  int sum = q;
  for (int off = 8; off >= 1; off /= 2) sum += shuffle_xor(sum, off);
  const int whole = sum + shuffle_xor(sum, 16);
  quants[block * kActivationBlock + lane_id()] = static_cast<std::int8_t>(q);
  if (lane_id() == 0) {
    scales[block] = scale;
    if (sums != nullptr) sums[block] = f32_mul(scale, int_to_float(whole));
    if (!finite) raise_flag(not_finite);
  }
  if (lane_id() % 16 == 0 && half_sums != nullptr) {
    half_sums[2 * block + lane_id() / 16] = static_cast<std::int16_t>(sum);
  }
}

}  // namespace detrun::device
