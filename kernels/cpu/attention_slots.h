// A tile of attention as so many calls of the one-row form: what an instruction set without a
// kernel for tiles fills the table with, and what such a kernel is compared with.
#pragma once

#include "kernels/contract.h"
#include "kernels/cpu/ops.h"

namespace detrun::kernels {

/// One row and head of the tile.
static inline AttentionArgs slot_of(const AttentionTileArgs& tile, std::uint32_t row,
                                    std::uint32_t head) {
  const std::uint32_t n_visible = tile.n_visible + row;
  const std::uint64_t at = row * tile.row_floats + std::uint64_t{head} * tile.head_dim;
  const bool cut = tile.window != 0 && n_visible > tile.window;
  return {
      .q = tile.q + at,
      .k = tile.k,
      .v = tile.v,
      .stride = tile.stride,
      .head_dim = tile.head_dim,
      .n_visible = n_visible,
      .first_visible = cut ? n_visible - tile.window : 0,
      .scale = tile.scale,
      .softcap = tile.softcap,
      .sink = tile.sinks != nullptr ? tile.sinks + head : nullptr,
      .scratch = tile.scratch,
      .out = tile.out + at,
  };
}

/// Calls `one_row` for every row and head of the tile.
static inline void for_each_slot(const AttentionTileArgs& tile,
                                 void (*one_row)(const AttentionArgs* args)) {
  for (std::uint32_t row = 0; row < tile.n_rows; ++row) {
    for (std::uint32_t head = 0; head < tile.n_heads; ++head) {
      const AttentionArgs args = slot_of(tile, row, head);
      one_row(&args);
    }
  }
}

/// Calls `one_block` for every block, row and head, with the positions begin <= j < end of the
/// block that are visible, at least one, and the place of its state; the others' l becomes 0.
static inline void for_each_state(const AttentionTileArgs& tile, std::uint32_t b0, std::uint32_t b1,
                                  float* states,
                                  void (*one_block)(const AttentionArgs& args, std::uint64_t first,
                                                    int begin, int end, float* state)) {
  for (std::uint64_t first = std::uint64_t{b0} * kKvBlock; first < std::uint64_t{b1} * kKvBlock;
       first += kKvBlock) {
    for (std::uint32_t slot = 0; slot < tile.n_rows * tile.n_heads; ++slot) {
      const AttentionArgs args = slot_of(tile, slot / tile.n_heads, slot % tile.n_heads);
      const std::uint64_t begin = args.first_visible > first ? args.first_visible - first : 0;
      const std::uint64_t after = args.n_visible > first ? args.n_visible - first : 0;
      const std::uint64_t end = after < kKvBlock ? after : kKvBlock;
      states[1] = 0.0f;
      if (begin < end)
        one_block(args, first, static_cast<int>(begin), static_cast<int>(end), states);
      states += attention_state_floats(tile.head_dim);
    }
  }
}

}  // namespace detrun::kernels
