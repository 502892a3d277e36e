// Attention, contract clause 6, in two forms with the same bits. Split: a thread block a (query,
// head, block of 64 absolute positions) writes that block's state (m_b, l_b, o_b); a second kernel
// merges the states in ascending order. Streamed: one thread block a (query, head) walks the
// blocks; no memory for states, so it serves long chunks. Nothing here depends on how queries are
// grouped.
#pragma once

#include "kernels/cuda/attention_input.h"
#include "kernels/cuda/warp.cuh"
#include "kernels/math.h"

namespace detrun::device {

using cuda::AttentionInput;

constexpr unsigned kAttentionThreads = 128;
constexpr unsigned kScoreGroups = kAttentionThreads / kScoreLanes;  // positions scored at once
constexpr unsigned kSlots = kKvBlock;
// Loads of K or V in flight a thread; beyond the end the last is loaded again. All lanes load
// together and meet before the first is used, or compilers would save registers by waiting.
constexpr unsigned kKvBatch = 16;
constexpr unsigned kStateBatch = 8;  // the same of states and values to merge
// The shared array of a thread block: scores, then weights, of the 64 slots; then m_b and l_b.
constexpr unsigned kAtMax = kSlots;
constexpr unsigned kAtSum = kSlots + 1;
constexpr unsigned kStateWords = kSlots + 2;

struct KvF16 {
  using Element = std::uint16_t;
  DETRUN_DEVICE float widen(std::uint16_t value) { return half_to_float(value); }
};
struct KvF32 {
  using Element = float;
  DETRUN_DEVICE float widen(float value) { return value; }
};

// The visible slots of one block: lo .. hi - 1. None when hi <= lo.
struct Slots {
  unsigned lo, hi;
};

DETRUN_DEVICE Slots visible_slots(const AttentionInput& in, unsigned query, unsigned block) {
  const unsigned first = block * kSlots;
  const unsigned from = in.first_visible[query];
  const unsigned to = in.n_visible[query];
  const unsigned lo = from > first ? from - first : 0;
  const unsigned hi = to > first ? to - first : 0;
  return {lo < kSlots ? lo : kSlots, hi < kSlots ? hi : kSlots};
}

template <class Kv>
DETRUN_DEVICE const typename Kv::Element* kv_at(const AttentionInput& in, const void* cache,
                                                unsigned head, unsigned block) {
  const unsigned kv_head = head / (in.n_heads / in.n_kv_heads);
  return static_cast<const typename Kv::Element*>(cache) +
         static_cast<std::size_t>(block) * kSlots * in.position_stride +
         static_cast<std::size_t>(kv_head) * in.head_stride;
}

// Eight threads score one position, a thread a chain of d mod 8.
template <class Kv, class Shared>
DETRUN_DEVICE void score_slots(const AttentionInput& in, const float* q,
                               const typename Kv::Element* k, const Slots& slots, Shared& shared) {
  const unsigned lane = thread_x() % kScoreLanes;
  for (unsigned base = 0; base < kSlots; base += kScoreGroups) {
    const unsigned slot = base + thread_x() / kScoreLanes;
    const bool visible = slot >= slots.lo && slot < slots.hi;
    // Groups without a position walk a visible one: their lanes take part in the shuffles.
    const typename Kv::Element* row =
        k + static_cast<std::size_t>(visible ? slot : slots.lo) * in.position_stride;
    float a = 0.0f;
    for (unsigned batch = 0; batch < in.head_dim; batch += kKvBatch * kScoreLanes) {
      const unsigned first = batch + lane;
      typename Kv::Element loaded[kKvBatch];
      DETRUN_UNROLL
      for (unsigned i = 0; i < kKvBatch; ++i) {
        loaded[i] = row[uint_min(first + i * kScoreLanes, in.head_dim - 1)];
      }
      sync_warp();
      DETRUN_UNROLL
      for (unsigned i = 0; i < kKvBatch; ++i) {
        const unsigned d = first + i * kScoreLanes;
        if (d < in.head_dim) a = f32_fma(q[d], Kv::widen(loaded[i]), a);
      }
    }
    a = f32_add(a, shuffle_xor(a, 4));
    a = f32_add(a, shuffle_xor(a, 2));
    a = f32_add(a, shuffle_xor(a, 1));
    float score = f32_mul(f32_add(a, 0.0f), in.scale);
    if (in.softcap != 0.0f) score = softcap32(score, in.softcap);
    if (lane == 0) shared[slot] = score;
  }
}

// Scores to weights, in one warp: lane i holds slots i and i + 32, the two terms of chain i of S32.
template <class Shared>
DETRUN_DEVICE void weigh_slots(const Slots& slots, Shared& shared) {
  const unsigned low = thread_x();
  const unsigned high = low + kWarpLanes;
  const bool see_low = low >= slots.lo && low < slots.hi;
  const bool see_high = high >= slots.lo && high < slots.hi;
  const float s_low = shared[low];
  const float s_high = shared[high];
  float m = f32_from_bits(0xff800000u);
  if (see_low) m = s_low;
  if (see_high && !(s_high < m)) m = s_high;
  m = warp_max(m);
  const float p_low = exp32(f32_sub(s_low, m));
  const float p_high = exp32(f32_sub(s_high, m));
  float a = 0.0f;
  if (see_low) a = f32_add(a, p_low);
  if (see_high) a = f32_add(a, p_high);
  const float l = warp_tree_sum(a);
  shared[low] = p_low;
  shared[high] = p_high;
  if (low == 0) {
    shared[kAtMax] = m;
    shared[kAtSum] = l;
  }
}

// Weights, m_b and l_b of a block with a visible position, in `shared` for every thread to read.
template <class Kv, class Shared>
DETRUN_DEVICE void block_weights(const AttentionInput& in, unsigned query, unsigned head,
                                 unsigned block, const Slots& slots, Shared& shared) {
  const float* q = in.q + (static_cast<std::size_t>(query) * in.n_heads + head) * in.head_dim;
  score_slots<Kv>(in, q, kv_at<Kv>(in, in.k, head, block), slots, shared);
  sync_block();
  if (thread_x() < kWarpLanes) weigh_slots(slots, shared);
  sync_block();
}

// o_b[d]: one thread a chain, ascending over the visible slots. The whole block calls it.
template <class Kv, class Shared>
DETRUN_DEVICE float block_value(const AttentionInput& in, const typename Kv::Element* v,
                                const Slots& slots, unsigned d, Shared& shared) {
  float o = 0.0f;
  for (unsigned first = slots.lo; first < slots.hi; first += kKvBatch) {
    typename Kv::Element loaded[kKvBatch];
    DETRUN_UNROLL
    for (unsigned i = 0; i < kKvBatch; ++i) {
      loaded[i] = v[uint_min(first + i, slots.hi - 1) * in.position_stride + d];
    }
    sync_warp();
    DETRUN_UNROLL
    for (unsigned i = 0; i < kKvBatch; ++i) {
      const unsigned slot = first + i;
      if (slot < slots.hi) o = f32_fma(shared[slot], Kv::widen(loaded[i]), o);
    }
  }
  return o;
}

// Running (m, l) and the factors that bring o of before and o_b to the new maximum.
struct Merge {
  float m, l, before, block;
};

DETRUN_DEVICE void merge_block(Merge& state, float m_block, float l_block) {
  const float m = m_block > state.m ? m_block : state.m;
  state.before = exp32(f32_sub(state.m, m));
  state.block = exp32(f32_sub(m_block, m));
  state.l = f32_fma(state.l, state.before, f32_mul(l_block, state.block));
  state.m = m;
}

template <class Kv>
DETRUN_DEVICE void attention_blocks(const AttentionInput& in, float* states, float* values) {
  DETRUN_SHARED(float, shared, kStateWords);
  const unsigned query = block_x() / in.n_heads;
  const unsigned head = block_x() % in.n_heads;
  const unsigned block = in.first_block + block_y();
  const Slots slots = visible_slots(in, query, block);
  if (slots.lo >= slots.hi) return;  // the same for the whole thread block
  block_weights<Kv>(in, query, head, block, slots, shared);
  const std::size_t at = static_cast<std::size_t>(block_x()) * in.n_blocks + block_y();
  if (thread_x() < 2) states[2 * at + thread_x()] = shared[kAtMax + thread_x()];
  const typename Kv::Element* v = kv_at<Kv>(in, in.v, head, block);
  for (unsigned base = 0; base < in.head_dim; base += kAttentionThreads) {
    const unsigned d = base + thread_x();
    const float o = block_value<Kv>(in, v, slots, uint_min(d, in.head_dim - 1), shared);
    if (d < in.head_dim) values[at * in.head_dim + d] = o;
  }
}

// states (n_queries, n_heads, n_blocks, 2): m_b, l_b; values (n_queries, n_heads, n_blocks,
// head_dim): o_b. Blocks without a visible position stay unwritten. Grid (queries * heads, blocks).
DETRUN_KERNEL_OF(kAttentionThreads)
void detrun_attention_blocks_f16(AttentionInput in, float* states, float* values) {
  attention_blocks<KvF16>(in, states, values);
}
DETRUN_KERNEL_OF(kAttentionThreads)
void detrun_attention_blocks_f32(AttentionInput in, float* states, float* values) {
  attention_blocks<KvF32>(in, states, values);
}

// One element of o after one more block. The first is copied unless there are sinks.
DETRUN_DEVICE void merge_element(Merge& state, float& o, bool copy, float m_block, float l_block,
                                 float o_block) {
  if (copy) {
    state.m = m_block;
    state.l = l_block;
    o = o_block;
    return;
  }
  merge_block(state, m_block, l_block);
  o = f32_fma(o, state.before, f32_mul(o_block, state.block));
}

// Grid (queries * heads). Every thread repeats the short chain over m and l, for its own d.
DETRUN_KERNEL_OF(kAttentionThreads)
void detrun_attention_merge(AttentionInput in, const float* states, const float* values,
                            float* out) {
  const unsigned query = block_x() / in.n_heads;
  const unsigned head = block_x() % in.n_heads;
  const unsigned first = in.first_visible[query] / kSlots - in.first_block;
  const unsigned last = (in.n_visible[query] - 1) / kSlots - in.first_block;
  const std::size_t at = static_cast<std::size_t>(block_x()) * in.n_blocks;
  for (unsigned d = thread_x(); d < in.head_dim; d += kAttentionThreads) {
    Merge state = {0.0f, 1.0f, 0.0f, 0.0f};
    float o = 0.0f;
    if (in.sinks != nullptr) state.m = in.sinks[head];
    for (unsigned base = first; base <= last; base += kStateBatch) {
      float m[kStateBatch], l[kStateBatch], o_of[kStateBatch];
      DETRUN_UNROLL
      for (unsigned i = 0; i < kStateBatch; ++i) {  // beyond the last block: the last, not used
        const std::size_t block = at + uint_min(base + i, last);
        m[i] = states[2 * block];
        l[i] = states[2 * block + 1];
        o_of[i] = values[block * in.head_dim + d];
      }
      DETRUN_UNROLL
      for (unsigned i = 0; i < kStateBatch; ++i) {
        if (base + i > last) break;
        const bool copy = base + i == first && in.sinks == nullptr;
        merge_element(state, o, copy, m[i], l[i], o_of[i]);
      }
    }
    out[static_cast<std::size_t>(block_x()) * in.head_dim + d] = f32_add(f32_div(o, state.l), 0.0f);
  }
}

template <class Kv>
DETRUN_DEVICE void attention_stream(const AttentionInput& in, float* out) {
  DETRUN_SHARED(float, shared, kStateWords);
  const unsigned query = block_x() / in.n_heads;
  const unsigned head = block_x() % in.n_heads;
  const unsigned first = in.first_visible[query] / kSlots;
  const unsigned last = (in.n_visible[query] - 1) / kSlots;
  float* o = out + static_cast<std::size_t>(block_x()) * in.head_dim;  // each d of one thread
  Merge state = {0.0f, 1.0f, 0.0f, 0.0f};
  if (in.sinks != nullptr) state.m = in.sinks[head];
  for (unsigned block = first; block <= last; ++block) {
    const Slots slots = visible_slots(in, query, block);
    block_weights<Kv>(in, query, head, block, slots, shared);
    const bool copy = block == first && in.sinks == nullptr;
    if (copy) {
      state.m = shared[kAtMax];
      state.l = shared[kAtSum];
    } else {
      merge_block(state, shared[kAtMax], shared[kAtSum]);
    }
    const typename Kv::Element* v = kv_at<Kv>(in, in.v, head, block);
    for (unsigned base = 0; base < in.head_dim; base += kAttentionThreads) {
      const unsigned d = base + thread_x();
      const float o_block = block_value<Kv>(in, v, slots, uint_min(d, in.head_dim - 1), shared);
      if (d >= in.head_dim) continue;
      const float before = block == first ? 0.0f : o[d];
      o[d] = copy ? o_block : f32_fma(before, state.before, f32_mul(o_block, state.block));
    }
    sync_block();  // the weights are read before the next block's scores replace them
  }
  for (unsigned d = thread_x(); d < in.head_dim; d += kAttentionThreads) {
    o[d] = f32_add(f32_div(o[d], state.l), 0.0f);
  }
}

// Grid (queries * heads).
DETRUN_KERNEL_OF(kAttentionThreads)
void detrun_attention_stream_f16(AttentionInput in, float* out) {
  attention_stream<KvF16>(in, out);
}
DETRUN_KERNEL_OF(kAttentionThreads)
void detrun_attention_stream_f32(AttentionInput in, float* out) {
  attention_stream<KvF32>(in, out);
}

}  // namespace detrun::device
