// The front door: published cases, decode, streams, refusals by kind.
#include "detrun/tokenizer.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "detrun/error.h"
#include "tests/unit/tokenizer/shared_vocab.h"
#include "tests/unit/tokenizer/vocab_file.h"

using namespace detrun;
using namespace detrun::test;

namespace {

// In a .inp file every case is followed by "\n__ggml_vocab_test__\n"; all other newlines, at the
// start or end of a case too, belong to it. This is the reading under which there are as many
// cases as lines in the .out file and all agree.
std::vector<std::string> read_cases(const std::string& path) {
  constexpr std::string_view kSeparator = "\n__ggml_vocab_test__\n";
  const std::string all = read_all(path);
  std::vector<std::string> cases;
  std::size_t begin = 0;
  for (std::size_t end = all.find(kSeparator); end != std::string::npos;
       end = all.find(kSeparator, begin)) {
    cases.push_back(all.substr(begin, end - begin));
    begin = end + kSeparator.size();
  }
  CHECK(begin == all.size());
  return cases;
}

std::vector<Ids> read_ids(const std::string& path) {
  std::vector<Ids> out;
  std::istringstream lines(read_all(path));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    out.emplace_back(std::istream_iterator<std::int32_t>(words),
                     std::istream_iterator<std::int32_t>());
  }
  return out;
}

void check_published_cases(const std::string& name) {
  const auto tokenizer = shared_vocab(name);
  if (tokenizer == nullptr) return;
  const std::string path = shared_path("tokenizers/ggml-vocab-" + name + ".gguf");
  const auto texts = read_cases(path + ".inp");
  const auto expected = read_ids(path + ".out");
  REQUIRE(texts.size() == expected.size());
  REQUIRE(texts.size() > 40);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    CAPTURE(name);
    CAPTURE(texts[i]);
    const Ids ids = tokenizer->encode(texts[i], false);
    CHECK(ids == expected[i]);
    CHECK(tokenizer->decode(ids) == texts[i]);
  }
}

}  // namespace

TEST_CASE("every published case of llama-spm gives the published ids") {
  check_published_cases("llama-spm");
}
TEST_CASE("every published case of gpt-2 gives the published ids") {
  check_published_cases("gpt-2");
}
TEST_CASE("every published case of phi-3 gives the published ids") {
  check_published_cases("phi-3");
}
TEST_CASE("every published case of llama-bpe gives the published ids") {
  check_published_cases("llama-bpe");
}
TEST_CASE("every published case of qwen2 gives the published ids") {
  check_published_cases("qwen2");
}
TEST_CASE("every published case of deepseek-llm gives the published ids") {
  check_published_cases("deepseek-llm");
}
TEST_CASE("every published case of deepseek-coder gives the published ids") {
  check_published_cases("deepseek-coder");
}

TEST_CASE("decode takes off one dummy prefix space, at the start of the text only") {
  const auto tokenizer = small_llama().tokenizer();
  CHECK(tokenizer->strips_leading_space());
  CHECK(tokenizer->piece(263) == " ab");
  CHECK(tokenizer->decode({263, 263}) == "ab ab");
  CHECK(tokenizer->decode({1, 263, 2, 263}) == "ab ab");  // control tokens have no bytes
  CHECK(tokenizer->decode({1, 263, 2}, true) == "<s>ab</s>");
  CHECK(tokenizer->decode({259, 259, 260}) == " a");
  CHECK(tokenizer->decode({3 + ' ', 260}) == " a");  // a space spelled as a byte is no prefix
  CHECK(tokenizer->decode({}).empty());
  VocabFile no_prefix = small_llama();
  no_prefix.bools["add_space_prefix"] = false;
  CHECK(no_prefix.tokenizer()->decode({263}) == " ab");
}

