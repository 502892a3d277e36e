// What the tests of the kernels of rows and elements share: values that reach the edges, comparison
// as bits, launches in both orders of the lanes.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/grid.h"

namespace detrun::cuda_test {

using cuda::blocks_for;

constexpr emulation::LaneOrder kOrders[] = {emulation::LaneOrder::kAscending,
                                            emulation::LaneOrder::kDescending};

/// Bit-equal. Most values must be finite and not zero: equality is worth nothing on zeros and NaNs.
inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  std::size_t live = 0;
  for (const float v : a) live += kernels::f32_is_finite(v) && v != 0.0f;
  CHECK(live * 2 > a.size());
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// Magnitudes up to `largest`; some tiny, some subnormal, some -0.
inline std::vector<float> random_floats(std::mt19937& random, std::size_t n, float largest) {
  std::vector<float> values(n);
  for (float& v : values) {
    v = static_cast<float>(static_cast<int>(random() % 20001) - 10000) * 1e-4f * largest;
    switch (random() % 32) {
      case 0:
        v = -0.0f;
        break;
      case 1:
        v *= 0x1p-40f;
        break;
      case 2:
        v = kernels::f32_from_bits(random() % 0x00800000u);
        break;
      default:
        break;
    }
  }
  return values;
}

/// Launches of a grid of `blocks` thread blocks of `threads`; the launch must have no problem.
inline void launch_rows(unsigned blocks, unsigned threads, emulation::LaneOrder order,
                        const std::function<void()>& kernel) {
  CHECK(emulation::launch({blocks, 1, 1}, {threads, 1, 1}, order, kernel) == "");
}

}  // namespace detrun::cuda_test
