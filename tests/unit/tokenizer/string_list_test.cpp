// Look-up by string, repeats, empty entries.
#include "tokenizer/string_list.h"

#include <doctest/doctest.h>

#include <string>

using detrun::StringList;

TEST_CASE("every entry is found by its string, and nothing else is") {
  std::vector<std::string> texts;
  texts.reserve(5001);
  for (int i = 0; i < 5000; ++i) texts.push_back("token " + std::to_string(i));
  texts.push_back(std::string("a\0b", 3));
  const StringList list(std::vector<std::string_view>(texts.begin(), texts.end()));
  texts.front()[0] = 'T';  // the list has its own bytes
  REQUIRE(list.size() == 5001);
  CHECK_FALSE(list.first_repeat().has_value());
  for (std::size_t i = 0; i < list.size(); ++i) {
    CHECK(list.find(list[i]) == static_cast<std::int32_t>(i));
  }
  CHECK(list[0] == "token 0");
  CHECK_FALSE(list.find("token 5000").has_value());
  CHECK_FALSE(list.find("a").has_value());
}

TEST_CASE("of equal entries the first is found and the second is the repeat") {
  const StringList list({"x", "", "y", "", "x", "y"});
  CHECK(list.find("x") == 0);
  CHECK(list.find("y") == 2);
  CHECK_FALSE(list.find("").has_value());
  CHECK(list.first_repeat() == 4);
}

TEST_CASE("an empty list finds nothing") {
  CHECK_FALSE(StringList().find("x").has_value());
  CHECK_FALSE(StringList(std::vector<std::string_view>()).find("x").has_value());
}
