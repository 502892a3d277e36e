// Attention of a tile: several rows and heads ("slots") against the positions of one kv head,
// contract clause 6, with the bits of the one-row form. Blocks of 64 positions are outermost, so
// that K and V are read once a tile. K of a block is transposed to a panel, as stored:
// [lane of the scores][chain][64 positions]; lane of the register = position for the scores,
// element of the head for the weighted sums. Slots go in groups of at most six.
#include "kernels/cpu/attention_slots.h"
#include "kernels/cpu/avx2/attention_lanes.h"
#include "kernels/cpu/avx2/attention_panel.h"
#include "kernels/cpu/avx2/attention_scores.h"
#include "kernels/cpu/avx2/avx2.h"
#include "kernels/cpu/avx2/functions.h"
#include "kernels/cpu/avx2/lanes.h"

namespace detrun::kernels::avx2 {

namespace {

constexpr std::uint32_t kGroup = 6;  // slots: 6 rows times 2 registers fill the accumulators
constexpr std::uint32_t kGroups = (kAttentionTileSlots + kGroup - 1) / kGroup;
// The largest score before the first block: below every real one or equal to the lowest, and
// finite, so that differences are numbers. A block that a slot does not see has -infinity.
constexpr float kLowest = -3.402823466e+38f;

/// Slots of consecutive rows and heads, at most kGroup. Their running states wait in the scratch.
struct Group {
  std::uint32_t first;  ///< slot
  std::uint32_t n;
  float* q;  ///< [step][8], steps as those of the panel
  float* o;  ///< (n, padded head_dim)
  float* m;  ///< 8, those beyond n unused
  float* l;  ///< 8
};

struct Tile {
  const AttentionTileArgs& args;
  std::uint64_t dim;          ///< padded head_dim
  std::uint64_t n_positions;  ///< that the last row sees
  void* panel;                ///< K of the block
  float* p;                   ///< (kGroup, 64): scores, then weights, of the group
  std::uint32_t n_groups;
  Group groups[kGroups];

