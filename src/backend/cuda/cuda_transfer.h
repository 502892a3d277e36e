// Copies between ordinary memory and the device through two pinned slices of fixed size: one is
// filled while the other travels. Everything is queued on one stream.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "backend/cuda/cuda_handles.h"

namespace detrun {

class CudaTransfer {
 public:
  /// The stream outlives the object.
  explicit CudaTransfer(const CudaStream& stream);
  /// Queues a copy. `from` may change at once; `to` may still be read by work queued before.
  void upload(void* to, const void* from, std::uint64_t n_bytes);
  /// Waits for all work queued before and for the copy: once for every 8 MiB, for 0 bytes never.
  void download(void* to, const void* from, std::uint64_t n_bytes);

 private:
  static constexpr std::uint64_t kSliceBytes = std::uint64_t{4} << 20U;
  const CudaStream& stream_;
  PinnedMemory pinned_{2 * kSliceBytes};
  std::array<CudaEvent, 2> travelled_;  ///< the slice may be filled again
  std::size_t next_ = 0;
};

}  // namespace detrun
