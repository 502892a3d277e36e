// Kind "llama": order of merges, prefix, byte fallback, unused tokens.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/unit/tokenizer/vocab_file.h"

using namespace detrun;
using namespace detrun::test;

TEST_CASE("the pair of the highest score merges first, the leftmost of equals") {
  const auto tokenizer = small_llama().tokenizer();
  CHECK(tokenizer->encode("ab", false) == Ids{263});
  CHECK(tokenizer->encode("ab ab", false) == Ids{263, 263});
  CHECK(tokenizer->encode("b b", false) == Ids{259, 264, 261});
  VocabFile file = small_llama();
  file.add("aa", 1, -1);
  CHECK(file.tokenizer()->encode("xaaa", false) == Ids{259, 3 + 'x', 265, 260});
}

TEST_CASE("the dummy prefix goes before text at the start and after whole tokens only") {
  VocabFile file = small_llama();
  CHECK(file.tokenizer()->encode("", false).empty());
  CHECK(file.tokenizer()->encode("ab</s>ab", true) == Ids{263, 2, 263});
  CHECK(file.tokenizer()->encode("</s>", true) == Ids{2});
  file.bools["add_space_prefix"] = false;
  CHECK(file.tokenizer()->encode("ab</s>ab", true) == Ids{262, 2, 262});
  CHECK_FALSE(file.tokenizer()->strips_leading_space());
}

TEST_CASE("what no token covers is spelled in bytes") {
  const auto tokenizer = small_llama().tokenizer();
  CHECK(tokenizer->encode("é", false) == Ids{259, 3 + 0xC3, 3 + 0xA9});
  CHECK(tokenizer->encode("\n\xFF", false) == Ids{259, 3 + 0x0A, 3 + 0xFF});
  for (unsigned byte = 0; byte < 256; ++byte) {
    CHECK(tokenizer->piece(static_cast<std::int32_t>(3 + byte)) ==
          std::string(1, static_cast<char>(byte)));
  }
}

TEST_CASE("control, unknown and byte tokens never come out of plain text") {
  VocabFile file = small_llama();
  file.add("<", 1, -20).add("/", 1, -20).add("s", 1, -20).add(">", 1, -20).add("</", 1, -19);
  file.add("s>", 1, -18).add("0", 1, -20).add("x", 1, -20).add("A", 1, -20);
  for (const char* text : {"</s>", "<s>", "a</s>b", "<0x0A>", "<unk>"}) {
    const Ids ids = file.tokenizer()->encode(text, false);
    CHECK(file.tokenizer()->decode(ids) == text);
    CHECK(std::count(ids.begin(), ids.end(), 1) == 0);
    CHECK(std::count(ids.begin(), ids.end(), 2) == 0);
    CHECK(std::count(ids.begin(), ids.end(), 3 + 0x0A) == 0);
  }
}

TEST_CASE("without byte tokens a run of unknown characters is one unknown token") {
  VocabFile file;
  file.strings["model"] = "llama";
  file.add("<unk>", 2).add("<s>", 3).add("</s>", 3).add("a");
  file.bools["add_space_prefix"] = false;
  CHECK(file.tokenizer()->encode("éé\xFFz", false) == Ids{0});
  CHECK(file.tokenizer()->encode("éaé", false) == Ids{0, 3, 0});
  file.string_lists["tokens"][0] = "<other>";
  file.int_lists["token_type"][0] = 1;
  const auto tokenizer = file.tokenizer();
  CHECK_THROWS_WITH_AS(tokenizer->encode("z", false),
                       doctest::Contains("byte 122, for which the vocabulary has neither"), Error);
}

TEST_CASE("an unused token is a step on the way and is undone at the end") {
  VocabFile file = small_llama();
  file.int_lists["token_type"][262] = 5;  // ab
  file.bools["add_space_prefix"] = false;
  CHECK(file.tokenizer()->encode("ab", false) == Ids{260, 261});
  file.add("abb", 1, -1);
  CHECK(file.tokenizer()->encode("abb", false) == Ids{265});  // reached through ab
  CHECK(file.tokenizer()->encode("abab", false) == Ids{260, 261, 260, 261});
}

TEST_CASE("pieces: space for U+2581, bytes for byte tokens, raw text for user-defined ones") {
  VocabFile file = small_llama();
  file.add("\u2581\u2581x", 1).add("  ", 4).add("\u2581", 4);
  file.string_lists["tokens"].back() = "y\u2581";
  const auto tokenizer = file.tokenizer();
  CHECK(tokenizer->piece(265) == "  x");
  CHECK(tokenizer->piece(266) == "  ");
  CHECK(tokenizer->piece(267) == "y\u2581");
  CHECK(tokenizer->piece(1).empty());
  CHECK(tokenizer->piece(1, true) == "<s>");
  CHECK(tokenizer->piece(0).empty());
  CHECK(tokenizer->piece(0, true) == "<unk>");
}

TEST_CASE("a byte token of another spelling and an option that changes the text are refused") {
  for (const char* text : {"<0x0a>", "<0x0>", "<0x000>", "0x0A", "<0xG0>", "x"}) {
    VocabFile file = small_llama();
    file.string_lists["tokens"][3 + 0x0A] = text;
    CHECK(has(file.refusal(), "is not spelled <0x00> to <0xFF>"));
  }
  VocabFile file = small_llama();
  file.bools["remove_extra_whitespaces"] = true;
  CHECK(has(file.refusal(), "remove_extra_whitespaces is true"));
  VocabFile charsmap = small_llama();
  charsmap.strings["precompiled_charsmap"] = "x";
  CHECK(has(charsmap.refusal(), "precompiled_charsmap is there"));
}
