// fp32 GEMM kernels, emulated, bit-equal to the scalar reference over shapes that cross the edges
// of panels, threads, shared memory tiles and chains.
#include "kernels/cuda/gemm_f32.cuh"

#include "tests/cuda/product_support.h"

namespace detrun {
namespace {

using namespace cuda_test;
using kernels::f32_to_bf16;
using kernels::f32_to_f16;

struct Shape {
  unsigned m, n, k;
};

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (const unsigned m : {1u, 2u, 7u, 8u, 9u, 15u, 16u, 17u, 33u, 63u, 64u, 65u}) {
    all.push_back({m, 3, 40});
  }
  for (const unsigned n : {1u, 3u, 4u, 5u, 63u, 64u, 65u, 127u, 128u, 129u}) {
    all.push_back({2, n, 40});
  }
  // 16 steps of 32 fill the shared tile once.
  for (const unsigned k : {1u, 7u, 31u, 32u, 33u, 64u, 511u, 512u, 513u}) all.push_back({5, 6, k});
  all.push_back({65, 129, 70});
  return all;
}

// y (m, n) by the kernels; `weight` and x row after row.
template <class Element, class Kernel>
std::vector<float> emulated(Kernel kernel, emulation::LaneOrder order, const Shape& shape,
                            const std::vector<Element>& weight, const std::vector<float>& x) {
  const auto& [m, n, k] = shape;
  Aligned<Element> w_panels(cuda::panel_elements(n, k, cuda::kPanelOutputs));
  cuda::pack_panels(weight.data(), n, k, w_panels.data());
  Aligned<float> x_panels(cuda::panel_elements(m, k, cuda::kPanelRows));
  std::memset(x_panels.data(), 0xff, x_panels.size() * sizeof(float));
  launch_rows(blocks_for(x_panels.size(), device::kPackThreads), device::kPackThreads, order,
              [&] { device::detrun_pack_rows(x.data(), shape.m, shape.k, x_panels.data()); });
  Output y(std::size_t{m} * n);
  const emulation::Dim grid{blocks_for(n, cuda::kPanelOutputs), blocks_for(m, cuda::kPanelRows), 1};
  CHECK(emulation::launch(grid, {device::kGemmF32Threads, 1, 1}, order, [&] {
          kernel(w_panels.data(), x_panels.data(), y.data(), shape.m, shape.n, shape.k);
        }) == "");
  return y.take();
}

template <class Element, class Kernel>
void check_gemm(std::uint32_t gguf_id, Element (*narrow)(float), Kernel kernel) {
  std::mt19937 random(gguf_id);
  for (const Shape& shape : shapes()) {
    const auto& [m, n, k] = shape;
    const std::vector<float> wide = random_floats(random, std::size_t{n} * k, 2.0f);
    const std::vector<float> x = random_floats(random, std::size_t{m} * k, 2.0f);
    std::vector<Element> weight(wide.size());
    for (std::size_t i = 0; i < wide.size(); ++i) weight[i] = narrow(wide[i]);
    const std::vector<float> expected = scalar_product(gguf_id, weight.data(), m, n, k, x);
    for (const auto order : kOrders) {
      CAPTURE(shape.m);
      CAPTURE(shape.n);
      CAPTURE(shape.k);
      CHECK(same_bits(expected, emulated(kernel, order, shape, weight, x)));
    }
  }
}

float same(float value) { return value; }

}  // namespace

TEST_CASE("a product whose every term underflows is +0 in the GEMM kernel") {
  for (const unsigned k : {64u, 70u}) {  // without and with padding
    const std::vector<float> x(k, 0x1p-100f), weight(k, -0x1p-100f);
    const std::vector<float> y =
        emulated(device::detrun_gemm_f32, kOrders[0], {1, 1, k}, weight, x);
    CHECK(kernels::f32_bits(y[0]) == 0);
  }
}

TEST_CASE("rows of x go to their places in panels, with zeros around them") {
  constexpr unsigned kM = 70, kK = 45;
  std::vector<float> x(kM * kK);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 1.0f + static_cast<float>(i);
  std::vector<float> expected(cuda::panel_elements(kM, kK, cuda::kPanelRows));
  for (std::size_t row = 0; row < kM; ++row) {
    for (std::size_t i = 0; i < kK; ++i) {
      expected[((row / 64 * 32 + i % 32) * 2 + i / 32) * 64 + row % 64] = x[row * kK + i];
    }
  }
  for (const auto order : kOrders) {
    Output panels(expected.size());
    launch_rows(blocks_for(expected.size(), device::kPackThreads) + 1, device::kPackThreads, order,
                [&] { device::detrun_pack_rows(x.data(), kM, kK, panels.data()); });
    CHECK(panels.take() == expected);
  }
}

TEST_CASE("the F32 GEMM kernel equals the scalar reference bit for bit") {
  check_gemm<float>(0, same, device::detrun_gemm_f32);
}

TEST_CASE("the F16 GEMM kernel equals the scalar reference bit for bit") {
  check_gemm<std::uint16_t>(
      1, [](float v) { return f32_to_f16(v); }, device::detrun_gemm_f16);
}

TEST_CASE("the BF16 GEMM kernel equals the scalar reference bit for bit") {
  check_gemm<std::uint16_t>(
      30, [](float v) { return f32_to_bf16(v); }, device::detrun_gemm_bf16);
}

}  // namespace detrun
