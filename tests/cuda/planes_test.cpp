// The arrangement of quantized weights in device memory, against the words of planes.h.
#include "tests/cuda/product_support.h"

namespace detrun {
namespace {

using namespace cuda_test;

std::vector<std::uint8_t> random_bytes(std::mt19937& random, std::size_t n, unsigned below) {
  std::vector<std::uint8_t> bytes(n);
  for (std::uint8_t& b : bytes) b = static_cast<std::uint8_t>(random() % below);
  return bytes;
}

}  // namespace

TEST_CASE("values of 1, 2, 4 and 8 bits lie where planes.h says, and higher bits are dropped") {
  std::mt19937 random(3);
  const auto u = random_bytes(random, 32, 256);
  std::uint8_t one[4], two[8], four[16], eight[32];
  cuda::pack_bits<1>(u.data(), one);
  cuda::pack_bits<2>(u.data(), two);
  cuda::pack_bits<4>(u.data(), four);
  cuda::pack_bits<8>(u.data(), eight);
  for (std::size_t l = 0; l < 32; ++l) {
    CHECK((one[l % 4] >> (l / 4) & 1) == (u[l] & 1));
    CHECK((two[4 * (l / 16) + l % 4] >> (2 * (l % 16 / 4)) & 3) == (u[l] & 3));
    CHECK((four[l % 16] >> (l < 16 ? 0 : 4) & 15) == (u[l] & 15));
    CHECK(eight[l] == u[l]);
  }
}

TEST_CASE("every level of IQ4_NL has its number") {
  for (int number = 0; number < 16; ++number) {
    CHECK(cuda::level_number(kernels::iq4_level(number)) == number);
  }
}

TEST_CASE_TEMPLATE_DEFINE("an image is hardly larger than the rows of the file", Type, image_size) {
  constexpr std::size_t kGroups = 4096;
  const std::size_t file = kGroups * sizeof(typename Type::Block);
  const std::size_t image = cuda::QuantLayout<Type>::image_bytes(kGroups);
  CHECK(image >= file);
  CHECK(image * 100 <= file * 104);
}
TEST_CASE_TEMPLATE_APPLY(image_size, QuantTypes);

TEST_CASE_TEMPLATE_DEFINE("parts of an image may be packed in any order from unaligned rows", Type,
                          image_parts) {
  using Layout = cuda::QuantLayout<Type>;
  std::mt19937 random(Type::kGgufId);
  constexpr std::size_t kGroups = 37;
  const auto blocks = random_blocks<Type>(random, kGroups);
  const std::size_t size = Layout::image_bytes(kGroups);
  Aligned<std::byte> whole(size), parts(size);
  std::memset(whole.data(), 0x5a, size);
  std::memset(parts.data(), 0x5a, size);
  cuda::pack_groups<Type>(blocks.data(), 0, kGroups, Layout::planes(whole.data(), kGroups));
  std::vector<std::byte> shifted(1 + kGroups * sizeof blocks[0]);
  std::memcpy(shifted.data() + 1, blocks.data(), kGroups * sizeof blocks[0]);
  const cuda::Planes planes = Layout::planes(parts.data(), kGroups);
  cuda::pack_groups<Type>(shifted.data() + 1, 20, kGroups, planes);
  cuda::pack_groups<Type>(shifted.data() + 1, 0, 13, planes);
  CHECK(std::memcmp(whole.data(), parts.data(), size) != 0);
  cuda::pack_groups<Type>(shifted.data() + 1, 13, 20, planes);
  CHECK(std::memcmp(whole.data(), parts.data(), size) == 0);
}
TEST_CASE_TEMPLATE_APPLY(image_parts, QuantTypes);

}  // namespace detrun
