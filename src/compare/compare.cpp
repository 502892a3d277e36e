// Two runs to a verdict. Pure: no execution, no I/O. Only bits are compared; nothing is "close".
#include "detrun/compare.h"

#include <algorithm>

namespace detrun {
namespace {

/// Worst last: the order in which one verdict of many wins.
int severity(Verdict verdict) {
  switch (verdict) {
    case Verdict::kReproduced:
      return 0;
    case Verdict::kInconclusive:
      return 1;
    case Verdict::kDiverged:
      return 2;
    case Verdict::kInternal:
      return 3;
    case Verdict::kTampered:
      return 4;
  }
  DETRUN_CHECK(false);
}

std::string token_pair(std::optional<std::int32_t> recorded, std::optional<std::int32_t> replayed) {
  return "recorded " + (recorded ? std::to_string(*recorded) : "none") + ", replayed " +
         (replayed ? std::to_string(*replayed) : "none");
}

}  // namespace

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kReproduced:
      return "REPRODUCED";
    case Verdict::kDiverged:
      return "DIVERGED";
    case Verdict::kInconclusive:
      return "INCONCLUSIVE";
    case Verdict::kTampered:
      return "TAMPERED";
    case Verdict::kInternal:
      return "ERROR";
  }
  DETRUN_CHECK(false);
}

ExitCode verdict_exit_code(Verdict verdict) {
  switch (verdict) {
    case Verdict::kReproduced:
      return ExitCode::kOk;
    case Verdict::kDiverged:
      return ExitCode::kDiverged;
    case Verdict::kInconclusive:
      return ExitCode::kInconclusive;
    case Verdict::kTampered:
      return ExitCode::kTampered;
    case Verdict::kInternal:
      return ExitCode::kInternal;
  }
  DETRUN_CHECK(false);
}

Verdict worst(Verdict a, Verdict b) { return severity(a) >= severity(b) ? a : b; }

bool StepComparer::compare(const StepRecord& recorded, const StepRecord& replayed) {
  ++steps_checked_;
  const bool hash_equal = recorded.logits_xxh3 == replayed.logits_xxh3;
  if (!hash_equal && !first_logits_) first_logits_ = replayed.index;
  if (hash_equal && !first_value_ &&
      (recorded.margin_bits != replayed.margin_bits ||
       recorded.logprob_bits != replayed.logprob_bits)) {
    first_value_ = replayed.index;
  }
  if (recorded.token != replayed.token && !first_token_) {
    first_token_ = replayed.index;
    recorded_token_ = recorded.token;
    replayed_token_ = replayed.token;
  }
  return !first_token_;
}

void StepComparer::length_differs(std::uint64_t step, std::optional<std::int32_t> recorded,
                                  std::optional<std::int32_t> replayed) {
  if (first_token_) return;
  first_token_ = step;
  recorded_token_ = recorded;
  replayed_token_ = replayed;
}

std::string StepComparer::describe() const {
  std::string text;
  const auto clause = [&text](const std::string& words) {
    text += (text.empty() ? "" : ", ") + words;
  };
  if (first_logits_) clause("logits differ at step " + std::to_string(*first_logits_));
  if (first_value_) {
    clause("margin or log probability differs at step " + std::to_string(*first_value_) +
           " although the logits are equal");
  }
  if (first_token_) {
    const std::string at = "step " + std::to_string(*first_token_);
    const std::string pair = " (" + token_pair(recorded_token_, replayed_token_) + ")";
    if (!recorded_token_) {
      clause("the recording ends before " + at + ", the replay does not" + pair);
    } else if (!replayed_token_) {
      clause("the replay ends before " + at + ", the recording does not" + pair);
    } else {
      const bool logits_differ_too = first_logits_ && *first_logits_ <= *first_token_;
      clause("token first differs at " + at + pair +
             (logits_differ_too ? "" : " although the logits are equal"));
    }
  } else if (!text.empty()) {
    clause("tokens are equal");
  }
  return text;
}

}  // namespace detrun
