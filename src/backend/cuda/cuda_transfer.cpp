// See cuda_transfer.h.
#include "backend/cuda/cuda_transfer.h"

#include <algorithm>
#include <cstring>

namespace detrun {

CudaTransfer::CudaTransfer(const CudaStream& stream) : stream_(stream) {}

void CudaTransfer::upload(void* to, const void* from, std::uint64_t n_bytes) {
  auto* target = static_cast<std::byte*>(to);
  const auto* source = static_cast<const std::byte*>(from);
  while (n_bytes > 0) {
    const std::uint64_t n = std::min(n_bytes, kSliceBytes);
    std::byte* slice = pinned_.data() + next_ * kSliceBytes;
    travelled_.at(next_).synchronize();
    std::memcpy(slice, source, n);
    check_cuda(cudaMemcpyAsync(target, slice, n, cudaMemcpyHostToDevice, stream_.get()),
               "copy to the device");
    travelled_.at(next_).record(stream_);
    next_ = 1 - next_;
    target += n;
    source += n;
    n_bytes -= n;
  }
}

void CudaTransfer::download(void* to, const void* from, std::uint64_t n_bytes) {
  auto* target = static_cast<std::byte*>(to);
  const auto* source = static_cast<const std::byte*>(from);
  while (n_bytes > 0) {
    const std::uint64_t n = std::min(n_bytes, 2 * kSliceBytes);
    check_cuda(cudaMemcpyAsync(pinned_.data(), source, n, cudaMemcpyDeviceToHost, stream_.get()),
               "copy from the device");
    stream_.synchronize();
    std::memcpy(target, pinned_.data(), n);
    target += n;
    source += n;
    n_bytes -= n;
  }
}

}  // namespace detrun
