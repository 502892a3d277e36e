// RoPE tables: the C library's values rounded, factors, refusals.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "detrun/backend.h"
#include "detrun/error.h"
#include "fp_control_support.h"

namespace {

using namespace detrun;

struct Tables {
  std::vector<float> cos, sin;
};

Tables make(const RopeTableSpec& spec, std::uint32_t n_positions) {
  const std::size_t n = std::size_t{n_positions} * (spec.rope_dim / 2);
  Tables tables{std::vector<float>(n), std::vector<float>(n)};
  make_rope_tables(spec, n_positions, tables.cos, tables.sin);
  return tables;
}

std::uint32_t bits(float x) {
  std::uint32_t u;
  std::memcpy(&u, &x, sizeof u);
  return u;
}

TEST_CASE("tables are the C library's values rounded to binary32") {
  // Up to these positions the binary64 errors of both (about 4e-12 rad) never straddle a rounding.
  for (const double theta : {10000.0, 500000.0, 1000000.0}) {
    for (const std::uint32_t dim : {8u, 64u, 80u, 128u}) {
      const Tables tables = make({dim, theta, {}}, 512);
      std::size_t n_equal = 0;
      std::size_t n_live = 0;
      for (std::uint32_t p = 0; p < 512; ++p) {
        for (std::uint32_t i = 0; i < dim / 2; ++i) {
          const double angle = p * std::pow(theta, -static_cast<double>(2 * i) / dim);
          const std::size_t at = std::size_t{p} * (dim / 2) + i;
          n_equal += bits(tables.cos[at]) == bits(static_cast<float>(std::cos(angle))) ? 1 : 0;
          n_equal += bits(tables.sin[at]) == bits(static_cast<float>(std::sin(angle))) ? 1 : 0;
          n_live += tables.sin[at] != 0.0f && std::isfinite(tables.cos[at]) ? 1 : 0;
        }
      }
      CHECK(n_live == tables.sin.size() - dim / 2);
      CHECK(n_equal == 2 * tables.sin.size());
    }
  }
}

TEST_CASE("far positions stay within one unit of the C library") {
  // Tolerance: inv_freq differs by 3e-15, times position 131071 that is 4e-10 rad, below half a
  // unit of binary32 near 1 but above the smallest distance to a rounding boundary.
  const Tables tables = make({64, 500000.0, {}}, 131072);
  for (std::uint32_t p = 0; p < 131072; p += 997) {
    for (std::uint32_t i = 0; i < 32; ++i) {
      const double angle = p * std::pow(500000.0, -static_cast<double>(2 * i) / 64);
      const std::size_t at = std::size_t{p} * 32 + i;
      CHECK(std::fabs(static_cast<double>(tables.cos[at]) - std::cos(angle)) < 6.1e-8);
      CHECK(std::fabs(static_cast<double>(tables.sin[at]) - std::sin(angle)) < 6.1e-8);
    }
  }
}

TEST_CASE("position 0 does not rotate and position 1 has known bits") {
  const Tables tables = make({4, 10000.0, {}}, 2);
  CHECK(bits(tables.cos[0]) == 0x3f800000u);
  CHECK(bits(tables.sin[0]) == 0u);
  CHECK(bits(tables.cos[2]) == 0x3f0a5140u);  // cos 1
  CHECK(bits(tables.sin[2]) == 0x3f576aa4u);  // sin 1
  CHECK(bits(tables.sin[3]) == 0x3c23d657u);  // sin 0.01
}

TEST_CASE("frequency factors divide the frequencies") {
  const std::vector<float> factors = {1.0f, 8.0f};
  const Tables plain = make({4, 10000.0, {}}, 64);
  const Tables scaled = make({4, 10000.0, factors}, 64);
  for (std::uint32_t p = 0; p < 64; ++p) {
    CHECK(bits(scaled.cos[2 * p]) == bits(plain.cos[2 * p]));
    CHECK(bits(scaled.sin[2 * p + 1]) == bits(static_cast<float>(std::sin(p * 0.01 / 8.0))));
  }
}

TEST_CASE("values no model has are refused, not computed") {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (const double theta : {0.0, -1.0, 0.5, 1e31, kInf, std::nan("")}) {
    CHECK_THROWS_AS(make({4, theta, {}}, 2), Error);
  }
  for (const float factor : {0.0f, 1e-30f, std::nanf("")}) {
    const std::vector<float> factors = {1.0f, factor};
    CHECK_THROWS_AS(make({4, 10000.0, factors}, 2), Error);
  }
}

#if defined(DETRUN_KNOWN_FP_CONTROL)
TEST_CASE("a thread that flushes subnormals or rounds up makes the same tables") {
  const Tables expected = make({64, 10000.0, {}}, 100);
  for (const unsigned control : support::kForeignControls) {
    support::ForeignFpControl foreign(control);
    const Tables found = make({64, 10000.0, {}}, 100);
    CHECK(std::memcmp(found.cos.data(), expected.cos.data(), expected.cos.size() * 4) == 0);
    CHECK(std::memcmp(found.sin.data(), expected.sin.data(), expected.sin.size() * 4) == 0);
  }
}
#endif

}  // namespace
