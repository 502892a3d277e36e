// The self-test's questions about attention: one head, tiles of rows and heads, blocks merged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cpu/ops.h"

namespace detrun {

/// What may change the scores of a head, beside q and K.
struct AttentionCase {
  bool f16;
  std::uint32_t window;  ///< 0: every position
  float softcap;         ///< 0: none
  bool sink;
};

/// One head at several lengths; appends the bits of its outputs.
void ask_attention(const kernels::CpuOps& ops, AttentionCase c, std::vector<std::byte>& out);

/// Rows and heads that share a kv head. `split`: by blocks, where this instruction set does that;
/// one that does not never will, and answers with its tile.
void ask_attention_tile(const kernels::CpuOps& ops, AttentionCase c, bool split,
                        std::vector<std::byte>& out);

}  // namespace detrun
