// The KV cache on a device: KvLayout in device memory, and the tables that tell attention what a
// row sees. The values are written and read by kernels.
#pragma once

#include "backend/cuda/cuda_handles.h"
#include "backend/cuda/cuda_transfer.h"
#include "backend/kv_layout.h"
#include "detrun/backend.h"

namespace detrun {

class CudaKvCache final : public KvCache {
 public:
  /// Errors: KvLayout's; kInternal when the device has not enough memory. `stream` and `transfer`
  /// outlive the cache.
  CudaKvCache(const KvShape& shape, const CudaStream& stream, CudaTransfer& transfer);
  std::vector<std::byte> snapshot(std::uint32_t layer, std::uint32_t position) const override;

  const KvLayout& layout() const { return layout_; }
  std::byte* at(KvPart part, std::uint32_t layer, std::uint32_t position) const {
    return memory_.data() + layout_.offset(part, layer, 0, position);
  }
  /// (n_ctx) of zeros, and (n_ctx) with i + 1 at i: positions [zeros, at p) are what p sees.
  const unsigned* first_visible() const { return visible_.as<unsigned>(); }
  const unsigned* n_visible(std::uint32_t position) const {
    return visible_.as<unsigned>() + layout_.shape().n_ctx + position;
  }

 private:
  KvLayout layout_;
  CudaTransfer& transfer_;
  DeviceMemory memory_, visible_;
};

}  // namespace detrun
