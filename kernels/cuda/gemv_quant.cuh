// Matrix times vector for the K-quants, contract clause 3: y (n_rows) = weight times quantized x.
// A warp a row: four threads a group of 256, eight groups at once, one for each lane of T_8.
// Weights as kernels/cuda/planes.h lays them out.
#pragma once

#include "kernels/cuda/lanes.cuh"
#include "kernels/cuda/planes.h"

namespace detrun::device {

constexpr unsigned kGemvQuantThreads = 128;
constexpr unsigned kGemvQuantRows = kGemvQuantThreads / 32;

// Thread `part` of four has own[0] and own[1]; each of the four gets all eight, by part.
DETRUN_DEVICE void gather_sums(const int* own, unsigned part, int* all) {
  int pair[4];
  for (int i = 0; i < 2; ++i) {
    const int other = shuffle_xor(own[i], 1);
    pair[i] = part % 2 == 0 ? own[i] : other;
    pair[2 + i] = part % 2 == 0 ? other : own[i];
  }
  for (int i = 0; i < 4; ++i) {
    const int other = shuffle_xor(pair[i], 2);
    all[i] = part < 2 ? pair[i] : other;
    all[4 + i] = part < 2 ? other : pair[i];
  }
}

DETRUN_DEVICE void load_eight(const float* source, float* values) {
  const Float4 first = load_float4(source);
  const Float4 second = load_float4(source + 4);
  const float all[8] = {first.x, first.y, first.z, first.w, second.x, second.y, second.z, second.w};
  for (int i = 0; i < 8; ++i) values[i] = all[i];
}

// T_8 over the lanes, four threads each.
DETRUN_DEVICE float group_tree_sum(float a) {
  for (int off = 16; off >= 4; off /= 2) a = f32_add(a, shuffle_xor(a, off));
  return f32_add(a, 0.0f);
}

// A thread's 64 elements are its 32 bytes: the low halves are 32-block 2 part, the high ones
// 2 part + 1.
DETRUN_KERNEL_OF(kGemvQuantThreads)
void detrun_gemv_q4_k(cuda::PlanesQ4K weight, cuda::QuantizedRows x, float* y, unsigned n_rows,
                      unsigned n_groups) {
  const unsigned row = block_x() * kGemvQuantRows + warp_id();
  const unsigned lane = lane_id() / 4;
  const unsigned part = lane_id() % 4;
  const bool live = row < n_rows;
  const std::size_t first = static_cast<std::size_t>(live ? row : n_rows - 1) * n_groups;
  float a = 0.0f;
  for (unsigned base = 0; base < n_groups; base += kQuantLanes) {
    const bool inside = base + lane < n_groups;
    const std::size_t group = inside ? base + lane : 0;
    const std::size_t block = first + group;
    const std::uint8_t* w = weight.quants + block * 128 + 32 * part;
    const std::int8_t* v = x.quants + group * 256 + 64 * part;
    int own[2] = {0, 0};
    for (unsigned i = 0; i < 32; i += 16) {
      const Int4 q = load_int4(w + i);
      const Int4 low = {low_halves(q.x), low_halves(q.y), low_halves(q.z), low_halves(q.w)};
      const Int4 high = {high_halves(q.x), high_halves(q.y), high_halves(q.z), high_halves(q.w)};
      own[0] = dot16(low, load_int4(v + i), own[0]);
      own[1] = dot16(high, load_int4(v + 32 + i), own[1]);
    }
    const Int4 scales = load_int4(weight.scales + block * 16);
    for (unsigned i = 0; i < 2; ++i) {
      own[i] *= word_byte(part < 2 ? scales.x : scales.y, part % 2 * 2 + i);
    }
    int sums[8];
    gather_sums(own, part, sums);
    float d_x[8], b_x[8];
    load_eight(x.scales + group * 8, d_x);
    load_eight(x.sums + group * 8, b_x);
    float e = 0.0f, f = 0.0f;
    DETRUN_UNROLL
    for (unsigned i = 0; i < 8; ++i) {
      e = f32_fma(d_x[i], int_to_float(sums[i]), e);
      f = f32_fma(int_to_float(word_byte(i < 4 ? scales.z : scales.w, i % 4)), b_x[i], f);
    }
    float next = f32_fma(half_to_float(weight.d[2 * block]), e, a);
    next = f32_fma(negate(half_to_float(weight.d[2 * block + 1])), f, next);
    a = inside ? next : a;
  }
  a = group_tree_sum(a);
  if (live && lane_id() == 0) y[row] = a;
}

// Thread `part` = 2 n + b has the 32 bytes of `low` whose halves are 32-blocks 4 n + b and
// 4 n + b + 2. A scale covers 16 elements, one load.
DETRUN_KERNEL_OF(kGemvQuantThreads)
void detrun_gemv_q6_k(cuda::PlanesQ6K weight, cuda::QuantizedRows x, float* y, unsigned n_rows,
                      unsigned n_groups) {
  const unsigned row = block_x() * kGemvQuantRows + warp_id();
  const unsigned lane = lane_id() / 4;
  const unsigned part = lane_id() % 4;
  const bool live = row < n_rows;
  const std::size_t first = static_cast<std::size_t>(live ? row : n_rows - 1) * n_groups;
  float a = 0.0f;
  for (unsigned base = 0; base < n_groups; base += kQuantLanes) {
    const bool inside = base + lane < n_groups;
    const std::size_t group = inside ? base + lane : 0;
    const std::size_t block = first + group;
    const unsigned first_block = part / 2 * 4 + part % 2;
    const std::uint8_t* low = weight.low + block * 128 + 32 * part;
    const std::uint8_t* high = weight.high + block * 64 + part / 2 * 32;
    const std::int8_t* scales = weight.scales + block * 16 + 2 * first_block;
    const std::int8_t* v = x.quants + group * 256 + 32 * first_block;
    const unsigned shift = part % 2 * 2;
    int own[2] = {0, 0};
    for (unsigned i = 0; i < 2; ++i) {
      const Int4 l = load_int4(low + 16 * i);
      const Int4 h = load_int4(high + 16 * i);
      const Int4 early = {
          six_bits(low_halves(l.x), h.x, shift), six_bits(low_halves(l.y), h.y, shift),
          six_bits(low_halves(l.z), h.z, shift), six_bits(low_halves(l.w), h.w, shift)};
      const Int4 late = {
          six_bits(high_halves(l.x), h.x, shift + 4), six_bits(high_halves(l.y), h.y, shift + 4),
          six_bits(high_halves(l.z), h.z, shift + 4), six_bits(high_halves(l.w), h.w, shift + 4)};
      own[0] += scales[i] * dot16(early, load_int4(v + 16 * i), 0);
      own[1] += scales[4 + i] * dot16(late, load_int4(v + 64 + 16 * i), 0);
    }
    int sums[8];
    gather_sums(own, part, sums);
    float d_x[8];
    load_eight(x.scales + group * 8, d_x);
    float e = 0.0f;
    DETRUN_UNROLL
    for (int i = 0; i < 8; ++i) {
      // Gathered in the order of threads: of four blocks the second and third change places.
      const int from = i % 4 == 1 ? i + 1 : i % 4 == 2 ? i - 1 : i;
      e = f32_fma(d_x[i], int_to_float(sums[from]), e);
    }
    const float next = f32_fma(half_to_float(weight.d[block]), e, a);
    a = inside ? next : a;
  }
  a = group_tree_sum(a);
  if (live && lane_id() == 0) y[row] = a;
}

}  // namespace detrun::device
