// The greedy choice from rows of logits, contract clauses 11 and 12: argmax, margin, log
// probability. One thread block a row. Logits that are not finite are reported; then nothing else
// of that row means anything.
#pragma once

#include "kernels/cuda/warp.cuh"
#include "kernels/math.h"

namespace detrun::device {

constexpr unsigned kChoiceThreads = 256;
constexpr unsigned kChoiceTile = 4 * kChoiceThreads;  // terms of S32 computed between two barriers
constexpr std::uint32_t kMinusInfBits = 0xff800000u;

// The two first of some logits in the order (value descending, id ascending), -0 and +0 equal. An
// absent one is -infinity with the id INT_MAX.
struct TopTwo {
  float value1, value2;
  int id1, id2;
};

DETRUN_DEVICE bool comes_before(float value, int id, float than_value, int than_id) {
  return value > than_value || (value == than_value && id < than_id);
}

DETRUN_DEVICE TopTwo top_nothing() {
  const float least = f32_from_bits(kMinusInfBits);
  return {least, least, 0x7fffffff, 0x7fffffff};
}

DETRUN_DEVICE void top_insert(TopTwo& top, float value, int id) {
  if (comes_before(value, id, top.value1, top.id1)) {
    top.value2 = top.value1;
    top.id2 = top.id1;
    top.value1 = value;
    top.id1 = id;
  } else if (comes_before(value, id, top.value2, top.id2)) {
    top.value2 = value;
    top.id2 = id;
  }
}

// Both lanes of a pair get the two first of their four.
DETRUN_DEVICE void top_exchange(TopTwo& top, int mask) {
  const float value1 = shuffle_xor(top.value1, mask);
  const float value2 = shuffle_xor(top.value2, mask);
  const int id1 = shuffle_xor(top.id1, mask);
  const int id2 = shuffle_xor(top.id2, mask);
  top_insert(top, value1, id1);
  top_insert(top, value2, id2);
}

// logits (n_rows, n), n below 2^31 - 1. Of every row: id of the largest, its value, and the margin
// to the second (one logit only: +infinity). Grid n_rows.
DETRUN_KERNEL_OF(kChoiceThreads)
void detrun_argmax(const float* logits, unsigned n, int* ids, float* largest, float* margins,
                   int* not_finite) {
  constexpr unsigned kWarps = kChoiceThreads / kWarpLanes;
  DETRUN_SHARED(float, values, 2 * kWarps);
  DETRUN_SHARED(int, owners, 2 * kWarps);
  const float* row = logits + static_cast<std::size_t>(block_x()) * n;
  TopTwo top = top_nothing();
  for (std::size_t i = thread_x(); i < n; i += kChoiceThreads) {
    if (!f32_is_finite(row[i])) raise_flag(not_finite);
    top_insert(top, row[i], static_cast<int>(i));
  }
  for (int mask = 16; mask >= 1; mask /= 2) top_exchange(top, mask);
  if (lane_id() == 0) {
    values[2 * warp_id()] = top.value1;
    values[2 * warp_id() + 1] = top.value2;
    owners[2 * warp_id()] = top.id1;
    owners[2 * warp_id() + 1] = top.id2;
  }
  sync_block();
  if (thread_x() != 0) return;
  for (unsigned i = 2; i < 2 * kWarps; ++i) top_insert(top, values[i], owners[i]);
  ids[block_x()] = top.id1;
  largest[block_x()] = top.value1;
  margins[block_x()] = f32_add(f32_sub(top.value1, top.value2), 0.0f);
}

// logprob[row] = (x[id] - m) - log(S32(exp(x[j] - m))); `largest` and the ids are one a row. All
// threads compute terms, one warp adds them: lane i is the chain i of S32. Grid n_rows.
DETRUN_KERNEL_OF(kChoiceThreads)
void detrun_logprob(const float* logits, unsigned n, const int* ids, const float* largest,
                    float* logprobs) {
  DETRUN_SHARED(float, terms, kChoiceTile);
  const float* row = logits + static_cast<std::size_t>(block_x()) * n;
  const float m = largest[block_x()];
  float a = 0.0f;
  for (unsigned base = 0; base < n; base += kChoiceTile) {
    const unsigned count = n - base < kChoiceTile ? n - base : kChoiceTile;
    for (unsigned i = thread_x(); i < count; i += kChoiceThreads) {
      terms[i] = exp32(f32_sub(row[base + i], m));
    }
    sync_block();
    if (thread_x() < kWarpLanes) {
      for (unsigned i = thread_x(); i < count; i += kWarpLanes) a = f32_add(a, terms[i]);
    }
    sync_block();
  }
  if (thread_x() >= kWarpLanes) return;  // whole warps
  const float log_sum = log32(warp_tree_sum(a));
  if (thread_x() == 0) {
    logprobs[block_x()] = f32_sub(f32_sub(row[ids[block_x()]], m), log_sum);
  }
}

}  // namespace detrun::device
