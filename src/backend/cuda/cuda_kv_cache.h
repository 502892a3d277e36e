// The KV cache on a device: KvLayout in device memory. The values are written and read by kernels.
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
  /// Position 0 of a layer.
  std::byte* at(KvPart part, std::uint32_t layer) const {
    return memory_.data() + layout_.offset(part, layer, 0, 0);
  }

 private:
  KvLayout layout_;
  CudaTransfer& transfer_;
  DeviceMemory memory_;
};

}  // namespace detrun
