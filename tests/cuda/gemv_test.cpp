// GEMV kernels, emulated, bit-equal to the scalar reference over shapes that cross every boundary.
#include "kernels/cuda/gemv.cuh"

#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/ops.h"
#include "kernels/cpu/quantized_row.h"
#include "kernels/quant/q8_0.h"

namespace detrun {
namespace {

using emulation::LaneOrder;
using namespace detrun::kernels;

constexpr LaneOrder kOrders[] = {LaneOrder::kAscending, LaneOrder::kDescending};

struct AlignedBytes {
  explicit AlignedBytes(std::size_t size) : storage((size + 63) / 64 + 1) {}
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> storage;
  void* data() { return storage.data(); }
};

const MatmulOps& scalar_matmul(std::uint32_t gguf_id) {
  for (std::size_t i = 0; i < scalar::kOps.n_matmuls; ++i) {
    if (scalar::kOps.matmuls[i]->gguf_id == gguf_id) return *scalar::kOps.matmuls[i];
  }
  FAIL("the scalar reference lacks type " << gguf_id);
  return *scalar::kOps.matmuls[0];
}

// The reference: pack, prepare, multiply with the scalar table.
std::vector<float> reference(std::uint32_t gguf_id, const void* rows, unsigned n, unsigned k,
                             const std::vector<float>& x) {
  const MatmulOps& ops = scalar_matmul(gguf_id);
  const InputOps& input = scalar::kOps.inputs[static_cast<int>(ops.input)];
  AlignedBytes packed(ops.packed_bytes(k, n)), row(input.row_bytes(k));
  const std::uint64_t groups = (n + ops.group - 1) / ops.group;
  ops.pack(rows, k, n, 0, groups, packed.data());
  REQUIRE(input.prepare(x.data(), k, row.data()));
  std::vector<float> y(n);
  const MatmulArgs args{packed.data(), row.data(), input.row_bytes(k), 1, k, n, y.data()};
  ops.matmul(&args, 0, groups);
  return y;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  std::size_t live = 0;
  for (const float v : a) live += f32_is_finite(v) && v != 0.0f;
  CHECK(live * 2 > a.size());  // equal is worth nothing on zeros and NaNs
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::vector<float> random_floats(std::mt19937& random, std::size_t n) {
  std::vector<float> values(n);
  for (float& v : values) {
    v = static_cast<float>(static_cast<int>(random() % 20001) - 10000) * 0x1p-12f;
    if (random() % 16 == 0) v *= 0x1p-40f;
    if (random() % 16 == 0) v = -0.0f;
  }
  return values;
}

constexpr unsigned kShapes[][2] = {{1, 1},  {3, 7},   {31, 8},  {32, 32}, {33, 33},
                                   {5, 63}, {40, 64}, {64, 70}, {7, 576}, {9, 1000}};

template <class Kernel, class Element>
void check_float_kernel(Kernel kernel, std::uint32_t gguf_id, Element (*narrow)(float)) {
  std::mt19937 random(7);
  for (const auto& shape : kShapes) {
    const unsigned n = shape[0];
    const unsigned k = shape[1];
    const std::vector<float> wide = random_floats(random, std::size_t{n} * k);
    const std::vector<float> x = random_floats(random, k);
    std::vector<Element> weight(wide.size());
    for (std::size_t i = 0; i < wide.size(); ++i) weight[i] = narrow(wide[i]);
    const std::vector<float> expected = reference(gguf_id, weight.data(), n, k, x);
    for (const LaneOrder order : kOrders) {
      std::vector<float> y(n, 1e30f);
      const unsigned blocks = (n + device::kGemvFloatRows - 1) / device::kGemvFloatRows;
      CHECK(emulation::launch({blocks, 1, 1}, {device::kGemvThreads, 1, 1}, order,
                              [&] { kernel(weight.data(), x.data(), y.data(), n, k); }) == "");
      CAPTURE(n);
      CAPTURE(k);
      CHECK(same_bits(expected, y));
    }
  }
}

}  // namespace

TEST_CASE("the F32 GEMV kernel equals the scalar reference bit for bit") {
  check_float_kernel<decltype(&device::detrun_gemv_f32), float>(device::detrun_gemv_f32, 0,
                                                                [](float v) { return v; });
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
      std::vector<BlockQ8_0> blocks(std::size_t{n} * n_blocks);
      AlignedBytes quants(blocks.size() * 32), x_row(quantized_row_bytes(k)), x_quants(k);
      std::vector<std::uint16_t> scales(blocks.size());
      for (std::size_t b = 0; b < blocks.size(); ++b) {
        blocks[b].d = f32_to_f16(static_cast<float>(random() % 1000) * 0x1p-14f);
        for (std::int8_t& q : blocks[b].q) q = static_cast<std::int8_t>(random() % 256);
        scales[b] = blocks[b].d;
        std::memcpy(static_cast<std::int8_t*>(quants.data()) + 32 * b, blocks[b].q, 32);
      }
      const std::vector<float> x = random_floats(random, k);
      const std::vector<float> expected = reference(8, blocks.data(), n, k, x);
      REQUIRE(scalar::kOps.inputs[1].prepare(x.data(), k, x_row.data()));
      const QuantizedRow row = quantized_row(x_row.data(), k);
      std::memcpy(x_quants.data(), row.q, k);
      for (const LaneOrder order : kOrders) {
        std::vector<float> y(n, 1e30f);
        const unsigned grid = (n + device::kGemvQ8Rows - 1) / device::kGemvQ8Rows;
        CHECK(emulation::launch({grid, 1, 1}, {device::kGemvThreads, 1, 1}, order, [&] {
                device::detrun_gemv_q8_0(
                    scales.data(), static_cast<const std::int8_t*>(quants.data()),
                    static_cast<const std::int8_t*>(x_quants.data()), row.d, y.data(), n, n_blocks);
              }) == "");
        CAPTURE(n);
        CAPTURE(n_blocks);
        CHECK(same_bits(expected, y));
      }
    }
  }
}

}  // namespace detrun
