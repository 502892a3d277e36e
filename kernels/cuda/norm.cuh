// RMSNorm and LayerNorm, contract clause 5: one row a thread block; lane i of its first warp has
// the chain of elements i mod 32. The others bring the row into shared memory and write it: a step
// of decoding has one row, and one warp would wait for memory longer than everything else takes. y
// may be x. A row whose sum of squares is not finite is reported and left unwritten.
#pragma once

#include "kernels/cuda/warp.cuh"

namespace detrun::device {

constexpr unsigned kNormThreads = 256;
constexpr unsigned kNormEach = 8;                         // loads of a thread in flight
constexpr unsigned kNormTile = kNormThreads * kNormEach;  // elements in shared memory at once
constexpr unsigned kNormBatch = 8;  // of a chain, read before the first is used

// add(value) for the elements of a row of n, by the lane of the first warp whose chain has them, in
// order; then `sum()` of the warp for every thread. The whole block calls it.
template <class Shared, class Add, class Sum>
DETRUN_DEVICE float sum_of_row(const float* from, unsigned n, Shared& tile, Add add, Sum sum) {
  for (unsigned first = 0; first < n; first += kNormTile) {
    const unsigned count = uint_min(n - first, kNormTile);
    sync_block();  // what lay in the tile is read
    DETRUN_UNROLL
    for (unsigned e = 0; e < kNormEach; ++e) {
      const unsigned at = e * kNormThreads + thread_x();
      if (at < count) tile[at] = from[first + at];
    }
    sync_block();
    if (thread_x() >= kWarpLanes) continue;
    unsigned i = thread_x();
    for (; i + (kNormBatch - 1) * kWarpLanes < count; i += kNormBatch * kWarpLanes) {
      float loaded[kNormBatch];
      DETRUN_UNROLL
      for (unsigned b = 0; b < kNormBatch; ++b) loaded[b] = tile[i + b * kWarpLanes];
      DETRUN_UNROLL
      for (unsigned b = 0; b < kNormBatch; ++b) add(loaded[b]);
    }
    for (; i < count; i += kWarpLanes) add(tile[i]);
  }
  sync_block();
  if (thread_x() < kWarpLanes) tile[thread_x()] = sum();
  sync_block();
  return tile[0];
}

// write(i, x[i], weight[i]) for all elements of a row, each by one thread of the block.
template <class Write>
DETRUN_DEVICE void each_of_row(const float* from, const float* weight, unsigned n, Write write) {
  for (unsigned first = 0; first < n; first += kNormTile) {
    float loaded[kNormEach], weights[kNormEach];
    DETRUN_UNROLL
    for (unsigned e = 0; e < kNormEach; ++e) {
      const unsigned at = first + e * kNormThreads + thread_x();
      loaded[e] = at < n ? from[at] : 0.0f;
      weights[e] = at < n ? weight[at] : 0.0f;
    }
    DETRUN_UNROLL
    for (unsigned e = 0; e < kNormEach; ++e) {
      const unsigned at = first + e * kNormThreads + thread_x();
      if (at < n) write(at, loaded[e], weights[e]);
    }
  }
}

// 1 / sqrt(sum / n + eps).
DETRUN_DEVICE float inverse_deviation(float sum, unsigned n, float eps) {
  const float mean = f32_div(sum, int_to_float(static_cast<int>(n)));
  return f32_div(1.0f, f32_sqrt(f32_add(mean, eps)));
}

// x, y (n_rows, n), weight (n); n below 2^31. Grid n_rows.
DETRUN_KERNEL_OF(kNormThreads)
void detrun_rmsnorm(const float* x, const float* weight, float eps, unsigned n, float* y,
                    int* not_finite) {
  DETRUN_SHARED(float, tile, kNormTile);
  const float* from = x + static_cast<std::size_t>(block_x()) * n;
  float* to = y + static_cast<std::size_t>(block_x()) * n;
  float a = 0.0f;
  const float sum = sum_of_row(
      from, n, tile, [&a](float v) { a = f32_fma(v, v, a); }, [&a] { return warp_tree_sum(a); });
  if (!f32_is_finite(sum)) {
    raise_flag(not_finite);
    return;
  }
  const float r = inverse_deviation(sum, n, eps);
  each_of_row(from, weight, n,
              [to, r](unsigned i, float v, float w) { to[i] = f32_mul(f32_mul(v, r), w); });
}

// bias (n) or nullptr; the rest as above.
DETRUN_KERNEL_OF(kNormThreads)
void detrun_layernorm(const float* x, const float* weight, const float* bias, float eps, unsigned n,
                      float* y, int* not_finite) {
  DETRUN_SHARED(float, tile, kNormTile);
  const float* from = x + static_cast<std::size_t>(block_x()) * n;
  float* to = y + static_cast<std::size_t>(block_x()) * n;
  float a = 0.0f;
  const auto tree = [&a] { return warp_tree_sum(a); };
  const float all = sum_of_row(
      from, n, tile, [&a](float v) { a = f32_add(a, v); }, tree);
  const float mean = f32_div(all, int_to_float(static_cast<int>(n)));
  a = 0.0f;
  const float sum = sum_of_row(
      from, n, tile,
      [&a, mean](float v) {
        const float c = f32_sub(v, mean);
        a = f32_fma(c, c, a);
      },
      tree);
  if (!f32_is_finite(sum)) {
    raise_flag(not_finite);
    return;
  }
  const float r = inverse_deviation(sum, n, eps);
  each_of_row(from, weight, n, [=](unsigned i, float v, float w) {
    const float scaled = f32_mul(f32_mul(f32_sub(v, mean), r), w);
    to[i] = bias == nullptr ? scaled : f32_add(scaled, bias[i]);
  });
}

}  // namespace detrun::device
