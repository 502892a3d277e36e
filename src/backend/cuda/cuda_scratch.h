// Device memory that operators use between their input and their output, grown when a larger size
// is first seen. One stream uses it, so what one operator left there the next may overwrite.
#pragma once

#include <cstdint>
#include <string_view>

#include "backend/cuda/cuda_handles.h"

namespace detrun {

/// How often scratch memory has moved: a recorded pass whose launches point into it is good for as
/// long as this stays.
struct ScratchMoves {
  std::uint64_t count = 0;
};

class CudaScratch {
 public:
  /// `moves` outlives the object.
  CudaScratch(std::string_view what, ScratchMoves& moves) : what_(what), moves_(moves) {}
  /// At least n_bytes. Growing waits for the device and loses what was there.
  std::byte* room(std::uint64_t n_bytes) {
    if (memory_.size() < n_bytes) {
      ++moves_.count;
      memory_ = DeviceMemory();  // first: the device may not hold both
      memory_ = DeviceMemory(n_bytes, what_);
    }
    return memory_.data();
  }
  template <class T>
  T* room_for(std::uint64_t count) {
    return static_cast<T*>(static_cast<void*>(room(count * sizeof(T))));
  }
  /// Bytes that room(n_bytes) would take of the device's memory: what is there is given back first.
  std::uint64_t missing(std::uint64_t n_bytes) const {
    return n_bytes > memory_.size() ? n_bytes - memory_.size() : 0;
  }
  template <class T>
  T* as() const {
    return memory_.as<T>();
  }

 private:
  std::string_view what_;
  ScratchMoves& moves_;
  DeviceMemory memory_;
};

}  // namespace detrun
