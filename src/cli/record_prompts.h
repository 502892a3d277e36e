// `detrun record --prompts`: a line on standard error for every run, or a document on standard
// output with --json; bad lines by their number; a summary.
#pragma once

#include "cli/commands.h"
#include "detrun/run.h"

namespace detrun::cli {

ExitCode run_prompts(const RecordOptions& defaults, const PromptsOptions& prompts, bool json,
                     Session& session);

}  // namespace detrun::cli
