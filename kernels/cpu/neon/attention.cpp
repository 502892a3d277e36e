// Attention of one query head: contract clause 6. Scores: the 8 canonical lanes are two registers,
// four positions at a time. Weighted sums: lane = element of the head.
#include "kernels/cpu/attention_slots.h"
#include "kernels/cpu/neon/math4.h"
#include "kernels/cpu/neon/neon.h"

namespace detrun::kernels::neon {

namespace {

constexpr int kTile = 4;  // positions whose scores are computed together

inline std::uint64_t padded(std::uint32_t head_dim) { return (head_dim + 7u) / 8u * 8u; }

/// The visible positions first + j, begin <= j < end, of the block at `first`.
struct Block {
  std::uint64_t first;
  int begin, end;
};

/// Scores of positions `begin` to `end` of the block, rounded up to whole tiles by repeating the
/// last position. `q` is padded with +0 like the cache.
template <class Type>
void scores(const AttentionArgs& args, const float* q, const Block& block, float* s) {
  const auto* k = static_cast<const typename Type::Block*>(args.k) + block.first * args.stride;
  const std::uint64_t dim = padded(args.head_dim);
  for (int j = block.begin; j < block.end; j += kTile) {
    float32x4_t low[kTile];
    float32x4_t high[kTile];
    const typename Type::Block* row[kTile];
    for (int i = 0; i < kTile; ++i) {
      const int at = j + i < block.end ? j + i : block.end - 1;
      row[i] = k + static_cast<std::uint64_t>(at) * args.stride;
      low[i] = high[i] = zero4();
    }
    for (std::uint64_t d = 0; d < dim; d += 8) {
      const float32x4_t q_low = vld1q_f32(q + d);
      const float32x4_t q_high = vld1q_f32(q + d + 4);
      for (int i = 0; i < kTile; ++i) {
        low[i] = vfmaq_f32(low[i], q_low, load4(Type{}, row[i] + d));
        high[i] = vfmaq_f32(high[i], q_high, load4(Type{}, row[i] + d + 4));
      }
    }
    for (int i = 0; i < kTile; ++i) low[i] = vaddq_f32(low[i], high[i]);
    float32x4_t score = vaddq_f32(half_trees4(low), zero4());
    score = vmulq_f32(score, splat(args.scale));
    if (args.softcap != 0.0f) score = softcap4(score, splat(args.softcap));
    store_first(s + j, static_cast<std::uint64_t>(block.end - j), score);
  }
}

/// o[d] = chain of fma(p[j], v[j][d], .) for C registers of d.
template <class Type, int C>
void weighted_sum(const AttentionArgs& args, const float* p, const Block& block, std::uint64_t d,
                  float* o) {
  const auto* v = static_cast<const typename Type::Block*>(args.v) + block.first * args.stride + d;
  float32x4_t a[C];
  for (auto& lanes : a) lanes = zero4();
  for (int j = block.begin; j < block.end; ++j) {
    const typename Type::Block* row = v + static_cast<std::uint64_t>(j) * args.stride;
    for (int c = 0; c < C; ++c) a[c] = vfmaq_n_f32(a[c], load4(Type{}, row + 4 * c), p[j]);
  }
  for (int c = 0; c < C; ++c) vst1q_f32(o + d + 4 * static_cast<std::uint64_t>(c), a[c]);
}

/// Returns the block's largest score, fills *l and o (padded head_dim).
template <class Type>
float block_state(const AttentionArgs& args, const float* q, const Block& block, float* l,
                  float* o) {
  alignas(16) float p[kKvBlock] = {};
  scores<Type>(args, q, block, p);
  float m = p[block.begin];
  for (int j = block.begin; j < block.end; ++j) {  // the reference's comparison, NaN and all
    if (p[j] > m) m = p[j];
  }
  alignas(16) float e[kKvBlock];
  for (int j = 0; j < kKvBlock; j += 4) {
    vst1q_f32(e + j, exp4(vsubq_f32(vld1q_f32(p + j), splat(m))));
  }
  for (int j = 0; j < kKvBlock; ++j) {  // what is not visible weighs +0
    if (j < block.begin || j >= block.end) e[j] = 0.0f;
  }
  float32x4_t a[8];
  for (int i = 0; i < 8; ++i) a[i] = vaddq_f32(vld1q_f32(e + 4 * i), vld1q_f32(e + 32 + 4 * i));
  *l = tree32(a);
  const std::uint64_t dim = padded(args.head_dim);
  std::uint64_t d = 0;
  for (; d + 32 <= dim; d += 32) weighted_sum<Type, 8>(args, e, block, d, o);
  for (; d < dim; d += 8) weighted_sum<Type, 2>(args, e, block, d, o);
  return m;
}

/// The running state: largest score, sum of weights, weighted sum of V (padded head_dim).
struct State {
  float m, l;
  float* o;
};

void merge(State& state, const State& block, std::uint64_t dim) {
  const float m = block.m > state.m ? block.m : state.m;
  const float a = exp32(f32_sub(state.m, m));
  const float b = exp32(f32_sub(block.m, m));
  state.m = m;
  state.l = f32_fma(state.l, a, f32_mul(block.l, b));
  for (std::uint64_t d = 0; d < dim; d += kLanes) {
    const float32x4_t scaled = vmulq_f32(vld1q_f32(block.o + d), splat(b));
    vst1q_f32(state.o + d, fma4(vld1q_f32(state.o + d), splat(a), scaled));
  }
}

void begin_with_sink(State& state, float sink, std::uint64_t dim) {
  state.m = sink;  // a sink weighs in like a position whose V is zero
  state.l = 1.0f;
  for (std::uint64_t d = 0; d < dim; d += kLanes) vst1q_f32(state.o + d, zero4());
}

void divide(const State& state, std::uint64_t head_dim, float* out) {
  for (std::uint64_t d = 0; d < head_dim; d += kLanes) {
    const float32x4_t y = vdivq_f32(vld1q_f32(state.o + d), splat(state.l));
    store_first(out + d, head_dim - d, vaddq_f32(y, zero4()));
  }
}

/// The padded q of a row.
void load_q(const AttentionArgs& args, float* q) {
  for (std::uint64_t d = 0; d < padded(args.head_dim); d += kLanes) {
    const std::uint64_t at = d < args.head_dim ? d : args.head_dim;
    vst1q_f32(q + d, load_padded(args.q + at, args.head_dim - at));
  }
}

template <class Type>
void block_alone(const AttentionArgs& args, std::uint64_t first, int begin, int end, float* state) {
  load_q(args, args.scratch);
  state[0] = block_state<Type>(args, args.scratch, {first, begin, end}, &state[1], state + 8);
}

template <class Type>
void attention(const AttentionArgs* args) {
  const std::uint64_t dim = padded(args->head_dim);
  float* q = args->scratch;
  State state{0.0f, 0.0f, args->scratch + dim};
  State added{0.0f, 0.0f, args->scratch + 2 * dim};
  load_q(*args, q);
  bool has_state = args->sink != nullptr;
  if (has_state) begin_with_sink(state, *args->sink, dim);
  const std::uint64_t first_block = args->first_visible / kKvBlock * kKvBlock;
  for (std::uint64_t first = first_block; first < args->n_visible; first += kKvBlock) {
    const std::uint64_t left = args->n_visible - first;
    const int begin = first == first_block ? static_cast<int>(args->first_visible - first) : 0;
    const Block block{first, begin, left < kKvBlock ? static_cast<int>(left) : kKvBlock};
    if (has_state) {
      added.m = block_state<Type>(*args, q, block, &added.l, added.o);
      merge(state, added, dim);
    } else {  // the first block is copied
      state.m = block_state<Type>(*args, q, block, &state.l, state.o);
      has_state = true;
    }
  }
  divide(state, args->head_dim, args->out);
}

}  // namespace

std::uint64_t attention_scratch_floats(std::uint32_t head_dim) { return 3 * padded(head_dim); }
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
  const std::uint64_t dim = padded(args->head_dim);
  State state{0.0f, 0.0f, args->scratch + dim};
  State block{0.0f, 0.0f, args->scratch + 2 * dim};
  bool has_state = args->sink != nullptr;
  if (has_state) begin_with_sink(state, *args->sink, dim);
  for (std::uint32_t b = 0; b < args->n_blocks; ++b) {
    const float* from = args->states + b * args->step;
    if (from[1] == 0.0f) continue;  // nothing is visible there
    State& to = has_state ? block : state;
    to.m = from[0];
    to.l = from[1];
    std::memcpy(to.o, from + 8, dim * sizeof(float));
    if (has_state) merge(state, block, dim);
    has_state = true;
  }
  divide(state, args->head_dim, args->out);
}

}  // namespace detrun::kernels::neon
