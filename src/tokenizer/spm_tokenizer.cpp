// Kind "llama": SentencePiece BPE. Of all pairs of neighbours that form a token the one with the
// highest score merges first, the leftmost of equals; what no token covers is spelled in byte
// tokens. Algorithm: sentencepiece, src/bpe_model.cc (Kudo and Richardson 2018).
#include <algorithm>
#include <array>
#include <queue>
#include <unordered_map>

#include "detrun/error.h"
#include "tokenizer/byte_token.h"
#include "tokenizer/utf8.h"
#include "tokenizer/vocab_tokenizer.h"

namespace detrun {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

std::string escape_spaces(std::string_view text, bool prefix) {
  std::string out;
  out.reserve(text.size() + kSpaceMark.size());
  if (prefix) out += kSpaceMark;
  for (const char c : text) {
    if (c == ' ') {
      out += kSpaceMark;
    } else {
      out += c;
    }
  }
  return out;
}

std::string unescape_spaces(std::string_view text) {
  std::string out;
  std::size_t pos = 0;
  for (std::size_t mark = text.find(kSpaceMark); mark != std::string_view::npos;
       mark = text.find(kSpaceMark, pos)) {
    out += text.substr(pos, mark - pos);
    out += ' ';
    pos = mark + kSpaceMark.size();
  }
  out += text.substr(pos);
  return out;
}

// A stretch of the text that is one token so far; empty when merged into its left neighbour.
struct Symbol {
  std::size_t begin;
  std::size_t size;
  std::int32_t previous;
  std::int32_t next;  // -1: none
};

struct Candidate {
  float score;
  std::int32_t left;
  std::int32_t right;
  std::size_t size;  // of both together when it was found

  // std::priority_queue gives the greatest: higher score, then further left.
  bool operator<(const Candidate& other) const {
    return score != other.score ? score < other.score : left > other.left;
  }
};

class SpmTokenizer final : public VocabTokenizer {
 public:
  explicit SpmTokenizer(const ModelFile& file);

  std::string_view kind() const override { return "llama"; }
  bool strips_leading_space() const override { return add_space_prefix_; }
  std::vector<std::int32_t> encode(std::string_view text, bool parse_special) const override;
  std::string piece(std::int32_t id, bool show_control) const override;
  Sha256Digest digest() const override;

 private:
  using Splits = std::unordered_map<std::string_view, std::size_t>;

  std::optional<std::int32_t> mergeable(std::string_view text) const;
  void encode_text(std::string_view text, std::vector<std::int32_t>& ids) const;  // escaped
  void emit(std::string_view symbol, const Splits& unused, std::vector<std::int32_t>& ids) const;
  void emit_bytes(std::string_view symbol, std::vector<std::int32_t>& ids) const;

