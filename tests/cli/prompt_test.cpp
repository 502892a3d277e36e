// Where a prompt comes from, and lists of token ids.
#include "cli/prompt.h"

#include <doctest/doctest.h>

#include "detrun/error.h"
#include "tests/support/cli_runner.h"

namespace detrun::cli {
namespace {

std::string complaint(const PromptArguments& arguments) {
  try {
    read_prompt(arguments);
  } catch (const Error& error) {
    CHECK(error.kind() == ExitCode::kUsage);
    return error.what();
  }
  return "accepted";
}

TEST_CASE("token ids are read as tokenize prints them and as lists") {
  CHECK(parse_tokens("1,2,3") == std::vector<std::int32_t>{1, 2, 3});
  CHECK(parse_tokens("1 2\n3") == std::vector<std::int32_t>{1, 2, 3});
  CHECK(parse_tokens("1, 2") == std::vector<std::int32_t>{1, 2});
  CHECK(parse_tokens("2147483647") == std::vector<std::int32_t>{2147483647});
}

TEST_CASE("anything else is no list of token ids") {
  for (const char* bad : {"", ",", "1,,2", "1,", "-1", "2147483648", "a", "1;2", "0x1", "1.0"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(parse_tokens(bad), Error);
  }
}

TEST_CASE("an empty text is a prompt, no prompt is none") {
  PromptArguments arguments;
  CHECK(complaint(arguments) == "no prompt given");
  arguments.text = "";
  CHECK(read_prompt(arguments).source == "text");
  CHECK(read_prompt(arguments).bytes.empty());
}

TEST_CASE("several sources are named") {
  PromptArguments arguments;
  arguments.text = "a";
  arguments.words = {"-"};
  arguments.tokens = "1";
  CHECK(complaint(arguments) == "several prompts given: -p and - and --tokens");
}

TEST_CASE("a stray word is refused, because an unquoted prompt would lose its rest") {
  PromptArguments arguments;
  arguments.text = "Claim";
  arguments.words = {"17"};
  CHECK(complaint(arguments) == "unexpected argument '17'");
}

TEST_CASE("the bytes of a file arrive as they are") {
  const test::ScratchFolder folder;
  const std::string bytes("line\r\n\\n\xff\0tail\n", 15);
  test::write_bytes(folder / "prompt", bytes);
  PromptArguments arguments;
  arguments.file = folder / "prompt";
  CHECK(read_prompt(arguments).bytes == bytes);
  CHECK(read_prompt(arguments).source == "file");
}

TEST_CASE("an unnamed, missing or unreadable file is refused with its name") {
  const test::ScratchFolder folder;
  PromptArguments arguments;
  arguments.file = "";
  CHECK(complaint(arguments) == "-f: the file name is empty");
  arguments.file = folder / "missing";
  CHECK(complaint(arguments).find("missing': No such file") != std::string::npos);
  arguments.file = folder / "";
  CHECK(complaint(arguments).find("Is a directory") != std::string::npos);
}

}  // namespace
}  // namespace detrun::cli
