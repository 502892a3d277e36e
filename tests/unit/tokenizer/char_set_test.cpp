// Members of the character sets at the borders of their ranges.
#include "tokenizer/char_set.h"

#include <doctest/doctest.h>

#include <vector>

using namespace detrun;

TEST_CASE("white space is the 25 code points of White_Space") {
  std::vector<std::uint32_t> spaces;
  for (std::uint32_t code = 0; code < 0x110000; ++code) {
    if (find_char_set("s")->has(code)) spaces.push_back(code);
  }
  CHECK(spaces == std::vector<std::uint32_t>{0x9,    0xA,    0xB,    0xC,    0xD,    0x20,   0x85,
                                             0xA0,   0x1680, 0x2000, 0x2001, 0x2002, 0x2003, 0x2004,
                                             0x2005, 0x2006, 0x2007, 0x2008, 0x2009, 0x200A, 0x2028,
                                             0x2029, 0x202F, 0x205F, 0x3000});
}

TEST_CASE("lists hold both ends of each range and nothing beside") {
  const CharSet* letters = find_char_set("DeepseekLetters");
  REQUIRE(letters != nullptr);
  for (const std::uint32_t code : {0x41, 0x5A, 0x61, 0x7A, 0xB5, 0x1F5F, 0x1F7D, 0x1E943}) {
    CHECK(letters->has(code));
  }
  for (const std::uint32_t code : {0x40, 0x5B, 0x7B, 0xAA, 0xB4, 0xB6, 0x1F5E, 0x1F7E, 0x1E944}) {
    CHECK_FALSE(letters->has(code));
  }
  std::uint32_t last = 0;
  for (const CodeRange& range : letters->ranges) {
    CHECK(range.first > last);
    CHECK(range.last >= range.first);
    last = range.last;
  }
}

TEST_CASE("an unknown name is no set") { CHECK(find_char_set("X") == nullptr); }
