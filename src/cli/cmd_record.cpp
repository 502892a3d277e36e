// `detrun record`: standard output carries the generated text and nothing else (with --json the
// document alone); what a person wants to know about the run goes to standard error.
#include <memory>

#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/prompt.h"
#include "cli/record_prompts.h"
#include "cli/text_stream.h"
#include "detrun/log.h"
#include "detrun/run.h"

namespace detrun::cli {
namespace {

struct RecordArguments {
  RecordOptions options;
  PromptArguments prompt;
  PromptsOptions prompts;
  bool many = false;  ///< --prompts
  std::vector<std::string> tags;
  bool echo = false, json = false;
};

class RecordObserver : public Observer {
 public:
  RecordObserver(Session& session, const RecordArguments& arguments)
      : arguments_(arguments),
        text_(session.console),
        progress_(session.console, !session.common.quiet),
        text_on_terminal_(session.console.out_is_terminal() && !arguments.json) {}

  bool on_text(std::string_view bytes) override { return arguments_.json || show(bytes); }
  void on_prompt(std::string_view bytes) override {
    if (arguments_.echo && !arguments_.json) show(bytes);
  }
  void on_run_started(std::int64_t number, const std::string& id) override {
    log_info("run " + std::to_string(number) + " (" + id + ") started");
  }
  void on_progress(std::string_view what, std::uint64_t done, std::uint64_t total,
                   std::string_view unit) override {
    if (!text_begun_ || !text_on_terminal_) progress_.update(what, done, total, unit);
  }
  void finish() {
    progress_.wipe();
    text_.finish();
  }

 private:
  bool show(std::string_view bytes) {
    // The text is its own progress where both share the terminal.
    if (text_on_terminal_ && !text_begun_) progress_.wipe();
    text_begun_ = true;
    return text_.add(bytes);
  }

  const RecordArguments& arguments_;
  TextStream text_;
  Progress progress_;
  bool text_on_terminal_, text_begun_ = false;
};

// What --prompts takes the place of, or has no use for.
ExitCode run_many(const RecordArguments& arguments, Session& session) {
  const PromptArguments& prompt = arguments.prompt;
  if (prompt.text || prompt.file || prompt.tokens || !prompt.words.empty()) {
    throw_usage("--prompts is given together with another prompt",
                "the prompts are the lines of its file");
  }
  if (arguments.echo) throw_usage("--echo has no use with --prompts: no text is printed");
  return run_prompts(arguments.options, arguments.prompts, arguments.json, session);
}

std::string summary(const RecordReport& report, const RecordOptions& options, Console& console) {
  std::string out;
  const auto number = field_i64(report.run.fields, field::number);
  if (number) {
    const std::string id = field_text(report.run.fields, field::id).value_or("");
    out += console.paint_err(Color::kBold, "run " + std::to_string(*number)) + " (" + shown(id) +
           ") in " + shown(options.ledger_path) + "\n";
  } else {
    out += "not recorded (--no-ledger)\n";
  }
  out += "  " + counted(report.steps, "token");
  // The first token comes out of the prefill.
  if (report.steps > 1 && report.decode_s > 0) {
    out += ", " + fixed(static_cast<double>(report.steps - 1) / report.decode_s, 1) + " tokens/s";
  }
  out += ", stop: " + shown(report.stop_reason) + "\n";
  if (report.seal) out += "  seal " + to_hex(*report.seal).substr(0, 16) + "\n";
  if (number) {
    // The hint must work as it is printed: a ledger named on the command line is named again.
    const std::string usual = environment("DETRUN_LEDGER");
    const bool named = options.ledger_path != (usual.empty() ? "detrun.db" : usual);
    out += "  next: detrun replay " + std::to_string(*number) +
           (named ? " --ledger " + shell_word(options.ledger_path) : "") + "\n";
  }
  return out;
}

ExitCode run_record(RecordArguments& arguments, Session& session) {
  RecordOptions& options = arguments.options;
  require_model(options.model_path);
  for (const std::string& word : arguments.tags) add_tag(options, word, "--tag");
  if (arguments.many) return run_many(arguments, session);
  if (arguments.prompts.strict) throw_usage("--strict is given without --prompts");
  Prompt prompt = read_prompt(arguments.prompt);
  options.prompt_source = prompt.source;
  options.prompt = std::move(prompt.bytes);
  options.tokens = std::move(prompt.tokens);

  const Interrupt interrupt;
  session.console.give_up_when(interrupt.flag());
  RecordObserver observer(session, arguments);
  const RecordReport report = record(options, interrupt.flag(), observer);
  observer.finish();
  log_info("load " + fixed(report.load_s, 3) + " s, prefill of " +
           counted(report.prompt_tokens, "token") + " " + fixed(report.prefill_s, 3) +
           " s, decode " + fixed(report.decode_s, 3) + " s");
  if (arguments.json) {
    session.console.write(show_to_json({report.run, report.seal}, true).dump() + "\n");
  }
  if (!session.common.quiet) session.console.note(summary(report, options, session.console));
  const bool stopped =
      report.stop_reason == "cancelled" || (report.stop_reason == "closed" && interrupt.flag());
  return stopped ? ExitCode::kCancelled : ExitCode::kOk;
}

}  // namespace

Runner build_record(CLI::App& app) {
  auto arguments = std::make_shared<RecordArguments>();
  RecordOptions& options = arguments->options;
  add_model_option(app, options.model_path);
  add_prompt_options(app, arguments->prompt, true);
  add_text(
      app,
      {"--prompts", "FILE", "Prompt (exactly one)", "a JSON object a line, each a run of its own"},
      [&to = *arguments](const std::string& path) {
        to.prompts.path = path;
        to.many = true;
      });
  add_run_options(app, options);  // --chunk among them
  add_engine_options(app, options.engine);
  add_ledger_option(app, options.ledger_path);
  add_switch(app, {"--no-ledger", "", "Ledger", "only run, log nothing"}, options.no_ledger);
  add_texts(app, {"--tag", "K=V", "Ledger", "a note to the run; may be repeated"}, arguments->tags);
  add_switch(app,
             {"--strict", "", "Prompt (exactly one)",
              "with --prompts: one bad line, and nothing is recorded"},
             arguments->prompts.strict);
  add_switch(app, {"--echo", "", "Output", "print the prompt before the text"}, arguments->echo);
  add_json_switch(app, arguments->json);
  return [arguments](Session& session) { return run_record(*arguments, session); };
}

}  // namespace detrun::cli
