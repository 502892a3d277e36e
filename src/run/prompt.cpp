// See prompt.h.
#include "run/prompt.h"

#include <algorithm>
#include <string>

#include "detrun/error.h"
#include "detrun/log.h"

namespace detrun {

std::vector<std::int32_t> encode_prompt(const Tokenizer& tokenizer, std::string_view text, bool bos,
                                        bool special) {
  std::vector<std::int32_t> tokens;
  if (bos) {
    const std::optional<std::int32_t> id = tokenizer.bos();
    DETRUN_CHECK(id.has_value());
    tokens.push_back(*id);
  }
  const std::vector<std::int32_t> ids = tokenizer.encode(text, special);
  tokens.insert(tokens.end(), ids.begin(), ids.end());
  return tokens;
}

std::size_t first_foreign_token(const std::vector<std::int32_t>& tokens, std::int32_t n_vocab) {
  const auto foreign = [&](std::int32_t id) { return id < 0 || id >= n_vocab; };
  return static_cast<std::size_t>(std::find_if(tokens.begin(), tokens.end(), foreign) -
                                  tokens.begin());
}

Prompt prepare_prompt(const RecordOptions& options, const Tokenizer& tokenizer) {
  Prompt prompt;
  if (options.tokens) {
    prompt.tokens = *options.tokens;
    const std::size_t bad = first_foreign_token(prompt.tokens, tokenizer.n_vocab());
    if (bad < prompt.tokens.size()) {
      throw_usage("token " + std::to_string(bad) + " of the prompt is " +
                      std::to_string(prompt.tokens[bad]) + ", the vocabulary has ids 0 to " +
                      std::to_string(tokenizer.n_vocab() - 1),
                  "detrun tokenize shows the ids of a text");
    }
    if (prompt.tokens.empty()) {
      throw_usage("the list of tokens is empty: the model has nothing to start from",
                  "give at least one id");
    }
    return prompt;
  }
  prompt.bos = tokenizer.adds_bos() && tokenizer.bos().has_value();
  prompt.tokens = encode_prompt(tokenizer, options.prompt, prompt.bos, false);
  if (prompt.tokens.empty()) {
    throw_usage("the prompt is empty and this model adds no begin token: nothing to start from",
                "give a prompt, or --tokens with at least one id");
  }
  return prompt;
}

std::uint32_t choose_context(std::uint32_t asked, const ModelSpec& spec) {
  if (asked == 0) return std::clamp(spec.n_ctx_train, 1U, kDefaultCtxMax);
  if (asked > spec.n_ctx_train) {
    log_warning("a context of " + std::to_string(asked) + " tokens is longer than the " +
                std::to_string(spec.n_ctx_train) + " the model was trained for");
  }
  return asked;
}

void check_prompt_fits(std::size_t n_tokens, std::uint32_t n_ctx, std::uint32_t n_ctx_train) {
  if (n_tokens <= n_ctx) return;
  throw_usage("the prompt has " + std::to_string(n_tokens) + " tokens, the context holds " +
                  std::to_string(n_ctx),
              "shorten the prompt or give a larger --ctx (the model was trained for " +
                  std::to_string(n_ctx_train) + ")");
}

}  // namespace detrun
