// The spelling <0xXX> of a token that stands for one byte (SentencePiece byte fallback).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace detrun {

/// The byte of "<0x00>" to "<0xFF>"; nullopt for any other spelling (lower case included).
inline std::optional<std::uint8_t> parse_byte_token(std::string_view text) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  if (text.size() != 6 || text.substr(0, 3) != "<0x" || text[5] != '>') return std::nullopt;
  const int high = digit(text[3]);
  const int low = digit(text[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<std::uint8_t>(high * 16 + low);
}

}  // namespace detrun
