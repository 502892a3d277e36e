// How the attention of one layer is cut into jobs for the threads: tiles of rows and heads that
// share a kv head, or, where too few kv heads are there for the threads, runs of blocks whose
// states are merged in order. Which cut it is never changes a bit; the arithmetic is in kernels.
#pragma once

#include <vector>

#include "backend/cpu_kv_cache.h"
#include "backend/cpu_memory.h"
#include "backend/thread_pool.h"
#include "detrun/backend.h"
#include "kernels/cpu/ops.h"

namespace detrun {

/// The sizes were checked: q and out are (rows, n_heads, head_dim), positions are in the cache.
struct AttentionTask {
  const CpuKvCache& kv;
  std::uint32_t layer;
  const AttentionParams& params;
  std::uint32_t rows, pos0;
  const float* q;
  float* out;
};

class CpuAttention {
 public:
  CpuAttention(const kernels::CpuOps& ops, ThreadPool& pool);
  /// Makes the scratch for caches of this head size.
  void reserve(std::uint32_t head_dim);
  void run(const AttentionTask& task);

 private:
  /// Heads [head0, head0 + n_heads) of one kv head, rows [row0, row0 + n_rows).
  struct Tile {
    std::uint32_t row0, n_rows, kv_head, head0, n_heads;
  };
  kernels::AttentionTileArgs tile_args(const AttentionTask& task, const Tile& tile,
                                       std::uint32_t thread);
  void run_tiles(const AttentionTask& task);
  void run_blocks(const AttentionTask& task, std::uint32_t n_parts);

  const kernels::CpuOps& ops_;
  ThreadPool& pool_;
  std::vector<CpuMemory> scratch_;  ///< one a thread
  CpuMemory states_;                ///< of blocks, grown when a longer context is first seen
};

}  // namespace detrun