  /// The positions of the block at `first` that a slot sees; begin = end: none.
  Visible visible(std::uint32_t slot, std::uint64_t first) const {
    const std::uint64_t end = args.n_visible + slot / args.n_heads;
    const std::uint64_t begin = args.window != 0 && end > args.window ? end - args.window : 0;
    const std::uint64_t from = begin > first ? begin - first : 0;
    const std::uint64_t to = end > first ? end - first : 0;
    const std::uint64_t last = to < kKvBlock ? to : kKvBlock;
    return {from < last ? from : last, last};
  }
};

/// q . k of R slots with positions [begin, end) of the block, rounded out to whole registers.
template <class Type, int R>
void scores(const Tile& t, const Group& group, Visible any) {
  constexpr int C = R == 1 ? 8 : R <= 3 ? 4 : 2;
  constexpr std::uint64_t kWide = std::uint64_t{C} * 8;
  for (std::uint64_t j = any.begin / kWide * kWide; j < any.end; j += kWide) {
    ScoreTile<Type, R, C> tile;
    tile.k = static_cast<const typename Type::Block*>(t.panel) + j;
    tile.q = group.q;
    tile.chain = t.dim / kScoreLanes;
    __m256 a[R][C];
    tile.template lanes<3>(a);
#pragma GCC unroll 12
    for (int i = 0; i < R * C; ++i) {
      _mm256_store_ps(t.p + i / C * kKvBlock + j + 8 * static_cast<std::uint64_t>(i % C),
                      _mm256_add_ps(a[i / C][i % C], _mm256_setzero_ps()));
    }
  }
}

/// Products of R slots become weights in place, +0 where nothing is visible; m and l of the block.
/// Pass by pass over all slots: what one slot waits for, another computes.
template <int R>
void weights(const AttentionTileArgs& args, const Visible (&each)[R], float* p, float* m,
             float* l) {
  const __m256 scale = _mm256_set1_ps(args.scale);
  const __m256 none = all_bits(0xff800000u);  // -infinity
  for (int r = 0; r < R; ++r) {
    float* s = p + r * kKvBlock;
    const bool whole = each[r].end - each[r].begin == kKvBlock;
    __m256 largest = none;
#pragma GCC unroll 8
    for (std::uint64_t j = 0; j < kKvBlock; j += 8) {
      __m256 v = _mm256_mul_ps(_mm256_load_ps(s + j), scale);
      if (args.softcap != 0.0f) v = softcap8(v, _mm256_set1_ps(args.softcap));
      if (!whole) v = _mm256_blendv_ps(none, v, visible_lanes(each[r], j));
      _mm256_store_ps(s + j, v);
      largest = _mm256_max_ps(largest, v);
    }
    m[r] = largest_lane(largest);
  }
  for (int r = 0; r < R; ++r) {
    float* s = p + r * kKvBlock;
    const bool whole = each[r].end - each[r].begin == kKvBlock;
    const __m256 m_all = _mm256_broadcast_ss(m + r);
    __m256 sums[4];
#pragma GCC unroll 4
    for (std::uint64_t i = 0; i < 4; ++i) {
      __m256 e0 = exp8_not_positive(_mm256_sub_ps(_mm256_load_ps(s + 8 * i), m_all));
      __m256 e1 = exp8_not_positive(_mm256_sub_ps(_mm256_load_ps(s + 32 + 8 * i), m_all));
      if (!whole) {
        e0 = _mm256_and_ps(e0, visible_lanes(each[r], 8 * i));
        e1 = _mm256_and_ps(e1, visible_lanes(each[r], 32 + 8 * i));
      }
      _mm256_store_ps(s + 8 * i, e0);
      _mm256_store_ps(s + 32 + 8 * i, e1);
      sums[i] = _mm256_add_ps(e0, e1);
    }
    l[r] = tree32(sums);
  }
}

/// Factors of the states so far and of the block in their sums.
struct Merge {
  alignas(32) float before[8], block[8];
};

/// What to ask of the memory meanwhile: one line an iteration.
struct Ahead {
  const char* at;
  std::uint64_t step;
};

/// o = fma(o, before, o_block * block), o_block[d] = chain of fma(p[j], V[j][d], .), for R slots
/// and C registers of d.
template <class Type, int R, int C>
void weighted_sums(const Tile& t, const typename Type::Block* v, Visible any, const Merge& merge,
                   Ahead next, float* o) {
  __m256 a[R][C];
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < C; ++c) a[r][c] = _mm256_setzero_ps();
  }
  v += any.begin * t.args.stride;
  const float* p = t.p + any.begin;
  const char* ahead = next.at;
  for (std::uint64_t left = any.end - any.begin; left != 0; --left) {
    _mm_prefetch(ahead, _MM_HINT_T0);
    ahead += next.step;
    outer_product(Type{}, p, kKvBlock, v, a);
    v += t.args.stride;
    ++p;
  }
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
    const __m256 before = _mm256_broadcast_ss(merge.before + r);
    const __m256 block = _mm256_broadcast_ss(merge.block + r);
    float* to = o + static_cast<std::uint64_t>(r) * t.dim;
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
      const __m256 added = _mm256_mul_ps(a[r][c], block);
      _mm256_store_ps(to + 8 * c, _mm256_fmadd_ps(_mm256_load_ps(to + 8 * c), before, added));
    }
  }
}

/// The block at position `first` for a group of R slots. A state without a block has m = kLowest,
/// l = 0, o = 0: merged into it a block is copied, exp(0) being 1.
template <class Type, int R>
void block_of_group(const Tile& t, const Group& group, std::uint64_t first) {
  Visible each[R];
  Visible any{kKvBlock, 0};
  for (int r = 0; r < R; ++r) {
    each[r] = t.visible(group.first + static_cast<std::uint32_t>(r), first);
    if (each[r].begin == each[r].end) continue;
    if (each[r].begin < any.begin) any.begin = each[r].begin;
    if (each[r].end > any.end) any.end = each[r].end;
  }
  if (any.end == 0) return;
  scores<Type, R>(t, group, any);
  alignas(32) float m_block[8] = {};
  alignas(32) float l_block[8] = {};
  weights<R>(t.args, each, t.p, m_block, l_block);
  const __m256 m_b = _mm256_load_ps(m_block);
  const __m256 m = _mm256_load_ps(group.m);
  const __m256 m_new = _mm256_max_ps(m_b, m);
  const __m256 before = exp8(_mm256_sub_ps(m, m_new));
  const __m256 block = exp8(_mm256_sub_ps(m_b, m_new));
  _mm256_store_ps(group.m, m_new);
  _mm256_store_ps(group.l, _mm256_fmadd_ps(_mm256_load_ps(group.l), before,
                                           _mm256_mul_ps(_mm256_load_ps(l_block), block)));
  Merge merge;
  _mm256_store_ps(merge.before, before);
  _mm256_store_ps(merge.block, block);
  const auto* v = static_cast<const typename Type::Block*>(t.args.v) + first * t.args.stride;
  constexpr int C = R == 1 ? 8 : R <= 3 ? 4 : 2;
  std::uint64_t d = 0;
  // The first group asks for K of the next block; the rest touch what is in the cache anyway.
  const bool asks = group.first == 0 && first + 2 * kKvBlock <= t.n_positions;
  const auto* k_next =
      static_cast<const typename Type::Block*>(t.args.k) + (first + kKvBlock) * t.args.stride;
  const auto ahead = [&](std::uint64_t at) {
    return asks ? Ahead{reinterpret_cast<const char*>(k_next + at),
                        t.args.stride * sizeof(typename Type::Block)}
                : Ahead{reinterpret_cast<const char*>(t.p), 0};
  };
  for (; d + 8 * C <= t.dim; d += 8 * C) {
    weighted_sums<Type, R, C>(t, v + d, any, merge, ahead(d), group.o + d);
  }
  for (; d < t.dim; d += 8) {
    weighted_sums<Type, R, 1>(t, v + d, any, merge, ahead(d), group.o + d);
  }
}

