// Prefill and the step loop: tokens in, steps out. Knows nothing of ledgers.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "detrun/model.h"
#include "detrun/tokenizer.h"
#include "detrun/trace.h"

namespace detrun {

enum class StopReason {
  kEnd,        ///< an end token was chosen (it is a step)
  kLength,     ///< max_steps reached
  kContext,    ///< the context is full
  kCancelled,  ///< `cancel` became true (Ctrl-C)
  kSink,       ///< the sink asked to stop (closed pipe, first difference found)
};

/// "end", "length", "context", "cancelled", "closed".
std::string_view stop_reason_name(StopReason reason);

struct GenerateRequest {
  std::vector<std::int32_t> prompt_tokens;  ///< at least one, BOS included, fits the context
  std::optional<std::uint64_t> max_steps;   ///< nullopt: until an end token or a full context
};

/// Receives every step, in order, in the caller's thread. Returning false ends the run with kSink
/// after this step.
class StepSink {
 public:
  virtual ~StepSink() = default;
  virtual bool on_step(const StepRecord& step) = 0;
};

/// Runs one request in a fresh or reset context. After each step the first of these ends the run:
/// kSink, kEnd, kLength, kCancelled, kContext. max_steps 0 computes nothing and is kLength.
/// With a large vocabulary rows are hashed beside the next forward pass: a step may then reach the
/// sink after the pass of the step behind it was computed, which is then dropped if the run ends.
/// Error kUsage before anything is computed: an empty prompt, one longer than the context, an id
/// outside the vocabulary. Error kInternal naming the step when it cannot be computed or its
/// logits are not finite: that step is not delivered, earlier ones were. `progress` (may be empty)
/// gets prompt tokens done and total after each chunk of prefill; chunks are context.max_rows()
/// tokens and have no influence on bits.
StopReason generate(Context& context, const Model& model, const Tokenizer& tokenizer,
                    const GenerateRequest& request, const std::atomic<bool>& cancel, StepSink& sink,
                    const std::function<void(std::uint64_t, std::uint64_t)>& progress = {});

/// The steps of a recorded run, many positions a forward pass: feeds prompt and `recorded` tokens
/// in chunks of context.max_rows() and makes the steps, stop reasons and errors of generate() as
/// long as every step chooses its recorded token. The first step that chooses another, and a step
/// behind the recorded ones, is the last: kSink, unless it ends the run of its own. What comes
/// behind it has no influence, computable or not. `recorded` may hold any values. Memory does not
/// grow with its length.
StopReason teacher_force(Context& context, const Model& model, const Tokenizer& tokenizer,
                         const GenerateRequest& request, std::span<const std::int32_t> recorded,
                         const std::atomic<bool>& cancel, StepSink& sink,
                         const std::function<void(std::uint64_t, std::uint64_t)>& progress = {});

/// XXH3-128 of a row of logits as little-endian binary32 (contract clause 13).
Xxh3Digest hash_logits(std::span<const float> logits);

}  // namespace detrun
