// Inputs for parity tests: seeded, made of integers, with the values that break shortcuts mixed in;
// and comparison of bits that first counts live values (all-NaN equals all-NaN, all-zero all-zero).
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "kernels/fp.h"
#include "kernels/quant/bf16.h"
#include "kernels/quant/f16.h"
#include "kernels/quant/f32.h"
#include "kernels/quant/q8_0.h"

namespace parity {

using namespace detrun::kernels;

class Inputs {
 public:
  explicit Inputs(std::uint64_t seed) : state_(seed * 0x2545f4914f6cdd1dull + 1) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ull;
    std::uint64_t z = (state_ ^ (state_ >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t n) { return next() % n; }

  /// Between 2^-7 and 2^2 in magnitude, as trained weights and activations are.
  float plain() {
    const std::uint64_t r = next();
    return f32_from_bits(static_cast<std::uint32_t>(r & 1) << 31 |
                         static_cast<std::uint32_t>(120 + (r >> 1) % 9) << 23 |
                         static_cast<std::uint32_t>(r >> 41));
  }
  /// One in eight: +-0, a subnormal, the smallest normal, halves and quarters (ties), 2^-24 to
  /// 2^-14 (subnormal as binary16), tiny and large powers.
  float edgy() {
    if (below(8) != 0) return plain();
    const std::uint32_t sign = static_cast<std::uint32_t>(below(2)) << 31;
    const std::uint32_t mantissa = static_cast<std::uint32_t>(below(1u << 23));
    switch (below(8)) {
      case 0:
        return f32_from_bits(sign);
      case 1:
        return f32_from_bits(sign | mantissa);
      case 2:
        return f32_from_bits(sign | 0x00800000u);
      case 3:
        return f32_from_bits(sign | 0x3f000000u);
      case 4:
        return f32_from_bits(sign | 0x3e800000u);
      case 5:
        return f32_from_bits(sign | static_cast<std::uint32_t>(103 + below(11)) << 23 | mantissa);
      case 6:
        return f32_from_bits(sign | static_cast<std::uint32_t>(20 + below(40)) << 23 | mantissa);
      default:
        return f32_from_bits(sign | static_cast<std::uint32_t>(130 + below(8)) << 23 | mantissa);
    }
  }
  std::vector<float> edgy(std::size_t n) {
    std::vector<float> v(n);
    for (float& x : v) x = edgy();
    return v;
  }
  std::vector<float> plain(std::size_t n) {
    std::vector<float> v(n);
    for (float& x : v) x = plain();
    return v;
  }

  /// A matrix (n, k) as it lies in a file. Q8_0: any int8, -128 and 127 often; scales of any sign,
  /// subnormal, zero.
  std::vector<std::byte> matrix(std::uint32_t gguf_id, std::uint64_t k, std::uint64_t n) {
    std::vector<std::byte> out;
    const auto put = [&out](const void* p, std::size_t size) {
      const auto* bytes = static_cast<const std::byte*>(p);
      out.insert(out.end(), bytes, bytes + size);
    };
    if (gguf_id == TypeQ8_0::kGgufId) {
      for (std::uint64_t b = 0; b < k / 32 * n; ++b) {
        BlockQ8_0 block;
        block.d = f32_to_f16(below(16) == 0 ? 0x1p-24f * static_cast<float>(below(1024)) : plain());
        for (std::int8_t& q : block.q) q = static_cast<std::int8_t>(next() >> 56);
        if (below(4) == 0) block.q[below(32)] = -128;
        if (below(4) == 0) block.q[below(32)] = 127;
        put(&block, sizeof block);
      }
      return out;
    }
    for (std::uint64_t i = 0; i < k * n; ++i) {
      const float v = edgy();
      const std::uint16_t half = gguf_id == 1 ? f32_to_f16(v) : f32_to_bf16(v);
      if (gguf_id == 0) {
        put(&v, sizeof v);
      } else {
        put(&half, sizeof half);
      }
    }
    return out;
  }

 private:
  std::uint64_t state_;
};

inline std::size_t count_live(std::span<const float> v) {
  std::size_t n = 0;
  for (const float x : v) n += f32_is_finite(x) && x != 0.0f ? 1 : 0;
  return n;
}

/// -1 when all bits are equal, else the first index that differs.
inline std::ptrdiff_t first_difference(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (f32_bits(a[i]) != f32_bits(b[i])) return static_cast<std::ptrdiff_t>(i);
  }
  return -1;
}

}  // namespace parity

/// Bits equal, and at least `live` of the values are finite and not zero.
#define CHECK_SAME_BITS(a, b, live)              \
  do {                                           \
    CHECK(parity::count_live(a) >= (live));      \
    CHECK(parity::first_difference(a, b) == -1); \
  } while (false)
