// How each row of the table splits. Expected splits: Hugging Face tokenizers 0.23.3 with the
// patterns of each model's tokenizer.json.
#include "tokenizer/pre_tokenizer.h"

#include <doctest/doctest.h>

using namespace detrun;
using Words = std::vector<std::string_view>;

namespace {

Words split(std::string_view name, std::string_view text) {
  const PreTokenizerRow* row = find_pre_tokenizer(name);
  REQUIRE(row != nullptr);
  return PreTokenizer(*row).split(text);
}

}  // namespace

TEST_CASE("every row compiles, and its words cover any bytes in order") {
  const std::string names = pre_tokenizer_names() + ", ";
  std::string all;
  for (unsigned byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  const std::string text = all + "a \xE6\xAD é日本 1234567 \r\n\n  'S 'll\u3000!?。" + all;
  std::size_t rows = 0;
  for (std::size_t begin = 0; begin < names.size(); begin = names.find(", ", begin) + 2) {
    const std::string name = names.substr(begin, names.find(", ", begin) - begin);
    std::string joined;
    for (const std::string_view word : split(name, text)) {
      CHECK_FALSE(word.empty());
      joined += word;
    }
    CHECK(joined == text);
    CHECK(split(name, "").empty());
    ++rows;
  }
  CHECK(rows >= 8);
  CHECK(find_pre_tokenizer("no such") == nullptr);
}

TEST_CASE("gpt-2 splits contractions, words, numbers and spaces") {
  CHECK(split("gpt-2", "I'll go  12 cafés!? x\n\n y") ==
        Words{"I", "'ll", " go", " ", " 12", " cafés", "!?", " x", "\n\n", " y"});
  CHECK(split("gpt-2", "I'LL") == Words{"I", "'", "LL"});
  CHECK(split("gpt-2", "a   ") == Words{"a", "   "});
}

TEST_CASE("llama-bpe takes numbers by three, contractions in any case, the long s too") {
  CHECK(split("llama-bpe", "I'LL 1234567 don't\r\n x") ==
        Words{"I", "'LL", " ", "123", "456", "7", " don", "'t", "\r\n", " x"});
  CHECK(split("llama-bpe", "I'\u017Fa") == Words{"I", "'\u017F", "a"});
  CHECK(split("llama-bpe", "(x) --\n\ny") == Words{"(x", ")", " --\n\n", "y"});
}

TEST_CASE("qwen2 and smollm take digits one by one") {
  CHECK(split("qwen2", "a12 3") == Words{"a", "1", "2", " ", "3"});
  CHECK(split("smollm", "a 12 b") == Words{"a", " ", "1", "2", " b"});
}

TEST_CASE("several patterns split one after the other") {
  CHECK(split("deepseek-coder", "x = 12,\n中文a") ==
        Words{"x", " = ", "1", "2", ",", "\n", "中文", "a"});
  CHECK(split("deepseek-llm", "a 中文  ") == Words{"a", " ", "中文", "  "});
  CHECK(split("default", "a1234 b+c") == Words{"a", "123", "4", " b", "+", "c"});
}

TEST_CASE("spaces are those of Unicode White_Space, which U+180E is not") {
  CHECK(split("gpt-2", "a\u180E") == Words{"a", "\u180E"});
  CHECK(split("gpt-2", "!\u180E") == Words{"!\u180E"});  // one word: both no space, no letter
  CHECK(split("gpt-2", "!\u0085\u3000") == Words{"!", "\u0085\u3000"});
}

TEST_CASE("the table of Unicode is 16.0: a letter of that version is a letter") {
  CHECK(split("gpt-2", "a\U000105C0") == Words{"a\U000105C0"});  // Todhri, added in 16.0
}

TEST_CASE("an invalid byte is a character that is no letter, number or space") {
  CHECK(split("gpt-2",
              "a\xFF\xFE"
              "b") == Words{"a", "\xFF\xFE", "b"});
  CHECK(split("gpt-2", " \xE6\xAD") == Words{" \xE6\xAD"});
}
