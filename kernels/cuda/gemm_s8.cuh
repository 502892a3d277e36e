// Matrix times matrix for Q8_0, Q4_K and Q6_K, contract clause 3: y (m, n) = m quantized rows times
// n rows of weight. The exact block sums come from int8 tensor cores, 16 weight rows by 8 rows of x
// an instruction; the chains of the contract are fp32 in the thread that holds the output.
// A warp has 16 weight rows and kGemmS8Rows rows of x and visits the lanes of T_8 one after another
// (groups lane, lane + 8, ...), so that few partial sums live at once. Weights as
// kernels/cuda/planes.h lays them out.
#pragma once

#include "kernels/cuda/lanes.cuh"
#include "kernels/cuda/planes.h"

namespace detrun::device {

constexpr unsigned kGemmS8Threads = 128;
constexpr unsigned kGemmS8Outputs = kGemmS8Threads / 32 * 16;  // weight rows a block
constexpr unsigned kGemmS8Rows = 32;                           // rows of x a block
constexpr int kGemmS8Tiles = kGemmS8Rows / 8;
constexpr int kGemmS8Values = 4 * kGemmS8Tiles;  // outputs a thread

// What a thread holds of 16 weight rows in one 32-block, as mma_s8 wants it, for rows g and g + 8
// (index 0 and 1): a, and the integers that scale and lower the sums of the two halves of 16.
struct WeightBlock {
  int a[4];
  int scale[2][2];
  int minimum[2];
};

struct GemmQ8_0 {
  using Planes = cuda::PlanesQ8_0;
  static constexpr unsigned kBlocks = 1;  // 32-blocks a group
  static constexpr bool kMinima = false;
  DETRUN_DEVICE float d(const Planes& w, std::size_t group) {
    return half_to_float(w.scales[group]);
  }
  DETRUN_DEVICE float d_min(const Planes&, std::size_t) { return 0.0f; }
  DETRUN_DEVICE void load(const Planes& w, const std::size_t* groups, unsigned /*block*/,
                          unsigned t, WeightBlock& out) {
    for (int r = 0; r < 2; ++r) {
      const std::int8_t* q = w.quants + groups[r] * 32 + 4 * t;
      out.a[r] = load_int(q);
      out.a[2 + r] = load_int(q + 16);
    }
  }
  DETRUN_DEVICE void sums(const WeightBlock& w, const int* b, int* s) { mma_s8(s, w.a, b); }
};

struct GemmQ4K {
  using Planes = cuda::PlanesQ4K;
  static constexpr unsigned kBlocks = 8;
  static constexpr bool kMinima = true;
  DETRUN_DEVICE float d(const Planes& w, std::size_t group) {
    return half_to_float(w.d[2 * group]);
  }
  DETRUN_DEVICE float d_min(const Planes& w, std::size_t group) {
    return half_to_float(w.d[2 * group + 1]);
  }
  DETRUN_DEVICE void load(const Planes& w, const std::size_t* groups, unsigned block, unsigned t,
                          WeightBlock& out) {
    for (int r = 0; r < 2; ++r) {
      const std::uint8_t* q = w.quants + groups[r] * 128 + block / 2 * 32 + 4 * t;
      const int first = load_int(q);
      const int second = load_int(q + 16);
      out.a[r] = block % 2 == 0 ? low_halves(first) : high_halves(first);
      out.a[2 + r] = block % 2 == 0 ? low_halves(second) : high_halves(second);
      out.scale[r][0] = w.scales[groups[r] * 16 + block];
      out.minimum[r] = w.scales[groups[r] * 16 + 8 + block];
    }
  }
  DETRUN_DEVICE void sums(const WeightBlock& w, const int* b, int* s) {
    mma_s8(s, w.a, b);
    for (int i = 0; i < 4; ++i) s[i] *= w.scale[i / 2][0];
  }
};

struct GemmQ6K {
  using Planes = cuda::PlanesQ6K;
  static constexpr unsigned kBlocks = 8;
  static constexpr bool kMinima = false;
  DETRUN_DEVICE float d(const Planes& w, std::size_t group) { return half_to_float(w.d[group]); }
  DETRUN_DEVICE float d_min(const Planes&, std::size_t) { return 0.0f; }
  DETRUN_DEVICE void load(const Planes& w, const std::size_t* groups, unsigned block, unsigned t,
                          WeightBlock& out) {
    const unsigned n = block / 4;
    const unsigned j = block % 4;
    for (int r = 0; r < 2; ++r) {
      for (unsigned half = 0; half < 2; ++half) {
        const int l = load_int(w.low + groups[r] * 128 + 64 * n + 32 * (j % 2) + 16 * half + 4 * t);
        const int h = load_int(w.high + groups[r] * 64 + 32 * n + 16 * half + 4 * t);
        out.a[2 * half + static_cast<unsigned>(r)] =
            six_bits(j < 2 ? low_halves(l) : high_halves(l), h, 2 * j);
        out.scale[r][half] = int{w.scales[groups[r] * 16 + 2 * block + half]};
      }
    }
  }
  // A scale covers 16 elements, half of what one mma_s8 sums.
  DETRUN_DEVICE void sums(const WeightBlock& w, const int* b, int* s) {
    int half[4] = {0, 0, 0, 0};
    mma_s8_k16(half, w.a, b[0]);
    for (int i = 0; i < 4; ++i) s[i] = half[i] * w.scale[i / 2][0];
    for (int i = 0; i < 4; ++i) half[i] = 0;
    mma_s8_k16(half, w.a + 2, b[1]);
    for (int i = 0; i < 4; ++i) s[i] += half[i] * w.scale[i / 2][1];
  }
};

// The rows of x a thread touches: one for its fragments of B and two of outputs, for each tile.
struct XRows {
  std::size_t fragment[kGemmS8Tiles];
  std::size_t output[kGemmS8Tiles][2];
};

// One group: e of the contract and, with minima, f, for the thread's outputs.
template <class Weight>
DETRUN_DEVICE void gemm_s8_group(const typename Weight::Planes& weight, cuda::QuantizedRows x,
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
  for (unsigned block = 0; block < Weight::kBlocks; ++block) {
    WeightBlock w;
    Weight::load(weight, groups, block, t, w);
    const std::size_t at = first_block + block;
    DETRUN_UNROLL
    for (int tile = 0; tile < kGemmS8Tiles; ++tile) {
      if (tile >= live_tiles) continue;  // the same for the whole block of threads
      const std::int8_t* q = x.quants + (rows.fragment[tile] * x_blocks + at) * 32 + 4 * t;
      const int b[2] = {load_int(q), load_int(q + 16)};
      int s[4] = {0, 0, 0, 0};
      Weight::sums(w, b, s);
      DETRUN_UNROLL
      for (int i = 0; i < 4; ++i) {
        const std::size_t x_block = rows.output[tile][i % 2] * x_blocks + at;
        e[4 * tile + i] = f32_fma(x.scales[x_block], int_to_float(s[i]), e[4 * tile + i]);
        if (Weight::kMinima) {
          const float minimum = int_to_float(w.minimum[i / 2]);
          f[4 * tile + i] = f32_fma(minimum, x.sums[x_block], f[4 * tile + i]);
        }
      }
    }
  }
}

template <class Weight>
DETRUN_DEVICE void gemm_s8(const typename Weight::Planes& weight, cuda::QuantizedRows x, float* y,
                           unsigned m, unsigned n, unsigned n_groups) {
  const unsigned g = lane_id() / 4;
  const unsigned t = lane_id() % 4;
  const unsigned first_n = block_x() * kGemmS8Outputs + warp_id() * 16;
  const unsigned first_m = block_y() * kGemmS8Rows;
  const std::size_t x_blocks = static_cast<std::size_t>(n_groups) * Weight::kBlocks;
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
      float e[kGemmS8Values], f[kGemmS8Values];
      gemm_s8_group<Weight>(weight, x, groups, static_cast<std::size_t>(group) * Weight::kBlocks,
                            x_blocks, rows, live_tiles, e, f);
      const float d[2] = {Weight::d(weight, groups[0]), Weight::d(weight, groups[1])};
      const float below[2] = {negate(Weight::d_min(weight, groups[0])),
                              negate(Weight::d_min(weight, groups[1]))};
      DETRUN_UNROLL
      for (int i = 0; i < kGemmS8Values; ++i) {
        a[i] = f32_fma(d[i % 4 / 2], e[i], a[i]);
        if (Weight::kMinima) a[i] = f32_fma(below[i % 4 / 2], f[i], a[i]);
      }
    }
    merge_lane<3, kGemmS8Values>(visit, a, waiting);
  }

  for (unsigned i = 0; i < kGemmS8Values; ++i) {
    const unsigned row = first_m + i / 4 * 8 + 2 * t + i % 2;
    const unsigned column = first_n + g + i % 4 / 2 * 8;
    if (row < m && column < n) y[static_cast<std::size_t>(row) * n + column] = f32_add(a[i], 0.0f);
  }
}

DETRUN_KERNEL_OF(kGemmS8Threads)
void detrun_gemm_q8_0(cuda::PlanesQ8_0 weight, cuda::QuantizedRows x, float* y, unsigned m,
                      unsigned n, unsigned n_groups) {
  gemm_s8<GemmQ8_0>(weight, x, y, m, n, n_groups);
}
DETRUN_KERNEL_OF(kGemmS8Threads)
void detrun_gemm_q4_k(cuda::PlanesQ4K weight, cuda::QuantizedRows x, float* y, unsigned m,
                      unsigned n, unsigned n_groups) {
  gemm_s8<GemmQ4K>(weight, x, y, m, n, n_groups);
}
DETRUN_KERNEL_OF(kGemmS8Threads)
void detrun_gemm_q6_k(cuda::PlanesQ6K weight, cuda::QuantizedRows x, float* y, unsigned m,
                      unsigned n, unsigned n_groups) {
  gemm_s8<GemmQ6K>(weight, x, y, m, n, n_groups);
}

}  // namespace detrun::device
