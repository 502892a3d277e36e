// Inputs for parity tests: seeded, made of integers, with the values that break shortcuts mixed in;
// and comparison of bits that first counts live values (all-NaN equals all-NaN, all-zero all-zero).
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "kernels/fp.h"
#include "kernels/quant/all.h"

namespace parity {

using namespace detrun::kernels;

/// An integer type: the bytes of its blocks, and where their binary16 fields lie.
struct BlockShape {
  std::uint32_t gguf_id;
  std::uint64_t elems, bytes;
  std::vector<std::size_t> halves;
};

inline const std::vector<BlockShape>& block_shapes() {
  static const std::vector<BlockShape> kShapes = {
      {TypeQ4_0::kGgufId, 32, sizeof(BlockQ4_0), {0}},
      {TypeQ4_1::kGgufId, 32, sizeof(BlockQ4_1), {0, 2}},
      {TypeQ5_0::kGgufId, 32, sizeof(BlockQ5_0), {0}},
      {TypeQ5_1::kGgufId, 32, sizeof(BlockQ5_1), {0, 2}},
      {TypeQ8_0::kGgufId, 32, sizeof(BlockQ8_0), {0}},
      {TypeIQ4_NL::kGgufId, 32, sizeof(BlockIQ4_NL), {0}},
      {TypeQ2_K::kGgufId, 256, sizeof(BlockQ2_K), {80, 82}},
      {TypeQ3_K::kGgufId, 256, sizeof(BlockQ3_K), {108}},
      {TypeQ4_K::kGgufId, 256, sizeof(BlockQ4_K), {0, 2}},
      {TypeQ5_K::kGgufId, 256, sizeof(BlockQ5_K), {0, 2}},
      {TypeQ6_K::kGgufId, 256, sizeof(BlockQ6_K), {208}},
      {TypeIQ4_XS::kGgufId, 256, sizeof(BlockIQ4_XS), {0}},
  };
  return kShapes;
}

inline const BlockShape* block_shape(std::uint32_t gguf_id) {
  for (const BlockShape& shape : block_shapes()) {
    if (shape.gguf_id == gguf_id) return &shape;
  }
  return nullptr;
}

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

  /// A block scale: any sign; one in eight subnormal, zero or minus zero.
  std::uint16_t half_scale() {
    const auto sign = static_cast<std::uint16_t>(next() & 0x8000u);
    switch (below(16)) {
      case 0:
        return static_cast<std::uint16_t>(sign | below(0x400));
      case 1:
        return sign;
      default:
        return f32_to_f16(plain());
    }
  }
  /// One block of an integer type: any bits, or one in four the same byte throughout: integers and
  /// scales at either end of their range, in every combination.
  std::vector<std::byte> block(const BlockShape& shape) {
    static constexpr std::uint8_t kFills[] = {0x00, 0xff, 0x80, 0x7f, 0x0f, 0xf0};
    std::vector<std::byte> bytes(shape.bytes);
    const bool filled = below(4) == 0;
    const std::uint8_t fill = kFills[below(6)];
    for (std::byte& b : bytes) b = std::byte{filled ? fill : static_cast<std::uint8_t>(next())};
    for (const std::size_t at : shape.halves) {
      const std::uint16_t half = half_scale();
      std::memcpy(bytes.data() + at, &half, sizeof half);
    }
    return bytes;
  }

  /// A matrix (n, k) as it lies in a file.
  std::vector<std::byte> matrix(std::uint32_t gguf_id, std::uint64_t k, std::uint64_t n) {
    std::vector<std::byte> out;
    const auto put = [&out](const void* p, std::size_t size) {
      const auto* bytes = static_cast<const std::byte*>(p);
      out.insert(out.end(), bytes, bytes + size);
    };
    if (const BlockShape* shape = block_shape(gguf_id)) {
      for (std::uint64_t b = 0; b < k / shape->elems * n; ++b) {
        const std::vector<std::byte> one = block(*shape);
        put(one.data(), one.size());
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
