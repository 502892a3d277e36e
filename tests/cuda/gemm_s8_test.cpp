// int8 GEMM kernels, emulated, bit-equal to the scalar reference over shapes that cross the edges
// of tensor core tiles, warps and thread blocks.
#include "kernels/cuda/gemm_s8.cuh"

#include "tests/cuda/product_support.h"

namespace detrun {
namespace {

using namespace cuda_test;

struct Shape {
  unsigned m, n, n_groups;
};

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (unsigned m = 1; m <= 70; ++m) all.push_back({m, 1 + m % 5, 1 + m % 3});
  for (const unsigned n : {1u, 7u, 8u, 9u, 15u, 16u, 17u, 63u, 64u, 65u, 128u, 130u}) {
    all.push_back({3, n, 2});
  }
  for (const unsigned n_groups : {1u, 7u, 8u, 9u, 17u}) all.push_back({10, 20, n_groups});
  all.push_back({33, 65, 9});
  return all;
}

}  // namespace

TEST_CASE_TEMPLATE_DEFINE("the int8 GEMM kernel equals the scalar reference bit for bit", Type,
                          gemm_quant) {
  std::mt19937 random(Type::kGgufId);
  for (const Shape& shape : shapes()) {
    const auto& [m, n, n_groups] = shape;
    const unsigned k = n_groups * Type::kBlockElems;
    const auto blocks = random_blocks<Type>(random, std::size_t{n} * n_groups);
    const std::vector<float> x = random_activations(random, m, k);
    const std::vector<float> expected = scalar_product(Type::kGgufId, blocks.data(), m, n, k, x);
    DeviceBlocks<Type> weight(blocks);
    DeviceRows rows(x, m, k);
    const emulation::Dim grid{blocks_for(n, device::kGemmS8Outputs),
                              blocks_for(m, device::kGemmS8Rows), 1};
    for (const auto order : kOrders) {
      Output y(expected.size());
      CHECK(emulation::launch(grid, {device::kGemmS8Threads, 1, 1}, order, [&] {
              device::detrun_gemm_quant<Type>(weight.view(), rows.view(), y.data(), shape.m,
                                              shape.n, shape.n_groups);
            }) == "");
      CAPTURE(shape.m);
      CAPTURE(shape.n);
      CAPTURE(shape.n_groups);
      CHECK(same_bits(expected, y.take()));
    }
  }
}
TEST_CASE_TEMPLATE_APPLY(gemm_quant, QuantTypes);

}  // namespace detrun
