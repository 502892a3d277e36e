// GEMV kernels, emulated, bit-equal to the scalar reference over shapes that cross every boundary;
// and what they say of activations that are not finite.
#include "kernels/cuda/gemv.cuh"

#include <cmath>
#include <limits>

#include "tests/cuda/product_support.h"

namespace detrun {
namespace {

using namespace cuda_test;
using kernels::f32_to_bf16;
using kernels::f32_to_f16;

// Columns: any; multiples of 8, which are loaded whole; 256 or, of halves, 512, a batch of loads,
// and around both.
constexpr unsigned kShapes[][2] = {{1, 1},   {3, 7},   {31, 8},  {32, 32},  {33, 33},  {5, 63},
                                   {40, 64}, {64, 70}, {7, 576}, {9, 1000}, {4, 24},   {3, 248},
                                   {3, 256}, {3, 264}, {2, 255}, {2, 257},  {5, 1048}, {3, 504},
                                   {3, 512}, {3, 520}, {2, 513}, {2, 1024}, {4, 20},   {3, 260}};

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
      for (const bool look : {false, true}) {
        Output y(n);
        Aligned<Element> w(weight.size());
        Aligned<float> v(x.size());
        std::copy(weight.begin(), weight.end(), w.data());
        std::copy(x.begin(), x.end(), v.data());
        int flag = 0;
        int* not_finite = look ? &flag : nullptr;
        launch_rows(blocks_for(n, device::kGemvFloatRows) + (look ? 1 : 0), device::kGemvThreads,
                    order, [&] {
                      kernel(one_matrix<const Element*>(w.data(), y.data(), n), v.data(), k,
                             not_finite);
                    });
        CAPTURE(n);
        CAPTURE(k);
        CHECK(same_bits(expected, y.take()));
        CHECK(flag == 0);
      }
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
  launch_rows(1, device::kGemvThreads, kOrders[0], [&] {
    device::detrun_gemv_f32(one_matrix<const float*>(weight.data(), y.data(), 1), x.data(), 70,
                            nullptr);
  });
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

TEST_CASE("the GEMV kernels say of one element anywhere in x that it is not finite") {
  constexpr unsigned kK = 2 * device::kFiniteBatch * device::kGemvThreads + 7;
  const std::vector<std::uint16_t> weight(kK);
  for (const float bad : {HUGE_VALF, -HUGE_VALF, std::nanf("")}) {
    for (const unsigned k : {1u, 8u, 130u, kK}) {
      for (const unsigned at : {0u, 1u, 127u, 128u, 1023u, 1024u, 2047u, 2048u, kK - 1}) {
        if (at > k) continue;  // at k: behind the row, for nobody to see
        std::vector<float> x(std::size_t{k} + 1, std::numeric_limits<float>::max());
        x[at] = bad;
        Aligned<float> v(x.size());
        std::copy(x.begin(), x.end(), v.data());
        Output y(1);
        int flag = 0;
        launch_rows(2, device::kGemvThreads, kOrders[0], [&] {
          device::detrun_gemv_f16(one_matrix<const std::uint16_t*>(weight.data(), y.data(), 1),
                                  v.data(), k, &flag);
        });
        CAPTURE(k);
        CAPTURE(at);
        CHECK(flag == (at < k ? 1 : 0));
      }
    }
  }
}

}  // namespace detrun
