// Digests: SHA-256 and HMAC (commitments; OpenSSL hides behind) and XXH3-128 (finds differences).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace detrun {

using Sha256Digest = std::array<std::uint8_t, 32>;
/// XXH3-128, seed 0, in the canonical big-endian form of the xxHash specification.
using Xxh3Digest = std::array<std::uint8_t, 16>;

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

/// Incremental SHA-256 (FIPS 180-4). Move-only.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  Sha256& update(std::span<const std::byte> bytes);
  Sha256& update(std::string_view text) { return update(as_bytes(text)); }
  /// Eight bytes, little-endian.
  Sha256& update_u64(std::uint64_t value);
  /// u64 little-endian length, then the bytes: a variable part of a sealed message.
  Sha256& update_part(std::span<const std::byte> bytes);
  Sha256& update_part(std::string_view text) { return update_part(as_bytes(text)); }
  /// The digest; the object may not be used afterwards.
  Sha256Digest finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Sha256Digest sha256(std::span<const std::byte> bytes);
inline Sha256Digest sha256(std::string_view text) { return sha256(as_bytes(text)); }
/// HMAC-SHA-256 (RFC 2104).
Sha256Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message);
Xxh3Digest xxh3_128(std::span<const std::byte> bytes);

/// SHA-256 of a file's bytes, read in blocks. Error kUsage when it cannot be read.
Sha256Digest sha256_file(const std::string& path);

/// Fills with bytes of the operating system's random source (secrets and ids only, never numerics).
void random_bytes(std::span<std::byte> out);

std::string to_hex(std::span<const std::byte> bytes);
template <std::size_t N>
std::string to_hex(const std::array<std::uint8_t, N>& digest) {
  return to_hex(std::as_bytes(std::span(digest)));
}
/// Fills `bytes` with what to_hex wrote; false, and nothing of worth in `bytes`, when `hex` is not
/// two hexadecimal digits for each of them.
bool from_hex(std::string_view hex, std::span<std::byte> bytes);

}  // namespace detrun
