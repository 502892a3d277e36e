// Tables, shortening, quoting, colours, the progress line.
#include "cli/output.h"

#include <doctest/doctest.h>

#include "cli/progress.h"

namespace detrun::cli {
namespace {

TEST_CASE("a table pads by characters and leaves the last column alone") {
  Table table({{"RUN", true}, {"NAME"}, {"TEXT"}});
  table.add({"1", "\u00e9t\u00e9", "a"});
  table.add({"1000", "b", "c d"});
  CHECK(table.text() == " RUN  NAME  TEXT\n   1  \u00e9t\u00e9   a\n1000  b     c d\n");
}

TEST_CASE("shortened text has the width asked for and no half character") {
  CHECK(shortened("abc", 3) == "abc");
  CHECK(shortened("abcd", 3) == "ab\u2026");
  CHECK(shortened("\u00e9\u00e9\u00e9\u00e9", 3) == "\u00e9\u00e9\u2026");
  CHECK(shortened("a\nb\tc", 9) == "a b c");
  CHECK(shortened("", 3).empty());
  CHECK(shortened(std::string(100000, 'x'), 3) == "xx\u2026");
  const std::string wide = "\U0001F600\U0001F600\U0001F600\U0001F600\U0001F600";
  CHECK(shortened(wide, 2) == "\U0001F600\u2026");
}

TEST_CASE("shortened text is escaped before it is cut") {
  CHECK(shortened("\x1b[2Jx", 20) == "\\x1b[2Jx");
  CHECK(shortened("\r\x1b", 20).find('\x1b') == std::string::npos);
}

TEST_CASE("a shell word reads back as it was") {
  CHECK(shell_word("a/b.db") == "a/b.db");
  CHECK(shell_word("a b") == "'a b'");
  CHECK(shell_word("it's") == "'it'\\''s'");
  CHECK(shell_word("") == "''");
  CHECK(shell_word("\x1b").find('\x1b') == std::string::npos);
}

TEST_CASE("numbers in sentences") {
  CHECK(counted(0, "run") == "0 runs");
  CHECK(counted(1, "run") == "1 run");
  CHECK(fixed(1234.56, 1) == "1234.6");
  CHECK(fixed(0.0, 3) == "0.000");
}

TEST_CASE("colour is used when asked for and never otherwise") {
  Console console;
  console.set_color("always");
  CHECK(console.paint_out(Color::kRed, "x") == "\x1b[31mx\x1b[0m");
  console.set_color("never");
  CHECK(console.paint_out(Color::kRed, "x") == "x");
}

TEST_CASE("a progress line shows share and counts, and escapes its words") {
  CHECK(progress_line("prefill", 6, 12, "tokens") ==
        "prefill  [############            ]  50%  6/12 tokens");
  CHECK(progress_line("prefill", 12, 12, "tokens") ==
        "prefill  [########################] 100%  12/12 tokens");
  CHECK(progress_line("x", 20, 12, "tokens").find("100%") != std::string::npos);
  CHECK(progress_line("hashing \x1b]0;x\x07", 3, 0, "bytes") == "hashing \\x1b]0;x\\x07  3 bytes");
}

TEST_CASE("what is left of long work follows from its pace, once there is one") {
  CHECK(time_left(10, 5, 20) == ", 0:30 left");
  CHECK(time_left(60, 1, 62) == ", 1:01:00 left");
  CHECK(time_left(100, 1, 37) == ", 1:00:00 left");
  CHECK(time_left(90, 1, 3) == ", 3:00 left");
  CHECK(time_left(1.9, 5, 20).empty());
  CHECK(time_left(10, 0, 20).empty());
  CHECK(time_left(10, 20, 20).empty());
  CHECK(time_left(10, 21, 20).empty());
  CHECK(time_left(10, 5, 0).empty());
  CHECK(time_left(1e9, 1, 1000).empty());
}

}  // namespace
}  // namespace detrun::cli