TEST_CASE("a stream of pieces after a prompt is what decode of everything adds") {
  const auto tokenizer = small_llama().tokenizer();
  const auto streamed = [&](const Ids& prompt, const Ids& ids) {
    PieceStream stream(*tokenizer, prompt);
    std::string text;
    for (const std::int32_t id : ids) text += stream.next(id);
    return text;
  };
  const Ids generated = {263, 264, 2, 263, 3 + 0xE2, 3 + 0x82, 3 + 0xAC};
  for (const Ids& prompt : {Ids{}, Ids{1}, Ids{1, 263}, Ids{260}, Ids{259}}) {
    Ids all = prompt;
    all.insert(all.end(), generated.begin(), generated.end());
    CHECK(tokenizer->decode(all) == tokenizer->decode(prompt) + streamed(prompt, generated));
  }
  CHECK(streamed({1}, {263}) == "ab");
  CHECK(streamed({1, 263}, {263}) == " ab");
}

TEST_CASE("a vocabulary of another kind is refused by name") {
  for (const char* kind : {"bert", "t5", "rwkv", "", "llama\x1b[2J"}) {
    VocabFile file = small_llama();
    file.strings["model"] = kind;
    const std::string said = file.refusal();
    CHECK(has(said, "tokenizer.ggml.model is '"));
    CHECK(has(said, "'llama' and 'gpt2'"));
    CHECK(said.find('\x1b') == std::string::npos);
  }
  VocabFile file = small_llama();
  file.strings.erase("model");
  CHECK(has(file.refusal(), "tokenizer.ggml.model is missing"));
}

TEST_CASE("an id outside the vocabulary is refused with the range") {
  for (const VocabFile& file : {small_llama(), small_gpt2()}) {
    const auto tokenizer = file.tokenizer();
    for (const std::int32_t id : {-1, tokenizer->n_vocab(), INT32_MAX, INT32_MIN}) {
      CHECK_THROWS_AS(tokenizer->piece(id), Error);
      CHECK_THROWS_AS(tokenizer->token_kind(id), Error);
      CHECK_THROWS_AS(tokenizer->is_end(id), Error);
      CHECK_THROWS_AS(tokenizer->decode({id}), Error);
      CHECK_THROWS_AS(PieceStream(*tokenizer, {id}), Error);
    }
  }
}

TEST_CASE("BOS is added as the file says, else as the kind does") {
  VocabFile llama = small_llama();
  CHECK(llama.tokenizer()->adds_bos());
  CHECK(llama.tokenizer()->bos() == 1);
  llama.bools["add_bos_token"] = false;
  CHECK_FALSE(llama.tokenizer()->adds_bos());
  CHECK(llama.tokenizer()->bos() == 1);

  VocabFile gpt2 = small_gpt2();
  CHECK_FALSE(gpt2.tokenizer()->adds_bos());
  CHECK_FALSE(gpt2.tokenizer()->bos().has_value());
  gpt2.numbers["bos_token_id"] = 6;
  CHECK_FALSE(gpt2.tokenizer()->adds_bos());
  gpt2.strings["pre"] = "llama-bpe";
  CHECK(gpt2.tokenizer()->adds_bos());
  gpt2.strings["pre"] = "gpt-2";
  gpt2.bools["add_bos_token"] = true;
  CHECK(gpt2.tokenizer()->adds_bos());
  gpt2.numbers.erase("bos_token_id");
  CHECK(has(gpt2.refusal(), "bos_token_id is missing"));
}

