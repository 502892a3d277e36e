// Matrix times matrix for F32, F16 and BF16 weights in fp32, contract clause 1: y (m, n) = x (m, k)
// times weight (n, k). A block of threads has 64 rows of x and 128 weight rows and visits the 32
// lanes of T_32 one after another, each a chain over k = lane, lane + 32, ...; both operands are
// panels (kernels/cuda/planes.h), in which such a chain is contiguous. The partial sums that wait
// in the tree do not fit in registers: they are touched once a lane.
#pragma once

#include "kernels/cuda/lanes.cuh"
#include "kernels/cuda/planes.h"
#include "kernels/cuda/warp.cuh"

namespace detrun::device {

using cuda::kPanelOutputs;
using cuda::kPanelRows;

constexpr unsigned kGemmF32Threads = 128;
constexpr unsigned kGemmF32Steps = 16;  // of a chain that are in shared memory at once
constexpr unsigned kGemmF32Side = 8;    // of a thread's outputs: 8 rows of x by 8 weight rows
constexpr unsigned kGemmF32Values = kGemmF32Side * kGemmF32Side;
constexpr unsigned kPackThreads = 128;

struct PanelF32 {
  using Element = float;
  DETRUN_DEVICE Float4 load(const float* source) { return load_float4(source); }
};
struct PanelF16 {
  using Element = std::uint16_t;
  DETRUN_DEVICE Float4 load(const std::uint16_t* source) {
    const Int2 words = load_int2(source);
    return {half_to_float(low_word(words.x)), half_to_float(high_word(words.x)),
            half_to_float(low_word(words.y)), half_to_float(high_word(words.y))};
  }
};
struct PanelBf16 {
  using Element = std::uint16_t;
  DETRUN_DEVICE Float4 load(const std::uint16_t* source) {
    const Int2 words = load_int2(source);
    return {bf16_to_f32(low_word(words.x)), bf16_to_f32(high_word(words.x)),
            bf16_to_f32(low_word(words.y)), bf16_to_f32(high_word(words.y))};
  }
};

// Rows (n_rows, k) to panels of kWidth rows (kernels/cuda/planes.h), zeros beyond both. A block of
// threads turns one step, 32 elements of each row of a panel, in shared memory, so that rows are
// read and chains are written in whole pieces. Grid (steps, panels). With kLook elements that are
// not finite raise the flag, unless it is nullptr.
template <class Element, unsigned kWidth, bool kLook>
DETRUN_DEVICE void pack_panels(const Element* rows, unsigned n_rows, unsigned k, Element* panels,
                               int* not_finite) {
  constexpr unsigned kLine = kWidth + 1;  // an odd distance: a step's elements lie in all banks
  DETRUN_SHARED(Element, tile, kFloatLanes * kLine);
  const std::size_t steps = (static_cast<std::size_t>(k) + 31) / 32;
  const std::size_t first = static_cast<std::size_t>(block_y()) * kWidth;
  const std::size_t at = static_cast<std::size_t>(block_x()) * 32 + thread_x() % 32;
  for (unsigned row = thread_x() / 32; row < kWidth; row += kPackThreads / 32) {
    const bool inside = first + row < n_rows && at < k;
    const Element element = inside ? rows[(first + row) * k + at] : Element{0};
    if constexpr (kLook) {
      if (not_finite != nullptr && !f32_is_finite(element)) raise_flag(not_finite);
    }
    tile[thread_x() % 32 * kLine + row] = element;
  }
  sync_block();
  Element* panel = panels + (first * 32 * steps + block_x() * kWidth);
  for (unsigned i = thread_x(); i < kFloatLanes * kWidth; i += kPackThreads) {
    const unsigned lane = i / kWidth;
    panel[lane * steps * kWidth + i % kWidth] = tile[lane * kLine + i % kWidth];
  }
}

// Of all that a product of many rows does, only this reads each activation once.
DETRUN_KERNEL_OF(kPackThreads)
void detrun_pack_x(const float* rows, unsigned n_rows, unsigned k, float* panels, int* not_finite) {
  pack_panels<float, kPanelRows, true>(rows, n_rows, k, panels, not_finite);
}
DETRUN_KERNEL_OF(kPackThreads)
void detrun_pack_weight_32(const float* rows, unsigned n_rows, unsigned k, float* panels) {
  pack_panels<float, kPanelOutputs, false>(rows, n_rows, k, panels, nullptr);
}
DETRUN_KERNEL_OF(kPackThreads)
void detrun_pack_weight_16(const std::uint16_t* rows, unsigned n_rows, unsigned k,
                           std::uint16_t* panels) {
  pack_panels<std::uint16_t, kPanelOutputs, false>(rows, n_rows, k, panels, nullptr);
}

// Thread (column, row) of 16 x 8 has weight rows 4 column .. + 3 and 64 + 4 column .. + 3, rows of
// x 4 row .. + 3 and 32 + 4 row .. + 3: neighbours read neighbouring 16 bytes of shared memory.
// Rows of y are `stride` elements apart: n, or more where the weight is a strip of a larger one.
template <class Panel>
DETRUN_DEVICE void gemm_f32(const typename Panel::Element* weight, const float* x, float* y,
                            unsigned m, unsigned n, unsigned k, std::size_t stride) {
  constexpr unsigned kXLoads = kPanelRows / 4;  // 16-byte words a step
  constexpr unsigned kWLoads = kPanelOutputs / 4;
  DETRUN_SHARED(Float4, x_tile, kGemmF32Steps * kXLoads);
  DETRUN_SHARED(Float4, w_tile, kGemmF32Steps * kWLoads);
  const unsigned column = thread_x() % 16;
  const unsigned row = thread_x() / 16;
  const std::size_t steps = (static_cast<std::size_t>(k) + 31) / 32;
  const std::size_t x_first = static_cast<std::size_t>(block_y()) * kPanelRows;
  const std::size_t w_first = static_cast<std::size_t>(block_x()) * kPanelOutputs;
  const float* x_panel = x + x_first * 32 * steps;
  const typename Panel::Element* w_panel = weight + w_first * 32 * steps;

  float a[kGemmF32Values];
  float waiting[5][kGemmF32Values];
  DETRUN_NO_UNROLL
  for (unsigned visit = 0; visit < kFloatLanes; ++visit) {
    DETRUN_UNROLL
    for (unsigned i = 0; i < kGemmF32Values; ++i) a[i] = 0.0f;
    const std::size_t chain = reverse_bits(visit, 5) * steps;
    DETRUN_NO_UNROLL
    for (std::size_t step = 0; step < steps; step += kGemmF32Steps) {
      const std::size_t left = steps - step;
      const unsigned count = left < kGemmF32Steps ? static_cast<unsigned>(left) : kGemmF32Steps;
      const float* x_from = x_panel + (chain + step) * kPanelRows;
      const typename Panel::Element* w_from = w_panel + (chain + step) * kPanelOutputs;
      sync_block();
      for (unsigned i = thread_x(); i < count * kXLoads; i += kGemmF32Threads) {
        x_tile[i] = load_float4(x_from + 4 * i);
      }
      for (unsigned i = thread_x(); i < count * kWLoads; i += kGemmF32Threads) {
        w_tile[i] = Panel::load(w_from + 4 * i);
      }
      sync_block();
      for (unsigned s = 0; s < count; ++s) {
        const Float4 x0 = x_tile[s * kXLoads + row];
        const Float4 x1 = x_tile[s * kXLoads + kXLoads / 2 + row];
        const Float4 w0 = w_tile[s * kWLoads + column];
        const Float4 w1 = w_tile[s * kWLoads + kWLoads / 2 + column];
        const float xs[kGemmF32Side] = {x0.x, x0.y, x0.z, x0.w, x1.x, x1.y, x1.z, x1.w};
        const float ws[kGemmF32Side] = {w0.x, w0.y, w0.z, w0.w, w1.x, w1.y, w1.z, w1.w};
        DETRUN_UNROLL
        for (unsigned i = 0; i < kGemmF32Values; ++i) {
          a[i] = f32_fma(xs[i / kGemmF32Side], ws[i % kGemmF32Side], a[i]);
        }
      }
    }
    merge_lane_in_memory(visit, a, waiting);
  }

  DETRUN_UNROLL
  for (unsigned i = 0; i < kGemmF32Values; ++i) {
    const unsigned r = i / kGemmF32Side;
    const unsigned c = i % kGemmF32Side;
    const std::size_t at_m = x_first + r / 4 * (kPanelRows / 2) + 4 * row + r % 4;
    const std::size_t at_n = w_first + c / 4 * (kPanelOutputs / 2) + 4 * column + c % 4;
    if (at_m < m && at_n < n) y[at_m * stride + at_n] = f32_add(a[i], 0.0f);
  }
}

DETRUN_KERNEL_OF(kGemmF32Threads)
void detrun_gemm_f32(const float* weight, const float* x, float* y, unsigned m, unsigned n,
                     unsigned k, std::size_t stride) {
  gemm_f32<PanelF32>(weight, x, y, m, n, k, stride);
}
DETRUN_KERNEL_OF(kGemmF32Threads)
void detrun_gemm_f16(const std::uint16_t* weight, const float* x, float* y, unsigned m, unsigned n,
                     unsigned k, std::size_t stride) {
  gemm_f32<PanelF16>(weight, x, y, m, n, k, stride);
}
DETRUN_KERNEL_OF(kGemmF32Threads)
void detrun_gemm_bf16(const std::uint16_t* weight, const float* x, float* y, unsigned m, unsigned n,
                      unsigned k, std::size_t stride) {
  gemm_f32<PanelBf16>(weight, x, y, m, n, k, stride);
}

}  // namespace detrun::device
