// Addressing and size of the cache; the values are written and read by kernels.
#include "backend/cpu_kv_cache.h"

namespace detrun {

CpuKvCache::CpuKvCache(const KvShape& shape)
    : layout_(shape), memory_(layout_.total_bytes(), "the KV cache") {}

const std::byte* CpuKvCache::at(Part part, std::uint32_t layer, std::uint32_t kv_head,
                                std::uint32_t position) const {
  return memory_.data() + layout_.offset(part, layer, kv_head, position);
}

std::byte* CpuKvCache::at(Part part, std::uint32_t layer, std::uint32_t kv_head,
                          std::uint32_t position) {
  const std::byte* found = static_cast<const CpuKvCache*>(this)->at(part, layer, kv_head, position);
  return memory_.data() + (found - memory_.data());
}

std::vector<std::byte> CpuKvCache::snapshot(std::uint32_t layer, std::uint32_t position) const {
  std::vector<std::byte> bytes;
  const std::uint64_t head_bytes = shape().head_dim * layout_.element_bytes();
  bytes.reserve(2 * shape().n_kv_heads * head_bytes);
  for (const Part part : {Part::kK, Part::kV}) {
    for (std::uint32_t head = 0; head < shape().n_kv_heads; ++head) {
      const std::byte* p = at(part, layer, head, position);
      bytes.insert(bytes.end(), p, p + head_bytes);
    }
  }
  return bytes;
}

}  // namespace detrun
