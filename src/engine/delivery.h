// What generate() and teacher_force() share: what a request must be, what a row becomes as a step,
// and which of the stop reasons comes first. Internal to the room.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "detrun/engine.h"
#include "detrun/error.h"
#include "engine/row_reader.h"

namespace detrun {

/// The usage errors of generate().
void check_request(const GenerateRequest& request, const Context& context, const Model& model);

/// `error` with the step that it kept from being computed in front.
Error naming_step(const Error& error, std::uint64_t step);

/// Makes steps of rows, one after another from step 0, and hands them to the sink.
class Delivery {
 public:
  /// All outlive the object.
  Delivery(const Tokenizer& tokenizer, const GenerateRequest& request, std::uint32_t n_ctx,
           const std::atomic<bool>& cancel, StepSink& sink);

  std::uint64_t next_step() const { return next_; }
  /// The run ends with the next step when it chose this token, whatever the sink says.
  bool ends_with(std::int32_t token) const { return reason_to_end(next_, token).has_value(); }
  /// Hands the next step over. Why the run ends with it, or nothing. Error kInternal, naming the
  /// step, for logits that are not finite: that step is not handed over.
  std::optional<StopReason> deliver(const RowFinding& row);

 private:
  std::optional<StopReason> reason_to_end(std::uint64_t index, std::int32_t token) const;
  bool fills_context(std::uint64_t index) const;

  const Tokenizer& tokenizer_;
  const GenerateRequest& request_;
  const std::uint32_t n_ctx_;
  const std::atomic<bool>& cancel_;
  StepSink& sink_;
  PieceStream pieces_;
  StepRecord step_{};
  std::uint64_t next_ = 0;
};

}  // namespace detrun
