// Attention of one query head: contract clause 6, one pass over K and V in blocks of 64 absolute
// positions. The running state is (m, l, o): largest score, sum of weights, weighted sum of V.
#include "kernels/contract.h"
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

template <class Type>
void attention(const AttentionArgs* args) {
  float* o = args->out;
  float* o_block = args->scratch;
  float m = 0.0f;
  float l = 0.0f;
  bool has_state = args->sink != nullptr;
  if (has_state) {  // a sink weighs in like a position whose V is zero
    m = *args->sink;
    l = 1.0f;
    for (std::uint32_t d = 0; d < args->head_dim; ++d) o[d] = 0.0f;
  }
  const std::uint64_t first_block = args->first_visible / kKvBlock * kKvBlock;
  for (std::uint64_t first = first_block; first < args->n_visible; first += kKvBlock) {
    const int begin = first == first_block ? static_cast<int>(args->first_visible - first) : 0;
    const std::uint64_t left = args->n_visible - first;
    const int end = left < kKvBlock ? static_cast<int>(left) : kKvBlock;
    if (!has_state) {  // the first block is copied
      m = block_state<Type>(*args, first, begin, end, &l, o);
      has_state = true;
      continue;
    }
    float l_block;
    const float m_block = block_state<Type>(*args, first, begin, end, &l_block, o_block);
    const float m_new = m_block > m ? m_block : m;
    const float a = exp32(f32_sub(m, m_new));
    const float b = exp32(f32_sub(m_block, m_new));
    l = f32_fma(l, a, f32_mul(l_block, b));
    for (std::uint32_t d = 0; d < args->head_dim; ++d) {
      o[d] = f32_fma(o[d], a, f32_mul(o_block[d], b));
    }
    m = m_new;
  }
  for (std::uint32_t d = 0; d < args->head_dim; ++d) o[d] = f32_add(f32_div(o[d], l), 0.0f);
}

}  // namespace

std::uint64_t attention_scratch_floats(std::uint32_t head_dim) { return head_dim; }
void attention_f16(const AttentionArgs* args) { attention<TypeF16>(args); }
void attention_f32(const AttentionArgs* args) { attention<TypeF32>(args); }

}  // namespace detrun::kernels::scalar
