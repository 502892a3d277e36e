// What main needs of this room: parse the command line, run one command.
#pragma once

#include <span>

#include "detrun/error.h"

namespace detrun::cli {

class Console;

/// Parses `arguments` (without the program's name), sets logging up and runs the command. Returns
/// the exit code of a command that came to a verdict; everything else is thrown as Error.
ExitCode run_command_line(std::span<const char* const> arguments, Console& console);

/// Makes descriptors 0 to 2 exist, so that no file opened later becomes "standard output" by
/// accident; a missing one is opened the wrong way round, so that using it fails. Ignores SIGPIPE:
/// a closed pipe is a result of write, not a death.
void prepare_process();

}  // namespace detrun::cli