TEST_CASE("the digest covers every entry and option, and nothing else") {
  const VocabFile base = small_llama();
  const Sha256Digest digest = base.tokenizer()->digest();
  CHECK(base.tokenizer()->digest() == digest);
  VocabFile renamed = base;
  renamed.strings["other"] = "x";
  CHECK(renamed.tokenizer()->digest() == digest);

  std::vector<VocabFile> changed(8, base);
  changed[0].string_lists["tokens"][262] = "aB";
  changed[1].float_lists["scores"][262] = -1.0000001F;
  changed[2].int_lists["token_type"][262] = 4;
  changed[3].numbers["bos_token_id"] = 2;
  changed[4].numbers["eos_token_id"] = 1;
  changed[5].bools["add_space_prefix"] = false;
  changed[6].bools["add_bos_token"] = false;
  changed[7].add("last");
  for (const VocabFile& file : changed) CHECK(file.tokenizer()->digest() != digest);

  const VocabFile gpt2 = small_gpt2();
  const Sha256Digest gpt2_digest = gpt2.tokenizer()->digest();
  std::vector<VocabFile> changed_gpt2(3, gpt2);
  changed_gpt2[0].strings["pre"] = "smollm";
  changed_gpt2[1].string_lists["merges"] = {"a b", "b c"};
  changed_gpt2[2].string_lists["merges"].push_back("a b");
  for (const VocabFile& file : changed_gpt2) CHECK(file.tokenizer()->digest() != gpt2_digest);
  VocabFile one_name = gpt2;  // two names of one pre-tokenizer: what the file says is covered
  VocabFile other_name = gpt2;
  one_name.strings["pre"] = "llama3";
  other_name.strings["pre"] = "llama-bpe";
  CHECK(one_name.tokenizer()->digest() != other_name.tokenizer()->digest());
}

TEST_CASE("the digest of a vocabulary never changes") {
  // The value comes from Python's hashlib over the parts that tokenizer.cpp lists.
  VocabFile file;
  file.strings["model"] = "llama";
  file.add("<unk>", 2)
      .add("<s>", 3)
      .add("</s>", 3)
      .add(
          "\u2581"
          "a",
          1, -1.5F);
  CHECK(to_hex(file.tokenizer()->digest()) ==
        "ba6cb521be2936761fc0a93c637c8067733718f7de567b18ef4833240a2fed77");
}

// Source of the right values: shared/research/reports.md, B1 to B6, each marked as checked.

TEST_CASE("leading spaces and byte fallback of llama-spm are those of the reference") {
  const auto tokenizer = shared_vocab("llama-spm");
  if (tokenizer == nullptr) return;
  CHECK(tokenizer->encode("", false).empty());
  CHECK(tokenizer->encode("Hello", false) == Ids{15043});
  CHECK(tokenizer->encode(" Hello", false) == Ids{29871, 15043});
  CHECK(tokenizer->encode("  Hello", false) == Ids{259, 15043});
  CHECK(tokenizer->encode("   Hello", false) == Ids{1678, 15043});
  CHECK(tokenizer->encode("    Hello", false) == Ids{268, 15043});
  CHECK(tokenizer->encode("This is 🦙.cpp", false) ==
        Ids{910, 338, 29871, 243, 162, 169, 156, 29889, 8223});
}

TEST_CASE("a word that is a token of Llama 3 is that token although merges do not reach it") {
  const auto tokenizer = shared_vocab("llama-bpe");
  if (tokenizer == nullptr) return;
  CHECK(tokenizer->encode(" Việt", false) == Ids{101798});
}

TEST_CASE("control tokens spelled in plain text stay text, and are ids when asked for") {
  if (const auto tokenizer = shared_vocab("llama-spm")) {
    CHECK(tokenizer->encode("</s>", false) == Ids{1533, 29879, 29958});
    CHECK(tokenizer->encode("</s>", true) == Ids{2});
    const Ids chat = tokenizer->encode("x.</s>", true);
    REQUIRE(chat.size() >= 2);
    CHECK(chat[chat.size() - 2] == 29889);
    CHECK(chat.back() == 2);
    for (const std::int32_t id : tokenizer->encode("a</s>b<s><unk>c<0x0A>", false)) {
      CHECK(tokenizer->token_kind(id) == TokenKind::kNormal);
    }
  }
  if (const auto tokenizer = shared_vocab("llama-bpe")) {
    CHECK(tokenizer->encode("<|eot_id|>", false) == Ids{27, 91, 68, 354, 851, 91, 29});
    CHECK(tokenizer->encode("<|eot_id|>", true) == Ids{128009});
  }
}

