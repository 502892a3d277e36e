// Device memory that operators use between their input and their output, grown when a larger size
// is first seen. One stream uses it, so what one operator left there the next may overwrite.
#pragma once

#include <string_view>

#include "backend/cuda/cuda_handles.h"

namespace detrun {

class CudaScratch {
 public:
  explicit CudaScratch(std::string_view what) : what_(what) {}
  /// At least n_bytes. Growing waits for the device and loses what was there.
  std::byte* room(std::uint64_t n_bytes) {
    if (memory_.size() < n_bytes) {
      memory_ = DeviceMemory();  // first: the device may not hold both
      memory_ = DeviceMemory(n_bytes, what_);
    }
    return memory_.data();
  }
  template <class T>
  T* room_for(std::uint64_t count) {
    return static_cast<T*>(static_cast<void*>(room(count * sizeof(T))));
  }

 private:
  std::string_view what_;
  DeviceMemory memory_;
};

}  // namespace detrun
