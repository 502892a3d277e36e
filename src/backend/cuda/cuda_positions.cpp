// See cuda_positions.h. A row sees the positions before the one that follows it, so one ascending
// list serves as both: from its first number, and from its second.
#include "backend/cuda/cuda_positions.h"

#include <numeric>
#include <span>

namespace detrun {

CudaPositions::CudaPositions(const CudaStream& stream, CudaTransfer& transfer, ScratchMoves& moves)
    : stream_(stream),
      transfer_(transfer),
      numbers_("positions", moves),
      zeros_("positions", moves) {}

std::uint64_t CudaPositions::scratch_bytes(std::uint64_t rows) {
  return (2 * rows + 1) * sizeof(unsigned);
}

void CudaPositions::reserve(std::uint32_t rows) {
  if (rows <= capacity_) return;
  n_rows_ = 0;
  numbers_.room_for<unsigned>(std::uint64_t{rows} + 1);
  std::byte* zeros = zeros_.room(rows * sizeof(unsigned));
  check_cuda(cudaMemsetAsync(zeros, 0, rows * sizeof(unsigned), stream_.get()), "cudaMemset");
  staged_.resize(std::size_t{rows} + 1);
  capacity_ = rows;
}

void CudaPositions::set(std::uint32_t pos0, std::uint32_t rows) {
  if (pos0 == first_ && rows <= n_rows_) return;
  reserve(rows);
  const auto numbers = std::span(staged_).first(std::size_t{rows} + 1);
  std::iota(numbers.begin(), numbers.end(), pos0);
  n_rows_ = 0;  // should the copy fail
  transfer_.upload(numbers_.as<unsigned>(), numbers.data(), numbers.size_bytes());
  first_ = pos0;
  n_rows_ = rows;
}

}  // namespace detrun
