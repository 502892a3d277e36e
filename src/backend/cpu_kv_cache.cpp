// Addressing and size of the cache; the values are written and read by kernels.
#include "backend/cpu_kv_cache.h"

#include <limits>

#include "detrun/error.h"

namespace detrun {
namespace {

std::uint64_t total_bytes(const KvShape& shape, std::uint64_t stride, std::uint64_t element_bytes) {
  std::uint64_t total = 2 * element_bytes;
  const std::uint64_t factors[] = {shape.n_layers, shape.n_ctx, shape.n_kv_heads, stride};
  for (const std::uint64_t factor : factors) {
    if (factor != 0 && total > std::numeric_limits<std::uint64_t>::max() / factor) {
      throw_usage(
          "the KV cache of " + std::to_string(shape.n_ctx) + " positions is larger than any memory",
          "use a smaller --ctx");
    }
    total *= factor;
  }
  return total;
}

}  // namespace

CpuKvCache::CpuKvCache(const KvShape& shape)
    : shape_(shape),
      stride_((std::uint64_t{shape.head_dim} + 7) / 8 * 8),
      element_bytes_(shape.type == KvType::kF16 ? 2 : 4),
      memory_(total_bytes(shape, stride_, element_bytes_), "the KV cache") {}

const std::byte* CpuKvCache::at(Part part, std::uint32_t layer, std::uint32_t kv_head,
                                std::uint32_t position) const {
  DETRUN_CHECK(layer < shape_.n_layers && kv_head < shape_.n_kv_heads && position < shape_.n_ctx);
  const std::uint64_t matrix = std::uint64_t{layer} * 2 + static_cast<std::uint64_t>(part);
  const std::uint64_t head = matrix * shape_.n_kv_heads + kv_head;
  const std::uint64_t element = (head * shape_.n_ctx + position) * stride_;
  return memory_.data() + element * element_bytes_;
}

std::byte* CpuKvCache::at(Part part, std::uint32_t layer, std::uint32_t kv_head,
                          std::uint32_t position) {
  const std::byte* found = static_cast<const CpuKvCache*>(this)->at(part, layer, kv_head, position);
  return memory_.data() + (found - memory_.data());
}

std::vector<std::byte> CpuKvCache::snapshot(std::uint32_t layer, std::uint32_t position) const {
  std::vector<std::byte> bytes;
  const std::uint64_t head_bytes = shape_.head_dim * element_bytes_;
  bytes.reserve(2 * shape_.n_kv_heads * head_bytes);
  for (const Part part : {Part::kK, Part::kV}) {
    for (std::uint32_t head = 0; head < shape_.n_kv_heads; ++head) {
      const std::byte* p = at(part, layer, head, position);
      bytes.insert(bytes.end(), p, p + head_bytes);
    }
  }
  return bytes;
}

}  // namespace detrun
