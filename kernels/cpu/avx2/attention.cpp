// Attention of one query head: contract clause 6. Scores: the 8 canonical lanes are one register,
// eight positions at a time, their trees by transposing. Weighted sums: lane = element of the head.
#include "kernels/cpu/avx2/attention_lanes.h"
#include "kernels/cpu/avx2/avx2.h"
#include "kernels/cpu/avx2/functions.h"
#include "kernels/cpu/avx2/lanes.h"

namespace detrun::kernels::avx2 {

namespace {

/// T_8 of each of eight registers; lane i of the result belongs to a[i].
inline __m256 trees8(const __m256 (&a)[8]) {
  // 4x4 transposes within the 128-bit halves: t[c] = lanes c and c + 4 of a[0..3], u[c] of a[4..7].
  __m256 t[4];
  __m256 u[4];
  for (int half = 0; half < 2; ++half) {
    const __m256* v = a + 4 * half;
    __m256* out = half == 0 ? t : u;
    const __m256 lo01 = _mm256_unpacklo_ps(v[0], v[1]);
    const __m256 hi01 = _mm256_unpackhi_ps(v[0], v[1]);
    const __m256 lo23 = _mm256_unpacklo_ps(v[2], v[3]);
    const __m256 hi23 = _mm256_unpackhi_ps(v[2], v[3]);
    out[0] = _mm256_shuffle_ps(lo01, lo23, 0x44);
    out[1] = _mm256_shuffle_ps(lo01, lo23, 0xee);
    out[2] = _mm256_shuffle_ps(hi01, hi23, 0x44);
    out[3] = _mm256_shuffle_ps(hi01, hi23, 0xee);
  }
  __m256 s[4];  // after off = 4: canonical lanes 0..3
  for (int c = 0; c < 4; ++c) {
    s[c] = _mm256_add_ps(_mm256_permute2f128_ps(t[c], u[c], 0x20),
                         _mm256_permute2f128_ps(t[c], u[c], 0x31));
  }
  const __m256 sum = _mm256_add_ps(_mm256_add_ps(s[0], s[2]), _mm256_add_ps(s[1], s[3]));
  return _mm256_add_ps(sum, _mm256_setzero_ps());
}

/// Scores of the visible positions, in eights: invisible ones repeat the nearest visible score.
/// Meanwhile the memory is asked for V of the same positions, which is wanted next.
template <class Type>
void scores(const AttentionArgs& args, const float* q, const typename Type::Block* k,
            const typename Type::Block* v, Visible visible, float* s) {
  constexpr std::uint64_t kLine = 64 / sizeof(typename Type::Block);
  const std::uint64_t dim = padded(args.head_dim);
  const __m256 cap = _mm256_set1_ps(args.softcap);
  for (std::uint64_t j = visible.begin / 8 * 8; j < visible.end; j += 8) {
    const typename Type::Block* row[8];
    __m256 a[8];
    for (std::uint64_t i = 0; i < 8; ++i) {
      std::uint64_t at = j + i < visible.end ? j + i : visible.end - 1;
      if (at < visible.begin) at = visible.begin;
      row[i] = k + at * args.stride;
      a[i] = _mm256_setzero_ps();
    }
    const typename Type::Block* ahead = v + j * args.stride;
    for (std::uint64_t d = 0; d < dim; d += 8) {
      for (std::uint64_t i = 0; i < 64; i += kLine) _mm_prefetch(ahead + 8 * d + i, _MM_HINT_T0);
      const __m256 qd = _mm256_load_ps(q + d);
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) a[i] = _mm256_fmadd_ps(qd, load8(Type{}, row[i] + d), a[i]);
    }
    __m256 score = _mm256_mul_ps(trees8(a), _mm256_set1_ps(args.scale));
    if (args.softcap != 0.0f) score = softcap8(score, cap);
    _mm256_store_ps(s + j, score);
  }
}

/// o[d] = chain of fma(p[j], v[j][d], .) for C registers of d. Meanwhile the memory is asked for
/// the elements at `ahead`, position by position like v.
template <class Type, int C>
void weighted_sum(const float* p, const typename Type::Block* v, const typename Type::Block* ahead,
                  std::uint64_t stride, Visible visible, float* o) {
  constexpr std::uint64_t kLine = 64 / sizeof(typename Type::Block);
  __m256 a[C];
  for (int c = 0; c < C; ++c) a[c] = _mm256_setzero_ps();
  for (std::uint64_t j = visible.begin; j < visible.end; ++j) {
    const __m256 pj = _mm256_broadcast_ss(p + j);
    for (std::uint64_t i = 0; i < 8 * C; i += kLine) {
      _mm_prefetch(ahead + j * stride + i, _MM_HINT_T0);
    }
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
      a[c] = _mm256_fmadd_ps(pj, load8(Type{}, v + j * stride + 8 * c), a[c]);
    }
  }
  for (int c = 0; c < C; ++c) _mm256_store_ps(o + 8 * c, a[c]);
}

