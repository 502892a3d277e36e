// Prefill and the step loop. The loop reuses its buffers: beyond the bytes of a piece it allocates
// nothing. A step with logits that are not finite is an error and is never delivered.
#include <algorithm>
#include <bit>
#include <span>
#include <string>
#include <vector>

#include "detrun/backend.h"
#include "detrun/digest.h"
#include "detrun/engine.h"
#include "detrun/error.h"
#include "detrun/sampler.h"

namespace detrun {
namespace {

static_assert(std::endian::native == std::endian::little,
              "logits are hashed as they lie in memory: little-endian hosts only");

void check_ids(const std::vector<std::int32_t>& ids, std::uint32_t n_vocab) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && static_cast<std::uint32_t>(ids[i]) < n_vocab) continue;
    throw_usage("prompt token " + std::to_string(i) + " is id " + std::to_string(ids[i]) +
                ", the model's vocabulary has ids 0 to " + std::to_string(n_vocab - 1));
  }
}

void check_request(const GenerateRequest& request, const Context& context, const Model& model) {
  const std::size_t n_prompt = request.prompt_tokens.size();
  if (n_prompt == 0) {
    throw_usage("the prompt has no tokens and the model adds none",
                "give a text with -p or ids with --tokens");
  }
  if (n_prompt > context.n_ctx()) {
    throw_usage("the prompt has " + std::to_string(n_prompt) + " tokens, the context holds " +
                    std::to_string(context.n_ctx()),
                "use a larger --ctx or a shorter prompt");
  }
  check_ids(request.prompt_tokens, model.spec().n_vocab);
}

/// One forward whose errors name the step that could not be computed.
void forward_for_step(Context& context, std::span<const std::int32_t> tokens,
                      std::span<float> logits, std::uint64_t step) {
  try {
    context.forward(tokens, logits.empty() ? 0 : 1, logits);
  } catch (const Error& error) {
    throw Error(error.kind(), "step " + std::to_string(step) + ": " + error.what(), error.hint());
  }
}

/// Returns false when cancelled. `logits` gets the row of the last prompt token.
bool prefill(Context& context, const std::vector<std::int32_t>& prompt,
             const std::atomic<bool>& cancel, std::span<float> logits,
             const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  const std::span<const std::int32_t> tokens(prompt);
  for (std::size_t done = 0; done < tokens.size();) {
    if (cancel.load(std::memory_order_relaxed)) return false;
    const std::size_t n = std::min<std::size_t>(context.max_rows(), tokens.size() - done);
    const bool is_last = done + n == tokens.size();
    forward_for_step(context, tokens.subspan(done, n), is_last ? logits : logits.first(0), 0);
    done += n;
    if (progress) progress(done, tokens.size());
  }
  return true;
}

/// Everything of a step but its piece. A foreign shared object may have switched subnormals off in
/// this thread since the last step: the contract's control register holds for the choice too.
void choose_step(std::span<const float> logits, std::uint64_t index, StepRecord& step) {
  const FpControlScope fp_control;
  if (const auto bad = first_non_finite_logit(logits)) {
    throw_internal("the logits of step " + std::to_string(index) +
                   " are not finite (first at token id " + std::to_string(*bad) +
                   "); no token was chosen");
  }
  const Choice choice = choose_greedy(logits);
  step.index = index;
  step.token = choice.token;
  step.logits_xxh3 = hash_logits(logits);
  step.margin_bits = choice.margin_bits;
  step.logprob_bits = choice.logprob_bits;
}

}  // namespace

std::string_view stop_reason_name(StopReason reason) {
  switch (reason) {
    case StopReason::kEnd:
      return "end";
    case StopReason::kLength:
      return "length";
    case StopReason::kContext:
      return "context";
    case StopReason::kCancelled:
      return "cancelled";
    case StopReason::kSink:
      return "closed";
  }
  DETRUN_CHECK(false);
}

Xxh3Digest hash_logits(std::span<const float> logits) { return xxh3_128(std::as_bytes(logits)); }

StopReason generate(Context& context, const Model& model, const Tokenizer& tokenizer,
                    const GenerateRequest& request, const std::atomic<bool>& cancel, StepSink& sink,
                    const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  DETRUN_CHECK(context.position() == 0);
  check_request(request, context, model);
  if (request.max_steps == 0U) return StopReason::kLength;

  std::vector<float> logits(model.spec().n_vocab);
  if (!prefill(context, request.prompt_tokens, cancel, logits, progress)) {
    return StopReason::kCancelled;
  }
  PieceStream pieces(tokenizer, request.prompt_tokens);
  StepRecord step{};
  for (std::uint64_t index = 0;; ++index) {
    choose_step(logits, index, step);
    step.piece = pieces.next(step.token);
    if (!sink.on_step(step)) return StopReason::kSink;
    if (tokenizer.is_end(step.token)) return StopReason::kEnd;
    if (request.max_steps && index + 1 >= *request.max_steps) return StopReason::kLength;
    if (cancel.load(std::memory_order_relaxed)) return StopReason::kCancelled;
    if (context.position() >= context.n_ctx()) return StopReason::kContext;
    forward_for_step(context, std::span(&step.token, 1), logits, index + 1);
  }
}

}  // namespace detrun
