// Kind "gpt2": byte-level BPE. A text is split into words (pre_tokenizer.h); inside a word the
// pair of neighbours that is first in the list of merges merges first, the leftmost of equals.
// Algorithm: Sennrich et al. 2016 over bytes as in OpenAI GPT-2, encoder.py.
#include <algorithm>
#include <limits>
#include <queue>

#include "detrun/error.h"
#include "detrun/log.h"
#include "detrun/text.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/normalize.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/utf8.h"
#include "tokenizer/vocab_tokenizer.h"

namespace detrun {
namespace {

// A stretch of a word's spelling that is one token so far; empty when merged into its left one.
struct Symbol {
  std::size_t begin;
  std::size_t size;
  std::int32_t id;
  std::int32_t previous;
  std::int32_t next;  // -1: none
};

struct Candidate {
  std::int32_t rank;
  std::int32_t left;
  std::int32_t right;
  std::int32_t merged;  // id of both together
  std::size_t size;     // of both together when it was found

  // std::priority_queue gives the greatest: lower rank, then further left.
  bool operator<(const Candidate& other) const {
    return rank != other.rank ? rank > other.rank : left > other.left;
  }
};

const PreTokenizerRow& row_of(const ModelFile& file) {
  constexpr std::string_view kKey = "tokenizer.ggml.pre";
  const auto name = file.get_string(kKey);
  if (!name) {
    log_warning(file.path() +
                ": tokenizer.ggml.pre is missing: words are split as 'default', which may differ "
                "from what the model was trained with");
  }
  const PreTokenizerRow* row = find_pre_tokenizer(name.value_or("default"));
  if (row == nullptr) {
    throw_usage(file.path() + ": tokenizer.ggml.pre is '" + escape_for_terminal(*name) +
                "', supported are " + pre_tokenizer_names());
  }
  return *row;
}

class BpeTokenizer final : public VocabTokenizer {
 public:
  BpeTokenizer(const ModelFile& file, const PreTokenizerRow& row);

  std::string_view kind() const override { return "gpt2"; }
  bool strips_leading_space() const override { return false; }
  std::vector<std::int32_t> encode(std::string_view text, bool parse_special) const override;
  std::string piece(std::int32_t id, bool show_control) const override;
  Sha256Digest digest() const override;

 private:
  void read_merges(const ModelFile& file);
  std::optional<std::int32_t> normal(std::string_view spelling) const;
  void encode_text(std::string_view text, std::vector<std::int32_t>& ids) const;
  void encode_word(std::string_view spelling, std::vector<std::int32_t>& ids) const;
  void merge_all(std::string_view spelling, std::vector<Symbol>& symbols) const;

