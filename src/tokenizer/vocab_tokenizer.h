// What both kinds of tokenizer answer the same way, from their vocabulary; and the message that
// their digests cover. Not a front door: others see detrun::Tokenizer only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/vocab.h"

namespace detrun {

class VocabTokenizer : public Tokenizer {
 public:
  std::int32_t n_vocab() const override { return vocab_.size(); }
  TokenKind token_kind(std::int32_t id) const override;
  std::optional<std::int32_t> bos() const override { return vocab_.special().bos; }
  bool adds_bos() const override { return adds_bos_; }
  bool is_end(std::int32_t id) const override;

 protected:
  /// `default_adds_bos`: what the kind does when `tokenizer.ggml.add_bos_token` is absent.
  VocabTokenizer(const ModelFile& file, std::string_view kind, bool default_adds_bos);

  const Vocab& vocab() const { return vocab_; }
  /// Kind, BOS rule, special ids and every token: the first part of the digest's message.
  std::string digest_message() const;

 private:
  Vocab vocab_;
  bool adds_bos_;
};

/// Appends to a digest's message: a number as 8 bytes little-endian; a text with its length before.
void put_u64(std::string& message, std::uint64_t value);
void put_text(std::string& message, std::string_view text);

std::unique_ptr<Tokenizer> make_llama_tokenizer(const ModelFile& file);
std::unique_ptr<Tokenizer> make_gpt2_tokenizer(const ModelFile& file);

}  // namespace detrun
