// The KV cache of the CPU backend: per layer K then V, each (kv_head, position, stride). The stride
// is head_dim rounded up to 8 elements; what lies beyond head_dim is never written and stays zero.
#pragma once

#include "backend/cpu_memory.h"
#include "detrun/backend.h"

namespace detrun {

class CpuKvCache final : public KvCache {
 public:
  /// Error kInternal when the memory is not there, kUsage when the size overflows.
  explicit CpuKvCache(const KvShape& shape);
  std::vector<std::byte> snapshot(std::uint32_t layer, std::uint32_t position) const override;

  enum class Part : std::uint32_t { kK = 0, kV = 1 };
  const KvShape& shape() const { return shape_; }
  std::uint64_t stride() const { return stride_; }
  /// The vector of one kv head at one position; the next position is stride() elements on.
  std::byte* at(Part part, std::uint32_t layer, std::uint32_t kv_head, std::uint32_t position);
  const std::byte* at(Part part, std::uint32_t layer, std::uint32_t kv_head,
                      std::uint32_t position) const;

 private:
  KvShape shape_;
  std::uint64_t stride_;
  std::uint64_t element_bytes_;
  CpuMemory memory_;
};

}  // namespace detrun
