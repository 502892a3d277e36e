// One step through bytes that may or may not be UTF-8. Not a validator of whole texts (core has
// one): here an invalid byte is a character of its own, so every byte belongs to exactly one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace detrun {

struct Utf8Char {
  std::uint32_t code;   ///< code point; of an invalid byte the byte itself
  std::uint32_t bytes;  ///< 1 to 4
  bool valid;
};

/// The character at `pos` (< text.size()): well-formed per table 3-7 of the Unicode standard (no
/// surrogates, no overlong forms), or one invalid byte.
inline Utf8Char utf8_at(std::string_view text, std::size_t pos) {
  const auto byte = [&](std::size_t i) {
    return pos + i < text.size() ? static_cast<unsigned char>(text[pos + i]) : 0U;
  };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const Utf8Char invalid{lead, 1, false};
  if (lead < 0xC2 || lead > 0xF4) return invalid;
  const std::uint32_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  std::uint32_t code = lead & (0x7FU >> length);
  for (std::uint32_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return invalid;
    code = code << 6U | (byte(i) & 0x3FU);
  }
  const bool overlong = code < (length == 2 ? 0x80U : length == 3 ? 0x800U : 0x10000U);
  if (overlong || (code >= 0xD800 && code <= 0xDFFF) || code > 0x10FFFF) return invalid;
  return {code, length, true};
}

}  // namespace detrun
