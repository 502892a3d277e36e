// The front door: which kind a file asks for, what the kinds share, and text from ids with the
// dummy prefix space of SentencePiece taken off its start.
#include "detrun/tokenizer.h"

#include <array>
#include <bit>

#include "detrun/error.h"
#include "detrun/text.h"
#include "tokenizer/vocab_tokenizer.h"

namespace detrun {
namespace {

// Whether a token leaves the text where it was: at its start, if it was there.
bool is_marker(TokenKind kind) {
  return kind == TokenKind::kControl || kind == TokenKind::kUnknown;
}

std::string next_piece(const Tokenizer& tokenizer, std::int32_t id, bool show_control,
                       bool& at_text_start) {
  std::string piece = tokenizer.piece(id, show_control);
  const TokenKind kind = tokenizer.token_kind(id);
  if (!at_text_start || is_marker(kind)) return piece;
  at_text_start = false;
  // A user-defined or byte token spells its own space: the tokenizer put none before it.
  const bool may_carry_prefix = kind == TokenKind::kNormal || kind == TokenKind::kUnused;
  if (may_carry_prefix && piece.starts_with(' ')) piece.erase(0, 1);
  return piece;
}

}  // namespace

std::unique_ptr<Tokenizer> Tokenizer::create(const ModelFile& file) {
  const auto kind = file.get_string("tokenizer.ggml.model");
  if (!kind) {
    throw_usage(file.path() + ": tokenizer.ggml.model is missing, the file has no vocabulary");
  }
  if (*kind == "llama") return make_llama_tokenizer(file);
  if (*kind == "gpt2") return make_gpt2_tokenizer(file);
  throw_usage(file.path() + ": tokenizer.ggml.model is '" + escape_for_terminal(*kind) +
              "', supported are 'llama' and 'gpt2'");
}

std::string Tokenizer::decode(const std::vector<std::int32_t>& ids, bool show_control) const {
  std::string text;
  bool at_text_start = strips_leading_space();
  for (const std::int32_t id : ids) text += next_piece(*this, id, show_control, at_text_start);
  return text;
}

PieceStream::PieceStream(const Tokenizer& tokenizer, const std::vector<std::int32_t>& prompt)
    : tokenizer_(tokenizer), at_text_start_(tokenizer.strips_leading_space()) {
  for (const std::int32_t id : prompt) {
    if (!is_marker(tokenizer.token_kind(id))) at_text_start_ = false;
  }
}

std::string PieceStream::next(std::int32_t id) {
  return next_piece(tokenizer_, id, false, at_text_start_);
}

VocabTokenizer::VocabTokenizer(const ModelFile& file, std::string_view kind, bool default_adds_bos)
    : vocab_(file, kind) {
  const auto adds_bos = file.get_bool("tokenizer.ggml.add_bos_token");
  if (adds_bos.value_or(false) && !vocab_.special().bos) {
    vocab_.fail("tokenizer.ggml.add_bos_token is true, but tokenizer.ggml.bos_token_id is missing");
  }
  adds_bos_ = adds_bos.value_or(default_adds_bos) && vocab_.special().bos.has_value();
}

TokenKind VocabTokenizer::token_kind(std::int32_t id) const {
  vocab_.check_id(id);
  return vocab_.kind(id);
}

bool VocabTokenizer::is_end(std::int32_t id) const {
  vocab_.check_id(id);
  return vocab_.is_end(id);
}

void put_u64(std::string& message, std::uint64_t value) {
  std::array<char, 8> bytes;
  for (char& byte : bytes) {
    byte = static_cast<char>(value & 0xFFU);
    value >>= 8U;
  }
  message.append(bytes.data(), bytes.size());
}

void put_text(std::string& message, std::string_view text) {
  put_u64(message, text.size());
  message += text;
}

// The message, in order: "detrun.tokenizer/1"; kind; adds_bos 0 or 1; ids of bos, eos, eot, eom,
// unknown plus one, 0 for none; number of tokens; of each token its bytes, kind, score bits. The
// kinds of tokenizer append what they alone have. A new order or meaning is a new first text.
std::string VocabTokenizer::digest_message() const {
  std::string message;
  put_text(message, "detrun.tokenizer/1");
  put_text(message, kind());
  put_u64(message, adds_bos_ ? 1 : 0);
  const SpecialIds& special = vocab_.special();
  for (const auto& id : {special.bos, special.eos, special.eot, special.eom, special.unknown}) {
    put_u64(message, id ? static_cast<std::uint64_t>(*id) + 1 : 0);
  }
  put_u64(message, static_cast<std::uint64_t>(vocab_.size()));
  for (std::int32_t id = 0; id < vocab_.size(); ++id) {
    put_text(message, vocab_.text(id));
    put_u64(message, static_cast<std::uint64_t>(vocab_.kind(id)));
    put_u64(message, std::bit_cast<std::uint32_t>(vocab_.score(id)));
  }
  return message;
}

}  // namespace detrun