/// The block at position `first`: returns its largest score, fills *l and o (padded head_dim).
template <class Type>
float block_state(const AttentionArgs& args, const float* q, std::uint64_t first, Visible visible,
                  float* l, float* o) {
  const std::uint64_t offset = first * args.stride;
  const auto* k = static_cast<const typename Type::Block*>(args.k) + offset;
  const auto* v = static_cast<const typename Type::Block*>(args.v) + offset;
  alignas(32) float p[kKvBlock];
  scores<Type>(args, q, k, v, visible, p);
  const std::uint64_t first_eight = visible.begin / 8 * 8;
  __m256 largest = _mm256_load_ps(p + first_eight);
  for (std::uint64_t j = first_eight + 8; j < visible.end; j += 8) {
    largest = _mm256_max_ps(largest, _mm256_load_ps(p + j));
  }
  const float m = largest_lane(largest);
  for (std::uint64_t j = 0; j < kKvBlock; j += 8) {
    __m256 e = _mm256_setzero_ps();  // what is not visible weighs +0
    if (j >= first_eight && j < visible.end) {
      e = exp8(_mm256_sub_ps(_mm256_load_ps(p + j), _mm256_set1_ps(m)));
      e = _mm256_and_ps(e, visible_lanes(visible, j));
    }
    _mm256_store_ps(p + j, e);
  }
  __m256 sums[4];
  for (int i = 0; i < 4; ++i) {
    sums[i] = _mm256_add_ps(_mm256_load_ps(p + 8 * i), _mm256_load_ps(p + 32 + 8 * i));
  }
  *l = tree32(sums);
  const std::uint64_t dim = padded(args.head_dim);
  std::uint64_t d = 0;
  const auto* next = first + 2 * kKvBlock <= args.n_visible ? k + kKvBlock * args.stride : k;
  for (; d + 64 <= dim; d += 64) {
    weighted_sum<Type, 8>(p, v + d, next + d, args.stride, visible, o + d);
  }
  for (; d + 16 <= dim; d += 16) {
    weighted_sum<Type, 2>(p, v + d, next + d, args.stride, visible, o + d);
  }
  for (; d < dim; d += 8) {
    weighted_sum<Type, 1>(p, v + d, next + d, args.stride, visible, o + d);
  }
  return m;
}

struct State {
  float m, l;
  float* o;  ///< (padded head_dim)
};

void begin_with_sink(State& state, float sink, std::uint64_t dim) {
  state.m = sink;  // a sink weighs in like a position whose V is zero
  state.l = 1.0f;
  for (std::uint64_t d = 0; d < dim; d += 8) _mm256_store_ps(state.o + d, _mm256_setzero_ps());
}

/// Merges the block's state, whose m, l and o are given, into `state`.
inline void merge(State& state, float m_block, float l_block, const float* o_block,
                  std::uint64_t dim) {
  const float m = m_block > state.m ? m_block : state.m;
  const float a = exp32(f32_sub(state.m, m));
  const float b = exp32(f32_sub(m_block, m));
  state.l = f32_fma(state.l, a, f32_mul(l_block, b));
  state.m = m;
  const __m256 a8 = _mm256_set1_ps(a);
  const __m256 b8 = _mm256_set1_ps(b);
  for (std::uint64_t d = 0; d < dim; d += 8) {
    const __m256 scaled = _mm256_mul_ps(_mm256_load_ps(o_block + d), b8);
    _mm256_store_ps(state.o + d, _mm256_fmadd_ps(_mm256_load_ps(state.o + d), a8, scaled));
  }
}

void divide(const State& state, std::uint64_t head_dim, float* out) {
  const __m256 l = _mm256_set1_ps(state.l);
  for (std::uint64_t d = 0; d < head_dim; d += 8) {
    const __m256 y = _mm256_div_ps(_mm256_load_ps(state.o + d), l);
    store_first(out + d, head_dim - d, _mm256_add_ps(y, _mm256_setzero_ps()));
  }
}

template <class Type>
void attention(const AttentionArgs* args) {
  const std::uint64_t dim = padded(args->head_dim);
  float* q = args->scratch;
  float* o_block = args->scratch + 2 * dim;
  for (std::uint64_t d = 0; d < dim; d += 8) {
    _mm256_store_ps(q + d, load_padded(args->q + d, args->head_dim - d));
  }
  State state{0.0f, 0.0f, args->scratch + dim};
  bool has_state = args->sink != nullptr;
  if (has_state) begin_with_sink(state, *args->sink, dim);
  const std::uint64_t first_block = args->first_visible / kKvBlock * kKvBlock;
  for (std::uint64_t first = first_block; first < args->n_visible; first += kKvBlock) {
    const std::uint64_t left = args->n_visible - first;
    const Visible visible{first == first_block ? args->first_visible - first : 0,
                          left < kKvBlock ? left : kKvBlock};
    if (!has_state) {  // the first block is copied
      state.m = block_state<Type>(*args, q, first, visible, &state.l, state.o);
      has_state = true;
      continue;
    }
    float l_block;
    const float m_block = block_state<Type>(*args, q, first, visible, &l_block, o_block);
    merge(state, m_block, l_block, o_block, dim);
  }
  divide(state, args->head_dim, args->out);
}

}  // namespace

std::uint64_t attention_scratch_floats(std::uint32_t head_dim) { return 3 * padded(head_dim); }
void attention_f16(const AttentionArgs* args) { attention<TypeF16>(args); }
void attention_f32(const AttentionArgs* args) { attention<TypeF32>(args); }

void attention_merge(const AttentionMergeArgs* args) {
  const std::uint64_t dim = padded(args->head_dim);
  State state{0.0f, 0.0f, args->scratch};
  bool has_state = args->sink != nullptr;
  if (has_state) begin_with_sink(state, *args->sink, dim);
  for (std::uint32_t b = 0; b < args->n_blocks; ++b) {
    const float* block = args->states + b * args->step;
    if (block[1] == 0.0f) continue;  // nothing is visible there
    if (has_state) {
      merge(state, block[0], block[1], block + 8, dim);
      continue;
    }
    state.m = block[0];
    state.l = block[1];
    std::memcpy(state.o, block + 8, dim * sizeof(float));
    has_state = true;
  }
  divide(state, args->head_dim, args->out);
}

}  // namespace detrun::kernels::avx2
