// Both directions of the byte alphabet, by rule; the inverse as a table of 324 entries.
#include "tokenizer/byte_alphabet.h"

#include <array>

#include "tokenizer/utf8.h"

namespace detrun {
namespace {

constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
  std::array<std::uint16_t, 256> char_of_byte{};
  std::array<std::int16_t, 0x144> byte_of_char{};  // -1: not in the alphabet
};

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  for (auto& byte : alphabet.byte_of_char) byte = -1;
  unsigned next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const unsigned code = stands_for_itself(byte) ? byte : next++;
    alphabet.char_of_byte[byte] = static_cast<std::uint16_t>(code);
    alphabet.byte_of_char[code] = static_cast<std::int16_t>(byte);
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

std::string spelling_of_bytes(std::string_view bytes) {
  std::string spelling;
  spelling.reserve(2 * bytes.size());
  for (const char c : bytes) {
    const unsigned code = kAlphabet.char_of_byte[static_cast<unsigned char>(c)];
    if (code < 0x80) {
      spelling += static_cast<char>(code);
    } else {
      spelling += static_cast<char>(0xC0U | code >> 6U);
      spelling += static_cast<char>(0x80U | (code & 0x3FU));
    }
  }
  return spelling;
}

std::optional<std::string> bytes_of_spelling(std::string_view spelling) {
  std::string bytes;
  bytes.reserve(spelling.size());
  for (std::size_t pos = 0; pos < spelling.size();) {
    const Utf8Char c = utf8_at(spelling, pos);
    pos += c.bytes;
    if (!c.valid || c.code >= kAlphabet.byte_of_char.size()) return std::nullopt;
    const std::int16_t byte = kAlphabet.byte_of_char[c.code];
    if (byte < 0) return std::nullopt;
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

}  // namespace detrun
