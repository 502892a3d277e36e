// XXH3-128 by xxHash, random bytes by the kernel, hexadecimal. Not here: SHA-256 (sha256.cpp).
#include "detrun/digest.h"

#include <sys/random.h>
#include <xxhash.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "detrun/error.h"

namespace detrun {

Xxh3Digest xxh3_128(std::span<const std::byte> bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  Xxh3Digest digest{};
  static_assert(sizeof(canonical.digest) == sizeof(digest));
  std::memcpy(digest.data(), canonical.digest, sizeof(digest));
  return digest;
}

void random_bytes(std::span<std::byte> out) {
  while (!out.empty()) {
    const ssize_t got = ::getrandom(out.data(), out.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw_internal("the system's random source failed");
    out = out.subspan(static_cast<std::size_t>(got));
  }
}

std::string to_hex(std::span<const std::byte> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * bytes.size());
  for (const std::byte b : bytes) {
    hex.push_back(kDigits[std::to_integer<unsigned>(b) >> 4]);
    hex.push_back(kDigits[std::to_integer<unsigned>(b) & 15]);
  }
  return hex;
}

bool from_hex(std::string_view hex, std::span<std::byte> bytes) {
  if (hex.size() != 2 * bytes.size()) return false;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    unsigned value = 0;
    const char* first = hex.data() + 2 * i;
    if (std::from_chars(first, first + 2, value, 16).ptr != first + 2) return false;
    bytes[i] = static_cast<std::byte>(value);
  }
  return true;
}

}  // namespace detrun
