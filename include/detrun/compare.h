// Two runs to a verdict: pure comparison, no execution.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "detrun/error.h"
#include "detrun/trace.h"

namespace detrun {

enum class Verdict { kReproduced, kDiverged, kInconclusive, kTampered, kInternal };

/// "REPRODUCED", "DIVERGED", "INCONCLUSIVE", "TAMPERED", "ERROR".
std::string_view verdict_name(Verdict verdict);
ExitCode verdict_exit_code(Verdict verdict);
/// The worse of two in the order TAMPERED, ERROR, DIVERGED, INCONCLUSIVE, REPRODUCED.
Verdict worst(Verdict a, Verdict b);

/// Feeds pairs of steps; remembers the first logits difference and the first token difference.
class StepComparer {
 public:
  /// Returns false once the tokens differ: nothing after it can be compared.
  bool compare(const StepRecord& recorded, const StepRecord& replayed);
  /// The replay goes on where the recording ended, or the reverse (nullopt token: no such step).
  void length_differs(std::uint64_t step, std::optional<std::int32_t> recorded,
                      std::optional<std::int32_t> replayed);

  std::uint64_t steps_checked() const { return steps_checked_; }
  std::optional<std::uint64_t> first_logits_difference() const { return first_logits_; }
  std::optional<std::uint64_t> first_token_difference() const { return first_token_; }
  std::optional<std::int32_t> recorded_token() const { return recorded_token_; }
  std::optional<std::int32_t> replayed_token() const { return replayed_token_; }
  bool equal() const { return !first_logits_ && !first_token_ && !first_value_; }
  /// Hash equal but the stored margin or log probability is not: step of the first such pair.
  std::optional<std::uint64_t> first_value_difference() const { return first_value_; }
  /// One sentence: "logits differ at step 12, token first differs at step 15 (recorded 5, replayed
  /// 9)", "logits differ at step 12, tokens are equal", ...; empty when equal.
  std::string describe() const;

 private:
  std::uint64_t steps_checked_ = 0;
  std::optional<std::uint64_t> first_logits_, first_token_, first_value_;
  std::optional<std::int32_t> recorded_token_, replayed_token_;
};

}  // namespace detrun
