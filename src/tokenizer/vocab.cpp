// Reading and checking a vocabulary. Keys and numbers are those of the GGUF specification, names
// of end tokens those at which llama.cpp ends generation.
#include "tokenizer/vocab.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "detrun/error.h"
#include "detrun/text.h"
#include "tokenizer/byte_token.h"

namespace detrun {
namespace {

// Control tokens that end generation besides those that metadata name. The last two lines are of
// code models: one that pads or starts another file has finished what it was asked for.
constexpr std::array<std::string_view, 27> kEndNames = {"<|eot_id|>",
                                                        "<|eom_id|>",
                                                        "<|im_end|>",
                                                        "<|end|>",
                                                        "<|return|>",
                                                        "<|call|>",
                                                        "<|calls|>",
                                                        "<|flush|>",
                                                        "<end_of_turn>",
                                                        "<|endoftext|>",
                                                        "<|end_of_text|>",
                                                        "<end_of_utterance>",
                                                        "</s>",
                                                        "<eos>",
                                                        "[EOS]",
                                                        "<EOT>",
                                                        "_<EOT>",
                                                        "[EOT]",
                                                        "<\uFF5Cend\u2581of\u2581sentence\uFF5C>",
                                                        "<|fim_pad|>",
                                                        "<fim-pad>",
                                                        "<fim_pad>",
                                                        "<|fim_repo|>",
                                                        "<fim-repo>",
                                                        "<|repo_name|>",
                                                        "<reponame>",
                                                        "<|file_sep|>"};

bool is_whole(TokenKind kind) {
  return kind == TokenKind::kUserDefined || kind == TokenKind::kControl ||
         kind == TokenKind::kUnknown;
}

}  // namespace

Vocab::Vocab(const ModelFile& file, std::string_view kind) : path_(file.path()) {
  read_texts(file);
  read_scores(file);
  read_special_ids(file, kind);
  read_kinds(file, kind);
  find_ends();
  collect_whole_tokens();
}

void Vocab::fail(const std::string& what) const { throw_usage(path_ + ": " + what); }

std::string Vocab::show(std::int32_t id) const {
  constexpr std::size_t kShown = 60;
  return std::to_string(id) + " '" + escape_for_terminal(text(id).substr(0, kShown)) + "'";
}

void Vocab::check_id(std::int32_t id) const {
  if (id < 0 || id >= size()) {
    fail("there is no token " + std::to_string(id) + ", the vocabulary has ids 0 to " +
         std::to_string(size() - 1));
  }
}

void Vocab::read_texts(const ModelFile& file) {
  const auto tokens = file.get_strings("tokenizer.ggml.tokens");
  if (!tokens) fail("tokenizer.ggml.tokens is missing");
  if (tokens->empty()) fail("tokenizer.ggml.tokens is empty");
  if (tokens->size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    fail("tokenizer.ggml.tokens has " + std::to_string(tokens->size()) +
         " entries, ids end at 2147483647");
  }
  texts_ = StringList(*tokens);
  if (const auto repeat = texts_.first_repeat()) {
    fail("tokenizer.ggml.tokens: token " + show(*repeat) + " is spelled like token " +
         std::to_string(*find(text(*repeat))));
  }
}

void Vocab::read_scores(const ModelFile& file) {
  const auto scores = file.get_f64s("tokenizer.ggml.scores");
  if (!scores) return;
  if (scores->size() != texts_.size()) {
    fail("tokenizer.ggml.scores has " + std::to_string(scores->size()) + " entries for " +
         std::to_string(texts_.size()) + " tokens");
  }
  scores_.reserve(scores->size());
  for (const double score : *scores) {
    if (std::isnan(score)) {
      fail("tokenizer.ggml.scores: token " + show(static_cast<std::int32_t>(scores_.size())) +
           " has no number as its score");
    }
    scores_.push_back(static_cast<float>(score));
  }
}

void Vocab::read_special_ids(const ModelFile& file, std::string_view kind) {
  const auto read = [&](const std::string& name) -> std::optional<std::int32_t> {
    const std::string key = "tokenizer.ggml." + name + "_token_id";
    const auto id = file.get_u64(key);
    if (!id) return std::nullopt;
    if (*id >= texts_.size()) {
      fail(key + " is " + std::to_string(*id) + ", the vocabulary has " +
           std::to_string(texts_.size()) + " tokens");
    }
    return static_cast<std::int32_t>(*id);
  };
  special_ = {read("bos"), read("eos"), read("eot"), read("eom"), read("unknown")};
  if (kind != "llama") return;
  // SentencePiece's own numbers, where a file leaves them out and the spelling agrees.
  const auto fill = [&](std::optional<std::int32_t>& id, std::int32_t usual,
                        std::string_view spelling) {
    if (!id && usual < size() && text(usual) == spelling) id = usual;
  };
  fill(special_.unknown, 0, "<unk>");
  fill(special_.bos, 1, "<s>");
  fill(special_.eos, 2, "</s>");
}

void Vocab::read_kinds(const ModelFile& file, std::string_view kind) {
  const auto types = file.get_i64s("tokenizer.ggml.token_type");
  if (types) {
    if (types->size() != texts_.size()) {
      fail("tokenizer.ggml.token_type has " + std::to_string(types->size()) + " entries for " +
           std::to_string(texts_.size()) + " tokens");
    }
    kinds_.reserve(types->size());
    for (const std::int64_t type : *types) {
      if (type < 1 || type > 6) {
        fail("tokenizer.ggml.token_type: token " + show(static_cast<std::int32_t>(kinds_.size())) +
             " has type " + std::to_string(type) + ", expected 1 to 6");
      }
      kinds_.push_back(static_cast<TokenKind>(type - 1));
    }
    return;
  }
  // Without types only metadata and, in SentencePiece vocabularies, spelling tell them.
  kinds_.assign(texts_.size(), TokenKind::kNormal);
  for (std::size_t i = 0; kind == "llama" && i < texts_.size(); ++i) {
    if (parse_byte_token(texts_[i])) kinds_[i] = TokenKind::kByte;
  }
  for (const auto& id : {special_.bos, special_.eos, special_.eot, special_.eom}) {
    if (id) kinds_[index(*id)] = TokenKind::kControl;
  }
  if (special_.unknown && kinds_[index(*special_.unknown)] == TokenKind::kNormal) {
    kinds_[index(*special_.unknown)] = TokenKind::kUnknown;
  }
}

void Vocab::find_ends() {
  ends_.assign(texts_.size(), false);
  for (const std::string_view name : kEndNames) {
    const auto id = find(name);
    if (id && kind(*id) == TokenKind::kControl) ends_[index(*id)] = true;
  }
  // In the harmony format <|end|> closes a message, not the answer.
  const auto end = find("<|end|>");
  const bool harmony =
      (find("<|return|>") && find("<|call|>")) || (find("<|flush|>") && find("<|calls|>"));
  if (end && harmony) ends_[index(*end)] = false;
  for (const auto& id : {special_.eos, special_.eot, special_.eom}) {
    if (id) ends_[index(*id)] = true;
  }
}

void Vocab::collect_whole_tokens() {
  const auto add = [](WholeTokens& tokens, std::string_view text) {
    tokens.first_bytes[static_cast<unsigned char>(text.front())] = true;
    tokens.lengths.push_back(text.size());
  };
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    if (texts_[i].empty() || !is_whole(kinds_[i])) continue;
    add(user_defined_or_special_, texts_[i]);
    if (kinds_[i] == TokenKind::kUserDefined) add(user_defined_, texts_[i]);
  }
  for (WholeTokens* tokens : {&user_defined_, &user_defined_or_special_}) {
    auto& lengths = tokens->lengths;
    std::sort(lengths.begin(), lengths.end(), std::greater<>());
    lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  }
}

