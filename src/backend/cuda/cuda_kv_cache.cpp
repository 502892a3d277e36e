// See cuda_kv_cache.h.
#include "backend/cuda/cuda_kv_cache.h"

namespace detrun {

CudaKvCache::CudaKvCache(const KvShape& shape, const CudaStream& stream, CudaTransfer& transfer)
    : layout_(shape), transfer_(transfer), memory_(layout_.total_bytes(), "the KV cache") {
  if (memory_.size() != 0) {
    check_cuda(cudaMemsetAsync(memory_.data(), 0, memory_.size(), stream.get()), "cudaMemset");
  }
}

std::vector<std::byte> CudaKvCache::snapshot(std::uint32_t layer, std::uint32_t position) const {
  const KvShape& shape = layout_.shape();
  const std::uint64_t head_bytes = shape.head_dim * layout_.element_bytes();
  std::vector<std::byte> bytes(2 * shape.n_kv_heads * head_bytes);
  std::byte* to = bytes.data();
  for (const KvPart part : {KvPart::kK, KvPart::kV}) {
    for (std::uint32_t head = 0; head < shape.n_kv_heads; ++head, to += head_bytes) {
      transfer_.download(to, memory_.data() + layout_.offset(part, layer, head, position),
                         head_bytes);
    }
  }
  return bytes;
}

}  // namespace detrun
