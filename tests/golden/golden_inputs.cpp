// The rule of fixtures/golden/README.md, nothing else.
#include "golden_inputs.h"

#include <array>
#include <cstring>
#include <string>

#include "detrun/error.h"
#include "kernels/fp.h"

namespace golden {

using namespace detrun::kernels;
using detrun::QType;

std::uint64_t word(std::uint64_t seed, std::uint64_t tensor, std::uint64_t element) {
  std::uint64_t z = ((seed << 40) + (tensor << 32) + element + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

namespace {

float plain(std::uint64_t w) {
  return static_cast<float>(static_cast<std::int32_t>(w >> 40) - (1 << 23)) * 0x1p-23f;
}

float edgy(std::uint64_t w) {
  const auto high = static_cast<std::uint32_t>(w >> 32);
  const auto small = static_cast<std::int32_t>((w >> 8) & 127) - 64;
  switch (w & 15) {
    case 0:
      return 0.0f;
    case 1:
      return -0.0f;
    case 2:
      return f32_from_bits(high & 0x807fffffu);
    case 3:
      return plain(w) * 0x1p-110f;
    case 4:
      return plain(w) * 0x1p20f;
    case 5: {
      const auto large = static_cast<float>((1 << 24) + 2 * static_cast<int>((w >> 8) & 255) + 2);
      return w >> 63 != 0 ? -large : large;
    }
    case 6:
      return static_cast<float>(small) + 0.5f;
    case 7:
      return static_cast<float>(small);
    default:
      return plain(w);
  }
}

float ties(std::uint64_t w) {
  if ((w & 7) == 0) return w >> 63 != 0 ? -127.0f : 127.0f;
  return static_cast<float>(static_cast<std::int32_t>((w >> 8) & 127) - 64) + 0.5f;
}

/// Byte offsets of the binary16 fields of a block, in their order; -1: no such field.
struct HalfFields {
  QType type;
  std::array<int, 2> at;
};
constexpr HalfFields kHalfFields[] = {
    {QType::kQ8_0, {0, -1}},  {QType::kQ4_0, {0, -1}},   {QType::kQ4_1, {0, 2}},
    {QType::kQ5_0, {0, -1}},  {QType::kQ5_1, {0, 2}},    {QType::kIQ4_NL, {0, -1}},
    {QType::kQ2_K, {80, 82}}, {QType::kQ3_K, {108, -1}}, {QType::kQ4_K, {0, 2}},
    {QType::kQ5_K, {0, 2}},   {QType::kQ6_K, {208, -1}}, {QType::kIQ4_XS, {0, -1}},
};

std::array<int, 2> half_fields(QType type) {
  for (const HalfFields& row : kHalfFields) {
    if (row.type == type) return row.at;
  }
  detrun::throw_usage("no integer type with id " + std::to_string(static_cast<int>(type)));
}

std::uint16_t half_of(std::uint64_t v) {
  return static_cast<std::uint16_t>((v & 0x3ff) | (((v >> 10) & 31) % 20) << 10 |
                                    ((v >> 15) & 1) << 15);
}

std::vector<std::byte> integer_matrix(const detrun::QTypeInfo& type, std::string_view kind,
                                      std::uint64_t seed, std::uint64_t tensor,
                                      std::uint64_t n_blocks) {
  std::vector<std::byte> bytes(n_blocks * type.block_bytes);
  const std::array<int, 2> halves = half_fields(type.type);
  for (std::uint64_t b = 0; b < n_blocks; ++b) {
    std::byte* block = bytes.data() + b * type.block_bytes;
    for (std::uint32_t j = 0; j < type.block_bytes; ++j) {
      block[j] = kind == "low"    ? std::byte{0}
                 : kind == "high" ? std::byte{255}
                                  : static_cast<std::byte>(word(seed, tensor, b * 1024 + j));
    }
    for (std::uint64_t f = 0; f < 2; ++f) {
      if (halves[f] < 0) continue;
      const std::uint16_t half = half_of(word(seed, tensor, b * 1024 + 1000 + f));
      std::memcpy(block + halves[f], &half, sizeof half);
    }
  }
  return bytes;
}

}  // namespace

float value(std::string_view kind, std::uint64_t w) {
  const auto high = static_cast<std::uint32_t>(w >> 32);
  if (kind == "plain") return plain(w);
  if (kind == "edgy") return edgy(w);
  if (kind == "tiny") return plain(w) * 0x1p-105f;
  if (kind == "above") return plain(w) * 0x1p-99f;
  if (kind == "below") return plain(w) * 0x1p-101f;
  if (kind == "ties") return ties(w);
  if (kind == "zero") return (w & 1) != 0 ? -0.0f : 0.0f;
  if (kind == "wide") return plain(w) * 128.0f;
  if (kind == "bits") return f32_from_bits(high);
  if (kind == "finite") {
    return f32_from_bits((high & kInfBits) == kInfBits ? high & ~0x00800000u : high);
  }
  const float magnitude = f32_from_bits(f32_bits(plain(w)) & kAbsMask);
  if (kind == "positive") return magnitude;
  if (kind == "over") return magnitude * 0x1p-105f;
  if (kind == "under") return magnitude * -0x1p-105f;
  detrun::throw_usage("no kind of values '" + std::string(kind) + "'");
}

std::vector<float> values(std::string_view kind, std::uint64_t seed, std::uint64_t tensor,
                          std::uint64_t n) {
  std::vector<float> all(n);
  for (std::uint64_t i = 0; i < n; ++i) all[i] = value(kind, word(seed, tensor, i));
  return all;
}

std::vector<std::byte> matrix(const detrun::QTypeInfo& type, std::string_view kind,
                              std::uint64_t seed, std::uint64_t tensor, std::uint64_t n,
                              std::uint64_t k) {
  if (type.block_elems > 1) {
    return integer_matrix(type, kind, seed, tensor, n * k / type.block_elems);
  }
  std::vector<std::byte> bytes(n * k * type.block_bytes);
  for (std::uint64_t i = 0; i < n * k; ++i) {
    const std::uint64_t w = word(seed, tensor, i);
    const bool large =
        kind == "edgy" && type.type == QType::kF16 && ((w & 15) == 4 || (w & 15) == 5);
    const float v = large ? plain(w) : value(kind, w);
    const std::uint16_t narrow = type.type == QType::kF16 ? f32_to_f16(v) : f32_to_bf16(v);
    const void* source = type.type == QType::kF32 ? static_cast<const void*>(&v) : &narrow;
    std::memcpy(bytes.data() + i * type.block_bytes, source, type.block_bytes);
  }
  return bytes;
}

}  // namespace golden
