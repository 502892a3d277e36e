// Weights that are made up where they will lie, to measure speed: the images that packing the bytes
// of kernels/quant/synthetic.h gives. Bits only, no arithmetic on floats. A thread takes elements
// or groups that are a grid apart, so that the grid stays small.
#pragma once

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/pack_planes.h"
#include "kernels/quant/synthetic.h"

namespace detrun::device {

constexpr unsigned kFillThreads = 128;
constexpr unsigned kFillBlocksMax = 4096;

DETRUN_DEVICE std::size_t fill_index() {
  return static_cast<std::size_t>(block_x()) * kFillThreads + thread_x();
}
DETRUN_DEVICE std::size_t fill_step() {
  return static_cast<std::size_t>(grid_dim_x()) * kFillThreads;
}

// `elements` are n elements of a float type, as unsigned numbers of its width.
template <class Element>
DETRUN_DEVICE void fill_floats(const SyntheticFloat& kind, Element* elements, std::size_t n,
                               std::uint64_t key) {
  constexpr std::size_t kEach = 8 / sizeof(Element);
  for (std::size_t i = fill_index(); i * kEach < n; i += fill_step()) {
    const std::uint64_t values = synthetic_floats(kind, key, i);
    DETRUN_UNROLL
    for (std::size_t e = 0; e < kEach; ++e) {
      if (i * kEach + e >= n) break;
      elements[i * kEach + e] = static_cast<Element>(values >> (8 * sizeof(Element) * e));
    }
  }
}

DETRUN_KERNEL_OF(kFillThreads)
void detrun_fill_f32(std::uint32_t* elements, std::size_t n, std::uint64_t key) {
  constexpr SyntheticFloat kKind = kSyntheticF32;
  fill_floats(kKind, elements, n, key);
}
DETRUN_KERNEL_OF(kFillThreads)
void detrun_fill_f16(std::uint16_t* elements, std::size_t n, std::uint64_t key) {
  constexpr SyntheticFloat kKind = kSyntheticF16;
  fill_floats(kKind, elements, n, key);
}
DETRUN_KERNEL_OF(kFillThreads)
void detrun_fill_bf16(std::uint16_t* elements, std::size_t n, std::uint64_t key) {
  constexpr SyntheticFloat kKind = kSyntheticBf16;
  fill_floats(kKind, elements, n, key);
}

template <class Type>
DETRUN_KERNEL_OF(kFillThreads)
void detrun_fill_quant(cuda::Planes planes, std::size_t n_groups, std::uint64_t key) {
  constexpr SyntheticBlock kKind = kSyntheticBlockOf<Type>;
  for (std::size_t group = fill_index(); group < n_groups; group += fill_step()) {
    typename Type::Block block;
    std::uint8_t bytes[sizeof block];
    synthetic_block(kKind, key, group, bytes, sizeof block);
    memcpy(&block, bytes, sizeof block);
    cuda::pack_group<Type>(block, group, planes);
  }
}

}  // namespace detrun::device
