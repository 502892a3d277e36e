// The table of types, sizes at their limits, exact decoding, and the search for what is not finite.
#include "detrun/quant.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "detrun/digest.h"
#include "kernels/fp.h"

namespace {

using namespace detrun;
using kernels::f32_bits;

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

template <class T>
std::vector<std::byte> to_bytes(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

TEST_CASE("types are found by their GGUF ids and removed ids are not") {
  CHECK(find_qtype(0)->name == "F32");
  CHECK(find_qtype(8)->name == "Q8_0");
  CHECK(find_qtype(8)->block_elems == 32);
  CHECK(find_qtype(8)->block_bytes == 34);
  CHECK(find_qtype(30)->type == QType::kBF16);
  CHECK(find_qtype(12)->name == "Q4_K");
  CHECK(find_qtype(12)->supported);
  CHECK(find_qtype(16)->name == "IQ2_XXS");
  CHECK_FALSE(find_qtype(16)->supported);
  for (const std::uint32_t id : {4u, 5u, 31u, 32u, 33u, 36u, 37u, 38u, 255u, 0xffffffffu}) {
    CHECK(find_qtype(id) == nullptr);
  }
  CHECK(&qtype_info(QType::kF16) == find_qtype(1));
}

TEST_CASE("no row of the table could divide by zero") {
  for (std::uint32_t id = 0; id < 256; ++id) {
    const QTypeInfo* info = find_qtype(id);
    if (info == nullptr) continue;
    CHECK(info->block_elems > 0);
    CHECK(info->block_bytes > 0);
  }
}

TEST_CASE("bytes of a row, whole blocks only, and never wrapped") {
  CHECK(row_bytes(*find_qtype(0), 7) == 28);
  CHECK(row_bytes(*find_qtype(1), 0) == 0);
  CHECK(row_bytes(*find_qtype(8), 64) == 68);
  CHECK(row_bytes(*find_qtype(8), 65) == std::nullopt);
  CHECK(row_bytes(*find_qtype(12), 896) == std::nullopt);  // Q4_K blocks hold 256
  CHECK(row_bytes(*find_qtype(0), kMax / 4) == kMax / 4 * 4);
  CHECK(row_bytes(*find_qtype(0), kMax / 4 + 1) == std::nullopt);
  CHECK(row_bytes(*find_qtype(8), kMax / 32 * 32) == std::nullopt);
}

TEST_CASE("floats decode to themselves") {
  const std::vector<float> values = {1.5f, -0.0f, 0x1p-149f, 3.4028235e38f};
  std::vector<float> out(values.size());
  decode_row(QType::kF32, to_bytes(values), out);
  for (std::size_t i = 0; i < out.size(); ++i) CHECK(f32_bits(out[i]) == f32_bits(values[i]));
}

TEST_CASE("halves and bfloats decode exactly") {
  std::vector<float> out(4);
  decode_row(QType::kF16, to_bytes<std::uint16_t>({0x3c00, 0x8000, 0x0001, 0x7bff}), out);
  CHECK(out == std::vector<float>{1.0f, -0.0f, 0x1p-24f, 65504.0f});
  decode_row(QType::kBF16, to_bytes<std::uint16_t>({0x3f80, 0xc000, 0x0001, 0x7f7f}), out);
  CHECK(out == std::vector<float>{1.0f, -2.0f, 0x1p-133f, 0x1.fep127f});
}

TEST_CASE("Q8_0 decodes exactly, -128 and subnormal scales included, from any alignment") {
  std::vector<std::byte> bytes(1 + 68);
  const std::uint16_t scales[] = {0x0001, 0xbc00};  // 2^-24, -1
  for (int b = 0; b < 2; ++b) {
    std::byte* block = bytes.data() + 1 + b * 34;
    std::memcpy(block, &scales[b], 2);
    for (int i = 0; i < 32; ++i)
      block[2 + i] = static_cast<std::byte>(static_cast<std::int8_t>(i * 8 - 128));
  }
  std::vector<float> out(64);
  decode_row(QType::kQ8_0, std::span(bytes).subspan(1), out);
  for (int i = 0; i < 32; ++i) {
    CHECK(out[static_cast<std::size_t>(i)] == static_cast<float>(i * 8 - 128) * 0x1p-24f);
    CHECK(out[static_cast<std::size_t>(32 + i)] == static_cast<float>(128 - i * 8));
  }
}

TEST_CASE("the first element that is not finite is found, wherever and whatever it is") {
  for (const std::size_t n : {1u, 2u, 3u, 5u, 1023u, 1024u, 2047u, 2050u, 5000u}) {
    for (const std::size_t at : {std::size_t{0}, n / 3, n / 2, n - 1}) {
      for (const std::uint32_t bad :
           {0x7f800000u, 0xff800000u, 0x7fc00000u, 0xffffffffu, 0x7f800001u}) {
        std::vector<std::uint32_t> f32(n, 0xff7fffffu);
        CHECK(first_non_finite(QType::kF32, to_bytes(f32)) == std::nullopt);
        f32[at] = bad;
        f32[n - 1] |= at == n - 1 ? bad : 0x7f800000u;
        CHECK(first_non_finite(QType::kF32, to_bytes(f32)) == at);

        std::vector<std::uint16_t> f16(n, 0xfbff);
        CHECK(first_non_finite(QType::kF16, to_bytes(f16)) == std::nullopt);
        f16[at] = static_cast<std::uint16_t>(0x7c00u | (bad & 0x83ffu));
        CHECK(first_non_finite(QType::kF16, to_bytes(f16)) == at);

        std::vector<std::uint16_t> bf16(n, 0xff7f);
        CHECK(first_non_finite(QType::kBF16, to_bytes(bf16)) == std::nullopt);
        bf16[at] = static_cast<std::uint16_t>(bad >> 16);
        CHECK(first_non_finite(QType::kBF16, to_bytes(bf16)) == at);
      }
    }
  }
  CHECK(first_non_finite(QType::kF32, {}) == std::nullopt);
}

/// What an independent decoder (the Python package gguf, by the format's authors) makes of four
/// blocks of a type whose bytes follow a formula.
struct Known {
  QType type;
  std::vector<std::size_t> halves;  ///< where the binary16 fields lie: d, then the minimum
  std::vector<float> block0;        ///< elements 0 15 16 31, or 0 31 32 100 143 255
  std::string xxh3;                 ///< of all elements + 0.0f
};

const std::vector<Known>& known_blocks() {
  static const std::vector<Known> kKnown = {
      {QType::kQ4_0, {0}, {0, -3.75f, -3.75f, -3.75f}, "efa1fbe5dd7592cf9489bbfa8cf51a94"},
      {QType::kQ4_1, {0, 2}, {6.5f, 4.25f, 7.25f, 5}, "13a975de2e09794e304e66eab2709c1e"},
      {QType::kQ5_0, {0}, {-10.5f, -11.25f, 11.25f, 6.75f}, "1f33b419e2e721f6110a009dbe8bb493"},
      {QType::kQ5_1, {0, 2}, {20, 20.75f, 6.5f, 11.75f}, "f3fd826eb4f22bd4398b47d355a391e6"},
      {QType::kQ8_0, {0}, {42, 38.25f, -48, 56.25f}, "ed8cf67eb2f4dd9d128a4b4ca981cb15"},
      {QType::kIQ4_NL, {0}, {0.75f, -48.75f, -48.75f, -48.75f}, "5c699337725cf00cda5898de02727c09"},
      {QType::kQ2_K,
       {80, 82},
       {3.75f, 15.25f, 14.25f, -14.25f, 4.75f, -2.5f},
       "5b24f0c2f23de0b899e2e0f70c7c01bf"},
      {QType::kQ3_K,
       {108},
       {-8.25f, -40.5f, 54, -40.5f, -22.5f, 18},
       "2556962daae0e92010b8e30c0c737295"},
      {QType::kQ4_K,
       {0, 2},
       {-3, 2.25f, 418.75f, 342.5f, 157.25f, 124.5f},
       "a856f29fc9a0ea06398ef05cbefe32cb"},
      {QType::kQ5_K,
       {0, 2},
       {81, 2.25f, 632.5f, 830, 157.25f, 198},
       "d23fd295307f82f1e72d3fa068210857"},
      {QType::kQ6_K,
       {208},
       {222.75f, 265.5f, 858, 1291.5f, 934.5f, -412.5f},
       "889d5bed1bb46f075e24fb71052a0101"},
      {QType::kIQ4_XS,
       {0},
       {-243.75f, -1668.75f, -624, 1023.75f, -562.5f, -1101.75f},
       "e3e9ee83855d783902ac328a9db76c7e"},
  };
  return kKnown;
}

/// Four blocks with scales 0.75, -1.5, 2^-24, -0 and minima 1.25, -3, 2, 0.1, from byte 1 on.
std::vector<std::byte> four_blocks(const Known& known) {
  const std::size_t block_bytes = qtype_info(known.type).block_bytes;
  std::vector<std::byte> bytes(1 + 4 * block_bytes);
  for (std::size_t i = 0; i < 4 * block_bytes; ++i) {
    bytes[1 + i] = static_cast<std::byte>((i * i * 7 + i * 37 + 11) >> 1);
  }
  const std::uint16_t halves[2][4] = {{0x3a00, 0xbe00, 0x0001, 0x8000},
                                      {0x3d00, 0xc200, 0x4000, 0x2e66}};
  for (std::size_t b = 0; b < 4; ++b) {
    for (std::size_t h = 0; h < known.halves.size(); ++h) {
      std::memcpy(bytes.data() + 1 + b * block_bytes + known.halves[h], &halves[h][b], 2);
    }
  }
  return bytes;
}

TEST_CASE("blocks of every integer type decode to what an independent decoder gives") {
  for (const Known& known : known_blocks()) {
    const QTypeInfo& info = qtype_info(known.type);
    CAPTURE(std::string(info.name));
    CHECK(info.supported);
    std::vector<float> out(4 * info.block_elems);
    const std::vector<std::byte> bytes = four_blocks(known);
    decode_row(known.type, std::span(bytes).subspan(1), out);
    const std::vector<std::size_t> at = info.block_elems == 32
                                            ? std::vector<std::size_t>{0, 15, 16, 31}
                                            : std::vector<std::size_t>{0, 31, 32, 100, 143, 255};
    for (std::size_t i = 0; i < at.size(); ++i) CHECK(out[at[i]] == known.block0[i]);
    for (float& v : out) v = kernels::f32_add(v, 0.0f);  // that decoder multiplies in another order
    CHECK(to_hex(xxh3_128(std::as_bytes(std::span(out)))) == known.xxh3);
  }
}

TEST_CASE("a zero has the sign of the block's scale") {
  // d * (scale * q) with q = 0: a negative integer scale leaves no minus zero.
  std::vector<std::byte> q6(210, std::byte{0});
  std::fill_n(q6.begin() + 128, 64, std::byte{0xaa});  // upper bits 2: 32 - 32
  std::fill_n(q6.begin() + 192, 16, std::byte{0x80});
  std::vector<float> out(256);
  for (const std::uint16_t d : {0x3c00, 0xbc00}) {
    std::memcpy(q6.data() + 208, &d, 2);
    decode_row(QType::kQ6_K, q6, out);
    for (const float v : out) CHECK(f32_bits(v) == (d == 0x3c00 ? 0u : 0x80000000u));
  }
}

TEST_CASE("the first block one of whose scales or minima is not finite is named") {
  for (const Known& known : known_blocks()) {
    const QTypeInfo& info = qtype_info(known.type);
    CAPTURE(std::string(info.name));
    std::vector<std::byte> bytes(9 * info.block_bytes,
                                 std::byte{0xff});  // integers may be anything
    for (std::size_t b = 0; b < 9; ++b) {
      for (const std::size_t at : known.halves) {
        const std::uint16_t largest = 0x7bff;
        std::memcpy(bytes.data() + b * info.block_bytes + at, &largest, 2);
      }
    }
    CHECK(first_non_finite(known.type, bytes) == std::nullopt);
    for (const std::size_t at : known.halves) {
      for (const std::uint16_t bad : {0x7c00, 0xfc00, 0x7e01}) {
        auto broken = bytes;
        std::memcpy(broken.data() + 8 * info.block_bytes + at, &bad, 2);
        CHECK(first_non_finite(known.type, broken) == 8 * info.block_elems);
        std::memcpy(broken.data() + 5 * info.block_bytes + at, &bad, 2);
        CHECK(first_non_finite(known.type, broken) == 5 * info.block_elems);
      }
    }
  }
}

}  // namespace
