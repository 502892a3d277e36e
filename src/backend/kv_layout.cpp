// See kv_layout.h.
#include "backend/kv_layout.h"

#include <limits>

#include "detrun/error.h"

namespace detrun {
namespace {

std::uint64_t checked_bytes(const KvShape& shape, std::uint64_t stride,
                            std::uint64_t element_bytes) {
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

KvLayout::KvLayout(const KvShape& shape)
    : shape_(shape),
      stride_((std::uint64_t{shape.head_dim} + 7) / 8 * 8),
      element_bytes_(shape.type == KvType::kF16 ? 2 : 4),
      total_bytes_(checked_bytes(shape, stride_, element_bytes_)) {}

std::uint64_t KvLayout::offset(KvPart part, std::uint32_t layer, std::uint32_t kv_head,
                               std::uint32_t position) const {
  DETRUN_CHECK(layer < shape_.n_layers && kv_head < shape_.n_kv_heads && position < shape_.n_ctx);
  const std::uint64_t matrix = std::uint64_t{layer} * 2 + static_cast<std::uint64_t>(part);
  const std::uint64_t head = matrix * shape_.n_kv_heads + kv_head;
  return (head * shape_.n_ctx + position) * stride_ * element_bytes_;
}

}  // namespace detrun
