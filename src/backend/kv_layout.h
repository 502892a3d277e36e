// Where a KV cache keeps what, the same on every device: per layer K then V, each (kv_head,
// position, stride). The stride is head_dim rounded up to 8 elements; what lies beyond head_dim is
// never written and stays zero. Addresses only, no memory.
#pragma once

#include <cstdint>

#include "detrun/backend.h"

namespace detrun {

enum class KvPart : std::uint32_t { kK = 0, kV = 1 };

class KvLayout {
 public:
  /// Error kUsage when the size of the cache overflows.
  explicit KvLayout(const KvShape& shape);
  const KvShape& shape() const { return shape_; }
  std::uint64_t element_bytes() const { return element_bytes_; }
  std::uint64_t total_bytes() const { return total_bytes_; }
  /// Elements from one position to the next, and from one kv head to the next.
  std::uint64_t stride() const { return stride_; }
  std::uint64_t head_stride() const { return shape_.n_ctx * stride_; }
  /// Byte offset of the vector of one kv head at one position.
  std::uint64_t offset(KvPart part, std::uint32_t layer, std::uint32_t kv_head,
                       std::uint32_t position) const;

 private:
  KvShape shape_;
  std::uint64_t stride_, element_bytes_, total_bytes_;
};

}  // namespace detrun
