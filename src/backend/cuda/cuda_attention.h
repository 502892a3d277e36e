// Attention of one layer: in blocks whose states are merged, for few rows of which a device could
// not fill itself otherwise, or in one pass for many. Which it is never changes a bit.
#pragma once

#include "backend/cuda/cuda_kv_cache.h"
#include "backend/cuda/cuda_scratch.h"
#include "detrun/backend.h"

namespace detrun {

/// The sizes were checked: q and out are (rows, n_heads, head_dim), positions are in the cache.
struct CudaAttentionTask {
  const CudaKvCache& kv;
  std::uint32_t layer;
  const AttentionParams& params;
  std::uint32_t rows, pos0;
  const float* q;
  float* out;
};

class CudaAttention {
 public:
  explicit CudaAttention(const CudaStream& stream) : stream_(stream) {}
  static std::uint64_t scratch_bytes(const PassShape& shape);
  void reserve(const PassShape& shape) { states_.room(scratch_bytes(shape)); }
  void run(const CudaAttentionTask& task);

 private:
  const CudaStream& stream_;
  CudaScratch states_{"attention"};
};

}  // namespace detrun
