// Positions in device memory: the numbers that kernels read, and that nothing is copied twice.
#include "backend/cuda/cuda_positions.h"

#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <vector>

using namespace detrun;

namespace {

std::vector<unsigned> read(CudaTransfer& transfer, const unsigned* from, std::size_t n) {
  std::vector<unsigned> values(n);
  transfer.download(values.data(), from, n * sizeof(unsigned));
  return values;
}

}  // namespace

TEST_CASE("rows stand one after the other and see what came before and themselves") {
  const CudaStream stream;
  CudaTransfer transfer(stream);
  ScratchMoves moves;
  CudaPositions positions(stream, transfer, moves);
  struct Step {
    std::uint32_t pos0, rows;
  };
  for (const Step& step : {Step{0, 1}, {7, 3}, {8, 1}, {8, 2}, {64, 5}, {64, 3}, {0, 5}, {0, 1}}) {
    CAPTURE(step.pos0);
    CAPTURE(step.rows);
    positions.set(step.pos0, step.rows);
    std::vector<unsigned> at, seen;
    for (std::uint32_t r = 0; r < step.rows; ++r) {
      at.push_back(step.pos0 + r);
      seen.push_back(step.pos0 + r + 1);
    }
    CHECK(read(transfer, positions.get(), step.rows) == at);
    CHECK(read(transfer, positions.n_visible(), step.rows) == seen);
    CHECK(read(transfer, positions.first_visible(), step.rows) ==
          std::vector<unsigned>(step.rows, 0));
  }
}

TEST_CASE("positions move when more rows come than there is room for, and never after") {
  const CudaStream stream;
  CudaTransfer transfer(stream);
  ScratchMoves moves;
  CudaPositions positions(stream, transfer, moves);
  positions.reserve(4);
  const std::uint64_t before = moves.count;
  const unsigned* const first = positions.get();
  for (std::uint32_t pos0 = 0; pos0 < 20; ++pos0) positions.set(pos0, 1 + pos0 % 4);
  CHECK(moves.count == before);
  CHECK(positions.get() == first);
  positions.set(3, 5);
  CHECK(moves.count > before);
}
