// The alphabet of byte-level BPE: one printable character for each of the 256 bytes, so that
// vocabulary files can spell every token. Source: OpenAI GPT-2, encoder.py, bytes_to_unicode.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace detrun {

/// The spelling of bytes, UTF-8: printable Latin-1 stands for itself, the other 68 bytes, in
/// order, are U+0100 to U+0143.
std::string spelling_of_bytes(std::string_view bytes);

/// The bytes that a token's spelling stands for; nullopt when a character is not in the alphabet.
std::optional<std::string> bytes_of_spelling(std::string_view spelling);

}  // namespace detrun
