// What the kernels of rows and elements share: T_32 over the lanes of one warp, how a thread finds
// its element, how a kernel reports what the contract calls an error.
#pragma once

#include "kernels/cuda/device.cuh"

namespace detrun::device {

constexpr unsigned kWarpLanes = 32;
constexpr unsigned kRowThreads = 128;                     // of a thread block
constexpr unsigned kRowWarps = kRowThreads / kWarpLanes;  // one row, or 32 elements, a warp

// T_32 over the lanes' values, for every lane: the same bits, because a sum of two commutes. The
// whole warp calls it.
DETRUN_DEVICE float warp_tree_sum(float value) {
  for (int off = kSumLanes / 2; off >= 1; off /= 2) {
    value = f32_add(value, shuffle_xor(value, off));
  }
  return f32_add(value, 0.0f);
}

DETRUN_DEVICE std::size_t element_index() {
  return static_cast<std::size_t>(block_x()) * kRowThreads + thread_x();
}
DETRUN_DEVICE std::size_t warp_index() {
  return static_cast<std::size_t>(block_x()) * kRowWarps + warp_id();
}

// Says that a value was not finite or did not fit. Any number of threads may say so at once: all
// store the same word.
DETRUN_DEVICE void raise_flag(int* flag) { *flag = 1; }

}  // namespace detrun::device
