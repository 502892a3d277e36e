// See record_prompts.h. The generated texts are in the ledger; standard output stays empty without
// --json, because nothing would separate one text from the next.
#include "cli/record_prompts.h"

#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "detrun/log.h"

namespace detrun::cli {
namespace {

class PromptsView final : public PromptsObserver {
 public:
  PromptsView(Session& session, const std::string& path, bool json)
      : session_(session),
        path_(path),
        json_(json),
        progress_(session.console, !session.common.quiet) {}

  void on_progress(std::string_view what, std::uint64_t done, std::uint64_t total,
                   std::string_view unit) override {
    progress_.update(what, done, total, unit);
  }
  void on_run_started(std::int64_t number, const std::string& id) override {
    log_info("run " + std::to_string(number) + " (" + id + ") started");
  }
  void on_bad_line(const BadLine& bad) override {
    progress_.wipe();
    session_.console.report(
        "line " + std::to_string(bad.line) + " of " + path_ + ": " + bad.message, "");
  }
  void on_lines(std::uint64_t n_lines, std::uint64_t n_done) override {
    if (n_done == 0) return;
    say(std::to_string(n_done) + " of " + counted(n_lines, "line") + " recorded before\n");
  }
  bool on_line(const LineReport& line) override {
    const RunRecord& run = line.report.run;
    if (!line.error.empty()) {
      progress_.wipe();
      session_.console.report(label(line) + " failed: " + line.error, "");
    } else {
      say(label(line) + ", " + counted(line.report.steps, "token") +
          ", stop: " + shown(line.report.stop_reason) + "\n");
    }
    if (!json_ || run.fields.empty()) return true;
    progress_.wipe();
    return session_.console.write(show_to_json({run, line.report.seal}, true).dump() + "\n");
  }
  void finish() { progress_.wipe(); }

 private:
  void say(const std::string& text) {
    if (session_.common.quiet) return;
    progress_.wipe();
    session_.console.note(text);
  }
  static std::string label(const LineReport& line) {
    const auto number = field_i64(line.report.run.fields, field::number);
    return "line " + std::to_string(line.line) +
           (number ? ": run " + std::to_string(*number) : std::string(":"));
  }

  Session& session_;
  const std::string& path_;
  bool json_;
  Progress progress_;
};

std::string summary(const PromptsReport& report, const RecordOptions& options) {
  std::string out =
      counted(report.lines, "line") + ": " + std::to_string(report.recorded) + " recorded";
  if (options.no_ledger)
    out = counted(report.lines, "line") + ": " + std::to_string(report.recorded) +
          " run, not recorded (--no-ledger)";
  if (report.done > 0) out += ", " + std::to_string(report.done) + " were there before";
  if (report.failed > 0) out += ", " + std::to_string(report.failed) + " failed";
  if (report.bad > 0) out += ", " + std::to_string(report.bad) + " bad";
  const std::uint64_t settled = report.recorded + report.done + report.failed + report.bad;
  if (settled < report.lines) out += ", " + std::to_string(report.lines - settled) + " left";
  return out + (options.no_ledger ? "\n" : ", in " + shown(options.ledger_path) + "\n");
}

}  // namespace

ExitCode run_prompts(const RecordOptions& defaults, const PromptsOptions& prompts, bool json,
                     Session& session) {
  const Interrupt interrupt;
  session.console.give_up_when(interrupt.flag());
  PromptsReport report;
  {
    PromptsView view(session, prompts.path, json);
    report = record_prompts(defaults, prompts, interrupt.flag(), view);
  }
  if (!session.common.quiet) session.console.note(summary(report, defaults));
  if (report.cancelled) return ExitCode::kCancelled;
  if (report.failed > 0) return ExitCode::kInternal;
  return report.bad > 0 ? ExitCode::kUsage : ExitCode::kOk;
}

}  // namespace detrun::cli
