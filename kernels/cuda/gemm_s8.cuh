// Matrix times matrix for the quantized types, contract clause 3: y (m, n) = m quantized rows times
// n rows of weight. The exact block sums come from int8 tensor cores, 16 weight rows by 8 rows of x
// an instruction; the chains of the contract are fp32 in the thread that holds the output.
// A warp has 16 weight rows and kGemmS8Rows rows of x and visits the lanes of T_8 one after another
// (groups lane, lane + 8, ...), so that few partial sums live at once. Weights as
// kernels/cuda/planes.h lays them out.
#pragma once

#include "kernels/cuda/quants.cuh"

namespace detrun::device {

constexpr unsigned kGemmS8Threads = 128;
constexpr unsigned kGemmS8Outputs = kGemmS8Threads / 32 * 16;  // weight rows a block
constexpr unsigned kGemmS8Rows = 32;                           // rows of x a block
constexpr int kGemmS8Tiles = kGemmS8Rows / 8;
constexpr int kGemmS8Values = 4 * kGemmS8Tiles;  // outputs a thread

// What a thread holds of 16 weight rows in one 32-block, as mma_s8 wants it, for rows g and g + 8
// (index 0 and 1): a, and the integers that scale and lower the sums of the two halves of 16. Where
// they belong to all 32 elements, or there are none, the rest is not used.
struct WeightBlock {
  int a[4];
  int scale[2][2];
  int minimum[2][2];
};

template <class Layout>
DETRUN_DEVICE void load_block(const cuda::Planes& w, const std::size_t* groups, unsigned block,
                              unsigned t, WeightBlock& out) {
  constexpr int kScales = Layout::kScales / Layout::kBlocks;  // of a 32-block
  constexpr int kMinima = Layout::kMinima / Layout::kBlocks;
  const int at = static_cast<int>(block);
  DETRUN_UNROLL
  for (int r = 0; r < 2; ++r) {
    int pair[2];
    load_pair<Layout>(w, groups[r] * Layout::kBlocks + block, t, pair);
    out.a[r] = pair[0];
    out.a[2 + r] = pair[1];
    for (int s = 0; s < kScales; ++s) {
      out.scale[r][s] = scale_of<Layout>(w, groups[r], at * kScales + s);
    }
    for (int s = 0; s < kMinima; ++s) {
      out.minimum[r][s] = minimum_of<Layout>(w, groups[r], at * kMinima + s);
    }
  }
}

// S of 16 weight rows and 8 rows of x. Where a scale covers 16 elements, half of what one mma_s8
// sums, each half is summed by itself.
template <class Layout>
DETRUN_DEVICE void block_sums(const WeightBlock& w, const int* b, int* s) {
  for (int i = 0; i < 4; ++i) s[i] = 0;
  if constexpr (Layout::kScales == 2 * Layout::kBlocks) {
    int late[4] = {0, 0, 0, 0};
    mma_s8_k16(s, w.a, b[0]);
    mma_s8_k16(late, w.a + 2, b[1]);
    for (int i = 0; i < 4; ++i) s[i] = s[i] * w.scale[i / 2][0] + late[i] * w.scale[i / 2][1];
  } else {
    mma_s8(s, w.a, b);
    for (int i = 0; i < 4 && Layout::kScales != 0; ++i) s[i] *= w.scale[i / 2][0];
  }
}

// The rows of x a thread touches: one for its fragments of B and two of outputs, for each tile.
struct XRows {
  std::size_t fragment[kGemmS8Tiles];
  std::size_t output[kGemmS8Tiles][2];
};

// f of the contract, one step: the minima of weight row `r` in 32-block x_block of a row of x.
template <class Layout>
DETRUN_DEVICE float add_minima(const WeightBlock& w, int r, const cuda::QuantizedRows& x,
                               std::size_t x_block, float f) {
  if constexpr (Layout::kMinima == Layout::kBlocks) {
    f = f32_fma(int_to_float(w.minimum[r][0]), x.sums[x_block], f);
  }
  if constexpr (Layout::kMinima == 2 * Layout::kBlocks) {
    for (std::size_t h = 0; h < 2; ++h) {
      f = f32_fma(int_to_float(w.minimum[r][h]), half_sum_of(x, 2 * x_block + h), f);
    }
  }
  return f;
}

// One group: e of the contract and, with integer minima, f, for the thread's outputs.
template <class Layout>
DETRUN_DEVICE void gemm_s8_group(const cuda::Planes& weight, const cuda::QuantizedRows& x,
                                 const std::size_t* groups, std::size_t first_block,
                                 std::size_t x_blocks, const XRows& rows, int live_tiles, float* e,
                                 float* f) {
  const unsigned t = lane_id() % 4;
  DETRUN_UNROLL
  for (int i = 0; i < kGemmS8Values; ++i) {
    e[i] = 0.0f;
    f[i] = 0.0f;
  }
  DETRUN_NO_UNROLL
  for (unsigned block = 0; block < Layout::kBlocks; ++block) {
    WeightBlock w;
    load_block<Layout>(weight, groups, block, t, w);
    const std::size_t at = first_block + block;
    DETRUN_UNROLL
    for (int tile = 0; tile < kGemmS8Tiles; ++tile) {
      if (tile >= live_tiles) continue;  // the same for the whole block of threads
      const std::int8_t* q = x.quants + (rows.fragment[tile] * x_blocks + at) * 32 + 4 * t;
      const int b[2] = {load_int(q), load_int(q + 16)};
      int s[4];
      block_sums<Layout>(w, b, s);
      DETRUN_UNROLL
      for (int i = 0; i < 4; ++i) {
        const std::size_t x_block = rows.output[tile][i % 2] * x_blocks + at;
        e[4 * tile + i] = f32_fma(x.scales[x_block], int_to_float(s[i]), e[4 * tile + i]);
        f[4 * tile + i] = add_minima<Layout>(w, i / 2, x, x_block, f[4 * tile + i]);
      }
    }
  }
}

// The lane's sums a after one more group: `groups` of the weight, e and f of the contract.
template <class Type>
DETRUN_DEVICE void gemm_s8_add(const cuda::Planes& weight, const cuda::QuantizedRows& x,
                               const std::size_t* groups, std::size_t x_blocks, std::size_t at,
                               const XRows& rows, const float* e, const float* f, float* a) {
  using Layout = QuantLayout<Type>;
  float d[2], floor[2];
  for (int r = 0; r < 2; ++r) {
    d[r] = d_of<Layout>(weight, groups[r]);
    if constexpr (Layout::kHalves == 2) floor[r] = floor_of<Layout>(weight, groups[r]);
  }
  DETRUN_UNROLL
  for (int i = 0; i < kGemmS8Values; ++i) {
    const int r = i % 4 / 2;
    a[i] = f32_fma(d[r], e[i], a[i]);
    if constexpr (Type::kMinimum == Minimum::kFloat) {
      a[i] = f32_fma(floor[r], x.sums[rows.output[i / 4][i % 2] * x_blocks + at], a[i]);
    }
    if constexpr (Type::kMinimum == Minimum::kInteger) a[i] = f32_fma(negate(floor[r]), f[i], a[i]);
  }
}

template <class Type>
DETRUN_KERNEL_OF(kGemmS8Threads)
void detrun_gemm_quant(cuda::Planes weight, cuda::QuantizedRows x, float* y, unsigned m, unsigned n,
                       unsigned n_groups) {
  using Layout = QuantLayout<Type>;
  const unsigned g = lane_id() / 4;
  const unsigned t = lane_id() % 4;
  const unsigned first_n = block_x() * kGemmS8Outputs + warp_id() * 16;
  const unsigned first_m = block_y() * kGemmS8Rows;
  const std::size_t x_blocks = static_cast<std::size_t>(n_groups) * Layout::kBlocks;
  // Beyond the matrix the last row is read again, and its results are dropped.
  const std::size_t w_rows[2] = {uint_min(first_n + g, n - 1), uint_min(first_n + g + 8, n - 1)};
  XRows rows;
  for (unsigned tile = 0; tile < kGemmS8Tiles; ++tile) {
    const unsigned row = first_m + 8 * tile;
    rows.fragment[tile] = uint_min(row + g, m - 1);
    rows.output[tile][0] = uint_min(row + 2 * t, m - 1);
    rows.output[tile][1] = uint_min(row + 2 * t + 1, m - 1);
  }
  const int live_tiles = static_cast<int>((uint_min(m - first_m, kGemmS8Rows) + 7) / 8);

  float a[kGemmS8Values];
  float waiting[3][kGemmS8Values];
  DETRUN_NO_UNROLL
  for (unsigned visit = 0; visit < kQuantLanes; ++visit) {
    DETRUN_UNROLL
    for (int i = 0; i < kGemmS8Values; ++i) a[i] = 0.0f;
    for (unsigned group = reverse_bits(visit, 3); group < n_groups; group += kQuantLanes) {
      const std::size_t groups[2] = {w_rows[0] * n_groups + group, w_rows[1] * n_groups + group};
      const std::size_t at = static_cast<std::size_t>(group) * Layout::kBlocks;
      float e[kGemmS8Values], f[kGemmS8Values];
      gemm_s8_group<Layout>(weight, x, groups, at, x_blocks, rows, live_tiles, e, f);
      gemm_s8_add<Type>(weight, x, groups, x_blocks, at, rows, e, f, a);
    }
    merge_lane<3, kGemmS8Values>(visit, a, waiting);
  }

  for (unsigned i = 0; i < kGemmS8Values; ++i) {
    const unsigned row = first_m + i / 4 * 8 + 2 * t + i % 2;
    const unsigned column = first_n + g + i % 4 / 2 * 8;
    if (row < m && column < n) y[static_cast<std::size_t>(row) * n + column] = f32_add(a[i], 0.0f);
  }
}

}  // namespace detrun::device
