// Vocabularies made for a test: edited in memory, then written as a GGUF file and opened by the
// real reader, so that what a test calls a damaged file is one.
#pragma once

#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "detrun/error.h"
#include "detrun/model_file.h"
#include "detrun/tokenizer.h"
#include "tests/support/gguf_builder.h"

namespace detrun::test {

using Ids = std::vector<std::int32_t>;

/// Metadata by name without "tokenizer.ggml.". A list that is absent here is absent in the file.
struct VocabFile {
  std::map<std::string, std::string> strings;
  std::map<std::string, std::uint32_t> numbers;
  std::map<std::string, bool> bools;
  std::map<std::string, std::vector<std::string>> string_lists;
  std::map<std::string, std::vector<std::int32_t>> int_lists;
  std::map<std::string, std::vector<float>> float_lists;

  /// Adds a token: spelling, GGUF token type (1 normal, 2 unknown, 3 control, 4 user-defined,
  /// 5 unused, 6 byte), score.
  VocabFile& add(std::string text, std::int32_t type = 1, float score = 0) {
    string_lists["tokens"].push_back(std::move(text));
    int_lists["token_type"].push_back(type);
    float_lists["scores"].push_back(score);
    return *this;
  }

  std::string gguf() const {
    const std::string prefix = "tokenizer.ggml.";
    GgufBuilder builder;
    for (const auto& [key, value] : strings) builder.string(prefix + key, value);
    for (const auto& [key, value] : numbers) builder.u32(prefix + key, value);
    for (const auto& [key, value] : bools) builder.boolean(prefix + key, value);
    for (const auto& [key, value] : string_lists) builder.strings(prefix + key, value);
    for (const auto& [key, value] : int_lists) builder.numbers(prefix + key, value);
    for (const auto& [key, value] : float_lists) builder.numbers(prefix + key, value);
    return builder.build();
  }

  /// The file is gone when this returns: a tokenizer keeps nothing of it.
  std::unique_ptr<Tokenizer> tokenizer() const {
    const TempFolder folder;
    return Tokenizer::create(*ModelFile::open(folder.write("m.gguf", gguf())));
  }

  /// What create() says when it refuses this file, which it must with exit code 2.
  std::string refusal() const {
    try {
      tokenizer();
    } catch (const Error& error) {
      CHECK(error.kind() == ExitCode::kUsage);
      return error.what();
    }
    FAIL_CHECK("accepted, but a refusal was expected");
    return {};
  }
};

inline bool has(std::string_view text, std::string_view part) {
  const bool found = text.find(part) != std::string_view::npos;
  if (!found) MESSAGE(std::string(text));
  return found;
}

/// "llama": <unk> 0, <s> 1, </s> 2, byte tokens 3 to 258, then U+2581 259, a 260, b 261, ab 262,
/// U+2581 ab 263, b U+2581 264. Merging a b scores best, then U+2581 ab, then b U+2581.
inline VocabFile small_llama() {
  VocabFile file;
  file.strings["model"] = "llama";
  file.add("<unk>", 2).add("<s>", 3).add("</s>", 3);
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  for (unsigned byte = 0; byte < 256; ++byte) {
    file.add(std::string("<0x") + kDigits[byte >> 4U] + kDigits[byte & 15U] + ">", 6);
  }
  file.add("\u2581", 1, -10).add("a", 1, -11).add("b", 1, -12);
  file.add("ab", 1, -1)
      .add(
          "\u2581"
          "ab",
          1, -2)
      .add("b\u2581", 1, -3);
  file.numbers = {{"bos_token_id", 1}, {"eos_token_id", 2}, {"unknown_token_id", 0}};
  return file;
}

/// "gpt2" split as gpt-2: a 0, b 1, c 2, U+0120 (the space) 3, ab 4, bc 5, <|end|> 6 (control,
/// EOS). Merges: b c, then a b.
inline VocabFile small_gpt2() {
  VocabFile file;
  file.strings = {{"model", "gpt2"}, {"pre", "gpt-2"}};
  file.add("a").add("b").add("c").add("\u0120").add("ab").add("bc").add("<|end|>", 3);
  file.float_lists.clear();
  file.string_lists["merges"] = {"b c", "a b"};
  file.numbers = {{"eos_token_id", 6}};
  return file;
}

}  // namespace detrun::test
