// What the attention kernels read: a POD that the launchers take and the kernels get by value.
#pragma once

#include <cstddef>

namespace detrun::cuda {

/// Query rows of one sequence against its cached positions. Pointers are of the device. K and V
/// share their layout: head h of position p starts at p * position_stride + h * head_stride.
struct AttentionInput {
  const float* q;  ///< (n_queries, n_heads, head_dim)
  const void* k;   ///< binary16 or binary32, as the kernel's name says
  const void* v;
  std::size_t position_stride;    ///< elements
  std::size_t head_stride;        ///< elements
  const unsigned* first_visible;  ///< (n_queries) positions first_visible .. n_visible - 1 of a
  const unsigned* n_visible;      ///< (n_queries) row are visible, at least one
  unsigned n_queries;
  unsigned n_heads;
  unsigned n_kv_heads;  ///< divides n_heads: query head h reads kv head h / (n_heads / n_kv_heads)
  unsigned head_dim;
  /// Blocks of 64 absolute positions that hold every visible position of every row: the states of
  /// the split form cover blocks first_block .. first_block + n_blocks - 1.
  unsigned first_block;
  unsigned n_blocks;
  float scale;
  float softcap;       ///< 0: none
  const float* sinks;  ///< (n_heads), or nullptr
};

}  // namespace detrun::cuda
