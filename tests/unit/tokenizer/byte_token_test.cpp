// Which spellings are byte tokens.
#include "tokenizer/byte_token.h"

#include <doctest/doctest.h>

using detrun::parse_byte_token;

TEST_CASE("only <0x00> to <0xFF> in upper case are byte tokens") {
  CHECK(parse_byte_token("<0x00>") == 0);
  CHECK(parse_byte_token("<0xFF>") == 255);
  CHECK(parse_byte_token("<0x9A>") == 0x9A);
  for (const char* text : {"", "<0xff>", "<0x0>", "<0x000>", "<0xG0>", "<0X00>", "0x00", "<0x00",
                           "<0x00>x", "<0x 1>", "<0x-1>"}) {
    CHECK_FALSE(parse_byte_token(text).has_value());
  }
}
