// `detrun stress`: one prompt, many runs in varied configurations; how many distinct outputs there
// are and where each leaves the first.
#include <algorithm>
#include <limits>
#include <memory>

#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/prompt.h"
#include "detrun/run.h"
#include "detrun/text.h"

namespace detrun::cli {
namespace {

constexpr std::uint64_t kThreadsMost = 1024;
constexpr std::uint64_t kRowsMost = std::numeric_limits<std::int32_t>::max();

struct StressArguments {
  StressOptions options;
  PromptArguments prompt;
  std::optional<std::string> threads, chunks, isas, states, modes;
  std::uint64_t expect = 1;
  bool json = false;
};

class StressObserver : public Observer {
 public:
  explicit StressObserver(Session& session) : progress_(session.console, !session.common.quiet) {}
  void on_progress(std::string_view what, std::uint64_t done, std::uint64_t total,
                   std::string_view unit) override {
    progress_.update(what, done, total, unit);
  }

 private:
  Progress progress_;
};

std::vector<std::string> split_list(const char* option, const std::optional<std::string>& list) {
  std::vector<std::string> words;
  if (!list) return words;
  for (std::size_t at = 0; at <= list->size();) {
    const std::size_t end = std::min(list->find(',', at), list->size());
    if (end == at) {
      throw_usage(std::string(option) + ": expected values separated by commas, found '" + *list +
                  "'");
    }
    words.push_back(list->substr(at, end - at));
    at = end + 1;
  }
  return words;
}

std::vector<std::uint32_t> split_numbers(const char* option, const std::optional<std::string>& list,
                                         std::uint64_t high) {
  std::vector<std::uint32_t> numbers;
  for (const std::string& word : split_list(option, list)) {
    const auto number = parse_i64(word);
    if (!number || *number < 1 || static_cast<std::uint64_t>(*number) > high) {
      throw_usage(std::string(option) + ": expected whole numbers from 1 to " +
                  std::to_string(high) + " separated by commas, found '" + word + "'");
    }
    numbers.push_back(static_cast<std::uint32_t>(*number));
  }
  return numbers;
}

std::string report_text(const StressReport& report, std::uint64_t expect, Console& console) {
  const std::uint64_t n = report.outputs.size();
  const bool as_expected = n == expect;
  std::string out =
      console.paint_out(as_expected ? Color::kGreen : Color::kRed,
                        std::to_string(n) + " distinct output" + (n == 1 ? "" : "s")) +
      " in " + counted(report.runs, "run") + " of " + counted(report.steps, "step") + " under " +
      counted(report.configurations, "configuration") +
      (as_expected ? "" : ", expected " + std::to_string(expect)) + "\n";
  for (const StressOutput& output : report.outputs) {
    out += "  chain " + to_hex(output.chain) + "  " + counted(output.runs, "run") + ", first run " +
           std::to_string(output.first_run) + " (" + describe(output.config) + ")\n";
    if (!output.difference.empty()) out += "    " + shown(output.difference) + "\n";
  }
  return out;
}

ExitCode run_stress(StressArguments& arguments, Session& session) {
  StressOptions& options = arguments.options;
  require_model(options.model_path);
  options.threads = split_numbers("--threads", arguments.threads, kThreadsMost);
  options.chunks = split_numbers("--chunk", arguments.chunks, kRowsMost);
  options.isas = split_list("--isa", arguments.isas);
  options.states = split_list("--state", arguments.states);
  options.modes = split_list("--mode", arguments.modes);
  Prompt prompt = read_prompt(arguments.prompt);
  options.prompt = std::move(prompt.bytes);
  options.tokens = std::move(prompt.tokens);

  const Interrupt interrupt;
  StressReport report;
  {
    StressObserver observer(session);
    report = stress(options, interrupt.flag(), observer);
  }
  session.console.write(arguments.json ? stress_to_json(report).dump() + "\n"
                                       : report_text(report, arguments.expect, session.console));
  if (interrupt.flag()) return ExitCode::kCancelled;
  return report.outputs.size() == arguments.expect ? ExitCode::kOk : ExitCode::kDiverged;
}

}  // namespace

Runner build_stress(CLI::App& app) {
  auto arguments = std::make_shared<StressArguments>();
  StressOptions& options = arguments->options;
  add_model_option(app, options.model_path);
  add_prompt_options(app, arguments->prompt, true);
  constexpr const char* kRuns = "Runs";
  constexpr const char* kVaried = "Varied (lists separated by commas)";
  constexpr std::uint64_t kMax = std::numeric_limits<std::int32_t>::max();
  add_number(app, {"--runs", "N", kRuns, "how many runs [100]"}, 1, kMax,
             [&options](std::uint64_t n) { options.runs = n; });
  add_number(app, {"-n,--n", "N", kRuns, "most tokens of a run [16]"}, 1, kMax,
             [&options](std::uint64_t n) { options.n = n; });
  add_number(app, {"--ctx", "N", kRuns, "context in tokens [the model's own, at most 4096]"}, 1,
             kMax, [&options](std::uint64_t n) { options.ctx = static_cast<std::uint32_t>(n); });
  add_choice(app, {"--kv", "f16|f32", kRuns, "type of the KV cache [f16]"}, {"f16", "f32"},
             options.kv);
  add_number(app, {"--seed", "S", kRuns, "order of the configurations [0]"}, 0,
             std::numeric_limits<std::uint64_t>::max(),
             [&options](std::uint64_t seed) { options.seed = seed; });
  add_number(app, {"--expect", "N", kRuns, "distinct outputs that make the exit code 0 [1]"}, 1,
             kMax, [arguments = arguments.get()](std::uint64_t n) { arguments->expect = n; });
  add_text(app, {"--threads", "LIST", kVaried, "threads [1,2,3,4,5,6,7,8]"}, arguments->threads);
  add_text(app,
           {"--chunk", "LIST", kVaried,
            "tokens of a prefill pass [1,2,3,7,8,63,64,65,512 and the whole prompt]"},
           arguments->chunks);
  add_text(app, {"--isa", "LIST", kVaried, "instruction sets [all that this CPU has]"},
           arguments->isas);
  add_text(app, {"--state", "LIST", kVaried, "context: fresh, or reused after another run [both]"},
           arguments->states);
  add_text(app, {"--mode", "LIST", kVaried, "step, parallel [both]"}, arguments->modes);
  add_json_switch(app, arguments->json);
  return [arguments](Session& session) { return run_stress(*arguments, session); };
}

}  // namespace detrun::cli
