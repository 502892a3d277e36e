// K and V into the cache, contract clause 7: one thread an element. What does not fit is reported,
// never stored in silence.
#pragma once

#include "kernels/cuda/warp.cuh"
#include "kernels/fp.h"

namespace detrun::device {

// K and V, or one of them, as layouts of one cache: x is (n_rows, n_heads, head_dim), `out` the
// cache from position 0. Of grid's second dimension, 2 or 1, block y has pair y.
template <class Element>
struct KvPairs {
  const float* x[2];
  Element* out[2];
};

// Where a thread reads and writes, strides in elements. Row r goes to positions[r].
struct KvElement {
  std::size_t from, to;
  bool live;
};

DETRUN_DEVICE KvElement kv_element(const unsigned* positions, unsigned n_rows, unsigned n_heads,
                                   unsigned head_dim, std::size_t position_stride,
                                   std::size_t head_stride) {
  const std::size_t at = element_index();
  const std::size_t in_row = static_cast<std::size_t>(n_heads) * head_dim;
  if (at >= in_row * n_rows) return {0, 0, false};
  const std::size_t row = at / in_row;
  const std::size_t position = positions[row];
  const std::size_t to =
      position * position_stride + at % in_row / head_dim * head_stride + at % head_dim;
  return {at, to, true};
}

// Nearest even, subnormals kept. Grid (ceil(n_rows * n_heads * head_dim / kRowThreads), pairs).
DETRUN_KERNEL_OF(kRowThreads)
void detrun_kv_write_f16(KvPairs<std::uint16_t> pairs, const unsigned* positions, unsigned n_rows,
                         unsigned n_heads, unsigned head_dim, std::size_t position_stride,
                         std::size_t head_stride, int* does_not_fit) {
  const KvElement at =
      kv_element(positions, n_rows, n_heads, head_dim, position_stride, head_stride);
  if (!at.live) return;
  const float value = device_memory(block_y() == 0 ? pairs.x[0] : pairs.x[1])[at.from];
  if ((f32_bits(value) & kAbsMask) >= kF16OverflowBits) raise_flag(does_not_fit);
  device_memory(block_y() == 0 ? pairs.out[0] : pairs.out[1])[at.to] = f32_to_f16(value);
}

DETRUN_KERNEL_OF(kRowThreads)
void detrun_kv_write_f32(KvPairs<float> pairs, const unsigned* positions, unsigned n_rows,
                         unsigned n_heads, unsigned head_dim, std::size_t position_stride,
                         std::size_t head_stride, int* not_finite) {
  const KvElement at =
      kv_element(positions, n_rows, n_heads, head_dim, position_stride, head_stride);
  if (!at.live) return;
  const float value = device_memory(block_y() == 0 ? pairs.x[0] : pairs.x[1])[at.from];
  if (!f32_is_finite(value)) raise_flag(not_finite);
  device_memory(block_y() == 0 ? pairs.out[0] : pairs.out[1])[at.to] = value;
}

}  // namespace detrun::device