/// The q of a group in the order of the panel's steps, 8 floats a step; those beyond n repeat one.
void lay_out_q(const Tile& t, const Group& group) {
  const AttentionTileArgs& args = t.args;
  const float* row[8];
  for (std::uint32_t r = 0; r < 8; ++r) {
    const std::uint32_t slot = group.first + (r < group.n ? r : group.n - 1);
    row[r] = args.q + slot / args.n_heads * args.row_floats +
             std::uint64_t{slot % args.n_heads} * args.head_dim;
  }
  const std::uint64_t chain = t.dim / kScoreLanes;
  alignas(32) float rest[8][8] = {};  // the last eight elements, padded with +0
  for (std::uint64_t d = 0; d < t.dim; d += 8) {
    __m256 column[8];
    if (d + 8 <= args.head_dim) {
      transpose_positions(row, d, column);
    } else {
      const float* padded_row[8];
      for (int r = 0; r < 8; ++r) {
        _mm256_store_ps(rest[r], load_padded(row[r] + d, args.head_dim - d));
        padded_row[r] = rest[r];
      }
      transpose_positions(padded_row, 0, column);
    }
#pragma GCC unroll 8
    for (std::uint64_t e = 0; e < 8; ++e) {
      _mm256_store_ps(group.q + (kScoreOrder[e] * chain + d / 8) * 8, column[e]);
    }
  }
}

/// Cuts the slots into groups as even as can be and lays out their q.
void make_groups(Tile& t, float* scratch) {
  const std::uint32_t n = t.args.n_rows * t.args.n_heads;
  t.n_groups = (n + kGroup - 1) / kGroup;
  std::uint32_t slot = 0;
  for (std::uint32_t g = 0; g < t.n_groups; ++g) {
    const std::uint32_t size = n / t.n_groups + (g < n % t.n_groups ? 1 : 0);
    float* q = scratch;
    float* o = q + 8 * t.dim;
    float* m = o + size * t.dim;
    float* l = m + 8;
    scratch = l + 8;
    t.groups[g] = {slot, size, q, o, m, l};
    lay_out_q(t, t.groups[g]);
    slot += size;
  }
}

/// The states before the first block.
void begin(const Tile& t, const Group& group, const float* sinks) {
  for (std::uint32_t r = 0; r < 8; ++r) {
    group.m[r] = kLowest;
    group.l[r] = 0.0f;
    if (sinks == nullptr || r >= group.n) continue;
    group.m[r] = sinks[(group.first + r) % t.args.n_heads];  // like a position whose V is zero
    group.l[r] = 1.0f;
  }
  std::memset(group.o, 0, group.n * t.dim * sizeof(float));
}