TEST_CASE("36000 equal characters are split in bounded stack and time, in a thread too") {
  for (const char* name : {"llama-spm", "gpt-2", "llama-bpe", "qwen2", "deepseek-llm"}) {
    const auto tokenizer = shared_vocab(name);
    if (tokenizer == nullptr) return;
    // A thread has the default stack of 8 MiB at most; every text must fit it.
    std::thread worker([&] {
      for (const char* unit : {"a", ".", " ", "\n", "我", "\t", "1", "'", "\xFF", "é", "🚀"}) {
        std::string text;
        for (int i = 0; i < 36000; ++i) text += unit;
        for (const char* tail : {"", "x"}) {
          CAPTURE(name);
          CAPTURE(unit);
          if (std::string_view(name) == "deepseek-llm" && *unit == '\xFF') {
            CHECK_THROWS_AS(tokenizer->encode(text, false), Error);  // has no token for this byte
            continue;
          }
          CHECK(tokenizer->decode(tokenizer->encode(text + tail, false)) == text + tail);
        }
      }
    });
    worker.join();
  }
}

TEST_CASE("bytes that are no UTF-8 have ids and come back as they were") {
  for (const char* name : {"llama-spm", "phi-3", "gpt-2", "llama-bpe", "qwen2"}) {
    const auto tokenizer = shared_vocab(name);
    if (tokenizer == nullptr) return;
    for (const std::string& bytes :
         {std::string("\xE6\xAD"), std::string("\xE2\x80"), std::string("\xFF"),
          std::string("\xED\xA0\x80"), std::string("a\xC3(b"), std::string("x\xF0\x9F\xA6 \x80y"),
          std::string("\0\x80\xC0\xAF", 4), std::string("caf\xE9 e\xCC\x81\xFF").substr(0, 5)}) {
      CAPTURE(name);
      const Ids ids = tokenizer->encode(bytes, false);
      CHECK(tokenizer->decode(ids) == bytes);
      CHECK(tokenizer->encode(bytes, false) == ids);
    }
  }
  if (const auto tokenizer = shared_vocab("llama-spm")) {
    CHECK(tokenizer->encode("\xE6\xAD", false) == Ids{29871, 3 + 0xE6, 3 + 0xAD});
  }
  if (const auto tokenizer = shared_vocab("llama-bpe")) {
    CHECK(tokenizer->piece(15722) + tokenizer->piece(103) == "歪");
    CHECK(tokenizer->encode("\xE6\xAD", false) == Ids{15722});
  }
}

TEST_CASE("composed and decomposed accents are the same for Qwen and differ for Llama 3") {
  const std::string composed = "caf\u00E9";
  const std::string decomposed = "cafe\u0301";
  if (const auto tokenizer = shared_vocab("qwen2")) {
    CHECK(tokenizer->encode(composed, false) == Ids{924, 58858});
    CHECK(tokenizer->encode(decomposed, false) == Ids{924, 58858});
  }
  if (const auto tokenizer = shared_vocab("llama-bpe")) {
    CHECK(tokenizer->encode(composed, false) == Ids{936, 59958});
    CHECK(tokenizer->encode(decomposed, false) == Ids{936, 1897, 54939});
  }
}

TEST_CASE("a generated text of the published model starts without a space") {
  const std::string path = shared_path("models/stories260K-f32.gguf");
  if (!std::filesystem::exists(path)) {
    std::cout << "SKIPPED: " << path << " is not there\n";
    return;
  }
  const auto tokenizer = Tokenizer::create(*ModelFile::open(path));
  CHECK(tokenizer->adds_bos());
  CHECK(tokenizer->bos() == 1);
  CHECK(tokenizer->is_end(2));
  const Ids ids = tokenizer->encode("Once upon a time", false);
  PieceStream stream(*tokenizer, {1});
  std::string text;
  for (const std::int32_t id : ids) text += stream.next(id);
  CHECK(text == "Once upon a time");
}
