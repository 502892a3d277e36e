// Kind "gpt2": order of merges, whole words, refusals of merges and pre-tokenizers.
#include <doctest/doctest.h>

#include "tests/unit/tokenizer/vocab_file.h"

using namespace detrun;
using namespace detrun::test;

TEST_CASE("the first merge of the list is done first, the leftmost of equals") {
  const auto tokenizer = small_gpt2().tokenizer();
  CHECK(tokenizer->encode("abc", false) == Ids{0, 5});  // b c comes before a b
  CHECK(tokenizer->encode("ab", false) == Ids{4});
  CHECK(tokenizer->encode("abab", false) == Ids{4, 4});
  VocabFile file = small_gpt2();
  file.string_lists["merges"] = {"a b", "b c"};
  CHECK(file.tokenizer()->encode("abc", false) == Ids{4, 2});
  file.add("aa");
  file.float_lists.clear();
  file.string_lists["merges"] = {"a a"};
  CHECK(file.tokenizer()->encode("aaa", false) == Ids{7, 0});
}

TEST_CASE("merges stay inside words") {
  VocabFile file = small_gpt2();
  file.add("c\u0120").add(
      "\u0120"
      "a");
  file.float_lists.clear();
  file.string_lists["merges"] = {"c \u0120", "\u0120 a"};
  CHECK(file.tokenizer()->encode("c a", false) == Ids{2, 8});
}

TEST_CASE("a word that is a token is that token only where the pre-tokenizer says so") {
  VocabFile file = small_gpt2();
  file.add("abc");
  file.float_lists.clear();
  CHECK(file.tokenizer()->encode("abc", false) == Ids{0, 5});
  file.strings["pre"] = "llama-bpe";
  CHECK(file.tokenizer()->encode("abc", false) == Ids{7});
  file.int_lists["token_type"].back() = 3;  // a control token is never spelled by a word
  CHECK(file.tokenizer()->encode("abc", false) == Ids{0, 5});
}

TEST_CASE("a byte without a token is refused by value, never dropped") {
  const auto tokenizer = small_gpt2().tokenizer();
  CHECK_THROWS_WITH_AS(tokenizer->encode("abz", false),
                       doctest::Contains("byte 122, for which the vocabulary has no token"), Error);
  CHECK_THROWS_AS(tokenizer->encode("a\xFF", false), Error);
}

TEST_CASE("a merge without two spellings is refused, one of unknown tokens never applies") {
  for (const char* merge : {"", "a", "ab", " a", "a ", " "}) {
    VocabFile file = small_gpt2();
    file.string_lists["merges"] = {"b c", merge};
    CHECK(has(file.refusal(), "merges: entry 1, '"));
  }
  VocabFile file = small_gpt2();
  file.string_lists["merges"] = {"a c", "x y", "a b", "ab c", "a b", "b  c"};
  CHECK(file.tokenizer()->encode("abcac", false) == Ids{4, 2, 0, 2});
}

TEST_CASE("pieces are bytes; spellings outside the alphabet and added tokens are raw") {
  VocabFile file = small_gpt2();
  file.add("\u0120\u010A\u00FF").add("日本").add("õ x", 4).add("<unk>", 2);
  file.float_lists.clear();
  const auto tokenizer = file.tokenizer();
  CHECK(tokenizer->piece(7) == " \n\xFF");
  CHECK(tokenizer->piece(8) == "日本");
  CHECK(tokenizer->piece(9) == "õ x");
  CHECK(tokenizer->piece(6).empty());
  CHECK(tokenizer->piece(6, true) == "<|end|>");
  CHECK(tokenizer->piece(10).empty());
  CHECK(tokenizer->encode("aõ xb", false) == Ids{0, 9, 1});
  CHECK(tokenizer->decode({3, 0}) == " a");  // no dummy prefix in this kind
}

TEST_CASE("an unknown pre-tokenizer is refused by name, a missing one is the default") {
  VocabFile file = small_gpt2();
  file.strings["pre"] = "mystery";
  const std::string said = file.refusal();
  CHECK(has(said, "tokenizer.ggml.pre is 'mystery'"));
  CHECK(has(said, "gpt-2, llama-bpe"));
  file.strings["pre"] = "default";
  const auto named = file.tokenizer();
  file.strings.erase("pre");
  const auto silent = file.tokenizer();
  CHECK(named->digest() == silent->digest());
}
