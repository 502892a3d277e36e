// fp32 GEMM kernels, emulated, bit-equal to the scalar reference over shapes that cross the edges
// of panels, threads, shared memory tiles and chains.
#include "kernels/cuda/gemm_f32.cuh"

#include <cmath>
#include <limits>

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
  for (unsigned m = 1; m <= 70; ++m) all.push_back({m, 3, 40});
  for (const unsigned n : {1u, 3u, 4u, 5u, 63u, 64u, 65u, 127u, 128u, 129u}) {
    all.push_back({2, n, 40});
  }
  // 16 steps of 32 fill the shared tile once.
  for (const unsigned k : {1u, 7u, 31u, 32u, 33u, 64u, 511u, 512u, 513u}) all.push_back({5, 6, k});
  all.push_back({65, 129, 70});
  return all;
}

// Of finite rows, which raise no flag.
void pack_x(const float* rows, unsigned n_rows, unsigned k, float* panels) {
  int flag = 0;
  device::detrun_pack_x(rows, n_rows, k, panels, &flag);
  CHECK(flag == 0);
}
const auto kPack32 = device::detrun_pack_weight_32;
const auto kPack16 = device::detrun_pack_weight_16;

// Rows (n_rows, k) to panels on the device, with room behind them that must stay as it was.
template <class Element>
std::vector<Element> packed(void (*kernel)(const Element*, unsigned, unsigned, Element*),
                            unsigned width, emulation::LaneOrder order, unsigned n_rows, unsigned k,
                            const std::vector<Element>& rows) {
  const std::size_t size = cuda::panel_elements(n_rows, k, width);
  std::vector<Element> panels(size + width, Element{77});
  const emulation::Dim grid{blocks_for(k, 32), blocks_for(n_rows, width), 1};
  CHECK(emulation::launch(grid, {device::kPackThreads, 1, 1}, order,
                          [&] { kernel(rows.data(), n_rows, k, panels.data()); }) == "");
  for (std::size_t i = size; i < panels.size(); ++i) CHECK(panels[i] == Element{77});
  panels.resize(size);
  return panels;
}

template <class Element>
Aligned<Element> aligned(const std::vector<Element>& values) {
  Aligned<Element> copy(values.size());
  std::copy(values.begin(), values.end(), copy.data());
  return copy;
}

// y (m, n) by the kernels; `weight` and x row after row. Rows of y are further apart than n.
template <class Element, class Kernel, class Pack>
std::vector<float> emulated(Kernel kernel, Pack pack_weight, emulation::LaneOrder order,
                            const Shape& shape, const std::vector<Element>& weight,
                            const std::vector<float>& x) {
  const auto& [m, n, k] = shape;
  Aligned<Element> w =
      aligned(packed<Element>(pack_weight, cuda::kPanelOutputs, order, n, k, weight));
  Aligned<float> x_panels = aligned(packed<float>(pack_x, cuda::kPanelRows, order, m, k, x));
  const std::size_t stride = n + 7;
  std::vector<float> y(m * stride, 1e30f);
  const emulation::Dim grid{blocks_for(n, cuda::kPanelOutputs), blocks_for(m, cuda::kPanelRows), 1};
  CHECK(emulation::launch(grid, {device::kGemmF32Threads, 1, 1}, order, [&] {
          kernel(w.data(), x_panels.data(), y.data(), shape.m, shape.n, shape.k, stride);
        }) == "");
  std::vector<float> result;
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (i % stride < n) {
      result.push_back(y[i]);
    } else {
      CHECK(y[i] == 1e30f);
    }
  }
  return result;
}

template <class Element, class Kernel, class Pack>
void check_gemm(std::uint32_t gguf_id, Element (*narrow)(float), Kernel kernel, Pack pack_weight) {
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
      CHECK(same_bits(expected, emulated(kernel, pack_weight, order, shape, weight, x)));
    }
  }
}

float same(float value) { return value; }

}  // namespace

TEST_CASE("a product whose every term underflows is +0 in the GEMM kernel") {
  for (const unsigned k : {64u, 70u}) {  // without and with padding
    const std::vector<float> x(k, 0x1p-100f), weight(k, -0x1p-100f);
    const std::vector<float> y =
        emulated(device::detrun_gemm_f32, kPack32, kOrders[0], {1, 1, k}, weight, x);
    CHECK(kernels::f32_bits(y[0]) == 0);
  }
}

// Element (row, i) of (n_rows, 45) in panels of `width` rows, two steps long.
template <class Element>
void check_places(void (*kernel)(const Element*, unsigned, unsigned, Element*), unsigned width) {
  constexpr unsigned kK = 45;
  const unsigned n_rows = width + 6;
  std::vector<Element> rows(std::size_t{n_rows} * kK);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<Element>(1 + i);
  std::vector<Element> expected(cuda::panel_elements(n_rows, kK, width));
  for (std::size_t row = 0; row < n_rows; ++row) {
    for (std::size_t i = 0; i < kK; ++i) {
      expected[((row / width * 32 + i % 32) * 2 + i / 32) * width + row % width] =
          rows[row * kK + i];
    }
  }
  for (const auto order : kOrders) {
    CHECK(packed<Element>(kernel, width, order, n_rows, kK, rows) == expected);
  }
}

TEST_CASE("rows go to their places in panels, with zeros around them") {
  check_places<float>(pack_x, 64);
  check_places<float>(kPack32, 128);
  check_places<std::uint16_t>(kPack16, 128);
}

TEST_CASE("one activation that is not finite raises the flag, wherever it is") {
  constexpr unsigned kRows = 70, kK = 45;
  const auto flag_of = [](float bad, std::size_t at, bool look) {
    std::vector<float> rows(std::size_t{kRows} * kK + 1, std::numeric_limits<float>::max());
    rows[at] = bad;
    std::vector<float> panels(cuda::panel_elements(kRows, kK, cuda::kPanelRows));
    int flag = 0;
    const emulation::Dim grid{blocks_for(kK, 32), blocks_for(kRows, cuda::kPanelRows), 1};
    CHECK(emulation::launch(grid, {device::kPackThreads, 1, 1}, kOrders[0], [&] {
            device::detrun_pack_x(rows.data(), kRows, kK, panels.data(), look ? &flag : nullptr);
          }) == "");
    return flag;
  };
  for (const float bad : {HUGE_VALF, -HUGE_VALF, std::nanf("")}) {
    for (const std::size_t row : {0u, 1u, 63u, 64u, 69u}) {
      for (const std::size_t i : {0u, 31u, 32u, 44u}) {
        CAPTURE(row);
        CAPTURE(i);
        CHECK(flag_of(bad, row * kK + i, true) == 1);
      }
    }
    CHECK(flag_of(bad, 0, false) == 0);
    CHECK(flag_of(bad, std::size_t{kRows} * kK, true) == 0);  // behind the rows
  }
}

TEST_CASE("the F32 GEMM kernel equals the scalar reference bit for bit") {
  check_gemm<float>(0, same, device::detrun_gemm_f32, kPack32);
}

TEST_CASE("the F16 GEMM kernel equals the scalar reference bit for bit") {
  check_gemm<std::uint16_t>(
      1, [](float v) { return f32_to_f16(v); }, device::detrun_gemm_f16, kPack16);
}

TEST_CASE("the BF16 GEMM kernel equals the scalar reference bit for bit") {
  check_gemm<std::uint16_t>(
      30, [](float v) { return f32_to_bf16(v); }, device::detrun_gemm_bf16, kPack16);
}

}  // namespace detrun
