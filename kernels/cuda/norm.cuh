// RMSNorm and LayerNorm, contract clause 5: one row a warp, lane i the chain of elements i mod 32.
// y may be x. A row whose sum of squares is not finite is reported and left unwritten.
#pragma once

#include "kernels/cuda/warp.cuh"

namespace detrun::device {

// 1 / sqrt(sum / n + eps).
DETRUN_DEVICE float inverse_deviation(float sum, unsigned n, float eps) {
  const float mean = f32_div(sum, int_to_float(static_cast<int>(n)));
  return f32_div(1.0f, f32_sqrt(f32_add(mean, eps)));
}

// x, y (n_rows, n), weight (n); n below 2^31. Grid ceil(n_rows / kRowWarps).
DETRUN_KERNEL_OF(kRowThreads)
void detrun_rmsnorm(const float* x, const float* weight, float eps, unsigned n_rows, unsigned n,
                    float* y, int* not_finite) {
  const std::size_t row = warp_index();
  const unsigned lane = lane_id();
  if (row >= n_rows) return;  // the same for the whole warp
  const float* from = x + row * n;
  float* to = y + row * n;
  float a = 0.0f;
  for (unsigned i = lane; i < n; i += kWarpLanes) a = f32_fma(from[i], from[i], a);
  const float sum = warp_tree_sum(a);
  if (!f32_is_finite(sum)) {
    raise_flag(not_finite);
    return;
  }
  const float r = inverse_deviation(sum, n, eps);
  for (unsigned i = lane; i < n; i += kWarpLanes) to[i] = f32_mul(f32_mul(from[i], r), weight[i]);
}

// bias (n) or nullptr; the rest as above.
DETRUN_KERNEL_OF(kRowThreads)
void detrun_layernorm(const float* x, const float* weight, const float* bias, float eps,
                      unsigned n_rows, unsigned n, float* y, int* not_finite) {
  const std::size_t row = warp_index();
  const unsigned lane = lane_id();
  if (row >= n_rows) return;  // the same for the whole warp
  const float* from = x + row * n;
  float* to = y + row * n;
  float a = 0.0f;
  for (unsigned i = lane; i < n; i += kWarpLanes) a = f32_add(a, from[i]);
  const float mean = f32_div(warp_tree_sum(a), int_to_float(static_cast<int>(n)));
  a = 0.0f;
  for (unsigned i = lane; i < n; i += kWarpLanes) {
    const float c = f32_sub(from[i], mean);
    a = f32_fma(c, c, a);
  }
  const float sum = warp_tree_sum(a);
  if (!f32_is_finite(sum)) {
    raise_flag(not_finite);
    return;
  }
  const float r = inverse_deviation(sum, n, eps);
  for (unsigned i = lane; i < n; i += kWarpLanes) {
    const float scaled = f32_mul(f32_mul(f32_sub(from[i], mean), r), weight[i]);
    to[i] = bias == nullptr ? scaled : f32_add(scaled, bias[i]);
  }
}

}  // namespace detrun::device
