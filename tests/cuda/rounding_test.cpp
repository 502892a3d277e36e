// The rounding of activations for profile cublas, emulated, against the nearest value found by
// trying both neighbours in binary64; padding, and what is reported.
#include "kernels/cuda/rounding.cuh"

#include <cmath>
#include <limits>

#include "tests/cuda/row_support.h"

namespace detrun {
namespace {

using namespace detrun::kernels;
using namespace detrun::cuda_test;

using Widen = float (*)(std::uint16_t);
using Round = void (*)(const float*, std::size_t, std::size_t, std::uint16_t*, int*);

struct Type {
  Round kernel;
  Widen widen;
  std::uint16_t infinity;
  float largest, beyond;  ///< the last float that fits, the first that does not
};
const Type kTypes[] = {{device::detrun_round_f16, f16_to_f32, 0x7c00, 65519.996f, 65520.0f},
                       {device::detrun_round_bf16, bf16_to_f32, 0x7f80, f32_from_bits(0x7f7f7fffu),
                        f32_from_bits(0x7f7f8000u)}};

/// The nearest pattern, the even one of two at the same distance. |value| is finite.
std::uint16_t nearest(const Type& type, float value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(static_cast<double>(value));
  std::uint16_t below = 0;
  std::uint16_t above = type.infinity;
  while (above - below > 1) {
    const auto middle = static_cast<std::uint16_t>((below + above) / 2);
    (type.widen(middle) <= magnitude ? below : above) = middle;
  }
  const double low = type.widen(below);
  // Infinity stands where the next finite value would.
  const double high = above == type.infinity ? 2 * low - type.widen(below - 1) : type.widen(above);
  const bool up =
      high - magnitude < magnitude - low || (high - magnitude == magnitude - low && above % 2 == 0);
  return static_cast<std::uint16_t>(sign | (up ? above : below));
}

struct Rounded {
  std::vector<std::uint16_t> values;
  int flag = 0;
};
Rounded run(const Type& type, const std::vector<float>& x, std::size_t n_all,
            emulation::LaneOrder order) {
  Rounded out{std::vector<std::uint16_t>(n_all + 3, 0x1234), 0};
  launch_rows(blocks_for(n_all, device::kRowThreads), device::kRowThreads, order,
              [&] { type.kernel(x.data(), x.size(), n_all, out.values.data(), &out.flag); });
  return out;
}

}  // namespace

TEST_CASE("activations are rounded to the nearest value, ties to even, and filled up with zeros") {
  std::mt19937 random(31);
  for (const Type& type : kTypes) {
    for (const std::size_t n : {1U, 127U, 128U, 1000U}) {
      std::vector<float> x = random_floats(random, n, 90.0f);
      x[0] = type.largest;
      if (n > 100) {
        x[1] = 1.0f + 0x1p-11f;                 // half way in f16, down to even
        x[2] = -(1.0f + 0x1.8p-10f);            // up to even
        x[3] = 1.0f + 0x1p-8f;                  // half way in bf16, down to even
        x[4] = -(1.0f + 0x1.8p-7f);             // up to even
        x[5] = 0x1p-25f;                        // half the least of f16: to zero
        x[6] = 0x1.000002p-25f;                 // a little more: to the least
        x[7] = -0x1.ffcp-15f;                   // subnormal in f16 only
        x[8] = f32_from_bits(0x00010000u) * 3;  // subnormal in bf16
        for (std::size_t i = 9; i < 90; ++i) {  // beside the middle of two values
          const std::uint32_t middle = (random() & 0x7fffu) << 16 | 0x8000u;
          x[i] = f32_from_bits((middle & 0x38ffffffu) + random() % 3 - 1);
        }
      }
      for (const auto order : kOrders) {
        const Rounded out = run(type, x, n + 5, order);
        CHECK(out.flag == 0);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < n; ++i) wrong += out.values[i] != nearest(type, x[i]);
        CHECK(wrong == 0);
        for (std::size_t i = n; i < n + 5; ++i) CHECK(out.values[i] == 0);
        for (std::size_t i = n + 5; i < n + 8; ++i) CHECK(out.values[i] == 0x1234);
      }
    }
  }
}

TEST_CASE("activations of binary32 are copied as they are and filled up with zeros") {
  std::mt19937 random(32);
  for (const std::size_t n : {1U, 128U, 300U}) {
    const std::vector<float> x = random_floats(random, n, 9.0f);
    for (const auto order : kOrders) {
      std::vector<float> out(n + 9, 7.0f);
      int flag = 0;
      launch_rows(blocks_for(n + 6, device::kRowThreads), device::kRowThreads, order,
                  [&] { device::detrun_round_f32(x.data(), n, n + 6, out.data(), &flag); });
      CHECK(flag == 0);
      CHECK(std::memcmp(out.data(), x.data(), n * sizeof(float)) == 0);
      for (std::size_t i = n; i < n + 6; ++i) CHECK(f32_bits(out[i]) == 0);
      for (std::size_t i = n + 6; i < n + 9; ++i) CHECK(out[i] == 7.0f);
    }
  }
}

TEST_CASE("what is not finite or does not fit into the type is reported, and nothing else") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  std::mt19937 random(33);
  for (const std::size_t at : {0U, 199U}) {
    for (const Type& type : kTypes) {
      std::vector<float> x = random_floats(random, 200, 9.0f);
      for (const float fits : {type.largest, -type.largest}) {
        x[at] = fits;
        for (const auto order : kOrders) CHECK(run(type, x, 256, order).flag == 0);
      }
      for (const float bad : {type.beyond, -type.beyond, kInfinity, -kInfinity, kNan, -kNan}) {
        x[at] = bad;
        for (const auto order : kOrders) CHECK(run(type, x, 256, order).flag == 1);
      }
    }
    for (const float bad : {kInfinity, -kInfinity, kNan, -kNan}) {
      std::vector<float> x = random_floats(random, 200, 9.0f);
      x[at] = bad;
      std::vector<float> out(256);
      int flag = 0;
      launch_rows(2, device::kRowThreads, kOrders[0], [&] {
        device::detrun_round_f32(x.data(), x.size(), out.size(), out.data(), &flag);
      });
      CHECK(flag == 1);
    }
  }
}

}  // namespace detrun
