// Elementwise kernels, emulated, bit-equal to the scalar reference.
#include "kernels/cuda/elementwise.cuh"

#include <iterator>
#include <limits>

#include "kernels/cpu/ops.h"
#include "tests/cuda/row_support.h"

namespace detrun {
namespace {

using namespace detrun::kernels;
using namespace detrun::cuda_test;

constexpr std::size_t kSizes[] = {1, 31, 127, 128, 129, 1000};

// `kernel` and `reference` change x in place.
void check_in_place(const std::function<void(float*, const float*, std::size_t)>& kernel,
                    const std::function<void(float*, const float*, std::size_t)>& reference) {
  std::mt19937 random(21);
  for (const std::size_t n : kSizes) {
    std::vector<float> x = random_floats(random, n, 9.0f);
    x[0] = 3.0f;
    const std::vector<float> y = random_floats(random, n, 2.0f);
    std::vector<float> expected = x;
    reference(expected.data(), y.data(), n);
    for (const auto order : kOrders) {
      std::vector<float> out = x;
      launch_rows(blocks_for(n, device::kRowThreads), device::kRowThreads, order,
                  [&] { kernel(out.data(), y.data(), n); });
      CAPTURE(n);
      CHECK(same_bits(expected, out));
    }
  }
}

using Unary = void (*)(const float*, std::size_t, float*);
constexpr Unary kUnary[] = {device::detrun_exp,       device::detrun_log,     device::detrun_tanh,
                            device::detrun_erf,       device::detrun_sigmoid, device::detrun_silu,
                            device::detrun_gelu_tanh, device::detrun_gelu_erf};
static_assert(std::size(kUnary) == kFunctions);

// Every 2^21st bit pattern: all exponents and signs, NaNs and infinities with them.
std::vector<float> sweep(std::mt19937& random) {
  std::vector<float> x;
  for (std::uint64_t bits = 0; bits < (1ull << 32); bits += 1u << 21) {
    x.push_back(f32_from_bits(static_cast<std::uint32_t>(bits + random() % (1u << 21))));
  }
  for (const float edge :
       {0.0f, -0.0f, 89.0f, -104.0f, 0.625f, 1.0f, 4.0f, 0x1p-149f, 16777216.0f,
        std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()}) {
    x.push_back(edge);
  }
  return x;
}

}  // namespace

TEST_CASE("sums, products and multipliers equal the scalar reference bit for bit") {
  using device::detrun_add, device::detrun_mul, device::detrun_scale, device::detrun_add_scaled;
  check_in_place([](float* x, const float* y, std::size_t n) { detrun_add(x, y, n); },
                 [](float* x, const float* y, std::size_t n) { scalar::kOps.add(x, y, n); });
  check_in_place([](float* x, const float* y, std::size_t n) { detrun_mul(x, y, n); },
                 [](float* x, const float* y, std::size_t n) { scalar::kOps.mul(x, y, n); });
  check_in_place([](float* x, const float*, std::size_t n) { detrun_scale(x, 0.1f, n); },
                 [](float* x, const float*, std::size_t n) { scalar::kOps.scale(x, 0.1f, n); });
  check_in_place(
      [](float* x, const float* y, std::size_t n) { detrun_add_scaled(x, y, 0.3f, n); },
      [](float* x, const float* y, std::size_t n) { scalar::kOps.add_scaled(x, y, 0.3f, n); });
}

TEST_CASE("gate and soft cap equal the scalar reference bit for bit") {
  check_in_place([](float* x, const float* y, std::size_t n) { device::detrun_silu_mul(x, y, n); },
                 [](float* x, const float* y, std::size_t n) { scalar::kOps.silu_mul(x, y, n); });
  check_in_place([](float* x, const float*, std::size_t n) { device::detrun_softcap(x, 5.0f, n); },
                 [](float* x, const float*, std::size_t n) { scalar::kOps.softcap(x, 5.0f, n); });
}

// The functions without a NaN of their own: which one an operation makes, the machine (and the
// order in which a compiler names the operands) decides. Any NaN there becomes the one of the
// contract.
static std::vector<float> with_one_nan(int f, std::vector<float> y) {
  if (f <= static_cast<int>(Function::kErf)) return y;
  for (float& v : y) {
    if (v != v) v = f32_from_bits(kNanBits);
  }
  return y;
}

TEST_CASE("the functions equal the scalar reference over all exponents") {
  std::mt19937 random(22);
  const std::vector<float> x = sweep(random);
  for (int f = 0; f < kFunctions; ++f) {
    std::vector<float> expected(x.size());
    scalar::kOps.functions[f](x.data(), x.size(), expected.data());
    expected = with_one_nan(f, expected);
    for (const auto order : kOrders) {
      std::vector<float> y = x;  // in place
      launch_rows(blocks_for(x.size(), device::kRowThreads), device::kRowThreads, order,
                  [&] { kUnary[f](y.data(), y.size(), y.data()); });
      y = with_one_nan(f, y);
      CAPTURE(f);
      std::size_t live = 0;
      for (const float v : expected) live += f32_is_finite(v) && v != 0.0f;
      CHECK(live * 4 > x.size());  // log has no value for half of the sweep
      CHECK(std::memcmp(expected.data(), y.data(), y.size() * sizeof(float)) == 0);
    }
  }
}

}  // namespace detrun
