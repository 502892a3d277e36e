// Search, bytes above ASCII, and limits that end in an error.
#include "tokenizer/regex.h"

#include <doctest/doctest.h>

#include <string>

#include "detrun/error.h"

using namespace detrun;

TEST_CASE("a search finds the leftmost match from a position on") {
  const Regex regex("b+");
  const auto match = regex.search("abbab", 0);
  REQUIRE(match.has_value());
  CHECK(match->begin == 1);
  CHECK(match->end == 3);
  CHECK(regex.search("abbab", 3)->begin == 4);
  CHECK_FALSE(regex.search("abbab", 5).has_value());
}

TEST_CASE("bytes above ASCII are single characters without properties") {
  CHECK(Regex("[\\x80-\\xFF]").search("\xC3\xA9", 0)->end == 1);
  CHECK_FALSE(Regex("(?i:\xE9)").search("\xC9", 0).has_value());
}

TEST_CASE("a search that hits a limit is an error, never a wrong answer") {
  const Regex explosive("(?:a+)+[bc]");
  try {
    explosive.search(std::string(64, 'a'), 0);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ExitCode::kInternal);
    CHECK(std::string(error.what()).find("limit") != std::string::npos);
  }
}
