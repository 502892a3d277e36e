// Memory of the device, owned, with guard zones before and behind that show a stray write. The same
// source runs on the emulated runtime of kernels/cuda/emulated_runtime.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace detrun::smoke {

/// The device or its driver failed; nothing after it can be trusted.
struct DeviceFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws DeviceFailure unless the call succeeded.
void require(cudaError_t status, const char* what);

class DeviceMemory {
 public:
  /// `size` bytes that hold a pattern, aligned to 256.
  explicit DeviceMemory(std::size_t size);
  DeviceMemory(const void* from, std::size_t size);
  template <class T>
  explicit DeviceMemory(std::span<const T> from) : DeviceMemory(from.data(), from.size_bytes()) {}
  template <class T>
  explicit DeviceMemory(const std::vector<T>& from)
      : DeviceMemory(from.data(), from.size() * sizeof(T)) {}
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  template <class T>
  T* as() {
    return reinterpret_cast<T*>(base_ + kGuard);
  }
  template <class T>
  void write(const std::vector<T>& from) {
    write_from(from.data(), from.size() * sizeof(T));
  }
  /// Waits for the device, copies everything back. Throws DeviceFailure when a guard changed.
  template <class T>
  std::vector<T> read() {
    std::vector<T> all(size_ / sizeof(T));
    read_into(all.data());
    return all;
  }
  void read_into(void* to);
  /// Waits for the device. Throws DeviceFailure when a guard changed.
  void check_guards();
  /// At most `size` bytes.
  void write_from(const void* from, std::size_t size);

 private:
  static constexpr std::size_t kGuard = 256;
  std::byte* base_ = nullptr;
  std::size_t size_;
};

/// An int that kernels set when the contract calls a value an error.
class DeviceFlag {
 public:
  DeviceFlag() : memory_(std::vector<int>{0}) {}
  int* pointer() { return memory_.as<int>(); }
  bool raised() { return memory_.read<int>()[0] != 0; }

 private:
  DeviceMemory memory_;
};

struct DeviceDescription {
  std::string name;     ///< "NVIDIA H200"
  std::string details;  ///< compute capability, multiprocessors, memory, driver, runtime
};
/// False when there is no usable device; `why` then says so in the driver's words.
bool find_device(DeviceDescription* found, std::string* why);

}  // namespace detrun::smoke
