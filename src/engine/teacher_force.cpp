// The steps of a recorded run from one teacher-forced pass: rows are independent, so a chunk of
// recorded tokens has the logits that generate() would have computed one at a time. Where a chunk
// cannot be computed its rows are tried one at a time, so that what came first is found first.
#include <algorithm>
#include <span>
#include <vector>

#include "detrun/engine.h"
#include "detrun/error.h"
#include "engine/delivery.h"
#include "engine/row_reader.h"

namespace detrun {
namespace {

/// Steps that generate() makes at most while every step chooses its recorded token: one more than
/// recorded, less where a token, the length or the context ends the run. A token that the
/// vocabulary does not have can only be missed: no step follows its own.
std::uint64_t steps_to_make(std::span<const std::int32_t> recorded, const GenerateRequest& request,
                            std::uint32_t n_ctx, const Tokenizer& tokenizer,
                            std::uint32_t n_vocab) {
  std::uint64_t limit = n_ctx - request.prompt_tokens.size() + 1;
  if (request.max_steps) limit = std::min(limit, *request.max_steps);
  for (std::size_t i = 0; i < recorded.size() && i < limit; ++i) {
    const std::int32_t token = recorded[i];
    const bool known = token >= 0 && static_cast<std::uint32_t>(token) < n_vocab;
    if (!known || tokenizer.is_end(token)) return i + 1;
  }
  return std::min<std::uint64_t>(limit, recorded.size() + 1);
}

class TeacherForcing {
 public:
  TeacherForcing(Context& context, const Model& model, const Tokenizer& tokenizer,
                 const GenerateRequest& request, std::span<const std::int32_t> recorded,
                 const std::atomic<bool>& cancel, StepSink& sink)
      : context_(context),
        prompt_(request.prompt_tokens),
        recorded_(recorded),
        cancel_(cancel),
        n_rows_(prompt_.size() - 1 +
                steps_to_make(recorded, request, context.n_ctx(), tokenizer, model.spec().n_vocab)),
        rows_(model.spec().n_vocab, block_rows(), context.max_rows() + 2 * block_rows()),
        delivery_(tokenizer, request, context.n_ctx(), cancel, sink) {
    tokens_.reserve(context.max_rows());
  }

  StopReason run(const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
    for (std::uint64_t begin = 0; begin < n_rows_;) {
      if (cancel_.load(std::memory_order_relaxed)) return StopReason::kCancelled;
      const std::uint64_t end = std::min<std::uint64_t>(begin + context_.max_rows(), n_rows_);
      if (const auto reason = run_chunk(begin, end)) return *reason;
      if (progress && begin < prompt_.size()) {
        progress(std::min<std::uint64_t>(end, prompt_.size()), prompt_.size());
      }
      begin = end;
    }
    const auto reason = deliver(Which::kAll);
    DETRUN_CHECK(reason.has_value());  // the last row to make ends the run or is no recorded step
    return *reason;
  }

 private:
  enum class Which { kReady, kAll };

  /// Rows of the first step and after it.
  std::uint64_t first_wanted() const { return prompt_.size() - 1; }

  std::uint32_t block_rows() const {
    const std::uint64_t wanted = n_rows_ - first_wanted();
    const std::uint64_t most = std::min(context_.max_rows(), kLogitRowsMax);
    return static_cast<std::uint32_t>(std::min(wanted, most));
  }

  /// Feeds rows [begin, end); the rows from `wanted` on are handed over.
  void forward(std::uint64_t begin, std::uint64_t end, std::uint64_t wanted) {
    tokens_.clear();
    for (std::uint64_t row = begin; row < end; ++row) {
      tokens_.push_back(row < prompt_.size() ? prompt_[row] : recorded_[row - prompt_.size()]);
    }
    const std::uint64_t first = std::clamp(wanted, begin, end);
    context_.forward(tokens_, static_cast<std::uint32_t>(end - first), rows_);
  }

  /// Hands steps to the sink. Steps that are not read yet, two blocks at most, may wait until the
  /// next chunk was computed beside the reading.
  std::optional<StopReason> deliver(Which which) {
    while (rows_.pending() > 0 && (which == Which::kAll || rows_.ready())) {
      const std::uint64_t index = delivery_.next_step();
      const RowFinding& row = rows_.take();
      const std::int32_t token = row.choice.token;
      if (const auto reason = delivery_.deliver(row)) return reason;
      if (index >= recorded_.size() || recorded_[index] != token) return StopReason::kSink;
    }
    return std::nullopt;
  }

  std::optional<StopReason> run_chunk(std::uint64_t begin, std::uint64_t end) {
    try {
      forward(begin, end, first_wanted());
    } catch (const Error&) {
      return run_one_by_one(begin, end);
    }
    return deliver(Which::kReady);
  }

  /// What generate() does with these rows: the rest of the prompt, then one row after another. Rows
  /// that were handed over before the chunk failed are good.
  std::optional<StopReason> run_one_by_one(std::uint64_t begin, std::uint64_t end) {
    if (const auto reason = deliver(Which::kAll)) return reason;
    while (begin < end) {
      const std::uint64_t wanted = first_wanted() + delivery_.next_step();
      const std::uint64_t next =
          begin < prompt_.size() ? std::min<std::uint64_t>(end, prompt_.size()) : begin + 1;
      try {
        forward(begin, next, wanted);
      } catch (const Error& error) {
        throw naming_step(error, next - std::min<std::uint64_t>(next, prompt_.size()));
      }
      if (const auto reason = deliver(Which::kAll)) return reason;
      begin = next;
    }
    return std::nullopt;
  }

  Context& context_;
  const std::vector<std::int32_t>& prompt_;
  std::span<const std::int32_t> recorded_;
  const std::atomic<bool>& cancel_;
  const std::uint64_t n_rows_;  ///< tokens to feed
  RowReader rows_;
  Delivery delivery_;
  std::vector<std::int32_t> tokens_;  ///< of one chunk
};

}  // namespace

StopReason teacher_force(Context& context, const Model& model, const Tokenizer& tokenizer,
                         const GenerateRequest& request, std::span<const std::int32_t> recorded,
                         const std::atomic<bool>& cancel, StepSink& sink,
                         const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  DETRUN_CHECK(context.position() == 0);
  check_request(request, context, model);
  if (request.max_steps == 0U) return StopReason::kLength;
  return TeacherForcing(context, model, tokenizer, request, recorded, cancel, sink).run(progress);
}

}  // namespace detrun
