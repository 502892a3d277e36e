// The vocabulary of a model file, checked: what both kinds of tokenizer share. Owns copies of all
// it needs (the file may be closed afterwards). Knows no way of cutting text into tokens, except
// at tokens that are matched as a whole.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "detrun/model_file.h"
#include "detrun/tokenizer.h"
#include "tokenizer/string_list.h"

namespace detrun {

/// A part of a text: one token matched as a whole, or text (`id` empty).
struct Fragment {
  std::optional<std::int32_t> id;
  std::string_view text;
};

/// Ids that metadata name, each inside the vocabulary.
struct SpecialIds {
  std::optional<std::int32_t> bos, eos, eot, eom, unknown;
};

class Vocab {
 public:
  /// Reads tokens, types, scores and special ids. `kind` is "llama" or "gpt2". Error kUsage naming
  /// the file and the key for anything missing, of another length, out of range or ambiguous.
  Vocab(const ModelFile& file, std::string_view kind);

  std::int32_t size() const { return static_cast<std::int32_t>(texts_.size()); }
  const std::string& path() const { return path_; }
  const SpecialIds& special() const { return special_; }

  /// Ids must be in range, see check_id.
  std::string_view text(std::int32_t id) const { return texts_[index(id)]; }
  TokenKind kind(std::int32_t id) const { return kinds_[index(id)]; }
  float score(std::int32_t id) const { return scores_.empty() ? 0.0F : scores_[index(id)]; }
  bool is_end(std::int32_t id) const { return ends_[index(id)]; }

  /// Error kUsage for an id that is not in the vocabulary.
  void check_id(std::int32_t id) const;

  /// Id of the token of any kind spelled exactly so.
  std::optional<std::int32_t> find(std::string_view text) const { return texts_.find(text); }

  /// Cuts out the tokens that are matched as a whole, leftmost first, of several the longest:
  /// user-defined ones, with `parse_special` also control and unknown tokens.
  std::vector<Fragment> partition(std::string_view text, bool parse_special) const;

  /// Error kUsage about this file's vocabulary.
  [[noreturn]] void fail(const std::string& what) const;
  /// A token for a message: id and spelling, safe for a terminal.
  std::string show(std::int32_t id) const;

 private:
  static std::size_t index(std::int32_t id) { return static_cast<std::size_t>(id); }

  void read_texts(const ModelFile& file);
  void read_scores(const ModelFile& file);
  void read_special_ids(const ModelFile& file, std::string_view kind);
  void read_kinds(const ModelFile& file, std::string_view kind);
  void find_ends();
  void collect_whole_tokens();
  std::optional<std::int32_t> whole_at(std::string_view rest, bool parse_special) const;

  std::string path_;
  StringList texts_;
  std::vector<TokenKind> kinds_;
  std::vector<float> scores_;  // empty: the file has none
  std::vector<bool> ends_;
  SpecialIds special_;

  // Tokens matched as a whole: which first bytes and which lengths (longest first) they have.
  struct WholeTokens {
    std::array<bool, 256> first_bytes{};
    std::vector<std::size_t> lengths;
  };
  WholeTokens user_defined_;
  WholeTokens user_defined_or_special_;
};

}  // namespace detrun
