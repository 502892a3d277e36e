// Prefill and the step loop. While the forward pass of one step runs, the row of the step before
// is hashed beside it. The loop reuses its buffers: beyond the bytes of a piece it allocates
// nothing. A step with logits that are not finite is an error and is never delivered.
#include <algorithm>
#include <span>
#include <vector>

#include "detrun/engine.h"
#include "detrun/error.h"
#include "engine/delivery.h"
#include "engine/row_reader.h"

namespace detrun {
namespace {

/// One forward whose errors name the step that could not be computed.
void forward_for_step(Context& context, std::span<const std::int32_t> tokens, RowReader& rows,
                      std::uint32_t n_rows, std::uint64_t step) {
  try {
    context.forward(tokens, n_rows, rows);
  } catch (const Error& error) {
    throw naming_step(error, step);
  }
}

/// Returns false when cancelled. `rows` gets the row of the last prompt token.
bool prefill(Context& context, const std::vector<std::int32_t>& prompt,
             const std::atomic<bool>& cancel, RowReader& rows,
             const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  const std::span<const std::int32_t> tokens(prompt);
  for (std::size_t done = 0; done < tokens.size();) {
    if (cancel.load(std::memory_order_relaxed)) return false;
    const std::size_t n = std::min<std::size_t>(context.max_rows(), tokens.size() - done);
    const bool is_last = done + n == tokens.size();
    forward_for_step(context, tokens.subspan(done, n), rows, is_last ? 1 : 0, 0);
    done += n;
    if (progress) progress(done, tokens.size());
  }
  return true;
}

/// The token of the row handed over last, when the forward pass after it may begin before its step
/// was delivered. The first step is always delivered at once; a step that ends the run has no pass
/// after it.
std::optional<std::int32_t> token_to_run_ahead(const RowReader& rows, const Delivery& delivery) {
  if (!rows.reads_beside() || delivery.next_step() == 0) return std::nullopt;
  const std::optional<std::int32_t> token = greedy_token(rows.last_rows());
  return token && !delivery.ends_with(*token) ? token : std::nullopt;
}

/// The forward pass of the step after the next one, then the delivery of the next one, which comes
/// first whatever goes wrong in the pass.
std::optional<StopReason> run_ahead(Context& context, std::int32_t token, RowReader& rows,
                                    Delivery& delivery) {
  try {
    forward_for_step(context, std::span(&token, 1), rows, 1, delivery.next_step() + 1);
  } catch (const Error&) {
    if (const auto reason = delivery.deliver(rows.take())) return reason;
    throw;
  }
  return delivery.deliver(rows.take());
}

}  // namespace

StopReason generate(Context& context, const Model& model, const Tokenizer& tokenizer,
                    const GenerateRequest& request, const std::atomic<bool>& cancel, StepSink& sink,
                    const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  DETRUN_CHECK(context.position() == 0);
  check_request(request, context, model);
  if (request.max_steps == 0U) return StopReason::kLength;

  RowReader rows(model.spec().n_vocab, 1, 2);
  if (!prefill(context, request.prompt_tokens, cancel, rows, progress)) {
    return StopReason::kCancelled;
  }
  Delivery delivery(tokenizer, request, context.n_ctx(), cancel, sink);
  for (;;) {
    if (const auto token = token_to_run_ahead(rows, delivery)) {
      if (const auto reason = run_ahead(context, *token, rows, delivery)) return *reason;
      continue;
    }
    const RowFinding& row = rows.take();
    const std::int32_t token = row.choice.token;
    if (const auto reason = delivery.deliver(row)) return *reason;
    forward_for_step(context, std::span(&token, 1), rows, 1, delivery.next_step());
  }
}

}  // namespace detrun
