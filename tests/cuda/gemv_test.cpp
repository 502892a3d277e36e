// GEMV kernels, emulated, bit-equal to the scalar reference over shapes that cross every boundary.
#include "kernels/cuda/gemv.cuh"

#include "tests/cuda/product_support.h"

namespace detrun {
namespace {

using namespace cuda_test;
using kernels::f32_to_bf16;
using kernels::f32_to_f16;

constexpr unsigned kShapes[][2] = {{1, 1},  {3, 7},   {31, 8},  {32, 32}, {33, 33},
                                   {5, 63}, {40, 64}, {64, 70}, {7, 576}, {9, 1000}};

template <class Kernel, class Element>
void check_float_kernel(Kernel kernel, std::uint32_t gguf_id, Element (*narrow)(float)) {
  std::mt19937 random(7);
  for (const auto& shape : kShapes) {
    const unsigned n = shape[0];
    const unsigned k = shape[1];
    const std::vector<float> wide = random_floats(random, std::size_t{n} * k, 2.0f);
    const std::vector<float> x = random_floats(random, k, 2.0f);
    std::vector<Element> weight(wide.size());
    for (std::size_t i = 0; i < wide.size(); ++i) weight[i] = narrow(wide[i]);
    const std::vector<float> expected = scalar_product(gguf_id, weight.data(), 1, n, k, x);
    for (const auto order : kOrders) {
      Output y(n);
      launch_rows(blocks_for(n, device::kGemvFloatRows), device::kGemvThreads, order,
                  [&] { kernel(weight.data(), x.data(), y.data(), n, k); });
      CAPTURE(n);
      CAPTURE(k);
      CHECK(same_bits(expected, y.take()));
    }
  }
}

}  // namespace

TEST_CASE("the F32 GEMV kernel equals the scalar reference bit for bit") {
  check_float_kernel<decltype(&device::detrun_gemv_f32), float>(device::detrun_gemv_f32, 0,
                                                                [](float v) { return v; });
}

TEST_CASE("a product whose every term underflows is +0 in the GEMV kernel") {
  const std::vector<float> x(70, 0x1p-100f), weight(70, -0x1p-100f);
  Output y(1);
  launch_rows(1, device::kGemvThreads, kOrders[0],
              [&] { device::detrun_gemv_f32(weight.data(), x.data(), y.data(), 1, 70); });
  CHECK(kernels::f32_bits(y.take()[0]) == 0);
}

TEST_CASE("the F16 GEMV kernel equals the scalar reference bit for bit") {
  check_float_kernel<decltype(&device::detrun_gemv_f16), std::uint16_t>(
      device::detrun_gemv_f16, 1, [](float v) { return f32_to_f16(v); });
}

TEST_CASE("the BF16 GEMV kernel equals the scalar reference bit for bit") {
  check_float_kernel<decltype(&device::detrun_gemv_bf16), std::uint16_t>(
      device::detrun_gemv_bf16, 30, [](float v) { return f32_to_bf16(v); });
}

TEST_CASE("the Q8_0 GEMV kernel equals the scalar reference bit for bit") {
  std::mt19937 random(11);
  for (const unsigned n : {1u, 7u, 8u, 9u, 40u}) {
    for (const unsigned n_blocks : {1u, 2u, 7u, 8u, 9u, 18u, 64u}) {
      const unsigned k = n_blocks * 32;
      const std::vector<kernels::BlockQ8_0> blocks = random_q8_0(random, std::size_t{n} * n_blocks);
      const std::vector<float> x = random_activations(random, 1, k);
      const std::vector<float> expected = scalar_product(8, blocks.data(), 1, n, k, x);
      DeviceQ8_0 weight(blocks);
      DeviceRows rows(x, 1, k);
      for (const auto order : kOrders) {
        Output y(n);
        launch_rows(blocks_for(n, device::kGemvQ8Rows), device::kGemvThreads, order, [&] {
          device::detrun_gemv_q8_0(weight.scales.data(), weight.quants.data(), rows.view().quants,
                                   rows.view().scales, y.data(), n, n_blocks);
        });
        CAPTURE(n);
        CAPTURE(n_blocks);
        CHECK(same_bits(expected, y.take()));
      }
    }
  }
}

}  // namespace detrun
