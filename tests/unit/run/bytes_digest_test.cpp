// Hashing beside other work.
#include "run/bytes_digest.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <vector>

namespace detrun {
namespace {

TEST_CASE("the digest is that of all bytes, whatever the number of blocks") {
  constexpr std::size_t kBlock = std::size_t{4} << 20;
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, kBlock - 1, kBlock, 3 * kBlock + 7}) {
    CAPTURE(size);
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 31 + i / 251);
    BytesDigest digest(bytes);
    Observer nobody;
    CHECK(digest.wait(nobody, nullptr) == sha256(bytes));
  }
}

TEST_CASE("a digest that nobody waits for is stopped by its destructor") {
  const std::vector<std::byte> bytes(std::size_t{64} << 20);
  const BytesDigest digest(bytes);
}

}  // namespace
}  // namespace detrun
