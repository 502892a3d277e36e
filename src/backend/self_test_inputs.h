// Inputs of the self-test, made of integers (splitmix64), so that nothing but the kernel under test
// computes. They are frozen with the known answers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "detrun/quant.h"
#include "kernels/fp.h"
#include "kernels/quant/q2_k.h"
#include "kernels/quant/q3_k.h"
#include "kernels/quant/q6_k.h"

namespace detrun {

/// Where the binary16 fields of a block of an integer type lie.
inline std::vector<std::size_t> half_fields(QType type) {
  switch (type) {
    case QType::kQ2_K:
      return {offsetof(kernels::BlockQ2_K, d), offsetof(kernels::BlockQ2_K, dmin)};
    case QType::kQ3_K:
      return {offsetof(kernels::BlockQ3_K, d)};
    case QType::kQ6_K:
      return {offsetof(kernels::BlockQ6_K, d)};
    case QType::kQ4_1:
    case QType::kQ5_1:
    case QType::kQ4_K:
    case QType::kQ5_K:
      return {0, 2};
    default:
      return {0};
  }
}

/// Adds the bits of values to an answer.
template <class T>
void append(std::vector<std::byte>& out, std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

class Inputs {
 public:
  explicit Inputs(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ull;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  /// Magnitudes 2^-8 to 2^3; now and then -0 or a subnormal.
  float value() {
    const std::uint64_t r = next();
    const std::uint32_t sign = (r & 1) != 0 ? 0x80000000u : 0u;
    if (r % 61 == 0) return kernels::f32_from_bits(sign);
    if (r % 67 == 0) return kernels::f32_from_bits(sign | (static_cast<std::uint32_t>(r >> 44)));
    const auto exponent = static_cast<std::uint32_t>(119 + (r >> 8) % 11);
    return kernels::f32_from_bits(sign | exponent << 23 | static_cast<std::uint32_t>(r >> 41));
  }
  void fill(std::span<float> v) {
    for (float& x : v) x = value();
  }
  std::vector<float> values(std::size_t n) {
    std::vector<float> v(n);
    fill(v);
    return v;
  }
  /// A matrix (n, k) as it lies in a file.
  void fill(QType type, std::uint64_t k, std::uint64_t n, std::vector<std::byte>& bytes) {
    const QTypeInfo& info = qtype_info(type);
    bytes.resize(k / info.block_elems * n * info.block_bytes);
    const std::vector<std::size_t> halves = half_fields(type);
    for (std::byte* at = bytes.data(); at != bytes.data() + bytes.size(); at += info.block_bytes) {
      put_block(info, halves, at);
    }
  }

 private:
  void put_block(const QTypeInfo& info, std::span<const std::size_t> halves, std::byte* out) {
    if (info.block_elems == 1) {
      const float v = value();
      const std::uint16_t half =
          info.type == QType::kBF16 ? kernels::f32_to_bf16(v) : kernels::f32_to_f16(v);
      std::memcpy(out, info.type == QType::kF32 ? static_cast<const void*>(&v) : &half,
                  info.block_bytes);
      return;
    }
    // Integers of any value around the scale and, in many types, a minimum.
    for (std::uint32_t i = 0; i < info.block_bytes; i += 8) {
      const std::uint64_t r = next();
      std::memcpy(out + i, &r, std::min<std::size_t>(sizeof r, info.block_bytes - i));
    }
    for (const std::size_t at : halves) {
      const std::uint16_t field = kernels::f32_to_f16(value());
      std::memcpy(out + at, &field, sizeof field);
    }
  }

  std::uint64_t state_;
};

}  // namespace detrun
