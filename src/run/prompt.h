// A prompt's way to tokens: bytes as given, no escape processing, no newline dropped.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "detrun/model.h"
#include "detrun/run.h"
#include "detrun/tokenizer.h"

namespace detrun {

struct Prompt {
  std::vector<std::int32_t> tokens;  ///< as the model sees them, never empty
  bool bos = false;                  ///< a begin token was put first
};

/// Tokens of a text, a begin token first when `bos`; the caller knows that the vocabulary has one.
/// Control tokens spelled in it stay text unless `special`; those of a run always do.
std::vector<std::int32_t> encode_prompt(const Tokenizer& tokenizer, std::string_view text, bool bos,
                                        bool special);

/// The tokens of `options`: given ones as they are, else those of the text. Error kUsage: an id out
/// of the vocabulary (index and id named), nothing at all to start from.
Prompt prepare_prompt(const RecordOptions& options, const Tokenizer& tokenizer);

/// The context of a run: `asked` tokens (a warning where the model was trained for fewer), or for 0
/// the model's own, at most kDefaultCtxMax.
std::uint32_t choose_context(std::uint32_t asked, const ModelSpec& spec);
/// Error kUsage when a prompt of `n_tokens` does not fit.
void check_prompt_fits(std::size_t n_tokens, std::uint32_t n_ctx, std::uint32_t n_ctx_train);

/// Index of the first id outside the vocabulary, or the number of ids.
std::size_t first_foreign_token(const std::vector<std::int32_t>& tokens, std::int32_t n_vocab);

}  // namespace detrun
