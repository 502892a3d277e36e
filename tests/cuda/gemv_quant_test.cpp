// GEMV kernels of the K-quants, emulated, bit-equal to the scalar reference.
#include "kernels/cuda/gemv_quant.cuh"

#include "tests/cuda/product_support.h"

namespace detrun {
namespace {

using namespace cuda_test;

constexpr unsigned kRows[] = {1, 3, 4, 5, 9};
constexpr unsigned kGroups[] = {1, 2, 7, 8, 9, 17};

template <class Device, class Blocks, class Kernel>
void check_gemv(std::uint32_t gguf_id, Blocks (*make)(std::mt19937&, std::size_t), Kernel kernel) {
  std::mt19937 random(gguf_id);
  for (const unsigned n : kRows) {
    for (const unsigned n_groups : kGroups) {
      const unsigned k = n_groups * 256;
      const Blocks blocks = make(random, std::size_t{n} * n_groups);
      const std::vector<float> x = random_activations(random, 1, k);
      const std::vector<float> expected = scalar_product(gguf_id, blocks.data(), 1, n, k, x);
      Device weight(blocks);
      DeviceRows rows(x, 1, k);
      for (const auto order : kOrders) {
        Output y(n);
        launch_rows(blocks_for(n, device::kGemvQuantRows), device::kGemvQuantThreads, order,
                    [&] { kernel(weight.view(), rows.view(), y.data(), n, n_groups); });
        CAPTURE(n);
        CAPTURE(n_groups);
        CHECK(same_bits(expected, y.take()));
      }
    }
  }
}

}  // namespace

TEST_CASE("the Q4_K GEMV kernel equals the scalar reference bit for bit") {
  check_gemv<DeviceQ4K>(12, random_q4_k, device::detrun_gemv_q4_k);
}

TEST_CASE("the Q6_K GEMV kernel equals the scalar reference bit for bit") {
  check_gemv<DeviceQ6K>(14, random_q6_k, device::detrun_gemv_q6_k);
}

TEST_CASE("six bits in four bytes are lowered by 32 without a borrow between bytes") {
  for (unsigned value = 0; value < 64; ++value) {
    for (unsigned shift = 0; shift <= 6; shift += 2) {
      const unsigned other = 63 - value;
      const auto low = static_cast<int>((value & 15) * 0x00010001u | (other & 15) * 0x01000100u);
      const auto high = static_cast<int>((value >> 4) * 0x00010001u << shift |
                                         (other >> 4) * 0x01000100u << shift);
      const int joined = device::six_bits(low, high, shift);
      CHECK(static_cast<std::int8_t>(joined) == static_cast<int>(value) - 32);
      CHECK(static_cast<std::int8_t>(joined >> 8) == static_cast<int>(other) - 32);
      CHECK(static_cast<std::int8_t>(joined >> 24) == static_cast<int>(other) - 32);
    }
  }
}

}  // namespace detrun
