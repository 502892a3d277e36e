// See line_claims.h. A sealed run stays as it is, so it is looked at once.
#include "run/line_claims.h"

namespace detrun {

LineClaims::LineClaims(Ledger& ledger, const Sha256Digest& file) : ledger_(ledger), file_(file) {
  look();
}

/// Runs that came since the last look.
void LineClaims::look() {
  const LineRuns found = ledger_.runs_of_prompts(file_, seen_up_to_);
  seen_up_to_ = found.highest;
  for (const LineRun& run : found.runs) {
    const RunState state = ledger_.state(run.number);
    if (state == RunState::kFinished) done_.insert(run.line);
    if (state == RunState::kLive || state == RunState::kInterrupted) {
      open_[run.line].push_back(run.number);
    }
  }
}

LineClaims::Claim LineClaims::state_of(std::int64_t line) {
  look();
  bool live = false;
  if (const auto found = open_.find(line); found != open_.end()) {
    std::erase_if(found->second, [&](std::int64_t number) {
      const RunState state = ledger_.state(number);
      live = live || state == RunState::kLive;
      if (state == RunState::kFinished) done_.insert(line);
      return state != RunState::kLive && state != RunState::kInterrupted;
    });
  }
  if (done_.contains(line)) return Claim::kDone;
  return live ? Claim::kTaken : Claim::kBegun;
}

LineClaims::Result LineClaims::begin(std::uint64_t line, const FieldMap& start_fields) {
  Result result{Claim::kBegun, nullptr};
  result.writer = ledger_.begin_run_if(start_fields, [&] {
    result.claim = state_of(static_cast<std::int64_t>(line));
    return result.claim == Claim::kBegun;
  });
  return result;
}

}  // namespace detrun
