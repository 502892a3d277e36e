// Attention of one query head: contract clause 6, one pass over K and V in blocks of 64 absolute
// positions. The running state is (m, l, o): largest score, sum of weights, weighted sum of V.
#include "kernels/contract.h"
#include "kernels/cpu/attention_slots.h"
#include "kernels/cpu/scalar/scalar.h"
#include "kernels/math.h"
#include "kernels/quant/f16.h"
#include "kernels/quant/f32.h"

namespace detrun::kernels::scalar {

namespace {

template <class Type>
float score(const AttentionArgs& args, const typename Type::Block* k) {
  float a[kScoreLanes] = {};
  for (std::uint32_t d = 0; d < args.head_dim; ++d) {
    a[d % kScoreLanes] = f32_fma(args.q[d], Type::widen(k[d]), a[d % kScoreLanes]);
  }
  const float s = f32_mul(tree_sum<kScoreLanes>(a), args.scale);
  return args.softcap != 0.0f ? softcap32(s, args.softcap) : s;
}

/// The positions first + j, begin <= j < end, of the block at `first` are the visible ones: returns
/// their largest score, fills *l and o (head_dim). Lanes of the sum are those of absolute
/// positions.
template <class Type>
float block_state(const AttentionArgs& args, std::uint64_t first, int begin, int end, float* l,
                  float* o) {
  const auto* k = static_cast<const typename Type::Block*>(args.k) + first * args.stride;
  const auto* v = static_cast<const typename Type::Block*>(args.v) + first * args.stride;
  float p[kKvBlock];
  float m = 0.0f;
  for (int j = begin; j < end; ++j) {
    p[j] = score<Type>(args, k + static_cast<std::uint64_t>(j) * args.stride);
    if (j == begin || p[j] > m) m = p[j];
  }
  float a[kSumLanes] = {};
  for (int j = begin; j < end; ++j) {
    p[j] = exp32(f32_sub(p[j], m));
    a[j % kSumLanes] = f32_add(a[j % kSumLanes], p[j]);
  }
  *l = tree_sum<kSumLanes>(a);
  for (std::uint32_t d = 0; d < args.head_dim; ++d) {
    o[d] = 0.0f;
    for (int j = begin; j < end; ++j) {
      o[d] = f32_fma(p[j], Type::widen(v[static_cast<std::uint64_t>(j) * args.stride + d]), o[d]);
    }
  }
  return m;
}

struct State {
  float m, l;
  float* o;  ///< (head_dim)
};

void merge(State& state, const State& block, std::uint32_t head_dim) {
  const float m = block.m > state.m ? block.m : state.m;
  const float a = exp32(f32_sub(state.m, m));
  const float b = exp32(f32_sub(block.m, m));
  state.l = f32_fma(state.l, a, f32_mul(block.l, b));
  for (std::uint32_t d = 0; d < head_dim; ++d) {
    state.o[d] = f32_fma(state.o[d], a, f32_mul(block.o[d], b));
  }
  state.m = m;
}

void begin_with_sink(State& state, float sink, std::uint32_t head_dim) {
  state.m = sink;  // a sink weighs in like a position whose V is zero
  state.l = 1.0f;
  for (std::uint32_t d = 0; d < head_dim; ++d) state.o[d] = 0.0f;
}

void divide(const State& state, std::uint32_t head_dim) {
  for (std::uint32_t d = 0; d < head_dim; ++d) {
    state.o[d] = f32_add(f32_div(state.o[d], state.l), 0.0f);
  }
}

template <class Type>
void attention(const AttentionArgs* args) {
  State state{0.0f, 0.0f, args->out};
  State block{0.0f, 0.0f, args->scratch};
  bool has_state = args->sink != nullptr;
  if (has_state) begin_with_sink(state, *args->sink, args->head_dim);
  const std::uint64_t first_block = args->first_visible / kKvBlock * kKvBlock;
  for (std::uint64_t first = first_block; first < args->n_visible; first += kKvBlock) {
    const int begin = first == first_block ? static_cast<int>(args->first_visible - first) : 0;
    const std::uint64_t left = args->n_visible - first;
    const int end = left < kKvBlock ? static_cast<int>(left) : kKvBlock;
    if (!has_state) {  // the first block is copied
      state.m = block_state<Type>(*args, first, begin, end, &state.l, state.o);
      has_state = true;
      continue;
    }
    block.m = block_state<Type>(*args, first, begin, end, &block.l, block.o);
    merge(state, block, args->head_dim);
  }
  divide(state, args->head_dim);
}

template <class Type>
void block_alone(const AttentionArgs& args, std::uint64_t first, int begin, int end, float* state) {
  state[0] = block_state<Type>(args, first, begin, end, &state[1], state + 8);
}

}  // namespace

std::uint64_t attention_scratch_floats(std::uint32_t head_dim) { return head_dim; }
void attention_f16(const AttentionArgs* args) { attention<TypeF16>(args); }
void attention_f32(const AttentionArgs* args) { attention<TypeF32>(args); }

std::uint64_t attention_tile_scratch_floats(std::uint32_t head_dim) {
  return attention_scratch_floats(head_dim);
}
void attention_tile_f16(const AttentionTileArgs* args) { for_each_slot(*args, attention<TypeF16>); }
void attention_tile_f32(const AttentionTileArgs* args) { for_each_slot(*args, attention<TypeF32>); }

void attention_blocks_f16(const AttentionTileArgs* args, std::uint32_t b0, std::uint32_t b1,
                          float* states) {
  for_each_state(*args, b0, b1, states, block_alone<TypeF16>);
}
void attention_blocks_f32(const AttentionTileArgs* args, std::uint32_t b0, std::uint32_t b1,
                          float* states) {
  for_each_state(*args, b0, b1, states, block_alone<TypeF32>);
}

void attention_merge(const AttentionMergeArgs* args) {
  State state{0.0f, 0.0f, args->out};
  bool has_state = args->sink != nullptr;
  if (has_state) begin_with_sink(state, *args->sink, args->head_dim);
  for (std::uint32_t b = 0; b < args->n_blocks; ++b) {
    const float* from = args->states + b * args->step;
    if (from[1] == 0.0f) continue;  // nothing is visible there
    const float* o = from + 8;
    for (std::uint32_t d = 0; d < args->head_dim; ++d) args->scratch[d] = o[d];
    const State block{from[0], from[1], args->scratch};
    if (has_state) {
      merge(state, block, args->head_dim);
      continue;
    }
    state.m = block.m;
    state.l = block.l;
    for (std::uint32_t d = 0; d < args->head_dim; ++d) state.o[d] = o[d];
    has_state = true;
  }
  divide(state, args->head_dim);
}

}  // namespace detrun::kernels::scalar
