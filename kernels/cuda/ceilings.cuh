// The kernels of kernels/cuda/ceilings.h. Chains are independent, so that no unit waits for its own
// result, and every thread stores what it made, so that no compiler leaves the work out.
#pragma once

#include "kernels/cuda/ceilings.h"
#include "kernels/cuda/device.cuh"

namespace detrun::device {

constexpr int kCeilingChains = 8;
constexpr int kCeilingFmaSteps = 16;  // of a chain in a round

DETRUN_DEVICE void store_int4(void* to, const Int4& value) { *static_cast<Int4*>(to) = value; }

// Each step, the whole grid copies one stretch; a thread has four loads of 16 bytes in flight.
DETRUN_KERNEL_OF(cuda::kCeilingThreads)
void detrun_ceiling_copy(const char* from, std::size_t n_bytes, char* to) {
  const std::size_t width = static_cast<std::size_t>(grid_dim_x()) * cuda::kCeilingThreads * 16;
  std::size_t at = (static_cast<std::size_t>(block_x()) * cuda::kCeilingThreads + thread_x()) * 16;
  for (; at + 3 * width < n_bytes; at += 4 * width) {
    Int4 piece[4];
    DETRUN_UNROLL
    for (int i = 0; i < 4; ++i) piece[i] = load_int4(from + at + i * width);
    DETRUN_UNROLL
    for (int i = 0; i < 4; ++i) store_int4(to + at + i * width, piece[i]);
  }
  for (; at < n_bytes; at += width) store_int4(to + at, load_int4(from + at));
}

// x and y come from the launch: no compiler knows them.
DETRUN_KERNEL_OF(cuda::kCeilingThreads)
void detrun_ceiling_fma(unsigned rounds, float x, float y, float* out) {
  float chain[kCeilingChains];
  DETRUN_UNROLL
  for (int c = 0; c < kCeilingChains; ++c) chain[c] = 0.0f;
  DETRUN_NO_UNROLL
  for (unsigned round = 0; round < rounds; ++round) {
    DETRUN_UNROLL
    for (int step = 0; step < kCeilingFmaSteps; ++step) {
      DETRUN_UNROLL
      for (int c = 0; c < kCeilingChains; ++c) chain[c] = f32_fma(x, y, chain[c]);
    }
  }
  DETRUN_UNROLL
  for (int c = 1; c < kCeilingChains; ++c) chain[0] = f32_add(chain[0], chain[c]);
  out[static_cast<std::size_t>(block_x()) * cuda::kCeilingThreads + thread_x()] = chain[0];
}

DETRUN_KERNEL_OF(cuda::kCeilingThreads)
void detrun_ceiling_int8(unsigned rounds, int x, int y, int* out) {
  int chain[kCeilingChains][4];
  DETRUN_UNROLL
  for (int c = 0; c < kCeilingChains; ++c) {
    for (int i = 0; i < 4; ++i) chain[c][i] = 0;
  }
  const int a[4] = {x, x, x, x};
  const int b[2] = {y, y};
  DETRUN_NO_UNROLL
  for (unsigned round = 0; round < rounds; ++round) {
    DETRUN_UNROLL
    for (int c = 0; c < kCeilingChains; ++c) mma_s8(chain[c], a, b);
  }
  int sum = 0;
  DETRUN_UNROLL
  for (int c = 0; c < kCeilingChains; ++c) {
    for (int i = 0; i < 4; ++i) sum += chain[c][i];
  }
  out[static_cast<std::size_t>(block_x()) * cuda::kCeilingThreads + thread_x()] = sum;
}

}  // namespace detrun::device
