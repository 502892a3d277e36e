// Splits a text into the words within which byte-level BPE merges, as `tokenizer.ggml.pre` says.
// Knows no token ids. Every byte of the text is in exactly one word, whatever the bytes are.
//
// How: every character becomes one byte that says which of the pattern's sets it is in (ASCII
// stays itself), and the patterns run over those bytes. So the ids depend on the Unicode table of
// this repository instead of PCRE2's, and an invalid byte is simply a character in no set.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/char_set.h"
#include "tokenizer/regex.h"

namespace detrun {

/// One row of the table of pre-tokenizers.
struct PreTokenizerRow {
  std::string_view name;  ///< value of `tokenizer.ggml.pre`
  /// Applied one after the other, each inside the pieces the one before left; matches and what
  /// lies between them are pieces. Syntax: PCRE2, and \p{NAME} and \s are sets of char_set.cpp.
  std::array<std::string_view, 6> patterns;
  bool ignore_merges = false;  ///< a word that is a token is that token, whatever merges say
  bool adds_bos = false;       ///< when the file is silent
  bool nfc = false;            ///< the model's tokenizer normalizes text to NFC first
};

/// The row of that name, or null.
const PreTokenizerRow* find_pre_tokenizer(std::string_view name);
/// All names, separated by ", ", for messages.
std::string pre_tokenizer_names();

/// The compiled row. split() may run in several threads at once.
class PreTokenizer {
 public:
  explicit PreTokenizer(const PreTokenizerRow& row);

  /// Words in order; they cover the text. Views into `text`.
  std::vector<std::string_view> split(std::string_view text) const;

 private:
  static constexpr int kSetsMax = 7;  // bits of a byte above ASCII

  std::string compile_sets(std::string_view pattern);
  std::string byte_class(const CharSet& set);
  std::string classify(std::string_view text) const;

  std::vector<const CharSet*> sets_;  // set i is bit i of a byte from 0x80 on
  std::array<std::uint8_t, kCategoryCount> byte_of_category_{};
  std::vector<Regex> regexes_;
};

}  // namespace detrun
