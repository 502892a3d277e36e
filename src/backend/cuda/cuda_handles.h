// Owners of what the CUDA runtime hands out, and the one function that every call goes through.
// Compiled against the real and against the emulated runtime.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace detrun {

/// Error kInternal naming the call unless it succeeded.
void check_cuda(cudaError_t status, std::string_view call);

/// Memory of the calling thread's current device, at a multiple of 256 bytes. Not zeroed.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  /// Error kInternal, naming `what` with the bytes needed and free, when the memory is not there.
  DeviceMemory(std::uint64_t n_bytes, std::string_view what);
  ~DeviceMemory();
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;

  std::byte* data() const { return data_; }
  std::uint64_t size() const { return n_bytes_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(static_cast<void*>(data_));
  }

 private:
  std::byte* data_ = nullptr;
  std::uint64_t n_bytes_ = 0;
};

/// Memory of the host that a device can read and write while other work goes on.
class PinnedMemory {
 public:
  explicit PinnedMemory(std::uint64_t n_bytes);
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  std::byte* data() const { return data_; }
  std::uint64_t size() const { return n_bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::uint64_t n_bytes_;
};

/// A queue of work on the current device that waits for no other.
class CudaStream {
 public:
  CudaStream();
  ~CudaStream();
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  cudaStream_t get() const { return stream_; }
  /// Until everything queued is done. Error kInternal for what failed meanwhile.
  void synchronize() const;

 private:
  cudaStream_t stream_ = nullptr;
};

/// A place in a stream that the host can wait for; nothing to wait for before the first record().
class CudaEvent {
 public:
  CudaEvent();
  ~CudaEvent();
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  void record(const CudaStream& stream);
  void synchronize() const;

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace detrun
