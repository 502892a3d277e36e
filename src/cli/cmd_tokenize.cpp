// `detrun tokenize`: the ids of a text on one line, separated by spaces.
#include <memory>

#include "cli/options.h"
#include "cli/prompt.h"
#include "detrun/run.h"

namespace detrun::cli {
namespace {

struct TokenizeArguments {
  TokenizeOptions options;
  PromptArguments prompt;
};

ExitCode run_tokenize(TokenizeArguments& arguments, Session& session) {
  require_model(arguments.options.model_path);
  arguments.options.text = read_prompt(arguments.prompt).bytes;
  std::string line;
  for (const std::int32_t id : tokenize(arguments.options)) {
    line += (line.empty() ? "" : " ") + std::to_string(id);
  }
  session.console.write(line + "\n");
  return ExitCode::kOk;
}

}  // namespace

Runner build_tokenize(CLI::App& app) {
  auto arguments = std::make_shared<TokenizeArguments>();
  add_model_option(app, arguments->options.model_path);
  add_prompt_options(app, arguments->prompt, false);
  add_switch(app, {"--bos", "", "Tokens", "put the begin token first, where the model has one"},
             arguments->options.bos);
  add_switch(app,
             {"--special", "", "Tokens",
              "spelled control tokens become control tokens; without it "
              "they stay text"},
             arguments->options.special);
  return [arguments](Session& session) { return run_tokenize(*arguments, session); };
}

}  // namespace detrun::cli
