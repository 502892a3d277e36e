// One step through bytes, exhaustively over code points and over pairs of bytes.
#include "tokenizer/utf8.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "detrun/text.h"

using namespace detrun;

namespace {

std::string encoded(std::uint32_t code) {
  if (code < 0x80) return {static_cast<char>(code)};
  const unsigned extra = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  const unsigned lead = extra == 1 ? 0xC0U : extra == 2 ? 0xE0U : 0xF0U;
  std::string out = {static_cast<char>(lead | code >> (6 * extra))};
  for (unsigned left = extra; left-- > 0;) {
    out += static_cast<char>(0x80U | (code >> (6 * left) & 0x3FU));
  }
  return out;
}

}  // namespace

TEST_CASE("every code point is one valid character, surrogates and beyond are invalid bytes") {
  for (std::uint32_t code = 0; code < 0x110400; ++code) {
    const std::string text = encoded(code);
    const Utf8Char c = utf8_at(text, 0);
    const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
    const bool valid = !surrogate && code < 0x110000;
    if (c.valid != valid || (valid && (c.code != code || c.bytes != text.size())) ||
        (!valid && c.bytes != 1)) {
      CAPTURE(code);
      FAIL_CHECK("decoded wrongly");
    }
  }
}

TEST_CASE("any two lead bytes are judged as core judges UTF-8") {
  for (unsigned a = 0x80; a < 256; ++a) {
    for (unsigned b = 0; b < 256; ++b) {
      for (const char* rest : {"", "\x80", "\x80\x80", "\xBF\xBF"}) {
        const std::string text = std::string{static_cast<char>(a), static_cast<char>(b)} + rest;
        const Utf8Char c = utf8_at(text, 0);
        const std::string_view first = std::string_view(text).substr(0, c.bytes);
        CHECK(c.valid == is_utf8(first));
        if (!c.valid) {
          for (std::size_t n = 2; n <= text.size() && n <= 4; ++n) {
            CHECK_FALSE((is_utf8(text.substr(0, n))));
          }
        }
      }
    }
  }
}
