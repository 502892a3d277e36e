// See cuda_handles.h. Destructors cannot report: what they might find was found by the wait that
// came before, or the process is about to end with the error that brought it here.
#include "backend/cuda/cuda_handles.h"

#include <limits>
#include <string>
#include <utility>

#include "detrun/error.h"

namespace detrun {

void check_cuda(cudaError_t status, std::string_view call) {
  if (status == cudaSuccess) return;
  const std::string why = cudaGetErrorString(status);
  static_cast<void>(cudaGetLastError());  // the next call is not to be blamed for it
  throw_internal("the GPU failed: " + std::string(call) + ": " + why);
}

DeviceMemory::DeviceMemory(std::uint64_t n_bytes, std::string_view what) : n_bytes_(n_bytes) {
  if (n_bytes == 0) return;
  void* memory = nullptr;
  const cudaError_t status = n_bytes <= std::numeric_limits<std::size_t>::max() / 2
                                 ? cudaMalloc(&memory, n_bytes)
                                 : cudaErrorMemoryAllocation;
  if (status == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    check_cuda(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
    throw_internal("out of memory on the device: " + std::string(what) + " needs " +
                   std::to_string(n_bytes) + " bytes, " + std::to_string(free_bytes) + " of " +
                   std::to_string(total_bytes) + " are free");
  }
  check_cuda(status, "cudaMalloc");
  data_ = static_cast<std::byte*>(memory);
}

DeviceMemory::~DeviceMemory() {
  if (data_ != nullptr) static_cast<void>(cudaFree(data_));
}

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), n_bytes_(std::exchange(other.n_bytes_, 0)) {}

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(n_bytes_, other.n_bytes_);
  return *this;
}

PinnedMemory::PinnedMemory(std::uint64_t n_bytes) : n_bytes_(n_bytes) {
  void* memory = nullptr;
  check_cuda(cudaHostAlloc(&memory, n_bytes, cudaHostAllocDefault), "cudaHostAlloc");
  data_ = static_cast<std::byte*>(memory);
}

PinnedMemory::~PinnedMemory() { static_cast<void>(cudaFreeHost(data_)); }

CudaStream::CudaStream() {
  check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
}

CudaStream::~CudaStream() { static_cast<void>(cudaStreamDestroy(stream_)); }

void CudaStream::synchronize() const {
  check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
}

CudaEvent::CudaEvent() {
  check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate");
}

CudaEvent::~CudaEvent() { static_cast<void>(cudaEventDestroy(event_)); }

void CudaEvent::record(const CudaStream& stream) {
  check_cuda(cudaEventRecord(event_, stream.get()), "cudaEventRecord");
}

void CudaEvent::synchronize() const {
  check_cuda(cudaEventSynchronize(event_), "cudaEventSynchronize");
}

}  // namespace detrun
