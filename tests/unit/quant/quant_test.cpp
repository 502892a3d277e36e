// The table of types, sizes at their limits, exact decoding, and the search for what is not finite.
#include "detrun/quant.h"

#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <vector>

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
  CHECK_FALSE(find_qtype(12)->supported);
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

TEST_CASE("Q8_0 names the first element of the block whose scale is not finite") {
  std::vector<std::byte> bytes(34 * 9, std::byte{0xff});  // quants of all ones are fine
  for (int b = 0; b < 9; ++b) {
    const std::uint16_t d = 0x7bff;
    std::memcpy(bytes.data() + b * 34, &d, 2);
  }
  CHECK(first_non_finite(QType::kQ8_0, bytes) == std::nullopt);
  for (const std::uint16_t d : {0x7c00, 0xfc00, 0x7e01}) {
    auto broken = bytes;
    std::memcpy(broken.data() + 7 * 34, &d, 2);
    CHECK(first_non_finite(QType::kQ8_0, broken) == 7 * 32);
  }
}

}  // namespace
