// The kernels that measure what a GPU does at most do the work that they are counted for: every
// byte, every round, and nothing beyond.
#include "kernels/cuda/ceilings.h"

#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <vector>

namespace detrun {
namespace {

constexpr unsigned kBlocks = 2;
constexpr std::size_t kThreads = std::size_t{kBlocks} * cuda::kCeilingThreads;

struct alignas(16) Piece {
  std::uint8_t bytes[16];
  bool operator==(const Piece&) const = default;
};

// Memory of the emulated device is ordinary memory, and the null stream runs at once.
void check_copy(std::size_t n_pieces) {
  std::vector<Piece> from(n_pieces + 1);
  std::vector<Piece> to(n_pieces + 1);
  for (std::size_t i = 0; i < from.size(); ++i) {
    for (std::size_t b = 0; b < 16; ++b) {
      from[i].bytes[b] = static_cast<std::uint8_t>(i * 7 + b + i / 251 + 1);
    }
  }
  const Piece untouched = to.back();
  REQUIRE(cuda::ceiling_copy(from.data(), n_pieces * 16, to.data(), kBlocks, nullptr) ==
          cudaSuccess);
  CHECK(to.back() == untouched);
  to.back() = from.back();
  CHECK(to == from);
}

TEST_CASE("the copy copies every byte and none beyond, whatever the grid leaves over") {
  for (const std::size_t n : {std::size_t{4}, kThreads, 4 * kThreads, 11 * kThreads + 12}) {
    CAPTURE(n);
    check_copy(n);
  }
}

TEST_CASE("every thread makes every multiply-add that is counted") {
  for (const unsigned rounds : {1U, 5U}) {
    std::vector<float> out(kThreads + 1, -1);
    REQUIRE(cuda::ceiling_fma(rounds, out.data(), kBlocks, nullptr) == cudaSuccess);
    // Each adds 0.5 * 0.25; all chains are summed up.
    const auto n_fma = static_cast<float>(cuda::kCeilingFmaFlops / 2 * rounds);
    std::vector<float> expected(kThreads + 1, n_fma * 0.125F);
    expected.back() = -1;
    CHECK(out == expected);
  }
}

TEST_CASE("every warp makes every product of 8 bits that is counted") {
  for (const unsigned rounds : {1U, 3U}) {
    std::vector<int> out(kThreads + 1, 7);
    REQUIRE(cuda::ceiling_int8(rounds, out.data(), kBlocks, nullptr) == cudaSuccess);
    // 1 * -2 each; what a warp counts is divided between its threads.
    const auto n_products = static_cast<int>(cuda::kCeilingInt8Ops / 2 * rounds);
    std::vector<int> expected(kThreads + 1, -2 * n_products);
    expected.back() = 7;
    CHECK(out == expected);
  }
}

}  // namespace
}  // namespace detrun
