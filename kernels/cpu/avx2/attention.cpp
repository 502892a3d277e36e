// Attention of one query head: contract clause 6. Scores: the 8 canonical lanes are one register,
// eight positions at a time, their trees by transposing. Weighted sums: lane = element of the head.
#include "kernels/cpu/avx2/avx2.h"
#include "kernels/cpu/avx2/functions.h"
#include "kernels/cpu/avx2/lanes.h"

namespace detrun::kernels::avx2 {

namespace {

inline std::uint64_t padded(std::uint32_t head_dim) { return (head_dim + 7u) / 8u * 8u; }

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

/// The visible positions of a block: begin <= j < end <= 64.
struct Visible {
  std::uint64_t begin, end;
};

/// Scores of the visible positions, in eights: invisible ones repeat the nearest visible score.
template <class Type>
void scores(const AttentionArgs& args, const float* q, const typename Type::Block* k,
            Visible visible, float* s) {
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
    for (std::uint64_t d = 0; d < dim; d += 8) {
      const __m256 qd = _mm256_load_ps(q + d);
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) a[i] = _mm256_fmadd_ps(qd, load8(Type{}, row[i] + d), a[i]);
    }
    __m256 score = _mm256_mul_ps(trees8(a), _mm256_set1_ps(args.scale));
    if (args.softcap != 0.0f) score = softcap8(score, cap);
    _mm256_store_ps(s + j, score);
  }
}

/// o[d] = chain of fma(p[j], v[j][d], .) for C registers of d.
template <class Type, int C>
void weighted_sum(const float* p, const typename Type::Block* v, std::uint64_t stride,
                  Visible visible, float* o) {
  __m256 a[C];
  for (int c = 0; c < C; ++c) a[c] = _mm256_setzero_ps();
  for (std::uint64_t j = visible.begin; j < visible.end; ++j) {
    const __m256 pj = _mm256_broadcast_ss(p + j);
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
      a[c] = _mm256_fmadd_ps(pj, load8(Type{}, v + j * stride + 8 * c), a[c]);
    }
  }
  for (int c = 0; c < C; ++c) _mm256_store_ps(o + 8 * c, a[c]);
}

/// All ones in the lanes of j .. j + 7 that are visible.
inline __m256 visible_lanes(Visible visible, std::uint64_t j) {
  const __m256i lane = _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                                        _mm256_set1_epi32(static_cast<int>(j)));
  const __m256i before =
      _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(visible.begin)), lane);
  const __m256i within = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(visible.end)), lane);
  return _mm256_castsi256_ps(_mm256_andnot_si256(before, within));
}

/// The block at position `first`: returns its largest score, fills *l and o (padded head_dim).
template <class Type>
float block_state(const AttentionArgs& args, const float* q, std::uint64_t first, Visible visible,
                  float* l, float* o) {
  const std::uint64_t offset = first * args.stride;
  const auto* v = static_cast<const typename Type::Block*>(args.v) + offset;
  alignas(32) float p[kKvBlock];
  scores<Type>(args, q, static_cast<const typename Type::Block*>(args.k) + offset, visible, p);
  const std::uint64_t first_eight = visible.begin / 8 * 8;
  __m256 largest = _mm256_load_ps(p + first_eight);
  for (std::uint64_t j = first_eight + 8; j < visible.end; j += 8) {
    largest = _mm256_max_ps(largest, _mm256_load_ps(p + j));
  }
  __m128 h = _mm_max_ps(_mm256_castps256_ps128(largest), _mm256_extractf128_ps(largest, 1));
  h = _mm_max_ps(h, _mm_movehl_ps(h, h));
  h = _mm_max_ss(h, _mm_shuffle_ps(h, h, 1));
  const float m = _mm_cvtss_f32(h);
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
  for (; d + 64 <= dim; d += 64) weighted_sum<Type, 8>(p, v + d, args.stride, visible, o + d);
  for (; d + 16 <= dim; d += 16) weighted_sum<Type, 2>(p, v + d, args.stride, visible, o + d);
  for (; d < dim; d += 8) weighted_sum<Type, 1>(p, v + d, args.stride, visible, o + d);
  return m;
}

template <class Type>
void attention(const AttentionArgs* args) {
  const std::uint64_t dim = padded(args->head_dim);
  float* q = args->scratch;
  float* o = args->scratch + dim;
  float* o_block = args->scratch + 2 * dim;
  for (std::uint64_t d = 0; d < dim; d += 8) {
    _mm256_store_ps(q + d, load_padded(args->q + d, args->head_dim - d));
  }
  float m = 0.0f;
  float l = 0.0f;
  bool has_state = args->sink != nullptr;
  if (has_state) {  // a sink weighs in like a position whose V is zero
    m = *args->sink;
    l = 1.0f;
    for (std::uint64_t d = 0; d < dim; d += 8) _mm256_store_ps(o + d, _mm256_setzero_ps());
  }
  const std::uint64_t first_block = args->first_visible / kKvBlock * kKvBlock;
  for (std::uint64_t first = first_block; first < args->n_visible; first += kKvBlock) {
    const std::uint64_t left = args->n_visible - first;
    const Visible visible{first == first_block ? args->first_visible - first : 0,
                          left < kKvBlock ? left : kKvBlock};
    if (!has_state) {  // the first block is copied
      m = block_state<Type>(*args, q, first, visible, &l, o);
      has_state = true;
      continue;
    }
    float l_block;
    const float m_block = block_state<Type>(*args, q, first, visible, &l_block, o_block);
    const float m_new = m_block > m ? m_block : m;
    const float a = exp32(f32_sub(m, m_new));
    const float b = exp32(f32_sub(m_block, m_new));
    l = f32_fma(l, a, f32_mul(l_block, b));
    for (std::uint64_t d = 0; d < dim; d += 8) {
      const __m256 scaled = _mm256_mul_ps(_mm256_load_ps(o_block + d), _mm256_set1_ps(b));
      _mm256_store_ps(o + d, _mm256_fmadd_ps(_mm256_load_ps(o + d), _mm256_set1_ps(a), scaled));
    }
    m = m_new;
  }
  for (std::uint64_t d = 0; d < dim; d += 8) {
    const __m256 y = _mm256_div_ps(_mm256_load_ps(o + d), _mm256_set1_ps(l));
    store_first(args->out + d, args->head_dim - d, _mm256_add_ps(y, _mm256_setzero_ps()));
  }
}

}  // namespace

std::uint64_t attention_scratch_floats(std::uint32_t head_dim) { return 3 * padded(head_dim); }
void attention_f16(const AttentionArgs* args) { attention<TypeF16>(args); }
void attention_f32(const AttentionArgs* args) { attention<TypeF32>(args); }

}  // namespace detrun::kernels::avx2
