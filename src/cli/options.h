// Declares options: one call an option, with its words for `--help`, values checked by our own
// locale-free parsers. CLI11's conversions are not used: they read octal and split brackets.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "detrun/run.h"

namespace detrun::cli {

/// The words of an option: "-n,--n", "N", "Generation", "most tokens to generate".
struct OptionText {
  const char* names;
  const char* metavar;
  const char* group;
  const char* doc;
};

void add_text(CLI::App& app, const OptionText& text, std::string& to);
void add_text(CLI::App& app, const OptionText& text, std::optional<std::string>& to);
/// Hands the word over.
void add_text(CLI::App& app, const OptionText& text, std::function<void(const std::string&)> set);
/// May be given several times; every value is kept as it is.
void add_texts(CLI::App& app, const OptionText& text, std::vector<std::string>& to);
/// A value out of `choices`. Others are Error kUsage naming them.
void add_choice(CLI::App& app, const OptionText& text, std::vector<std::string> choices,
                std::string& to);
/// A whole decimal number from `low` to `high`.
void add_number(CLI::App& app, const OptionText& text, std::uint64_t low, std::uint64_t high,
                std::function<void(std::uint64_t)> set);
void add_switch(CLI::App& app, const OptionText& text, bool& to);

void add_common_options(CLI::App& app, CommonOptions& to);
/// `--ledger`, with $DETRUN_LEDGER or detrun.db as its default. Not empty.
void add_ledger_option(CLI::App& app, std::string& to);
/// `-m,--model`, with $DETRUN_MODEL as its default.
void add_model_option(CLI::App& app, std::string& to);
/// `--threads`, `--backend`, `--device` and `--no-graph`.
void add_engine_options(CLI::App& app, EngineOptions& to);
/// `--chunk`.
void add_chunk_option(CLI::App& app, EngineOptions& to);
/// Every row of run_options().
void add_run_options(CLI::App& app, RecordOptions& to);
void add_json_switch(CLI::App& app, bool& to);

/// An environment variable's value; empty counts as unset.
std::string environment(const char* name);
/// Error kUsage when no model was named.
void require_model(const std::string& path);

}  // namespace detrun::cli
