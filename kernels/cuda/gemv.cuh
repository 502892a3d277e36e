// Matrix times vector, contract clauses 1 and 3: y (n_rows) = weight (n_rows, n_cols) times x.
// One output is reduced by one fixed set of threads in the contract's order; blocks split outputs.
#pragma once

#include "kernels/cuda/device.cuh"

namespace detrun::device {

using namespace detrun::kernels;

constexpr unsigned kGemvThreads = 128;
constexpr unsigned kGemvFloatRows = kGemvThreads / 4;  // rows a block, 4 threads a row
constexpr unsigned kGemvQ8Rows = kGemvThreads / 16;    // rows a block, 16 threads a row

struct WeightF32 {
  using Element = float;
  DETRUN_DEVICE float widen(float value) { return value; }
};
struct WeightF16 {
  using Element = std::uint16_t;
  DETRUN_DEVICE float widen(std::uint16_t value) { return half_to_float(value); }
};
struct WeightBf16 {
  using Element = std::uint16_t;
  DETRUN_DEVICE float widen(std::uint16_t value) { return bf16_to_f32(value); }
};

// Clause 1, 32 lanes: thread t of a row holds lanes 8t .. 8t+7, so a chunk of 32 elements is read
// by four neighbours. Lanes beyond n_cols are skipped by keeping the accumulator.
template <class Weight>
DETRUN_DEVICE void gemv_float(const typename Weight::Element* weight, const float* x, float* y,
                              unsigned n_rows, unsigned n_cols) {
  const unsigned row = block_x() * kGemvFloatRows + thread_x() / 4;
  const unsigned part = thread_x() % 4;
  const bool live = row < n_rows;
  const typename Weight::Element* w =
      weight + static_cast<std::size_t>(live ? row : n_rows - 1) * n_cols;
  float a[8] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
  for (unsigned k = 0; k < n_cols; k += 32) {
    for (unsigned i = 0; i < 8; ++i) {
      const unsigned at = k + 8 * part + i;
      if (at < n_cols) a[i] = f32_fma(x[at], Weight::widen(w[at]), a[i]);
    }
  }
  for (unsigned i = 0; i < 8; ++i) a[i] = f32_add(a[i], shuffle_xor(a[i], 2));
  for (unsigned i = 0; i < 8; ++i) a[i] = f32_add(a[i], shuffle_xor(a[i], 1));
  for (unsigned off = 4; off >= 1; off /= 2) {
    for (unsigned i = 0; i < off; ++i) a[i] = f32_add(a[i], a[i + off]);
  }
  if (live && part == 0) y[row] = f32_add(a[0], 0.0f);
}

DETRUN_KERNEL void detrun_gemv_f32(const float* weight, const float* x, float* y, unsigned n_rows,
                                   unsigned n_cols) {
  gemv_float<WeightF32>(weight, x, y, n_rows, n_cols);
}
DETRUN_KERNEL void detrun_gemv_f16(const std::uint16_t* weight, const float* x, float* y,
                                   unsigned n_rows, unsigned n_cols) {
  gemv_float<WeightF16>(weight, x, y, n_rows, n_cols);
}
DETRUN_KERNEL void detrun_gemv_bf16(const std::uint16_t* weight, const float* x, float* y,
                                    unsigned n_rows, unsigned n_cols) {
  gemv_float<WeightBf16>(weight, x, y, n_rows, n_cols);
}

// Clause 3, Q8_0: lane = block mod 8, two threads a block of 32. Weights as two arrays, because a
// 34-byte block cannot be loaded 16 bytes at a time: scales (n_rows, n_blocks) binary16, quants
// (n_rows, n_blocks * 32). x quantized as clause 2 says: quants and one fp32 scale a block.
DETRUN_KERNEL void detrun_gemv_q8_0(const std::uint16_t* scales, const std::int8_t* quants,
                                    const std::int8_t* x_quants, const float* x_scales, float* y,
                                    unsigned n_rows, unsigned n_blocks) {
  const unsigned row = block_x() * kGemvQ8Rows + thread_x() / 16;
  const unsigned lane = thread_x() % 16 / 2;
  const unsigned half = thread_x() % 2;
  const bool live = row < n_rows;
  const std::size_t first = static_cast<std::size_t>(live ? row : n_rows - 1) * n_blocks;
  float a = 0.0f;
  for (unsigned base = 0; base < n_blocks; base += 8) {
    const bool inside = base + lane < n_blocks;
    const unsigned block = inside ? base + lane : 0;
    const Int4 w = load_int4(quants + (first + block) * 32 + 16 * half);
    const Int4 v = load_int4(x_quants + static_cast<std::size_t>(block) * 32 + 16 * half);
    int s = dp4a(w.x, v.x, 0);
    s = dp4a(w.y, v.y, s);
    s = dp4a(w.z, v.z, s);
    s = dp4a(w.w, v.w, s);
    s += shuffle_xor(s, 1);
    const float e = f32_fma(x_scales[block], int_to_float(s), 0.0f);
    const float next = f32_fma(half_to_float(scales[first + block]), e, a);
    a = inside ? next : a;
  }
  a = f32_add(a, shuffle_xor(a, 8));
  a = f32_add(a, shuffle_xor(a, 4));
  a = f32_add(a, shuffle_xor(a, 2));
  if (live && thread_x() % 16 == 0) y[row] = f32_add(a, 0.0f);
}

}  // namespace detrun::device