  const PreTokenizerRow& row_;
  PreTokenizer pre_tokenizer_;
  StringList merges_;              // "LEFT RIGHT", by rank
  std::size_t longest_merge_ = 0;  // of LEFT and RIGHT together
};

BpeTokenizer::BpeTokenizer(const ModelFile& file, const PreTokenizerRow& row)
    : VocabTokenizer(file, "gpt2", row.adds_bos), row_(row), pre_tokenizer_(row) {
  read_merges(file);
  if (file.get_bool("tokenizer.ggml.add_space_prefix").value_or(false)) {
    log_warning(file.path() +
                ": tokenizer.ggml.add_space_prefix is true, which has no effect on kind 'gpt2'");
  }
}

// Control and user-defined tokens never come out of merges or of a whole word.
std::optional<std::int32_t> BpeTokenizer::normal(std::string_view spelling) const {
  const auto id = vocab().find(spelling);
  return id && vocab().kind(*id) == TokenKind::kNormal ? id : std::nullopt;
}

void BpeTokenizer::read_merges(const ModelFile& file) {
  const auto merges = file.get_strings("tokenizer.ggml.merges");
  if (!merges) {
    vocab().fail("tokenizer.ggml.merges is missing, a vocabulary of kind 'gpt2' needs it");
  }
  if (merges->size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    vocab().fail("tokenizer.ggml.merges has " + std::to_string(merges->size()) +
                 " entries, ranks end at 2147483647");
  }
  for (std::size_t i = 0; i < merges->size(); ++i) {
    const std::string_view merge = (*merges)[i];
    const std::size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == merge.size()) {
      vocab().fail("tokenizer.ggml.merges: entry " + std::to_string(i) + ", '" +
                   escape_for_terminal(merge.substr(0, 60)) +
                   "', is not two spellings with a space between them");
    }
    longest_merge_ = std::max(longest_merge_, merge.size() - 1);
  }
  // Merges of or into something that is no token are kept as other readers do: they never apply.
  merges_ = StringList(*merges);
}

std::vector<std::int32_t> BpeTokenizer::encode(std::string_view text, bool parse_special) const {
  std::vector<std::int32_t> ids;
  for (const Fragment& fragment : vocab().partition(text, parse_special)) {
    if (fragment.id) {
      ids.push_back(*fragment.id);
    } else if (row_.nfc) {
      encode_text(nfc(fragment.text), ids);
    } else {
      encode_text(fragment.text, ids);
    }
  }
  return ids;
}

void BpeTokenizer::encode_text(std::string_view text, std::vector<std::int32_t>& ids) const {
  for (const std::string_view word : pre_tokenizer_.split(text)) {
    const std::string spelling = spelling_of_bytes(word);
    const auto whole = row_.ignore_merges ? normal(spelling) : std::nullopt;
    if (whole) {
      ids.push_back(*whole);
    } else {
      encode_word(spelling, ids);
    }
  }
}

void BpeTokenizer::encode_word(std::string_view spelling, std::vector<std::int32_t>& ids) const {
  std::vector<Symbol> symbols;
  symbols.reserve(spelling.size());
  for (std::size_t pos = 0; pos < spelling.size();) {
    const std::size_t size = utf8_at(spelling, pos).bytes;
    const std::string_view one = spelling.substr(pos, size);
    const auto id = normal(one);
    if (!id) {
      const auto byte = static_cast<unsigned char>(bytes_of_spelling(one).value().front());
      vocab().fail("the text has byte " + std::to_string(byte) +
                   ", for which the vocabulary has no token");
    }
    const auto i = static_cast<std::int32_t>(symbols.size());
    symbols.push_back({pos, size, *id, i - 1, pos + size < spelling.size() ? i + 1 : -1});
    pos += size;
  }
  merge_all(spelling, symbols);
  for (const Symbol& symbol : symbols) {
    if (symbol.size > 0) ids.push_back(symbol.id);
  }
}

void BpeTokenizer::merge_all(std::string_view spelling, std::vector<Symbol>& symbols) const {
  const auto at = [&](std::int32_t i) -> Symbol& { return symbols[static_cast<std::size_t>(i)]; };
  std::priority_queue<Candidate> queue;
  std::string merge;
  const auto consider = [&](std::int32_t left, std::int32_t right) {
    if (left < 0 || right < 0) return;
    const std::size_t size = at(left).size + at(right).size;
    if (size > longest_merge_) return;
    merge.assign(spelling.substr(at(left).begin, at(left).size)).append(1, ' ');
    merge.append(spelling.substr(at(right).begin, at(right).size));
    const auto rank = merges_.find(merge);
    if (!rank) return;
    const auto merged = normal(spelling.substr(at(left).begin, size));
    if (merged) queue.push({*rank, left, right, *merged, size});
  };
  for (std::int32_t i = 1; i < static_cast<std::int32_t>(symbols.size()); ++i) consider(i - 1, i);
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Symbol& left = at(best.left);
    Symbol& right = at(best.right);
    // Out of date: one of the two was merged away or grew since.
    if (left.size == 0 || right.size == 0 || left.size + right.size != best.size) continue;
    left.size = best.size;
    left.id = best.merged;
    right.size = 0;
    left.next = right.next;
    if (right.next >= 0) at(right.next).previous = best.left;
    consider(left.previous, best.left);
    consider(best.left, left.next);
  }
}

std::string BpeTokenizer::piece(std::int32_t id, bool show_control) const {
  vocab().check_id(id);
  const std::string_view text = vocab().text(id);
  const TokenKind kind = vocab().kind(id);
  const bool marker = kind == TokenKind::kControl || kind == TokenKind::kUnknown;
  if (marker && !show_control) return {};
  if (marker || kind == TokenKind::kUserDefined) return std::string(text);
  // A spelling outside the alphabet stands for itself, as in Hugging Face's decoder.
  return bytes_of_spelling(text).value_or(std::string(text));
}

// After the common part: name of the pre-tokenizer, version of the Unicode table, ignore_merges
// and nfc (0 or 1), number of patterns, each pattern; number of merges, each merge as in the file.
Sha256Digest BpeTokenizer::digest() const {
  std::string message = digest_message();
  put_text(message, row_.name);
  put_text(message, kUnicodeVersion);
  put_u64(message, row_.ignore_merges ? 1 : 0);
  put_u64(message, row_.nfc ? 1 : 0);
  put_u64(message, row_.patterns.size());
  for (const std::string_view pattern : row_.patterns) put_text(message, pattern);
  put_u64(message, merges_.size());
  for (std::size_t rank = 0; rank < merges_.size(); ++rank) put_text(message, merges_[rank]);
  return sha256(message);
}

}  // namespace

std::unique_ptr<Tokenizer> make_gpt2_tokenizer(const ModelFile& file) {
  return std::make_unique<BpeTokenizer>(file, row_of(file));
}

}  // namespace detrun
