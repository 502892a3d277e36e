// Conversions between binary16, bfloat16 and binary32 against their definition.
#include "kernels/fp.h"

#include <doctest/doctest.h>

#include <cmath>

namespace {

using namespace detrun::kernels;

double half_value(std::uint16_t h) {
  const int exponent = (h >> 10) & 31;
  const int mantissa = h & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (h & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST_CASE("every finite half widens exactly") {
  int n = 0;
  for (std::uint32_t h = 0; h < 65536; ++h) {
    if ((h & 0x7c00u) == 0x7c00u) continue;
    const auto half = static_cast<std::uint16_t>(h);
    const float wide = f16_to_f32(half);
    CHECK(static_cast<double>(wide) == half_value(half));
    CHECK(std::signbit(wide) == ((h & 0x8000u) != 0));
    CHECK(f32_to_f16(wide) == half);
    ++n;
  }
  CHECK(n == 63488);
}

TEST_CASE("infinities and NaNs of halves stay what they are") {
  CHECK(f32_bits(f16_to_f32(0x7c00)) == 0x7f800000u);
  CHECK(f32_bits(f16_to_f32(0xfc00)) == 0xff800000u);
  CHECK(f32_bits(f16_to_f32(0x7e00)) == 0x7fc00000u);
  CHECK(f32_bits(f16_to_f32(0xfc01)) == 0xff802000u);
  CHECK(f32_to_f16(f32_from_bits(kInfBits)) == 0x7c00);
  CHECK(f32_to_f16(f32_from_bits(0xff800000u)) == 0xfc00);
  CHECK(f32_to_f16(f32_from_bits(0xffc00123u)) == 0xfe00);
}

TEST_CASE("narrowing to half rounds to nearest, ties to even, at every pair of neighbours") {
  for (std::uint32_t h = 0; h < 0x7bffu; ++h) {
    const auto low = static_cast<std::uint16_t>(h);
    const auto high = static_cast<std::uint16_t>(h + 1);
    const auto middle = static_cast<float>((half_value(low) + half_value(high)) / 2);
    const std::uint16_t even = (h & 1) == 0 ? low : high;
    CHECK(f32_to_f16(middle) == even);
    CHECK(f32_to_f16(-middle) == (even | 0x8000));
    CHECK(f32_to_f16(f32_from_bits(f32_bits(middle) - 1)) == low);
    CHECK(f32_to_f16(f32_from_bits(f32_bits(middle) + 1)) == high);
  }
}

TEST_CASE("narrowing to half overflows at 65520") {
  CHECK(f32_to_f16(65504.0f) == 0x7bff);
  CHECK(f32_to_f16(f32_from_bits(f32_bits(65520.0f) - 1)) == 0x7bff);
  CHECK(f32_to_f16(65520.0f) == 0x7c00);
  CHECK(f32_to_f16(-65520.0f) == 0xfc00);
  CHECK(f32_bits(65520.0f) == kF16OverflowBits);
}

TEST_CASE("bfloat16 is the upper half of binary32 and narrows to nearest even") {
  for (std::uint32_t b = 0; b < 65536; ++b) {
    const auto brain = static_cast<std::uint16_t>(b);
    CHECK(f32_bits(bf16_to_f32(brain)) == b << 16);
    const bool is_nan = (b & 0x7fffu) > 0x7f80u;
    if (!is_nan) CHECK(f32_to_bf16(bf16_to_f32(brain)) == brain);
    if (is_nan) CHECK((f32_to_bf16(bf16_to_f32(brain)) & 0x7fffu) > 0x7f80u);
  }
  CHECK(f32_to_bf16(f32_from_bits(0x3f808000u)) == 0x3f80);  // tie, even below
  CHECK(f32_to_bf16(f32_from_bits(0x3f818000u)) == 0x3f82);  // tie, even above
  CHECK(f32_to_bf16(f32_from_bits(0x3f808001u)) == 0x3f81);
}

}  // namespace
