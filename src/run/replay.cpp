// The use case `replay`: selectors to runs, each run to a verdict, the worst verdict wins. What
// goes wrong in one run is that run's verdict; the others are replayed all the same. Prints
// nothing.
#include <algorithm>
#include <exception>
#include <string>

#include "detrun/error.h"
#include "detrun/run.h"
#include "detrun/text.h"
#include "run/model_cache.h"
#include "run/replay_one.h"

namespace detrun {
namespace {

void check_options(const ReplayOptions& options) {
  if (options.mode == "parallel") {
    throw_usage("this build replays step by step only", "use --mode step");
  }
  if (options.mode != "auto" && options.mode != "step") {
    throw_usage("unknown replay mode '" + options.mode + "'", "known are auto and step");
  }
  if (options.all && !options.selectors.empty()) {
    throw_usage("--all and a run are given together", "give one of them");
  }
  if (!options.all && options.selectors.empty()) {
    throw_usage("no run is given", "name a run (number, id, latest) or use --all");
  }
  check_engine_options(options.engine);
}

/// Runs to replay, each once, in the order given; and selectors that no run answers to.
struct Selection {
  std::vector<RunRef> runs;
  std::vector<ReplayRun> not_found;
};

Selection select(const ReplayOptions& options, const Ledger& ledger) {
  Selection selection;
  if (options.all) {
    selection.runs = ledger.runs();
    return selection;
  }
  for (const std::string& selector : options.selectors) {
    const std::optional<RunRef> ref = ledger.resolve(selector);
    if (!ref) {
      ReplayRun missing;
      missing.reason = "no run '" + escape_for_terminal(selector) + "' in " + ledger.path() +
                       "; detrun list shows what it holds";
      selection.not_found.push_back(std::move(missing));
    } else if (std::none_of(selection.runs.begin(), selection.runs.end(),
                            [&](const RunRef& run) { return run.number == ref->number; })) {
      selection.runs.push_back(*ref);
    }
  }
  return selection;
}

ReplayRun failed(const RunRef& ref, Verdict verdict, const std::string& reason) {
  ReplayRun run;
  run.id = ref.id;
  run.number = ref.number;
  run.verdict = verdict;
  run.reason = reason;
  return run;
}

/// An Error that comes out of one run is that run's verdict.
ReplayRun replay_guarded(const ReplayScope& scope, const RunRef& ref) {
  try {
    return replay_one(scope, ref);
  } catch (const Error& error) {
    const std::string reason =
        error.hint().empty() ? error.what() : std::string(error.what()) + "; " + error.hint();
    switch (error.kind()) {
      case ExitCode::kTampered:
        return failed(ref, Verdict::kTampered, reason);
      case ExitCode::kInconclusive:
      case ExitCode::kUsage:
        return failed(ref, Verdict::kInconclusive, reason);
      default:
        return failed(ref, Verdict::kInternal, reason);
    }
  } catch (const std::exception& error) {
    return failed(ref, Verdict::kInternal, error.what());
  }
}

}  // namespace

ReplayReport replay(const ReplayOptions& options, const std::atomic<bool>& cancel,
                    Observer& observer) {
  check_options(options);
  const std::unique_ptr<Ledger> ledger = Ledger::open_for_reading(options.ledger_path);
  Selection selection = select(options, *ledger);

  ReplayReport report;
  report.runs = std::move(selection.not_found);
  if (selection.runs.empty()) {
    if (report.runs.empty())
      report.reason = "nothing to replay: " + ledger->path() + " has no runs";
    return report;  // INCONCLUSIVE
  }
  report.verdict = report.runs.empty() ? Verdict::kReproduced : Verdict::kInconclusive;
  if (options.fail_fast && !report.runs.empty()) return report;

  const std::unique_ptr<Backend> backend = open_backend(options.engine);
  ModelCache models(*backend, observer, cancel);
  const ReplayScope scope{options, *ledger, *backend, models, cancel, observer};
  for (std::size_t i = 0; i < selection.runs.size(); ++i) {
    if (selection.runs.size() > 1) {
      observer.on_progress("replaying", i, selection.runs.size(), "runs");
    }
    report.runs.push_back(replay_guarded(scope, selection.runs[i]));
    report.verdict = worst(report.verdict, report.runs.back().verdict);
    if (cancel) break;
    if (options.fail_fast && report.runs.back().verdict != Verdict::kReproduced) break;
  }
  return report;
}

}  // namespace detrun
