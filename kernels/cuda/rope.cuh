// Rotary position embedding in place, contract clause 8: one thread a pair. The two kernels differ
// in which elements pair up; the tables come from the host. Where a row is stands in memory of the
// device: the same launch serves every step.
#pragma once

#include "kernels/cuda/warp.cuh"

namespace detrun::device {

// What a thread rotates: pair i of head `head` of row `row`.
struct RopePair {
  std::size_t row;
  unsigned head, i;
  bool live;
};

DETRUN_DEVICE RopePair rope_pair(unsigned n_rows, unsigned n_heads, unsigned half) {
  const std::size_t at = element_index();
  const std::size_t pairs = static_cast<std::size_t>(n_heads) * half;  // of one row
  const unsigned in_row = static_cast<unsigned>(at % pairs);
  return {at / pairs, in_row / half, in_row % half, at < pairs * n_rows};
}

DETRUN_DEVICE void rotate(float* x0, float* x1, float c, float s) {
  const float a = *x0;
  const float b = *x1;
  *x0 = f32_fma(-b, s, f32_mul(a, c));
  *x1 = f32_fma(a, s, f32_mul(b, c));
}

// x (n_rows, n_heads, head_dim); row r turns by row positions[r] of the tables cos and sin, of
// rope_dim / 2 angles each; rope_dim even, >= 2 and at most head_dim. Grid ceil(n_rows * n_heads *
// rope_dim / 2 / kRowThreads).
DETRUN_KERNEL_OF(kRowThreads)
void detrun_rope_adjacent(float* x, const float* cos, const float* sin, const unsigned* positions,
                          unsigned n_rows, unsigned n_heads, unsigned head_dim, unsigned rope_dim) {
  const unsigned half = rope_dim / 2;
  const RopePair pair = rope_pair(n_rows, n_heads, half);
  if (!pair.live) return;
  float* head = x + (pair.row * n_heads + pair.head) * head_dim;
  const std::size_t angle = static_cast<std::size_t>(positions[pair.row]) * half + pair.i;
  rotate(head + 2 * pair.i, head + 2 * pair.i + 1, cos[angle], sin[angle]);
}

DETRUN_KERNEL_OF(kRowThreads)
void detrun_rope_halves(float* x, const float* cos, const float* sin, const unsigned* positions,
                        unsigned n_rows, unsigned n_heads, unsigned head_dim, unsigned rope_dim) {
  const unsigned half = rope_dim / 2;
  const RopePair pair = rope_pair(n_rows, n_heads, half);
  if (!pair.live) return;
  float* head = x + (pair.row * n_heads + pair.head) * head_dim;
  const std::size_t angle = static_cast<std::size_t>(positions[pair.row]) * half + pair.i;
  rotate(head + pair.i, head + half + pair.i, cos[angle], sin[angle]);
}

}  // namespace detrun::device
