// Where the rows of a pass stand and what they see, in device memory: kernels read it there, so
// that the launches of one step are those of the next.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/cuda/cuda_scratch.h"
#include "backend/cuda/cuda_transfer.h"

namespace detrun {

class CudaPositions {
 public:
  /// All outlive the object.
  CudaPositions(const CudaStream& stream, CudaTransfer& transfer, ScratchMoves& moves);
  static std::uint64_t scratch_bytes(std::uint64_t rows);
  void reserve(std::uint32_t rows);
  /// From here on in the stream row r stands at pos0 + r. Queues a copy unless that is so already.
  void set(std::uint32_t pos0, std::uint32_t rows);

  /// (rows) of the last set(): where a row stands; and the positions first .. n - 1 that it sees.
  const unsigned* get() const { return numbers_.as<unsigned>(); }
  const unsigned* first_visible() const { return zeros_.as<unsigned>(); }
  const unsigned* n_visible() const { return get() + 1; }

 private:
  const CudaStream& stream_;
  CudaTransfer& transfer_;
  CudaScratch numbers_, zeros_;
  std::vector<unsigned> staged_;  ///< kept so that steps allocate nothing
  std::uint32_t first_ = 0;       ///< numbers_ holds first_ ..
  std::uint32_t n_rows_ = 0;      ///< .. first_ + n_rows_; 0: nothing
  std::uint32_t capacity_ = 0;
};

}  // namespace detrun
