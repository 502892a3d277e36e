// The command line in a form that CLI11 2.1.2 reads without surprises, checked on the way: unknown
// options and commands (with the nearest known one), missing and surplus values, repetitions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace detrun::cli {

/// One word an option and one word a value: `--tag=`, `-n5` and `-qv` are taken apart. CLI11 would
/// take the next option for the value of an empty `--prompt=`, and "[a,b]" for two positionals.
/// Error kUsage with a hint.
std::vector<std::string> normalize_arguments(const CLI::App& root,
                                             std::span<const char* const> arguments);

/// The candidate nearest to `word` by edit distance; empty when none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace detrun::cli
