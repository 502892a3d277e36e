// The use case `replay`: selectors to runs, each run to a verdict, the worst verdict wins. What
// goes wrong in one run is that run's verdict; the others are replayed all the same. Prints
// nothing.
#include <chrono>
#include <string>

#include "detrun/error.h"
#include "detrun/run.h"
#include "detrun/text.h"
#include "run/loaded_model.h"
#include "run/replay_jobs.h"
#include "run/selection.h"

namespace detrun {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kJobsMax = 256;

void check_options(const ReplayOptions& options) {
  if (options.mode != "auto" && options.mode != "step" && options.mode != "parallel") {
    throw_usage("unknown replay mode '" + options.mode + "'", "known are auto, step and parallel");
  }
  if (options.all && !options.selectors.empty()) {
    throw_usage("--all and a run are given together", "give one of them");
  }
  const bool filtered = !options.tags.empty() || !options.since.empty() || !options.sample.empty();
  if (!options.all && !filtered && options.selectors.empty()) {
    throw_usage("no run is given",
                "name a run (number, id, latest), or use --all, --tag, --since or --sample");
  }
  if (options.jobs < 1 || options.jobs > kJobsMax) {
    throw_usage("--jobs " + std::to_string(options.jobs) + " is not from 1 to " +
                std::to_string(kJobsMax));
  }
  check_engine_options(options.engine);
}

}  // namespace

ReplayReport replay(const ReplayOptions& options, const std::atomic<bool>& cancel,
                    Observer& observer) {
  check_options(options);
  const Clock::time_point started = Clock::now();
  const std::int64_t now_ms = unix_time_ms();
  const RunFilter filter(options, now_ms);
  const std::unique_ptr<Ledger> ledger = Ledger::open_for_reading(options.ledger_path);
  Selection selection = select_runs(options, filter, *ledger);

  ReplayReport report;
  report.started_ms = now_ms;
  report.reason = selection.why_empty;
  report.runs = std::move(selection.not_found);
  const bool all_found = report.runs.empty();
  if (selection.runs.empty()) {
    if (selection.empty_shard) report.verdict = Verdict::kReproduced;
    return report;  // otherwise INCONCLUSIVE
  }
  report.verdict = all_found ? Verdict::kReproduced : Verdict::kInconclusive;
  if (options.fail_fast && !all_found) {
    report.not_replayed = std::move(selection.runs);
    return report;
  }
  auto results = replay_runs(options, selection.runs, *ledger, cancel, observer);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i]) {
      report.not_replayed.push_back(selection.runs[i]);
      continue;
    }
    report.verdict = worst(report.verdict, results[i]->verdict);
    report.runs.push_back(std::move(*results[i]));
  }
  if (cancel && !report.not_replayed.empty()) {
    report.verdict = worst(report.verdict, Verdict::kInconclusive);
  }
  report.seconds = std::chrono::duration<double>(Clock::now() - started).count();
  return report;
}

}  // namespace detrun