std::optional<std::int32_t> Vocab::whole_at(std::string_view rest, bool parse_special) const {
  const WholeTokens& tokens = parse_special ? user_defined_or_special_ : user_defined_;
  if (!tokens.first_bytes[static_cast<unsigned char>(rest.front())]) return std::nullopt;
  for (const std::size_t length : tokens.lengths) {
    if (length > rest.size()) continue;
    const auto id = find(rest.substr(0, length));
    if (id && is_whole(kind(*id)) && (parse_special || kind(*id) == TokenKind::kUserDefined)) {
      return id;
    }
  }
  return std::nullopt;
}

std::vector<Fragment> Vocab::partition(std::string_view text, bool parse_special) const {
  if (text.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    throw_usage("a text of " + std::to_string(text.size()) + " bytes is too long for token ids");
  }
  std::vector<Fragment> out;
  std::size_t begin = 0;
  std::size_t pos = 0;
  while (pos < text.size()) {
    const auto id = whole_at(text.substr(pos), parse_special);
    if (!id) {
      ++pos;
      continue;
    }
    if (pos > begin) out.push_back({std::nullopt, text.substr(begin, pos - begin)});
    const std::size_t length = this->text(*id).size();
    out.push_back({id, text.substr(pos, length)});
    pos += length;
    begin = pos;
  }
  if (begin < text.size()) out.push_back({std::nullopt, text.substr(begin)});
  return out;
}

}  // namespace detrun
