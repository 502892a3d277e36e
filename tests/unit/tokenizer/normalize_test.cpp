// NFC of text, of text with invalid bytes, and its limit.
#include "tokenizer/normalize.h"

#include <doctest/doctest.h>

#include "detrun/error.h"

using namespace detrun;

TEST_CASE("NFC composes, reorders and leaves the rest") {
  CHECK(nfc("plain \t\n text\x01") == "plain \t\n text\x01");
  CHECK(nfc("cafe\u0301 \u00E9") == "caf\u00E9 \u00E9");
  CHECK(nfc("\u212B\u2126") == "\u00C5\u03A9");  // singletons
  CHECK(nfc("\u1112\u1161\u11AB") == "\uD55C");
  CHECK(nfc("a\u0301\u0316") == "\u00E1\u0316");
  CHECK(nfc("\uFB01") == "\uFB01");  // compatibility characters stay
  CHECK(nfc(std::string("a\0e\u0301", 5)) == std::string("a\0\u00E9", 4));
  CHECK(nfc("").empty());
}

TEST_CASE("invalid bytes stay where they are and separate what is normalized") {
  CHECK(nfc("e\xFF\u0301") == "e\xFF\u0301");
  CHECK(nfc("e\u0301\xE6\xAD"
            "e\u0301\xFF") == "\u00E9\xE6\xAD\u00E9\xFF");
  CHECK(nfc("\xED\xA0\x80") == "\xED\xA0\x80");
}

TEST_CASE("more combining marks in a row than any text has are refused, not waited for") {
  std::string marks = "e";
  for (int i = 0; i < 4096; ++i) marks += "\u0316";
  CHECK(nfc(marks).size() == marks.size());
  CHECK_THROWS_AS(nfc(marks + "\u0301"), Error);
  CHECK_NOTHROW(nfc(marks + "x" + marks));
}
