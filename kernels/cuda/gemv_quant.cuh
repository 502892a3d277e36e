// Matrix times vector for the quantized types, contract clause 3: y (n_rows) = weight times
// quantized x, for several matrices with the same x. A warp a row. Its eight lanes of T_8 are four
// threads each: they share a group of 256, or have four groups of 32, eight apart, whose terms each
// of them then adds in order. Weights as kernels/cuda/planes.h lays them out.
#pragma once

#include "kernels/cuda/quants.cuh"

namespace detrun::device {

constexpr unsigned kGemvQuantThreads = 128;

constexpr unsigned kGemvQuantRows = kGemvQuantThreads / 32;

// Of four threads, `near` and `far` apart, number `part` has `count` values; each of the four gets
// all, by part.
template <int kCount, class Value>
DETRUN_DEVICE void gather_parts(const Value* own, unsigned part, int near, int far, Value* all) {
  Value pair[2 * kCount];
  DETRUN_UNROLL
  for (int i = 0; i < kCount; ++i) {
    const Value other = shuffle_xor(own[i], near);
    pair[i] = part % 2 == 0 ? own[i] : other;
    pair[kCount + i] = part % 2 == 0 ? other : own[i];
  }
  DETRUN_UNROLL
  for (int i = 0; i < 2 * kCount; ++i) {
    const Value other = shuffle_xor(pair[i], far);
    all[i] = part < 2 ? pair[i] : other;
    all[2 * kCount + i] = part < 2 ? other : pair[i];
  }
}

DETRUN_DEVICE void load_eight(const float* source, float* values) {
  const Float4 first = load_float4(source);
  const Float4 second = load_float4(source + 4);
  const float all[8] = {first.x, first.y, first.z, first.w, second.x, second.y, second.z, second.w};
  for (int i = 0; i < 8; ++i) values[i] = all[i];
}

// T_8 over lanes of `threads` neighbours.
DETRUN_DEVICE float lanes_tree_sum(float a, int threads) {
  for (int off = 4 * threads; off >= threads; off /= 2) a = f32_add(a, shuffle_xor(a, off));
  return f32_add(a, 0.0f);
}

// S of the thread's 32-blocks of a group, `part` * 2 and the next.
template <class Layout>
DETRUN_DEVICE void own_sums(const cuda::Planes& w, std::size_t group, const std::int8_t* x,
                            unsigned part, int* own) {
  constexpr unsigned kEach = Layout::kScales / Layout::kBlocks;  // scales a 32-block
  const int scales = load_int(w.scales + group * Layout::kScaleBytes + part * 2 * kEach / 4 * 4);
  const unsigned first = part * 2 * kEach % 4;
  DETRUN_UNROLL
  for (unsigned i = 0; i < 2; ++i) {
    int halves[2];
    half_sums_of<Layout>(w, group * Layout::kBlocks + 2 * part + i, x + 32 * (2 * part + i),
                         halves);
    own[i] = 0;
    for (unsigned h = 0; h < kEach; ++h) {
      const unsigned at = first + kEach * i + h;
      const int scale =
          Layout::kShared ? word_byte(low_halves(scales), at) : signed_byte(scales, at);
      own[i] += scale * (kEach == 2 ? halves[h] : halves[0] + halves[1]);
    }
  }
}

// f of clause 3, all minima of a group in order.
template <class Layout>
DETRUN_DEVICE float minima_sum(const cuda::Planes& w, std::size_t group, const float* d_x,
                               const cuda::QuantizedRows& x, std::size_t x_group) {
  const std::uint8_t* bytes = w.scales + group * Layout::kScaleBytes;
  float f = 0.0f;
  if constexpr (Layout::kShared) {
    int words[4], sums[8];
    load_words4(bytes, words);
    load_words4(x.half_sums + x_group * 16, sums);
    load_words4(x.half_sums + x_group * 16 + 8, sums + 4);
    DETRUN_UNROLL
    for (unsigned s = 0; s < 16; ++s) {
      const int sum = static_cast<std::int16_t>(word_bits(sums[s / 2]) >> (16 * (s % 2)));
      const float b = f32_mul(d_x[s / 2], int_to_float(sum));
      f = f32_fma(int_to_float(word_byte(high_halves(words[s / 4]), s % 4)), b, f);
    }
  } else {
    int words[2];
    float b[8];
    load_words2(bytes + Layout::kScales, words);
    load_eight(x.sums + x_group * 8, b);
    DETRUN_UNROLL
    for (unsigned s = 0; s < 8; ++s) {
      f = f32_fma(int_to_float(word_byte(words[s / 4], s % 4)), b[s], f);
    }
  }
  return f;
}

// Groups of 256: thread `part` of a lane's four has two 32-blocks of the group.
template <class Type>
DETRUN_DEVICE float gemv_large_groups(const cuda::Planes& w, std::size_t first_group,
                                      const cuda::QuantizedRows& x, unsigned n_groups) {
  using Layout = QuantLayout<Type>;
  const unsigned lane = lane_id() / 4;
  const unsigned part = lane_id() % 4;
  float a = 0.0f;
  for (unsigned base = 0; base < n_groups; base += kQuantLanes) {
    // Beyond the row group 0 is read again and its result dropped.
    const bool inside = base + lane < n_groups;
    const std::size_t x_group = inside ? base + lane : 0;
    const std::size_t group = first_group + x_group;
    int own[2], sums[8];
    own_sums<Layout>(w, group, x.quants + x_group * 256, part, own);
    gather_parts<2>(own, part, 1, 2, sums);
    float d_x[8];
    load_eight(x.scales + x_group * 8, d_x);
    float e = 0.0f;
    DETRUN_UNROLL
    for (int i = 0; i < 8; ++i) e = f32_fma(d_x[i], int_to_float(sums[i]), e);
    float next = f32_fma(d_of<Layout>(w, group), e, a);
    if constexpr (Type::kMinimum == Minimum::kInteger) {
      const float f = minima_sum<Layout>(w, group, d_x, x, x_group);
      next = f32_fma(negate(floor_of<Layout>(w, group)), f, next);
    }
    a = inside ? next : a;
  }
  return lanes_tree_sum(a, 4);
}

// Groups of 32: thread 8 `part` + lane has group base + 8 part + lane.
template <class Type>
DETRUN_DEVICE float gemv_small_groups(const cuda::Planes& w, std::size_t first_group,
                                      const cuda::QuantizedRows& x, unsigned n_groups) {
  using Layout = QuantLayout<Type>;
  constexpr bool kFloor = Type::kMinimum == Minimum::kFloat;
  const unsigned lane = lane_id() % 8;
  const unsigned part = lane_id() / 8;
  float a = 0.0f;
  for (unsigned base = 0; base < n_groups; base += 32) {
    const std::size_t x_group = base + lane_id() < n_groups ? base + lane_id() : 0;
    const std::size_t group = first_group + x_group;
    int halves[2];
    half_sums_of<Layout>(w, group, x.quants + x_group * 32, halves);
    const float e = f32_fma(x.scales[x_group], int_to_float(halves[0] + halves[1]), 0.0f);
    const float d = d_of<Layout>(w, group);
    float all_e[4], all_d[4], all_floor[4], all_b[4];
    gather_parts<1>(&e, part, 8, 16, all_e);
    gather_parts<1>(&d, part, 8, 16, all_d);
    if constexpr (kFloor) {
      const float floor = floor_of<Layout>(w, group);
      gather_parts<1>(&floor, part, 8, 16, all_floor);
      gather_parts<1>(x.sums + x_group, part, 8, 16, all_b);
    }
    DETRUN_UNROLL
    for (unsigned i = 0; i < 4; ++i) {
      float next = f32_fma(all_d[i], all_e[i], a);
      if constexpr (kFloor) next = f32_fma(all_floor[i], all_b[i], next);
      a = base + 8 * i + lane < n_groups ? next : a;
    }
  }
  return lanes_tree_sum(a, 1);
}

template <class Type>
DETRUN_KERNEL_OF(kGemvQuantThreads)
void detrun_gemv_quant(cuda::GemvMatrices<cuda::Planes> matrices, cuda::QuantizedRows x,
                       unsigned n_groups) {
  unsigned block = block_x();
  const auto [weight, y, n_rows] = matrix_of_block(matrices, block);
  const unsigned row = block * kGemvQuantRows + warp_id();
  const std::size_t first = static_cast<std::size_t>(uint_min(row, n_rows - 1)) * n_groups;
  float value;
  if constexpr (QuantLayout<Type>::kBlocks == 1) {
    value = gemv_small_groups<Type>(weight, first, x, n_groups);
  } else {
    value = gemv_large_groups<Type>(weight, first, x, n_groups);
  }
  if (row < n_rows && lane_id() == 0) y[row] = value;
}

}  // namespace detrun::device
