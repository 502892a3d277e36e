// Activation quantization and the writes to the KV cache, emulated, bit-equal to the reference.
#include "kernels/cuda/quantize.cuh"

#include <algorithm>
#include <limits>

#include "kernels/cpu/ops.h"
#include "kernels/cpu/quantized_row.h"
#include "kernels/cuda/kv_write.cuh"
#include "tests/cuda/row_support.h"

namespace detrun {
namespace {

using namespace detrun::kernels;
using namespace detrun::cuda_test;

struct Quantized {
  std::vector<std::int8_t> quants;
  std::vector<float> scales, sums;
  std::vector<std::int16_t> half_sums;
  int flag = 0;

  explicit Quantized(std::size_t n)
      : quants(n * 32, 99), scales(n, 1e30f), sums(n, 1e30f), half_sums(2 * n, 999) {}
};

Quantized run(const std::vector<float>& x, emulation::LaneOrder order) {
  const std::size_t n = x.size() / 32;
  Quantized out(n);
  launch_rows(blocks_for(n, device::kRowWarps), device::kRowThreads, order, [&] {
    device::detrun_quantize(x.data(), n, out.quants.data(), out.scales.data(), out.sums.data(),
                            out.half_sums.data(), &out.flag);
  });
  return out;
}

Quantized reference(const std::vector<float>& x) {
  const InputOps& ops = scalar::kOps.inputs[static_cast<int>(InputForm::kQuantized)];
  struct alignas(64) Line {
    char bytes[64];
  };
  std::vector<Line> row(ops.row_bytes(x.size()) / 64);
  Quantized out(x.size() / 32);
  out.flag = ops.prepare(x.data(), x.size(), row.data()) ? 0 : 1;
  const QuantizedRow from = quantized_row(row.data(), x.size());
  std::memcpy(out.quants.data(), from.q, out.quants.size());
  std::memcpy(out.scales.data(), from.d, out.scales.size() * sizeof(float));
  std::memcpy(out.sums.data(), from.bx, out.sums.size() * sizeof(float));
  std::memcpy(out.half_sums.data(), from.b16, out.half_sums.size() * sizeof(std::int16_t));
  return out;
}

void check_equal(const Quantized& expected, const Quantized& out) {
  CHECK(expected.flag == 0);
  CHECK(out.flag == 0);
  CHECK(same_bits(expected.scales, out.scales));
  CHECK(same_bits(expected.sums, out.sums));
  std::size_t live = 0;
  for (const std::int8_t q : expected.quants) live += q != 0;
  CHECK(live * 2 > expected.quants.size());
  CHECK(expected.quants == out.quants);
  CHECK(expected.half_sums == out.half_sums);
}

}  // namespace

TEST_CASE("the quantization kernel equals the scalar reference bit for bit") {
  std::mt19937 random(12);
  for (const unsigned n : {1u, 2u, 3u, 4u, 5u, 18u, 64u}) {
    const std::vector<float> x = random_floats(random, std::size_t{n} * 32, 6.0f);
    for (const auto order : kOrders) check_equal(reference(x), run(x, order));
  }
}

TEST_CASE("ties, the last and the first scale, and lone large values quantize as the reference") {
  std::mt19937 random(13);
  std::vector<float> x = random_floats(random, std::size_t{12} * 32, 1.0f);
  for (std::size_t i = 0; i < 32; ++i) {
    x[i] = static_cast<float>(static_cast<int>(i) - 16) + 0.5f;  // ties: the scale is 1
    x[32 + i] = i % 2 == 0 ? 0x1p-101f : -0x1p-102f;
    x[64 + i] *= 0x1p-99f;  // around the bound of a zero block
    x[128 + i] *= 0x1.8p127f;
  }
  x[5] = -127.0f;
  x[32 + 7] = 0x1p-100f;
  x[64 + 31] = 0x1.8p-99f;
  x[128 + 1] = std::numeric_limits<float>::max();
  x[160 + 30] = -16777216.0f;
  for (const auto order : kOrders) check_equal(reference(x), run(x, order));
}

TEST_CASE("values beside the middle of two steps quantize as the reference") {
  std::mt19937 random(17);
  std::vector<float> x(std::size_t{40} * 32);
  for (std::size_t b = 0; b < 40; ++b) {
    const float amax = 1.0f + static_cast<float>(random() % 100000) * 1e-5f;
    x[32 * b] = amax;
    for (std::size_t i = 1; i < 32; ++i) {
      const float steps = static_cast<float>(random() % 120) + 0.5f;
      const std::uint32_t bits = f32_bits(steps * amax / 127.0f) + random() % 5 - 2;
      x[32 * b + i] = f32_from_bits(bits ^ random() % 2 << 31);
    }
  }
  for (const auto order : kOrders) check_equal(reference(x), run(x, order));
}

TEST_CASE("a block below 2^-100 quantizes to zero with the scale +0") {
  std::vector<float> x(64, -0x1.fffffep-101f);
  for (std::size_t i = 32; i < 64; ++i) x[i] = -0.0f;
  x[3] = 0x1p-140f;
  for (const auto order : kOrders) {
    const Quantized out = run(x, order);
    CHECK(out.flag == 0);
    for (const float v : out.scales) CHECK(f32_bits(v) == 0);
    for (const float v : out.sums) CHECK(f32_bits(v) == 0);
    for (const std::int16_t v : out.half_sums) CHECK(v == 0);
    for (const std::int8_t q : out.quants) CHECK(q == 0);
  }
}

TEST_CASE("a value that is not finite is reported by the quantization, and only then") {
  std::mt19937 random(14);
  const float inf = std::numeric_limits<float>::infinity();
  for (const float bad : {inf, -inf, std::numeric_limits<float>::quiet_NaN(),
                          -std::numeric_limits<float>::quiet_NaN()}) {
    for (const std::size_t at : {std::size_t{0}, std::size_t{31}, std::size_t{32 * 5 + 17}}) {
      std::vector<float> x = random_floats(random, std::size_t{6} * 32, 6.0f);
      CHECK(run(x, emulation::LaneOrder::kAscending).flag == 0);
      x[at] = bad;
      for (const auto order : kOrders) CHECK(run(x, order).flag == 1);
    }
  }
}

TEST_CASE("the quantization writes no sums where none are wanted") {
  std::mt19937 random(15);
  const std::vector<float> x = random_floats(random, std::size_t{5} * 32, 6.0f);
  const Quantized expected = reference(x);
  Quantized out(5);
  launch_rows(2, device::kRowThreads, emulation::LaneOrder::kAscending, [&] {
    device::detrun_quantize(x.data(), 5, out.quants.data(), out.scales.data(), nullptr, nullptr,
                            &out.flag);
  });
  CHECK(same_bits(expected.scales, out.scales));
  CHECK(expected.quants == out.quants);
}

namespace {

// K or V rows into a cache (head, position, stride): every row to a position of its own, one after
// another and from the last backwards; the rest must stay.
template <class Element, class Kernel>
int check_kv(Kernel kernel, bool (*reference)(const float*, std::uint64_t, Element*),
             const std::vector<float>& x, unsigned n_rows, unsigned n_heads, unsigned head_dim) {
  const std::size_t stride = (std::size_t{head_dim} + 7) / 8 * 8;
  const unsigned n_positions = 2 * n_rows + 3;
  const std::size_t head_stride = stride * n_positions;
  const std::vector<Element> before(head_stride * n_heads, Element{7});
  int expected_flag = 0;
  for (const bool backwards : {false, true}) {
    std::vector<unsigned> positions;
    for (unsigned r = 0; r < n_rows; ++r) {
      positions.push_back(backwards ? n_positions - 1 - 2 * r : r);
    }
    std::vector<Element> expected = before;
    for (unsigned r = 0; r < n_rows; ++r) {
      for (unsigned h = 0; h < n_heads; ++h) {
        Element* to = expected.data() + h * head_stride + positions[r] * stride;
        const float* from = x.data() + (std::size_t{r} * n_heads + h) * head_dim;
        if (!reference(from, head_dim, to)) expected_flag = 1;
      }
    }
    for (const auto order : kOrders) {
      std::vector<Element> cache = before;
      int flag = 0;
      std::vector<Element> other = before;
      const std::vector<float> zeros(x.size());
      const emulation::Dim grid{blocks_for(x.size(), device::kRowThreads), 2, 1};
      CHECK(emulation::launch(grid, {device::kRowThreads, 1, 1}, order, [&] {
              kernel({{zeros.data(), x.data()}, {other.data(), cache.data()}}, positions.data(),
                     n_rows, n_heads, head_dim, stride, head_stride, &flag);
            }) == "");
      CHECK(flag == expected_flag);
      const bool equal =
          std::memcmp(cache.data(), expected.data(), cache.size() * sizeof(Element)) == 0;
      CHECK(equal);
      CHECK(std::count(other.begin(), other.end(), Element{0}) ==
            static_cast<std::ptrdiff_t>(x.size()));
    }
  }
  return expected_flag;
}

constexpr unsigned kKvShapes[][3] = {{1, 1, 4}, {2, 3, 64}, {3, 3, 72}, {5, 1, 256}, {1, 2, 6}};

}  // namespace

TEST_CASE("the kernels that write K and V equal the scalar reference bit for bit") {
  std::mt19937 random(16);
  for (const auto& s : kKvShapes) {
    std::vector<float> x = random_floats(random, std::size_t{s[0]} * s[1] * s[2], 9.0f);
    x[0] = 65519.996f;            // the last that fits
    x[1] = 1.0f + 0x1p-11f;       // a tie, down to even
    x[2] = -(1.0f + 0x1.8p-10f);  // a tie, up to even
    x[3] = 0x1.8p-25f;            // rounds up to the least subnormal
    CHECK(check_kv<std::uint16_t>(device::detrun_kv_write_f16, scalar::kOps.kv_write_f16, x, s[0],
                                  s[1], s[2]) == 0);
    CHECK(check_kv<float>(device::detrun_kv_write_f32, scalar::kOps.kv_write_f32, x, s[0], s[1],
                          s[2]) == 0);
    x.back() = -65520.0f;
    CHECK(check_kv<std::uint16_t>(device::detrun_kv_write_f16, scalar::kOps.kv_write_f16, x, s[0],
                                  s[1], s[2]) == 1);
    CHECK(check_kv<float>(device::detrun_kv_write_f32, scalar::kOps.kv_write_f32, x, s[0], s[1],
                          s[2]) == 0);
    x.back() = std::numeric_limits<float>::quiet_NaN();
    CHECK(check_kv<std::uint16_t>(device::detrun_kv_write_f16, scalar::kOps.kv_write_f16, x, s[0],
                                  s[1], s[2]) == 1);
    CHECK(check_kv<float>(device::detrun_kv_write_f32, scalar::kOps.kv_write_f32, x, s[0], s[1],
                          s[2]) == 1);
  }
}

}  // namespace detrun
