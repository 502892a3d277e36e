// The KV cache of the CPU backend: KvLayout in ordinary memory.
#pragma once

#include "backend/cpu_memory.h"
#include "backend/kv_layout.h"
#include "detrun/backend.h"

namespace detrun {

class CpuKvCache final : public KvCache {
 public:
  /// Error kInternal when the memory is not there, kUsage when the size overflows.
  explicit CpuKvCache(const KvShape& shape);
  std::vector<std::byte> snapshot(std::uint32_t layer, std::uint32_t position) const override;

  using Part = KvPart;
  const KvShape& shape() const { return layout_.shape(); }
  std::uint64_t stride() const { return layout_.stride(); }
  /// The vector of one kv head at one position; the next position is stride() elements on.
  std::byte* at(Part part, std::uint32_t layer, std::uint32_t kv_head, std::uint32_t position);
  const std::byte* at(Part part, std::uint32_t layer, std::uint32_t kv_head,
                      std::uint32_t position) const;

 private:
  KvLayout layout_;
  CpuMemory memory_;
};

}  // namespace detrun
