// The words of `--help` and `--version`. scripts/check_man.py reads them: an option's line begins
// with two spaces and its names, a metavar follows after one space, the words after two or more.
#pragma once

#include <string>

#include "cli/commands.h"

namespace detrun::cli {

/// Of the program as a whole.
std::string root_help(const CLI::App& root);
/// Of one command, whose options are in `app`.
std::string command_help(const CommandInfo& command, const CLI::App& app);
/// Version, build, backends, contract, schema and seal, one a line.
std::string version_text();

}  // namespace detrun::cli
