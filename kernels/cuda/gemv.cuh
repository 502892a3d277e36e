// Matrix times vector for F32, F16 and BF16, contract clause 1: y (n_rows) = weight (n_rows,
// n_cols) times x. One output is reduced by one fixed set of threads in the contract's order;
// blocks split outputs. Whether x is finite is for a block of its own to see, beside them.
#pragma once

#include "kernels/cuda/lanes.cuh"
#include "kernels/cuda/warp.cuh"

namespace detrun::device {

using namespace detrun::kernels;

constexpr unsigned kGemvThreads = 128;
constexpr unsigned kGemvFloatRows = kGemvThreads / 4;  // rows a block, 4 threads a row
constexpr unsigned kGemvBytes = 256;                   // of a row in flight a thread
constexpr unsigned kFiniteBatch = 8;                   // loads of the block that looks at x

struct WeightF32 {
  using Element = float;
  DETRUN_DEVICE float widen(float value) { return value; }
  struct Eight {
    Float4 first, second;
  };
  DETRUN_DEVICE Eight load(const float* from) { return {load_float4(from), load_float4(from + 4)}; }
  DETRUN_DEVICE void widen(const Eight& from, float* to) {
    const float all[8] = {from.first.x,  from.first.y,  from.first.z,  from.first.w,
                          from.second.x, from.second.y, from.second.z, from.second.w};
    DETRUN_UNROLL
    for (int i = 0; i < 8; ++i) to[i] = all[i];
  }
};
// Two elements a word.
template <class Weight>
struct WeightHalf {
  using Element = std::uint16_t;
  using Eight = Int4;
  DETRUN_DEVICE Eight load(const std::uint16_t* from) { return load_int4(from); }
  DETRUN_DEVICE void widen(const Eight& from, float* to) {
    const int words[4] = {from.x, from.y, from.z, from.w};
    DETRUN_UNROLL
    for (int i = 0; i < 4; ++i) {
      to[2 * i] = Weight::widen(low_word(words[i]));
      to[2 * i + 1] = Weight::widen(high_word(words[i]));
    }
  }
};
struct WeightF16 : WeightHalf<WeightF16> {
  using WeightHalf<WeightF16>::widen;
  DETRUN_DEVICE float widen(std::uint16_t value) { return half_to_float(value); }
};
struct WeightBf16 : WeightHalf<WeightBf16> {
  using WeightHalf<WeightBf16>::widen;
  DETRUN_DEVICE float widen(std::uint16_t value) { return bf16_to_f32(value); }
};

// The chains of thread `part` of four, lanes 8 part .. 8 part + 7 of T_32: any n_cols. Lanes beyond
// it keep their sum.
template <class Weight>
DETRUN_DEVICE void gemv_any_columns(const typename Weight::Element* w, const float* x,
                                    unsigned n_cols, unsigned part, float* a) {
  for (unsigned k = 0; k < n_cols; k += 32) {
    for (unsigned i = 0; i < 8; ++i) {
      const unsigned at = k + 8 * part + i;
      if (at < n_cols) a[i] = f32_fma(x[at], Weight::widen(w[at]), a[i]);
    }
  }
}

// Eight elements of the weight times those of x from `x` on.
template <class Weight>
DETRUN_DEVICE void add_eight(const typename Weight::Eight& loaded, const float* x, float* a) {
  const Float4 x0 = load_float4(x);
  const Float4 x1 = load_float4(x + 4);
  const float xs[8] = {x0.x, x0.y, x0.z, x0.w, x1.x, x1.y, x1.z, x1.w};
  float ws[8];
  Weight::widen(loaded, ws);
  DETRUN_UNROLL
  for (int i = 0; i < 8; ++i) a[i] = f32_fma(xs[i], ws[i], a[i]);
}

// The same for n_cols a multiple of 8: whole loads, several of them before the first is used.
template <class Weight>
DETRUN_DEVICE void gemv_eights(const typename Weight::Element* w, const float* x, unsigned n_cols,
                               unsigned part, float* a) {
  constexpr unsigned kGemvBatch = kGemvBytes / sizeof(typename Weight::Eight);
  unsigned k = 8 * part;
  for (; k - 8 * part + 32 * kGemvBatch <= n_cols; k += 32 * kGemvBatch) {
    typename Weight::Eight loaded[kGemvBatch];
    DETRUN_UNROLL
    for (unsigned b = 0; b < kGemvBatch; ++b) loaded[b] = Weight::load(w + k + 32 * b);
    sync_warp();
    DETRUN_UNROLL
    for (unsigned b = 0; b < kGemvBatch; ++b) add_eight<Weight>(loaded[b], x + k + 32 * b, a);
  }
  for (; k < n_cols; k += 32) add_eight<Weight>(Weight::load(w + k), x + k, a);
}

// One block looks at all of x, once. Were every thread to look at what it multiplies, each product
// would cost an operation more.
DETRUN_DEVICE void check_finite(const float* x, unsigned n, int* not_finite) {
  unsigned largest = 0;
  for (unsigned first = 0; first < n; first += kFiniteBatch * kGemvThreads) {
    DETRUN_UNROLL
    for (unsigned b = 0; b < kFiniteBatch; ++b) {
      const unsigned at = first + b * kGemvThreads + thread_x();
      if (at < n) largest = uint_max(largest, f32_bits(x[at]) & kAbsMask);
    }
  }
  if (largest >= kInfBits) raise_flag(not_finite);
}

// A chunk of 32 elements is read by four neighbours. With a flag to raise, block 0 has no rows: the
// first to start, it has looked at x long before the last of the others ends.
template <class Weight>
DETRUN_DEVICE void gemv_float(const cuda::GemvMatrices<const typename Weight::Element*>& matrices,
                              const float* x, unsigned n_cols, int* not_finite) {
  const unsigned n_looking = not_finite != nullptr ? 1 : 0;
  if (block_x() < n_looking) {
    check_finite(x, n_cols, not_finite);
    return;
  }
  unsigned block = block_x() - n_looking;
  const auto [weight, y, n_rows] = matrix_of_block(matrices, block);
  const unsigned row = block * kGemvFloatRows + thread_x() / 4;
  const unsigned part = thread_x() % 4;
  const bool live = row < n_rows;
  const typename Weight::Element* w =
      weight + static_cast<std::size_t>(live ? row : n_rows - 1) * n_cols;
  float a[8] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
  if (n_cols % 8 == 0) {
    gemv_eights<Weight>(w, x, n_cols, part, a);
  } else {
    gemv_any_columns<Weight>(w, x, n_cols, part, a);
  }
  for (unsigned i = 0; i < 8; ++i) a[i] = f32_add(a[i], shuffle_xor(a[i], 2));
  for (unsigned i = 0; i < 8; ++i) a[i] = f32_add(a[i], shuffle_xor(a[i], 1));
  for (unsigned off = 4; off >= 1; off /= 2) {
    for (unsigned i = 0; i < off; ++i) a[i] = f32_add(a[i], a[i + off]);
  }
  if (live && part == 0) y[row] = f32_add(a[0], 0.0f);
}

DETRUN_KERNEL_OF(kGemvThreads)
void detrun_gemv_f32(cuda::GemvMatrices<const float*> matrices, const float* x, unsigned n_cols,
                     int* not_finite) {
  gemv_float<WeightF32>(matrices, x, n_cols, not_finite);
}
DETRUN_KERNEL_OF(kGemvThreads)
void detrun_gemv_f16(cuda::GemvMatrices<const std::uint16_t*> matrices, const float* x,
                     unsigned n_cols, int* not_finite) {
  gemv_float<WeightF16>(matrices, x, n_cols, not_finite);
}
DETRUN_KERNEL_OF(kGemvThreads)
void detrun_gemv_bf16(cuda::GemvMatrices<const std::uint16_t*> matrices, const float* x,
                      unsigned n_cols, int* not_finite) {
  gemv_float<WeightBf16>(matrices, x, n_cols, not_finite);
}

}  // namespace detrun::device
