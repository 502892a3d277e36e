// Damaged vocabularies are refused by name; whole tokens, kinds and end ids.
#include "tokenizer/vocab.h"

#include <doctest/doctest.h>

#include <limits>

#include "tests/unit/tokenizer/vocab_file.h"

using namespace detrun;
using namespace detrun::test;

TEST_CASE("arrays of another length than the tokens are refused with both lengths") {
  for (const auto& make : {small_llama, small_gpt2}) {
    for (const int change : {-1, 1}) {
      VocabFile file = make();
      auto& types = file.int_lists["token_type"];
      const std::size_t tokens = types.size();
      types.resize(tokens + static_cast<std::size_t>(change), 1);
      const std::string said = file.refusal();
      CHECK(has(said, "tokenizer.ggml.token_type has " + std::to_string(types.size())));
      CHECK(has(said, "for " + std::to_string(tokens) + " tokens"));
      CHECK(has(said, "m.gguf: "));
    }
  }
  VocabFile file = small_llama();
  file.float_lists["scores"].pop_back();
  CHECK(has(file.refusal(), "tokenizer.ggml.scores has 264 entries for 265 tokens"));
}

TEST_CASE("missing and empty vocabularies are refused") {
  VocabFile file = small_llama();
  file.string_lists.erase("tokens");
  CHECK(has(file.refusal(), "tokenizer.ggml.tokens is missing"));
  file.string_lists["tokens"] = {};
  CHECK(has(file.refusal(), "tokenizer.ggml.tokens is empty"));
  VocabFile no_scores = small_llama();
  no_scores.float_lists.clear();
  CHECK(has(no_scores.refusal(), "tokenizer.ggml.scores is missing"));
  VocabFile no_merges = small_gpt2();
  no_merges.string_lists.erase("merges");
  CHECK(has(no_merges.refusal(), "tokenizer.ggml.merges is missing"));
}

TEST_CASE("two tokens of one spelling are refused, two empty ones are not") {
  VocabFile file = small_llama();
  file.add("ab");
  CHECK(has(file.refusal(), "token 265 'ab' is spelled like token 262"));
  VocabFile empty = small_llama();
  empty.add("").add("");
  const auto tokenizer = empty.tokenizer();
  CHECK(tokenizer->piece(265).empty());
  CHECK(tokenizer->encode("ab", false) == Ids{263});
}

TEST_CASE("special ids outside the vocabulary are refused by key") {
  for (const char* name : {"bos", "eos", "eot", "eom", "unknown"}) {
    for (const std::uint32_t id : {265U, 4294967295U}) {
      VocabFile file = small_llama();
      const std::string key = std::string(name) + "_token_id";
      file.numbers[key] = id;
      CHECK(has(file.refusal(), "tokenizer.ggml." + key + " is " + std::to_string(id)));
    }
  }
  VocabFile file = small_llama();  // not used, so not judged: real files hold -1 here
  file.numbers["padding_token_id"] = 4294967295U;
  CHECK(file.tokenizer()->n_vocab() == 265);
}

TEST_CASE("a token type outside the format's numbers and a score that is no number are refused") {
  for (const std::int32_t type : {0, 7, -1, 1000}) {
    VocabFile file = small_llama();
    file.int_lists["token_type"][262] = type;
    CHECK(has(file.refusal(), "token 262 'ab' has type " + std::to_string(type)));
  }
  VocabFile file = small_llama();
  file.float_lists["scores"][262] = std::numeric_limits<float>::quiet_NaN();
  CHECK(has(file.refusal(), "token 262 'ab' has no number as its score"));
}

TEST_CASE("of a file without token types, ids and spelling tell the kinds") {
  VocabFile llama = small_llama();
  llama.int_lists.clear();
  const auto tokenizer = llama.tokenizer();
  CHECK(tokenizer->token_kind(0) == TokenKind::kUnknown);
  CHECK(tokenizer->token_kind(1) == TokenKind::kControl);
  CHECK(tokenizer->token_kind(3) == TokenKind::kByte);
  CHECK(tokenizer->token_kind(262) == TokenKind::kNormal);
  VocabFile gpt2 = small_gpt2();
  gpt2.int_lists.clear();
  CHECK(gpt2.tokenizer()->token_kind(6) == TokenKind::kControl);
  CHECK(gpt2.tokenizer()->token_kind(5) == TokenKind::kNormal);
}

TEST_CASE("SentencePiece's usual ids are used when a file names none") {
  VocabFile file = small_llama();
  file.numbers.clear();
  const auto tokenizer = file.tokenizer();
  CHECK(tokenizer->bos() == 1);
  CHECK(tokenizer->adds_bos());
  CHECK(tokenizer->is_end(2));
  file.string_lists["tokens"][1] = "<other>";
  CHECK_FALSE(file.tokenizer()->bos().has_value());
  CHECK_FALSE(file.tokenizer()->adds_bos());
}

TEST_CASE("generation ends at ids that metadata name and at control tokens of known names") {
  VocabFile file = small_llama();
  file.add("<|eot_id|>", 3).add("<|im_end|>", 3).add("<|end|>", 3).add("<end_of_turn>", 1);
  file.add("<|other|>", 3).add("stop", 1).add("halt", 1);
  file.numbers["eot_token_id"] = 270;
  file.numbers["eom_token_id"] = 271;
  const auto tokenizer = file.tokenizer();
  CHECK(tokenizer->is_end(2));
  for (const std::int32_t id : {265, 266, 267, 270, 271}) CHECK(tokenizer->is_end(id));
  for (const std::int32_t id : {0, 1, 262, 268, 269}) CHECK_FALSE(tokenizer->is_end(id));
  file.add("<|return|>", 3).add("<|call|>", 3);
  const auto harmony = file.tokenizer();
  CHECK_FALSE(harmony->is_end(267));  // there it closes a message only
  CHECK(harmony->is_end(272));
}

TEST_CASE("whole tokens are cut out leftmost first and of several the longest") {
  VocabFile file = small_llama();
  file.add("<x>", 4).add("<x><y>", 4).add("<x><y><z>", 3).add("x><", 4);
  const auto tokenizer = file.tokenizer();
  CHECK(tokenizer->encode("<x><y>", false) == Ids{266});
  CHECK(tokenizer->encode("<x><y><z>", true) == Ids{267});
  // The control token is no match here, and does not hide the shorter one.
  const Ids plain = tokenizer->encode("<x><y><z>", false);
  REQUIRE_FALSE(plain.empty());
  CHECK(plain.front() == 266);
  CHECK(tokenizer->decode(plain) == "<x><y> <z>");  // the reference's prefix before "<z>"
  CHECK(tokenizer->encode("<x><x>", false) == Ids{265, 265});
  // A control token of the length and first byte of a user-defined one stays text too.
  file.add("<c>", 3);
  const auto same_length = file.tokenizer();
  CHECK(same_length->encode("<c>", true) == Ids{269});
  CHECK(same_length->encode("<c>", false) == Ids{259, 3 + '<', 3 + 'c', 3 + '>'});
}
