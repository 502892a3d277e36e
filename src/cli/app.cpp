// Builds the parser out of the table, parses, runs one command. CLI11's exceptions end here and
// become Error kUsage; its exit codes are never used.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/args.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/help.h"
#include "cli/options.h"
#include "detrun/log.h"

namespace detrun::cli {
namespace {

// A model is mapped: when another program cuts the file short, reading it raises SIGBUS, and there
// is nothing to return to. Steps already committed stay; the next writer seals the run as
// interrupted.
extern "C" void on_mapping_cut(int) {
  static constexpr char kText[] =
      "detrun: error: the model file was cut short by another program while it was in use\n"
      "  hint: restore the file, then run the command again\n";
  [[maybe_unused]] const ssize_t written = ::write(2, kText, sizeof(kText) - 1);
  ::_exit(2);
}

struct Parser {
  CLI::App root;
  CommonOptions common;
  bool version = false;
  std::vector<std::string> help_topics;
  std::vector<std::pair<const CommandInfo*, Runner>> runners;
};

void build(Parser& parser) {
  CLI::App& root = parser.root;
  root.name("detrun")->require_subcommand(0, 1);
  add_common_options(root, parser.common);
  add_switch(root, {"--version", "", "General", "print version, build and backends"},
             parser.version);
  for (const CommandInfo& command : commands()) {
    CLI::App* sub = root.add_subcommand(std::string(command.name));
    parser.runners.emplace_back(&command, command.build(*sub));
    add_common_options(*sub, parser.common);
  }
  CLI::App* help = root.add_subcommand("help");
  add_texts(*help, {"command", "COMMAND", "Command", "what to print the help of"},
            parser.help_topics);
  add_common_options(*help, parser.common);
}

// False: the user asked for help instead.
bool parse(Parser& parser, std::span<const char* const> arguments) {
  std::vector<std::string> words = normalize_arguments(parser.root, arguments);
  std::reverse(words.begin(), words.end());  // CLI11 takes them from the back
  const auto hint = [&parser] {
    const auto subs = parser.root.get_subcommands();
    return "see 'detrun " + (subs.empty() ? "" : subs.front()->get_name() + " ") + "--help'";
  };
  try {
    parser.root.parse(std::move(words));
  } catch (const CLI::CallForHelp&) {
    return false;
  } catch (const CLI::ExtrasError&) {
    std::vector<std::string> extra = parser.root.remaining(true);
    throw_usage("unexpected argument '" + (extra.empty() ? "" : extra.front()) + "'", hint());
  } catch (const CLI::ParseError& error) {
    throw_usage(error.what(), hint());
  }
  return true;
}

std::string help_text(const Parser& parser, const std::string& name) {
  const CommandInfo* command = find_command(name);
  if (command == nullptr) {
    std::vector<std::string> names;
    for (const CommandInfo& each : commands()) names.emplace_back(each.name);
    const std::string near = nearest(name, names);
    throw_usage("unknown command '" + name + "'",
                near.empty() ? "see 'detrun --help'" : "did you mean '" + near + "'?");
  }
  return command_help(*command, *parser.root.get_subcommand(name));
}

void set_up_logging(const CommonOptions& common, Console& console) {
  if (common.quiet && common.verbosity > 0) throw_usage("-q and -v exclude each other");
  console.set_color(common.color);
  LogOptions log;
  log.level = common.quiet            ? LogLevel::kError
              : common.verbosity == 0 ? LogLevel::kWarning
              : common.verbosity == 1 ? LogLevel::kInfo
                                      : LogLevel::kDebug;
  log.color = console.err_has_color();
  log.file = common.log_file;
  log_setup(log);
}

}  // namespace

ExitCode run_command_line(std::span<const char* const> arguments, Console& console) {
  Parser parser;
  build(parser);
  const bool parsed = parse(parser, arguments);
  const auto chosen = parser.root.get_subcommands();
  const std::string name = chosen.empty() ? std::string() : chosen.front()->get_name();

  if (!parsed || name == "help") {
    const std::string topic = name != "help"               ? name
                              : parser.help_topics.empty() ? std::string()
                                                           : parser.help_topics.front();
    console.write(topic.empty() || topic == "help" ? root_help(parser.root)
                                                   : help_text(parser, topic));
    return ExitCode::kOk;
  }
  if (parser.version) {
    console.write(version_text());
    return ExitCode::kOk;
  }
  if (name.empty()) throw_usage("no command given", "see 'detrun --help'");
  set_up_logging(parser.common, console);
  Session session{console, parser.common};
  for (const auto& [command, runner] : parser.runners) {
    if (command->name == name) return runner(session);
  }
  throw_internal("command '" + name + "' has no runner");
}

void prepare_process() {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);  // a file size limit is an error of the write, said like a full disk
  ::signal(SIGBUS, on_mapping_cut);
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) != -1) continue;
    // The lowest free descriptor is `fd` itself, because those below it exist by now.
    if (::open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd) ::_exit(5);
  }
}

}  // namespace detrun::cli
