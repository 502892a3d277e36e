// What the matrix products share: bytes of packed quants, and the tree T of the contract over
// lanes that are visited one after another.
#pragma once

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/planes.h"

namespace detrun::device {

DETRUN_DEVICE unsigned word_bits(int word) { return static_cast<unsigned>(word); }
DETRUN_DEVICE int word_byte(int word, unsigned index) {
  return static_cast<int>(word_bits(word) >> (8 * index) & 0xffu);
}
DETRUN_DEVICE int signed_byte(int word, unsigned index) {
  return static_cast<std::int8_t>(word_byte(word, index));
}
DETRUN_DEVICE std::uint16_t low_word(int word) { return static_cast<std::uint16_t>(word); }
DETRUN_DEVICE std::uint16_t high_word(int word) {
  return static_cast<std::uint16_t>(word_bits(word) >> 16);
}
// Four 4-bit values, the low or the high halves of four bytes.
DETRUN_DEVICE int low_halves(int word) { return static_cast<int>(word_bits(word) & 0x0f0f0f0fu); }
DETRUN_DEVICE int high_halves(int word) {
  return static_cast<int>(word_bits(word) >> 4 & 0x0f0f0f0fu);
}
template <class Element>
DETRUN_DEVICE const Element* weight_in_memory(const Element* rows) {
  return device_memory(rows);
}
DETRUN_DEVICE cuda::Planes weight_in_memory(const cuda::Planes& planes) {
  return {device_memory(planes.d), device_memory(planes.scales), device_memory(planes.low),
          device_memory(planes.high)};
}

// The matrix of a thread block; `block` becomes its number among those of the matrix.
template <class Weight>
DETRUN_DEVICE cuda::GemvMatrix<Weight> matrix_of_block(const cuda::GemvMatrices<Weight>& all,
                                                       unsigned& block) {
  cuda::GemvMatrix<Weight> found = all.matrix[0];
  unsigned first = 0;
  DETRUN_UNROLL
  for (unsigned i = 1; i < cuda::kGemvMatrices; ++i) {
    if (block >= all.end[i - 1]) {
      found = all.matrix[i];
      first = all.end[i - 1];
    }
  }
  block -= first;
  return {weight_in_memory(found.weight), device_memory(found.y), found.n_rows};
}

// The sign turned, nothing else.
DETRUN_DEVICE float negate(float value) { return f32_from_bits(f32_bits(value) ^ 0x80000000u); }

// The lowest `count` bits of `value` in reverse order: the order in which to visit the lanes of T,
// so that two partial sums which T adds are always the two latest of their size.
DETRUN_DEVICE unsigned reverse_bits(unsigned value, int count) {
  unsigned reversed = 0;
  for (int bit = 0; bit < count; ++bit) reversed |= (value >> bit & 1u) << (count - 1 - bit);
  return reversed;
}

// One carry: a sum goes to wait in the free `place`, or joins the one that waits there.
template <int kCount>
DETRUN_DEVICE bool merge_carry(bool free, float (&a)[kCount], float (&place)[kCount]) {
  DETRUN_UNROLL
  for (int i = 0; i < kCount; ++i) {
    if (free) {
      place[i] = a[i];
    } else {
      a[i] = f32_add(place[i], a[i]);
    }
  }
  return !free;
}

// Adds the lane of visit `visit` (counted from 0, of 2^kLevels) to the tree. `waiting[i]` holds a
// sum of 2^i lanes that waits for its partner; after the last visit `a` is the sum of all.
// Invariant: the bits of `visit` alone say which, like the carries of a counter.
template <int kLevels, int kCount>
DETRUN_DEVICE void merge_lane(unsigned visit, float (&a)[kCount],
                              float (&waiting)[kLevels][kCount]) {
  DETRUN_UNROLL
  for (int level = 0; level < kLevels; ++level) {
    if (!merge_carry((visit >> level & 1u) == 0, a, waiting[level])) break;
  }
}

// The same with `waiting` in local memory, for more sums than there are registers.
template <int kLevels, int kCount>
DETRUN_DEVICE void merge_lane_in_memory(unsigned visit, float (&a)[kCount],
                                        float (&waiting)[kLevels][kCount]) {
  DETRUN_NO_UNROLL
  for (int level = 0; level < kLevels; ++level) {
    if (!merge_carry((visit >> level & 1u) == 0, a, waiting[level])) break;
  }
}

}  // namespace detrun::device
