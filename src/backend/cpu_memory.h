// A block of ordinary memory: zeroed, 64-byte aligned, move-only. Not an allocator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace detrun {

/// Memory of the machine; 2^47 where the system does not say.
std::uint64_t physical_memory_bytes();

class CpuMemory {
 public:
  CpuMemory() = default;
  /// Large blocks are mapped: their zero pages cost nothing until they are written. Error
  /// kInternal, naming `what`, when the memory is not there.
  CpuMemory(std::uint64_t n_bytes, std::string_view what);
  ~CpuMemory();
  CpuMemory(CpuMemory&& other) noexcept;
  CpuMemory& operator=(CpuMemory&& other) noexcept;

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::uint64_t size() const { return n_bytes_; }
  template <class T>
  T* as() {
    return static_cast<T*>(static_cast<void*>(data_));
  }
  template <class T>
  const T* as() const {
    return static_cast<const T*>(static_cast<const void*>(data_));
  }

 private:
  std::byte* data_ = nullptr;
  std::uint64_t n_bytes_ = 0;
};

}  // namespace detrun
