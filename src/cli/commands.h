// The table of subcommands. A row: its words for `--help`, and the function that declares its
// options and returns what runs it. cmd_x.cpp holds the function of subcommand x.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "cli/output.h"
#include "detrun/error.h"

namespace CLI {
class App;
}

namespace detrun::cli {

/// Options that every command takes, before or after its name.
struct CommonOptions {
  std::string log_file;
  std::string color = "auto";
  int verbosity = 0;
  bool quiet = false;
};

/// What a command runs with.
struct Session {
  Console& console;
  const CommonOptions& common;
};

/// Runs a parsed command. Throws Error; returns the code of its verdict.
using Runner = std::function<ExitCode(Session&)>;

struct CommandInfo {
  std::string_view name;
  std::string_view summary;      ///< one line, no full stop
  std::string_view usage;        ///< what follows the name in the usage line
  std::string_view examples;     ///< whole lines, indented by two
  std::string_view exit_status;  ///< 80 columns after the label; further lines indented by two
  Runner (*build)(CLI::App& app);
};

/// In the order of `--help`.
std::span<const CommandInfo> commands();
/// nullptr: no such command.
const CommandInfo* find_command(std::string_view name);

Runner build_record(CLI::App& app);
Runner build_replay(CLI::App& app);
Runner build_verify(CLI::App& app);
Runner build_list(CLI::App& app);
Runner build_show(CLI::App& app);
Runner build_stress(CLI::App& app);
Runner build_bench(CLI::App& app);
Runner build_fingerprint(CLI::App& app);
Runner build_tokenize(CLI::App& app);

}  // namespace detrun::cli
