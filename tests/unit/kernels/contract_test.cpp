// The ground rules: one rounding an operation, the two summation orders, the +0 at the end.
#include "kernels/contract.h"

#include <doctest/doctest.h>

#include <vector>

namespace {

using namespace detrun::kernels;

// Values the compiler cannot see through: what is tested is the machine, not constant folding.
float opaque(float x) {
  volatile float v = x;
  return v;
}

TEST_CASE("a product and a sum are never fused, and fma rounds once") {
  // (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24: the product drops the last term, fma keeps it.
  const float a = opaque(1.0f + 0x1p-12f);
  const float c = opaque(-(1.0f + 0x1p-11f));
  CHECK(f32_bits(f32_add(f32_mul(a, a), c)) == f32_bits(0.0f));
  CHECK(f32_bits(f32_fma(a, a, c)) == f32_bits(0x1p-24f));
  CHECK(f32_bits(a * a + c) == f32_bits(0.0f));
}

TEST_CASE("subnormals are kept") {
  CHECK(f32_bits(f32_mul(opaque(0x1p-126f), 0.25f)) == 0x00200000u);
  CHECK(f32_bits(f32_add(opaque(f32_from_bits(1)), f32_from_bits(1))) == 2u);
}

TEST_CASE("a tree adds the halves in the written order") {
  // With 2^24 in lane 0 the order of additions decides which ones survive.
  float a[4] = {opaque(0x1p24f), 1.0f, 1.0f, 1.0f};
  // (a0 + a2) + (a1 + a3) = 2^24 + 2; left to right it would be 2^24.
  CHECK(f32_bits(tree_sum<4>(a)) == f32_bits(16777218.0f));
}

TEST_CASE("a tree never returns minus zero") {
  float a[8];
  for (float& x : a) x = opaque(-0.0f);
  CHECK(f32_bits(tree_sum<8>(a)) == 0u);
}

TEST_CASE("sum32 runs 32 chains and skips what is missing") {
  std::vector<float> v(33, 0.0f);
  v[0] = opaque(0x1p24f);
  v[16] = 1.0f;
  v[32] = 1.0f;
  // Lane 0: 2^24 + 1 = 2^24; then + lane 16 = 2^24 again. A single chain gives the same here, but
  // swapping the last two does not: lane 0 and lane 16 swap roles.
  CHECK(f32_bits(sum32(v.data(), v.size())) == f32_bits(0x1p24f));
  v[16] = 2.0f;
  CHECK(f32_bits(sum32(v.data(), v.size())) == f32_bits(16777218.0f));
  CHECK(f32_bits(sum32(v.data(), 0)) == 0u);
}

TEST_CASE("finite means finite") {
  CHECK(f32_is_finite(3.4028235e38f));
  CHECK(f32_is_finite(-0.0f));
  CHECK_FALSE(f32_is_finite(f32_from_bits(kInfBits)));
  CHECK_FALSE(f32_is_finite(f32_from_bits(0xff800000u)));
  CHECK_FALSE(f32_is_finite(f32_from_bits(0x7f800001u)));
}

}  // namespace
