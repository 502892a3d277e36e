// Text helpers: UTF-8 edges, escapes, locale-free numbers.
#include "detrun/text.h"

#include <doctest/doctest.h>

#include <set>

namespace detrun {
using namespace std::string_view_literals;

TEST_CASE("well-formed UTF-8 is what table 3-7 of Unicode allows") {
  for (const auto good : {""sv, "abc"sv, "\xC3\xA9"sv, "\xE6\xAD\xAA"sv, "\xF0\x9F\xA6\x99"sv,
                          "\xED\x9F\xBF"sv, "\xF4\x8F\xBF\xBF"sv, "a\0b"sv})
    CHECK(is_utf8(good));
  for (const auto bad : {"\xFF"sv, "\xE6\xAD"sv, "\xC0\x80"sv, "\xED\xA0\x80"sv,
                         "\xF4\x90\x80\x80"sv, "\xE0\x80\x80"sv, "\x80"sv, "\xC3"sv})
    CHECK_FALSE(is_utf8(bad));
}

TEST_CASE("an incomplete character at the end is held back, a broken one is not") {
  CHECK(complete_utf8_prefix("ab\xE6\xAD"sv) == 2);
  CHECK(complete_utf8_prefix("ab\xF0\x9F\xA6"sv) == 2);
  CHECK(complete_utf8_prefix("ab\xE6\xAD\xAA"sv) == 5);
  CHECK(complete_utf8_prefix("ab\xC3"sv) == 2);
  CHECK(complete_utf8_prefix("ab\xE0"sv) == 2);
  CHECK(complete_utf8_prefix("ab\xFF"sv) == 3);
  CHECK(complete_utf8_prefix("ab\xED\xA0"sv) == 4);  // a surrogate can never become whole
  CHECK(complete_utf8_prefix("\x80\x80\x80\x80"sv) == 4);
  CHECK(complete_utf8_prefix(""sv) == 0);
}

TEST_CASE("nothing that can drive a terminal survives escaping") {
  CHECK(escape_for_terminal("a\x1B[2Jb"sv) == "a\\x1b[2Jb");
  CHECK(escape_for_terminal("\x1B]52;c;x\x07"sv) == "\\x1b]52;c;x\\x07");
  CHECK(escape_for_terminal("\xC2\x9B"
                            "2J"sv) == "\\u{009b}2J");  // C1 CSI
  CHECK(escape_for_terminal("\x9B"sv) == "\\x9b");
  CHECK(escape_for_terminal("a\rb\nc\td"sv) == "a\\rb\\nc\\td");
  CHECK(escape_for_terminal("a\rb\nc\td"sv, true) == "a\\rb\nc\td");
  CHECK(escape_for_terminal("x\xE2\x80\xAEy"sv) == "x\\u{202e}y");
  CHECK(escape_for_terminal("\xE6\xAD\xAA é"sv) == "\xE6\xAD\xAA é");
  CHECK(escape_for_terminal("\\n"sv) == "\\n");
}

TEST_CASE("base64 pads as RFC 4648 says") {
  CHECK(base64("") == "");
  CHECK(base64("f") == "Zg==");
  CHECK(base64("fo") == "Zm8=");
  CHECK(base64("foobar") == "Zm9vYmFy");
  CHECK(base64("\xFF\xFE"sv) == "//4=");
}

TEST_CASE("numbers parse as a whole or not at all") {
  CHECK(parse_i64("-17") == -17);
  CHECK(parse_u64("18446744073709551615") == UINT64_MAX);
  for (const auto bad : {""sv, " 1"sv, "1 "sv, "0x1"sv, "1.0"sv, "18446744073709551616"sv, "+1"sv})
    CHECK_FALSE(parse_u64(bad).has_value());
  CHECK_FALSE(parse_u64("-1").has_value());
}

TEST_CASE("binary32 prints the shortest digits that read back") {
  CHECK(format_f32(0.1f) == "0.1");
  CHECK(format_f32(-1.5e-30f) == "-1.5e-30");
  CHECK(format_f32(16777216.0f) == "16777216");
}

TEST_CASE("timestamps are RFC 3339 with milliseconds, in UTC") {
  CHECK(utc_timestamp(0) == "1970-01-01T00:00:00.000Z");
  CHECK(utc_timestamp(1795986750123) == "2026-11-29T21:12:30.123Z");
}

TEST_CASE("ids are version 7 UUIDs, distinct, and carry their time in front") {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string id = uuid_v7(1795986750123);
    REQUIRE(id.size() == 36);
    CHECK(id.substr(0, 13) == "01a22926-faab");
    CHECK(id[14] == '7');
    CHECK(std::string("89ab").find(id[19]) != std::string::npos);
    seen.insert(id);
  }
  CHECK(seen.size() == 1000);
}

}  // namespace detrun
