// `detrun replay`: one line a run with its verdict and what differs, a summary for several.
#include <array>
#include <limits>
#include <memory>
#include <optional>

#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/progress.h"
#include "detrun/run.h"

namespace detrun::cli {
namespace {

struct ReplayArguments {
  ReplayOptions options;
  std::optional<std::string> junit;
  bool json = false;
};

class ReplayObserver : public Observer {
 public:
  explicit ReplayObserver(Session& session) : progress_(session.console, !session.common.quiet) {}
  void on_progress(std::string_view what, std::uint64_t done, std::uint64_t total,
                   std::string_view unit) override {
    progress_.update(what, done, total, unit);
  }

 private:
  Progress progress_;
};

std::string piece_text(const std::optional<std::int32_t>& token, const std::string& piece) {
  return token ? in_quotes(piece) : "none";
}

// The reason names step and tokens; added is what it cannot know: the position in the context, and
// the tokens as text. A difference before the first step names its place in the reason.
std::string difference(const ReplayRun& run) {
  std::string out = shown(run.reason);
  const bool in_a_step = run.steps_checked > 0 || run.first_token_difference;
  if (run.position && in_a_step) {
    out += "; first difference at position " + std::to_string(*run.position);
  }
  if (run.first_token_difference) {
    out += "; as text: recorded " + piece_text(run.recorded_token, run.recorded_piece) +
           ", replayed " + piece_text(run.replayed_token, run.replayed_piece);
  }
  return out;
}

std::string run_line(const ReplayRun& run, const Console& console) {
  const std::string verdict(verdict_name(run.verdict));
  std::string out = console.paint_out(verdict_color(run.verdict), verdict) + "  ";
  if (run.number > 0) {  // otherwise no run answers to the selector, which the reason names
    out += "run " + std::to_string(run.number) + " (" + shown(run.id) + "): ";
  }
  switch (run.verdict) {
    case Verdict::kReproduced:
      out += counted(run.steps_checked, "step") + ", every token and every logit hash equal";
      if (!run.complete) out += "; the run was interrupted, this is its committed prefix";
      if (!run.reason.empty()) out += "; " + shown(run.reason);
      break;
    case Verdict::kDiverged:
      out += difference(run);
      break;
    case Verdict::kInconclusive:
    case Verdict::kTampered:
    case Verdict::kInternal:
      out += shown(run.reason);
      break;
  }
  return out + "\n";
}

// "3 runs: 2 REPRODUCED, 1 DIVERGED".
std::string summary_line(const ReplayReport& report) {
  constexpr std::array kOrder{Verdict::kTampered, Verdict::kInternal, Verdict::kDiverged,
                              Verdict::kInconclusive, Verdict::kReproduced};
  std::string out = counted(report.runs.size(), "run") + ":";
  const char* separator = " ";
  for (const Verdict verdict : kOrder) {
    std::uint64_t n = 0;
    for (const ReplayRun& run : report.runs) n += run.verdict == verdict ? 1 : 0;
    if (n == 0) continue;
    out += separator + std::to_string(n) + " " + std::string(verdict_name(verdict));
    separator = ", ";
  }
  return out + "\n";
}

std::string report_text(const ReplayReport& report, const Console& console) {
  std::string out;
  for (const ReplayRun& run : report.runs) out += run_line(run, console);
  if (report.runs.empty()) {
    // An empty shard has no verdict of its own.
    const std::string verdict(verdict_name(report.verdict));
    if (report.verdict != Verdict::kReproduced) {
      out += console.paint_out(verdict_color(report.verdict), verdict) + "  ";
    }
    out += (report.reason.empty() ? "nothing to replay" : shown(report.reason)) + "\n";
  }
  if (report.runs.size() > 1) out += summary_line(report);
  if (!report.not_replayed.empty()) {
    out += counted(report.not_replayed.size(), "run") + " not replayed\n";
  }
  return out;
}

ExitCode run_replay(const ReplayArguments& arguments, Session& session) {
  const ReplayOptions& options = arguments.options;
  std::optional<OutputFile> junit;
  if (arguments.junit) junit.emplace(*arguments.junit, "--junit");
  const Interrupt interrupt;
  ReplayReport report;
  {
    ReplayObserver observer(session);
    report = replay(options, interrupt.flag(), observer);
  }
  session.console.write(arguments.json ? replay_to_json(report).dump() + "\n"
                                       : report_text(report, session.console));
  if (junit) junit->commit(replay_to_junit(report));
  if (interrupt.flag()) return ExitCode::kCancelled;
  return verdict_exit_code(report.verdict);
}

// Filters; those that are given must all let a run pass.
void add_selection_options(CLI::App& app, ReplayOptions& options) {
  constexpr const char* kGroup = "Selection";
  const auto not_empty = [](std::string& to, const char* name) {
    return [&to, name](const std::string& word) {
      if (word.empty()) throw_usage(std::string(name) + ": the value is empty");
      to = word;
    };
  };
  add_texts(app, {"--tag", "K=V", kGroup, "runs with this tag; repeated: with all of them"},
            options.tags);
  add_text(app,
           {"--since", "TIME", kGroup, "runs started then or later: a UTC date or time, or 2h, 7d"},
           not_empty(options.since, "--since"));
  add_text(app, {"--sample", "N%", kGroup, "about this share of the runs, by run id"},
           not_empty(options.sample, "--sample"));
  add_number(app, {"--seed", "S", kGroup, "another sample for another number [0]"}, 0,
             std::numeric_limits<std::uint64_t>::max(),
             [&options](std::uint64_t seed) { options.seed = seed; });
  add_text(app, {"--shard", "I/N", kGroup, "the I-th of N parts of the selection, by run id"},
           not_empty(options.shard, "--shard"));
}

}  // namespace

Runner build_replay(CLI::App& app) {
  auto arguments = std::make_shared<ReplayArguments>();
  ReplayOptions& options = arguments->options;
  add_texts(app, {"run", "RUN", "Selection", "number, id, part of an id (4 or more), or 'latest'"},
            options.selectors);
  add_switch(app, {"--all", "", "Selection", "every run of the ledger"}, options.all);
  add_selection_options(app, options);
  add_text(app,
           {"-m,--model", "MODEL", "Model",
            "where the model file is now [as recorded]; its digest "
            "must be the recorded one"},
           options.model_path);
  add_choice(
      app,
      {"--mode", "auto|step|parallel", "Replay", "how to replay [auto]; no influence on any bit"},
      {"auto", "step", "parallel"}, options.mode);
  add_switch(app,
             {"--force", "", "Replay",
              "go on past a broken seal or a missing model digest; the "
              "verdict says so"},
             options.force);
  add_switch(app, {"--strict", "", "Replay", "an interrupted run is INCONCLUSIVE"}, options.strict);
  add_switch(app, {"--fail-fast", "", "Replay", "stop at the first run that is not REPRODUCED"},
             options.fail_fast);
  add_number(app, {"--jobs", "N", "Replay", "runs replayed at once, on cores of their own [1]"}, 1,
             256, [&options](std::uint64_t n) { options.jobs = static_cast<std::uint32_t>(n); });
  add_engine_options(app, options.engine);
  add_chunk_option(app, options.engine);
  add_ledger_option(app, options.ledger_path);
  add_text(app, {"--junit", "FILE", "Output", "write a JUnit report as well"}, arguments->junit);
  add_json_switch(app, arguments->json);
  return [arguments](Session& session) { return run_replay(*arguments, session); };
}

}  // namespace detrun::cli
