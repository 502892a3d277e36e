// Bytes to spellings and back, all 256, and what spells no bytes.
#include "tokenizer/byte_alphabet.h"

#include <doctest/doctest.h>

#include <set>

using namespace detrun;

TEST_CASE("256 bytes have 256 spellings, and each goes back") {
  std::set<std::string> spellings;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const std::string one(1, static_cast<char>(byte));
    spellings.insert(spelling_of_bytes(one));
    CHECK(bytes_of_spelling(spelling_of_bytes(one)) == one);
  }
  CHECK(spellings.size() == 256);
}

TEST_CASE("known spellings: space, newline, soft hyphen, a letter, byte FF") {
  CHECK(spelling_of_bytes(" \n\xAD"
                          "a\xFF") ==
        "\u0120\u010A\u0143"
        "a\u00FF");
}

TEST_CASE("a character outside the alphabet spells no bytes") {
  for (const char* text : {" ", "\n", "\u0144", "\u00AD", "日", "a\xFF", "a b"}) {
    CHECK_FALSE(bytes_of_spelling(text).has_value());
  }
  CHECK(bytes_of_spelling("") == "");
}
