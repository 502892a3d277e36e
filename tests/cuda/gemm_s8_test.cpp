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
  for (const unsigned m : {1u, 2u, 7u, 8u, 9u, 15u, 16u, 17u, 31u, 32u, 33u}) {
    all.push_back({m, 5, 2});
  }
  for (const unsigned n : {1u, 7u, 8u, 9u, 15u, 16u, 17u, 63u, 64u, 65u, 128u, 130u}) {
    all.push_back({3, n, 2});
  }
  for (const unsigned n_groups : {1u, 3u, 7u, 8u, 9u, 17u}) all.push_back({10, 20, n_groups});
  all.push_back({33, 65, 9});
  return all;
}

template <class Device, class Blocks, class Kernel>
void check_gemm(std::uint32_t gguf_id, unsigned block_elements,
                Blocks (*make)(std::mt19937&, std::size_t), Kernel kernel) {
  std::mt19937 random(gguf_id);
  for (const Shape& shape : shapes()) {
    const unsigned k = shape.n_groups * block_elements;
    const Blocks blocks = make(random, std::size_t{shape.n} * shape.n_groups);
    const std::vector<float> x = random_activations(random, shape.m, k);
    const std::vector<float> expected =
        scalar_product(gguf_id, blocks.data(), shape.m, shape.n, k, x);
    Device weight(blocks);
    DeviceRows rows(x, shape.m, k);
    const emulation::Dim grid{blocks_for(shape.n, device::kGemmS8Outputs),
                              blocks_for(shape.m, device::kGemmS8Rows), 1};
    for (const auto order : kOrders) {
      Output y(expected.size());
      CHECK(emulation::launch(grid, {device::kGemmS8Threads, 1, 1}, order, [&] {
              kernel(weight.view(), rows.view(), y.data(), shape.m, shape.n, shape.n_groups);
            }) == "");
      CAPTURE(shape.m);
      CAPTURE(shape.n);
      CAPTURE(shape.n_groups);
      CHECK(same_bits(expected, y.take()));
    }
  }
}

}  // namespace

TEST_CASE("the Q8_0 GEMM kernel equals the scalar reference bit for bit") {
  check_gemm<DeviceQ8_0>(8, 32, random_q8_0, device::detrun_gemm_q8_0);
}

TEST_CASE("the Q4_K GEMM kernel equals the scalar reference bit for bit") {
  check_gemm<DeviceQ4K>(12, 256, random_q4_k, device::detrun_gemm_q4_k);
}

TEST_CASE("the Q6_K GEMM kernel equals the scalar reference bit for bit") {
  check_gemm<DeviceQ6K>(14, 256, random_q6_k, device::detrun_gemm_q6_k);
}

}  // namespace detrun