void finish(const Tile& t, const Group& group) {
  for (std::uint32_t r = 0; r < group.n; ++r) {
    const std::uint32_t slot = group.first + r;
    float* out = t.args.out + slot / t.args.n_heads * t.args.row_floats +
                 std::uint64_t{slot % t.args.n_heads} * t.args.head_dim;
    const float* o = group.o + r * t.dim;
    const __m256 l = _mm256_set1_ps(group.l[r]);
    for (std::uint64_t d = 0; d < t.dim; d += 8) {
      const __m256 y = _mm256_div_ps(_mm256_load_ps(o + d), l);
      store_first(out + d, t.args.head_dim - d, _mm256_add_ps(y, _mm256_setzero_ps()));
    }
  }
}

template <class Type>
Tile make_tile(const AttentionTileArgs& args) {
  Tile t{args,
         padded(args.head_dim),
         std::uint64_t{args.n_visible} + args.n_rows - 1,
         args.scratch,
         nullptr,
         0,
         {}};
  t.p = args.scratch + kKvBlock * t.dim;
  make_groups(t, t.p + kGroup * kKvBlock);
  return t;
}

/// The block at position `first` for every slot that sees some of it.
template <class Type>
void add_block(const Tile& t, std::uint64_t first) {
  transpose_block(Type{}, t.args, first, t.n_positions,
                  static_cast<typename Type::Block*>(t.panel));
  for (std::uint32_t g = 0; g < t.n_groups; ++g) {
    const Group& group = t.groups[g];
    switch (group.n) {
      case 1:
        block_of_group<Type, 1>(t, group, first);
        break;
      case 2:
        block_of_group<Type, 2>(t, group, first);
        break;
      case 3:
        block_of_group<Type, 3>(t, group, first);
        break;
      case 4:
        block_of_group<Type, 4>(t, group, first);
        break;
      case 5:
        block_of_group<Type, 5>(t, group, first);
        break;
      default:
        block_of_group<Type, 6>(t, group, first);
        break;
    }
  }
}

template <class Type>
void attention_tile(const AttentionTileArgs* args) {
  if (args->n_rows * args->n_heads == 1) {  // nothing to share a transposed K with
    for_each_slot(*args, sizeof(typename Type::Block) == 2 ? attention_f16 : attention_f32);
    return;
  }
  const Tile t = make_tile<Type>(*args);
  for (std::uint32_t g = 0; g < t.n_groups; ++g) begin(t, t.groups[g], args->sinks);
  const std::uint64_t from =
      args->window != 0 && args->n_visible > args->window ? args->n_visible - args->window : 0;
  for (std::uint64_t first = from / kKvBlock * kKvBlock; first < t.n_positions; first += kKvBlock) {
    add_block<Type>(t, first);
  }
  for (std::uint32_t g = 0; g < t.n_groups; ++g) finish(t, t.groups[g]);
}

template <class Type>
void attention_blocks(const AttentionTileArgs* args, std::uint32_t b0, std::uint32_t b1,
                      float* states) {
  const Tile t = make_tile<Type>(*args);
  for (std::uint64_t b = b0; b < b1; ++b) {
    for (std::uint32_t g = 0; g < t.n_groups; ++g) begin(t, t.groups[g], nullptr);
    if (b * kKvBlock < t.n_positions) add_block<Type>(t, b * kKvBlock);
    for (std::uint32_t g = 0; g < t.n_groups; ++g) {
      const Group& group = t.groups[g];
      for (std::uint32_t r = 0; r < group.n; ++r) {
        states[0] = group.m[r];
        states[1] = group.l[r];
        std::memcpy(states + 8, group.o + r * t.dim, t.dim * sizeof(float));
        states += attention_state_floats(args->head_dim);
      }
    }
  }
}

}  // namespace

std::uint64_t attention_tile_scratch_floats(std::uint32_t head_dim) {
  const std::uint64_t dim = padded(head_dim);
  return kKvBlock * dim + kGroup * kKvBlock + kAttentionTileSlots * dim + kGroups * (8 * dim + 16);
}
void attention_tile_f16(const AttentionTileArgs* args) { attention_tile<TypeF16>(args); }
void attention_tile_f32(const AttentionTileArgs* args) { attention_tile<TypeF32>(args); }

void attention_blocks_f16(const AttentionTileArgs* args, std::uint32_t b0, std::uint32_t b1,
                          float* states) {
  attention_blocks<TypeF16>(args, b0, b1, states);
}
void attention_blocks_f32(const AttentionTileArgs* args, std::uint32_t b0, std::uint32_t b1,
                          float* states) {
  attention_blocks<TypeF32>(args, b0, b1, states);
}

}  // namespace detrun::kernels::avx2
