// Attention of one layer: in blocks whose states are merged, for few rows of which a device could
// not fill itself otherwise, or in one pass for many. Which it is never changes a bit. The grid of
// the blocks has room for some that no row sees yet, so that launches stay the same for many steps.
#pragma once

#include "backend/cuda/cuda_kv_cache.h"
#include "backend/cuda/cuda_positions.h"
#include "backend/cuda/cuda_scratch.h"
#include "detrun/backend.h"

namespace detrun {

/// The sizes were checked: q and out are (rows, n_heads, head_dim), positions are in the cache.
struct CudaAttentionTask {
  const CudaKvCache& kv;
  std::uint32_t layer;
  const AttentionParams& params;
  const CudaPositions& positions;  ///< of the rows
  std::uint32_t rows, pos0;
  const float* q;
  float* out;
};

class CudaAttention {
 public:
  /// Both outlive the object.
  CudaAttention(const CudaStream& stream, ScratchMoves& moves)
      : stream_(stream), states_("attention", moves) {}
  /// Blocks of 64 positions that the grid for these rows covers, of a cache of n_ctx positions; 0:
  /// one thread block walks all of them. Rows and this number decide the launches.
  static std::uint32_t grid_blocks(std::uint32_t rows, std::uint32_t pos0, std::uint32_t n_ctx);
  static std::uint64_t scratch_bytes(const PassShape& shape);
  void reserve(const PassShape& shape) { states_.room(scratch_bytes(shape)); }
  void run(const CudaAttentionTask& task);

 private:
  const CudaStream& stream_;
  CudaScratch states_;
};

}  // namespace detrun
