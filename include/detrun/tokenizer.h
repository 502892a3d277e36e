// Text to token ids and back, from the vocabulary in a model file. Ids never depend on locale,
// threads or library tables beyond those pinned here.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "detrun/digest.h"
#include "detrun/model_file.h"

namespace detrun {

enum class TokenKind : std::uint8_t { kNormal, kUnknown, kControl, kUserDefined, kUnused, kByte };

class Tokenizer {
 public:
  /// Builds the tokenizer that `tokenizer.ggml.model` names: "llama" (SentencePiece BPE) or "gpt2"
  /// (byte-level BPE, pre-tokenizer by `tokenizer.ggml.pre`). Error kUsage for another kind (named)
  /// and for vocabularies whose arrays disagree in length or whose ids are out of range.
  static std::unique_ptr<Tokenizer> create(const ModelFile& file);
  virtual ~Tokenizer() = default;

  virtual std::string_view kind() const = 0;  ///< "llama" or "gpt2"
  virtual std::int32_t n_vocab() const = 0;

  /// Ids of the text, no BOS or EOS added. `text` may hold any bytes; equal bytes, equal ids.
  /// Control tokens spelled in the text stay literal unless `parse_special`.
  virtual std::vector<std::int32_t> encode(std::string_view text, bool parse_special) const = 0;

  /// Bytes of one token in the middle of a text. Control tokens have none unless `show_control`.
  virtual std::string piece(std::int32_t id, bool show_control = false) const = 0;
  /// Bytes of a whole sequence from its start (a SentencePiece dummy prefix space is taken off).
  std::string decode(const std::vector<std::int32_t>& ids, bool show_control = false) const;

  /// True when a text that starts with this token's piece loses the piece's leading space
  /// (SentencePiece models that add a dummy prefix).
  virtual bool strips_leading_space() const = 0;

  virtual TokenKind token_kind(std::int32_t id) const = 0;
  virtual std::optional<std::int32_t> bos() const = 0;
  virtual bool adds_bos() const = 0;  ///< as the file says; Llama SPM: true when it is silent
  /// True for every token that ends generation (EOS, EOT and other end-of-generation ids).
  virtual bool is_end(std::int32_t id) const = 0;

  /// SHA-256 over every vocabulary entry and option that encode or decode depends on.
  virtual Sha256Digest digest() const = 0;
};

/// Bytes of generated tokens, one at a time, given what came before. The concatenation of all
/// results equals decode(prompt + tokens) without decode(prompt).
class PieceStream {
 public:
  PieceStream(const Tokenizer& tokenizer, const std::vector<std::int32_t>& prompt);
  std::string next(std::int32_t id);

 private:
  const Tokenizer& tokenizer_;
  bool at_text_start_;
};

}  // namespace detrun
