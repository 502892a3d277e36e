// A file of prompts: which lines it has, what a line asks for, what is refused.
#include "run/prompts_file.h"

#include <doctest/doctest.h>

#include "tests/unit/run/scene.h"

namespace detrun {
namespace {

using test::thrown_by;

RecordOptions defaults() {
  RecordOptions options;
  options.model_path = "m.gguf";
  return options;
}

RecordOptions parse(std::string_view line) { return parse_prompts_line(line, defaults()); }

std::vector<std::uint64_t> numbers(const std::string& bytes) {
  std::vector<std::uint64_t> found;
  for (const PromptsFile::Line& line : split_prompts(bytes, "f").lines)
    found.push_back(line.number);
  return found;
}

TEST_CASE("lines count from 1, empty ones count but are none, the last needs no newline") {
  CHECK(numbers("a\n\n \t\r\nb\r\nc") == std::vector<std::uint64_t>{1, 4, 5});
  CHECK(numbers("a\n") == std::vector<std::uint64_t>{1});
  const PromptsFile file = split_prompts("\xef\xbb\xbf{}\r\n", "f");
  REQUIRE(file.lines.size() == 1);
  CHECK(file.text(file.lines[0]) == "{}\r");
  CHECK(file.sha256 == sha256("\xef\xbb\xbf{}\r\n"));  // of the bytes as they are
}

TEST_CASE("a file without a prompt, in UTF-16 or that cannot be read is a usage error") {
  for (const char* bytes : {"", "\n\n  \r\n", "\xef\xbb\xbf"}) {
    CHECK(thrown_by([&] { split_prompts(bytes, "f"); }).says("holds no prompt"));
  }
  CHECK(thrown_by([&] { split_prompts("\xff\xfe{", "f"); }).says("UTF-16"));
  CHECK(thrown_by([&] { split_prompts("\xfe\xff{", "f"); }).says("UTF-16"));
  CHECK(thrown_by([&] { read_prompts_file("/no/such/file"); }).kind == ExitCode::kUsage);
  CHECK(thrown_by([&] { read_prompts_file("/"); }).kind == ExitCode::kUsage);
  CHECK(thrown_by([&] { read_prompts_file(""); }).says("empty"));
}

TEST_CASE("a line sets what it names and leaves the rest to the command line") {
  RecordOptions given = defaults();
  given.n = 7;
  given.kv = "f32";
  given.tags = {{"desk", "b"}, {"case", "0"}};
  const RecordOptions text = parse_prompts_line(
      R"({"prompt": "a\u0000b\n", "ctx": 9, "tags": {"case": "17"}, "tag": ["x=1=2", "y="]})",
      given);
  CHECK(text.prompt == std::string("a\0b\n", 4));
  CHECK_FALSE(text.tokens.has_value());
  CHECK(text.prompt_source == "text");
  CHECK(text.n == 7U);
  CHECK(text.ctx == 9);
  CHECK(text.kv == "f32");
  using Tags = std::vector<std::pair<std::string, std::string>>;
  CHECK(text.tags == Tags{{"case", "17"}, {"x", "1=2"}, {"y", ""}, {"desk", "b"}});
  const RecordOptions ids = parse_prompts_line(
      R"({"tokens": [1, 2147483647], "n": 0, "kv": "f16", "chunk": 3, "tag": "k=v"})", given);
  CHECK(ids.tokens == std::vector<std::int32_t>{1, 2147483647});
  CHECK(ids.prompt_source == "tokens");
  CHECK(ids.n == 0U);
  CHECK(ids.kv == "f16");
  CHECK(ids.engine.chunk == 3);
  CHECK(parse(R"({"prompt": ""})").prompt.empty());
}

TEST_CASE("every row of the table of run options is a member of a line") {
  for (const RunOption& option : run_options()) {
    CAPTURE(option.name);
    const std::string value =
        option.set_number != nullptr ? "5" : "\"" + option.choices.front() + "\"";
    const std::string line =
        std::string(R"({"prompt": "x", ")") + option.name + "\": " + value + "}";
    CHECK(thrown_by([&] { parse(line); }).kind == ExitCode::kOk);
    const std::string wrong = std::string(R"({"prompt": "x", ")") + option.name + "\": true}";
    CHECK(thrown_by([&] { parse(wrong); }).says(option.name));
  }
}

TEST_CASE("what is wrong with a line is said") {
  struct Row {
    const char* part;
    std::string line;
  };
  const Row rows[] = {
      {"not valid JSON", "{"},
      {"not valid JSON", R"({"prompt": "x"} {"prompt": "y"})"},
      {"not valid JSON", R"({"prompt": "\ud800"})"},
      {"appears twice", R"({"prompt": "x", "prompt": "y"})"},
      {"not a JSON object", R"(["x"])"},
      {"not a JSON object", "\"x\""},
      {"no prompt", "{}"},
      {"no prompt", R"({"n": 5})"},
      {"both", R"({"prompt": "x", "tokens": [1]})"},
      {"'prompt' is not a string", R"({"prompt": 5})"},
      {"'prompt' is not a string", R"({"prompt": null})"},
      {"'tokens' is not an array", R"({"tokens": "1,2"})"},
      {"element 1", R"({"tokens": [1, "2"]})"},
      {"element 0", R"({"tokens": [1.0]})"},
      {"element 0", R"({"tokens": [-1]})"},
      {"element 0", R"({"tokens": [2147483648]})"},
      {"element 0", R"({"tokens": [18446744073709551615]})"},
      {"unknown member 'promt'", R"({"promt": "x"})"},
      {"'ledger' is an option of the whole", R"({"prompt": "x", "ledger": "a.db"})"},
      {"'threads' is an option of the whole", R"({"prompt": "x", "threads": 1})"},
      {"'model' is an option of the whole", R"({"prompt": "x", "model": "a"})"},
      {"no chat templates", R"({"chat": [{"role": "user", "content": "x"}]})"},
      {"'n' is not a whole number", R"({"prompt": "x", "n": "5"})"},
      {"'n' is not a whole number", R"({"prompt": "x", "n": -1})"},
      {"'n' is not a whole number", R"({"prompt": "x", "n": 1.5})"},
      {"'n' is not a whole number", R"({"prompt": "x", "n": 4294967296})"},
      {"'ctx' is not a whole number", R"({"prompt": "x", "ctx": 0})"},
      {"'kv': unknown value 'f64'", R"({"prompt": "x", "kv": "f64"})"},
      {"'numerics': unknown value 'fast'", R"({"prompt": "x", "numerics": "fast"})"},
      {"'tags' is not an object", R"({"prompt": "x", "tags": ["a=b"]})"},
      {"value of 'a' is no string", R"({"prompt": "x", "tags": {"a": 1}})"},
      {"expected KEY=VALUE", R"({"prompt": "x", "tag": "a"})"},
      {"'tag' is neither", R"({"prompt": "x", "tag": 5})"},
      {"given twice", R"({"prompt": "x", "tag": "a=1", "tags": {"a": "2"}})"},
      {"no name", R"({"prompt": "x", "tags": {"": "2"}})"},
      {"UTF-8", "{\"prompt\": \"\xff\"}"},
      {"a NUL character", std::string("{\"prompt\": \"x\"}\0", 16)},
  };
  for (const Row& row : rows) {
    CAPTURE(row.line);
    const test::Thrown error = thrown_by([&] { parse(row.line); });
    CAPTURE(error.message);
    CHECK(error.kind == ExitCode::kUsage);
    CHECK(error.says(row.part));
  }
}

TEST_CASE("a line beyond the bound is refused before it is read") {
  std::string line = R"({"prompt": ")" + std::string(kPromptsLineBytesMax, 'x') + "\"}";
  CHECK(thrown_by([&] { parse(line); }).says("longer than"));
  line.erase(12, line.size() - kPromptsLineBytesMax);
  CHECK(line.size() == kPromptsLineBytesMax);
  CHECK(thrown_by([&] { parse(line); }).kind == ExitCode::kOk);
}

}  // namespace
}  // namespace detrun