  bool add_space_prefix_;
  bool has_byte_tokens_ = false;
  std::array<std::optional<std::int32_t>, 256> byte_ids_{};
  std::size_t longest_token_ = 0;
};

SpmTokenizer::SpmTokenizer(const ModelFile& file)
    : VocabTokenizer(file, "llama", true),
      add_space_prefix_(file.get_bool("tokenizer.ggml.add_space_prefix").value_or(true)) {
  if (!file.type_of("tokenizer.ggml.scores")) {
    vocab().fail("tokenizer.ggml.scores is missing, a vocabulary of kind 'llama' needs it");
  }
  if (file.get_bool("tokenizer.ggml.remove_extra_whitespaces").value_or(false)) {
    vocab().fail("tokenizer.ggml.remove_extra_whitespaces is true, which detrun does not support");
  }
  if (file.type_of("tokenizer.ggml.precompiled_charsmap")) {
    vocab().fail("tokenizer.ggml.precompiled_charsmap is there, which detrun does not support");
  }
  for (std::int32_t id = 0; id < n_vocab(); ++id) {
    longest_token_ = std::max(longest_token_, vocab().text(id).size());
    if (vocab().kind(id) != TokenKind::kByte) continue;
    const auto byte = parse_byte_token(vocab().text(id));
    if (!byte) vocab().fail("byte token " + vocab().show(id) + " is not spelled <0x00> to <0xFF>");
    byte_ids_[*byte] = id;
    has_byte_tokens_ = true;
  }
}

std::vector<std::int32_t> SpmTokenizer::encode(std::string_view text, bool parse_special) const {
  std::vector<std::int32_t> ids;
  // The dummy prefix goes before the text and before what follows a token matched as a whole, as
  // in the models' reference tokenizers, which encode the text between such tokens alone.
  for (const Fragment& fragment : vocab().partition(text, parse_special)) {
    if (fragment.id) {
      ids.push_back(*fragment.id);
    } else {
      encode_text(escape_spaces(fragment.text, add_space_prefix_), ids);
    }
  }
  return ids;
}

// Control, unknown, byte and user-defined tokens never come out of merges, whatever their score.
std::optional<std::int32_t> SpmTokenizer::mergeable(std::string_view text) const {
  if (text.size() > longest_token_) return std::nullopt;
  const auto id = vocab().find(text);
  if (!id) return std::nullopt;
  const TokenKind kind = vocab().kind(*id);
  const bool merges = kind == TokenKind::kNormal || kind == TokenKind::kUnused;
  return merges ? id : std::nullopt;
}

void SpmTokenizer::encode_text(std::string_view text, std::vector<std::int32_t>& ids) const {
  std::vector<Symbol> symbols;
  for (std::size_t pos = 0; pos < text.size();) {
    const std::size_t size = utf8_at(text, pos).bytes;
    const auto i = static_cast<std::int32_t>(symbols.size());
    symbols.push_back({pos, size, i - 1, pos + size < text.size() ? i + 1 : -1});
    pos += size;
  }
  const auto at = [&](std::int32_t i) -> Symbol& { return symbols[static_cast<std::size_t>(i)]; };

  std::priority_queue<Candidate> queue;
  Splits unused;  // merges that made an unused token, to undo them at the end
  const auto consider = [&](std::int32_t left, std::int32_t right) {
    if (left < 0 || right < 0) return;
    const std::size_t size = at(left).size + at(right).size;
    const std::string_view merged = text.substr(at(left).begin, size);
    const auto id = mergeable(merged);
    if (!id) return;
    queue.push({vocab().score(*id), left, right, size});
    if (vocab().kind(*id) == TokenKind::kUnused) unused.insert_or_assign(merged, at(left).size);
  };

  for (std::int32_t i = 1; i < static_cast<std::int32_t>(symbols.size()); ++i) consider(i - 1, i);
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Symbol& left = at(best.left);
    Symbol& right = at(best.right);
    // Out of date: one of the two was merged or grew since.
    if (left.size == 0 || right.size == 0 || left.size + right.size != best.size) continue;
    left.size = best.size;
    right.size = 0;
    left.next = right.next;
    if (right.next >= 0) at(right.next).previous = best.left;
    consider(left.previous, best.left);
    consider(best.left, left.next);
  }
  for (std::int32_t i = symbols.empty() ? -1 : 0; i >= 0; i = at(i).next) {
    emit(text.substr(at(i).begin, at(i).size), unused, ids);
  }
}

void SpmTokenizer::emit(std::string_view symbol, const Splits& unused,
                        std::vector<std::int32_t>& ids) const {
  std::vector<std::string_view> todo = {symbol};
  while (!todo.empty()) {
    const std::string_view part = todo.back();
    todo.pop_back();
    const auto id = mergeable(part);
    if (!id) {
      emit_bytes(part, ids);
      continue;
    }
    const auto split = unused.find(part);
    if (vocab().kind(*id) != TokenKind::kUnused || split == unused.end()) {
      ids.push_back(*id);
      continue;
    }
    todo.push_back(part.substr(split->second));
    todo.push_back(part.substr(0, split->second));
  }
}

// One character that is no token. A run of such characters is one unknown token in a vocabulary
// without byte tokens, as in SentencePiece.
void SpmTokenizer::emit_bytes(std::string_view symbol, std::vector<std::int32_t>& ids) const {
  const auto unknown = vocab().special().unknown;
  for (const char c : symbol) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte_ids_[byte]) {
      ids.push_back(*byte_ids_[byte]);
      continue;
    }
    if (!unknown) {
      vocab().fail("the text has byte " + std::to_string(byte) +
                   ", for which the vocabulary has neither a token nor an unknown token");
    }
    if (has_byte_tokens_ || ids.empty() || ids.back() != *unknown) ids.push_back(*unknown);
  }
}

std::string SpmTokenizer::piece(std::int32_t id, bool show_control) const {
  vocab().check_id(id);
  const std::string_view text = vocab().text(id);
  switch (vocab().kind(id)) {
    case TokenKind::kControl:
    case TokenKind::kUnknown:
      return show_control ? std::string(text) : std::string();
    case TokenKind::kByte:
      return std::string(1, static_cast<char>(parse_byte_token(text).value()));
    case TokenKind::kUserDefined:
      return std::string(text);
    case TokenKind::kNormal:
    case TokenKind::kUnused:
      break;
  }
  return unescape_spaces(text);
}

// After the common part: add_space_prefix, 0 or 1.
Sha256Digest SpmTokenizer::digest() const {
  std::string message = digest_message();
  put_u64(message, add_space_prefix_ ? 1 : 0);
  return sha256(message);
}

}  // namespace

std::unique_ptr<Tokenizer> make_llama_tokenizer(const ModelFile& file) {
  return std::make_unique<SpmTokenizer>(file);
}

}  // namespace detrun
