// What a terminal is shown of a growing text.
#include "cli/text_stream.h"

#include <doctest/doctest.h>

namespace detrun::cli {
namespace {

TEST_CASE("half a character waits for its other half") {
  TerminalText text;
  CHECK(text.add("a\xf0\x9f") == "a");
  CHECK(text.add("\x98").empty());
  CHECK(text.add("\x80z") == "\U0001F600z");
  CHECK(text.finish().empty());
}

TEST_CASE("a character that never ends is shown as an escape at the end") {
  TerminalText text;
  CHECK(text.add("a\xe6\xad") == "a");
  CHECK(text.finish() == "\\xe6\\xad");
  CHECK(text.finish().empty());
}

TEST_CASE("a byte that begins no character is shown at once") {
  TerminalText text;
  CHECK(text.add("\xff") == "\\xff");
  CHECK(text.add("\x80") == "\\x80");
}

TEST_CASE("newlines and tabs stay, what drives a terminal is escaped") {
  TerminalText text;
  CHECK(text.add("a\n\tb\r\x1b[2J\u202e\xc2\x9b") == "a\n\tb\\r\\x1b[2J\\u{202e}\\u{009b}");
}

TEST_CASE("a control character cut in two is escaped all the same") {
  TerminalText text;
  CHECK(text.add("\xc2").empty());
  CHECK(text.add("\x9b") == "\\u{009b}");
  CHECK(text.add("\xe2\x80").empty());
  CHECK(text.add("\xae") == "\\u{202e}");
}

}  // namespace
}  // namespace detrun::cli
