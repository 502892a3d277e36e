// GEMV kernels of the quantized types, emulated, bit-equal to the scalar reference.
#include "kernels/cuda/gemv_quant.cuh"

#include "tests/cuda/product_support.h"

namespace detrun {
namespace {

using namespace cuda_test;

constexpr unsigned kRows[] = {1, 3, 4, 5, 9};
constexpr unsigned kGroups[] = {1, 2, 7, 8, 9, 17, 31, 32, 33, 70};

}  // namespace

TEST_CASE_TEMPLATE_DEFINE("the GEMV kernel equals the scalar reference bit for bit", Type,
                          gemv_quant) {
  std::mt19937 random(Type::kGgufId);
  for (const unsigned n : kRows) {
    for (const unsigned n_groups : kGroups) {
      if (Type::kBlockElems == 256 && n_groups > 17) continue;
      const unsigned k = n_groups * Type::kBlockElems;
      const auto blocks = random_blocks<Type>(random, std::size_t{n} * n_groups);
      const std::vector<float> x = random_activations(random, 1, k);
      const std::vector<float> expected = scalar_product(Type::kGgufId, blocks.data(), 1, n, k, x);
      DeviceBlocks<Type> weight(blocks);
      DeviceRows rows(x, 1, k);
      for (const auto order : kOrders) {
        Output y(n);
        launch_rows(blocks_for(n, device::kGemvQuantRows), device::kGemvQuantThreads, order, [&] {
          device::detrun_gemv_quant<Type>(one_matrix(weight.view(), y.data(), n), rows.view(),
                                          n_groups);
        });
        CAPTURE(n);
        CAPTURE(n_groups);
        CHECK(same_bits(expected, y.take()));
      }
    }
  }
}
TEST_CASE_TEMPLATE_APPLY(gemv_quant, QuantTypes);

TEST_CASE("bytes are lowered without a borrow between them") {
  for (unsigned value = 0; value < 128; ++value) {
    for (const unsigned offset : {4u, 8u, 16u, 32u, 128u}) {
      const auto word = static_cast<int>(value * 0x00010001u | (127 - value) * 0x01000100u);
      const int lowered = device::lower_bytes(word, offset);
      const int low = static_cast<int>(value) - static_cast<int>(offset);
      const int high = 127 - static_cast<int>(value) - static_cast<int>(offset);
      for (unsigned i = 0; i < 4; ++i) {
        CHECK(device::signed_byte(lowered, i) == (i % 2 == 0 ? low : high));
      }
    }
  }
}

TEST_CASE("the levels of eight half bytes are looked up in their places") {
  for (unsigned number = 0; number < 16; ++number) {
    CHECK(device::level_of(number) == kernels::iq4_level(static_cast<int>(number)));
    unsigned word = 0;
    for (unsigned i = 0; i < 8; ++i) word |= ((number + 3 * i) % 16) << (4 * i);
    int pair[2];
    device::look_up_levels(static_cast<int>(word), pair);
    for (unsigned i = 0; i < 8; ++i) {
      const int level = kernels::iq4_level(static_cast<int>((number + 3 * i) % 16));
      CHECK(device::signed_byte(pair[i % 2], i / 2) == level);
    }
  }
}

}  // namespace detrun
