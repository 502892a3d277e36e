// See delivery.h. One step record is used for all steps: beyond the bytes of a piece nothing is
// allocated.
#include "engine/delivery.h"

#include <vector>

namespace detrun {
namespace {

void check_ids(const std::vector<std::int32_t>& ids, std::uint32_t n_vocab) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && static_cast<std::uint32_t>(ids[i]) < n_vocab) continue;
    throw_usage("prompt token " + std::to_string(i) + " is id " + std::to_string(ids[i]) +
                ", the model's vocabulary has ids 0 to " + std::to_string(n_vocab - 1));
  }
}

}  // namespace

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

Error naming_step(const Error& error, std::uint64_t step) {
  return {error.kind(), "step " + std::to_string(step) + ": " + error.what(), error.hint()};
}

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

Delivery::Delivery(const Tokenizer& tokenizer, const GenerateRequest& request, std::uint32_t n_ctx,
                   const std::atomic<bool>& cancel, StepSink& sink)
    : tokenizer_(tokenizer),
      request_(request),
      n_ctx_(n_ctx),
      cancel_(cancel),
      sink_(sink),
      pieces_(tokenizer, request.prompt_tokens) {}

/// The position after this step's lies beyond the context.
bool Delivery::fills_context(std::uint64_t index) const {
  return request_.prompt_tokens.size() + index >= n_ctx_;
}

std::optional<StopReason> Delivery::reason_to_end(std::uint64_t index, std::int32_t token) const {
  if (tokenizer_.is_end(token)) return StopReason::kEnd;
  if (request_.max_steps && index + 1 >= *request_.max_steps) return StopReason::kLength;
  if (fills_context(index)) return StopReason::kContext;
  return std::nullopt;
}

std::optional<StopReason> Delivery::deliver(const RowFinding& row) {
  const std::uint64_t index = next_;
  if (row.not_finite) {
    throw_internal("the logits of step " + std::to_string(index) +
                   " are not finite (first at token id " + std::to_string(*row.not_finite) +
                   "); no token was chosen");
  }
  step_.index = index;
  step_.token = row.choice.token;
  step_.logits_xxh3 = row.xxh3;
  step_.margin_bits = row.choice.margin_bits;
  step_.logprob_bits = row.choice.logprob_bits;
  step_.piece = pieces_.next(step_.token);
  ++next_;
  if (!sink_.on_step(step_)) return StopReason::kSink;
  const std::optional<StopReason> reason = reason_to_end(index, step_.token);
  // Being cancelled comes before a full context and after everything else.
  const bool may_go_on = !reason || reason == StopReason::kContext;
  if (may_go_on && cancel_.load(std::memory_order_relaxed)) return StopReason::kCancelled;
  return reason;
}

}  // namespace detrun
