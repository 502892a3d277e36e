// Everything goes through CLI11's raw callback, which hands the words over as they came.
#include "cli/options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <limits>

#include "detrun/text.h"

namespace detrun::cli {
namespace {

constexpr const char* kGeneral = "General";

// Adds an option whose words arrive untouched.
CLI::Option* add_raw(CLI::App& app, const OptionText& text, CLI::callback_t callback) {
  CLI::Option* option = app.add_option(text.names, std::move(callback), text.doc);
  return option->type_name(text.metavar)->group(text.group);
}

// A file name, which may not be empty.
void add_file_name(CLI::App& app, const OptionText& text, std::string& to) {
  add_raw(app, text, [&to, name = std::string(text.names)](const CLI::results_t& words) {
    to = words.back();
    if (to.empty()) throw_usage(name + ": the file name is empty");
    return true;
  });
}

// "-n, --n" for messages.
std::string spelled(const OptionText& text) {
  const std::string names = text.names;
  const std::size_t comma = names.find(',');
  return comma == std::string::npos ? names : names.substr(comma + 1);
}

}  // namespace

void add_text(CLI::App& app, const OptionText& text, std::string& to) {
  add_raw(app, text, [&to](const CLI::results_t& words) {
    to = words.back();
    return true;
  });
}

void add_text(CLI::App& app, const OptionText& text, std::optional<std::string>& to) {
  add_raw(app, text, [&to](const CLI::results_t& words) {
    to = words.back();
    return true;
  });
}

void add_text(CLI::App& app, const OptionText& text, std::function<void(const std::string&)> set) {
  add_raw(app, text, [set = std::move(set)](const CLI::results_t& words) {
    set(words.back());
    return true;
  });
}

void add_texts(CLI::App& app, const OptionText& text, std::vector<std::string>& to) {
  CLI::Option* option = add_raw(app, text, [&to](const CLI::results_t& words) {
    to = words;
    return true;
  });
  option->expected(-1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  // Positionals need the permission that makes CLI11 split brackets; normalize_arguments refuses
  // bracketed positionals for that reason.
  if (!option->get_positional()) option->allow_extra_args(false);
}

void add_choice(CLI::App& app, const OptionText& text, std::vector<std::string> choices,
                std::string& to) {
  add_raw(app, text,
          [&to, choices = std::move(choices), name = spelled(text)](const CLI::results_t& words) {
            to = words.back();
            std::string known;
            for (const std::string& choice : choices) {
              if (choice == to) return true;
              known += (known.empty() ? "" : ", ") + choice;
            }
            throw_usage(name + ": unknown value '" + to + "'; known: " + known);
          });
}

void add_number(CLI::App& app, const OptionText& text, std::uint64_t low, std::uint64_t high,
                std::function<void(std::uint64_t)> set) {
  add_raw(app, text,
          [low, high, set = std::move(set), name = spelled(text)](const CLI::results_t& words) {
            const auto value = parse_u64(words.back());
            if (!value || *value < low || *value > high) {
              throw_usage(name + ": expected a whole number from " + std::to_string(low) + " to " +
                          std::to_string(high) + ", found '" + words.back() + "'");
            }
            set(*value);
            return true;
          });
}

void add_switch(CLI::App& app, const OptionText& text, bool& to) {
  app.add_flag_function(
         text.names, [&to](std::int64_t) { to = true; }, text.doc)
      ->group(text.group);
}

void add_common_options(CLI::App& app, CommonOptions& to) {
  app.add_flag_function(
         "-v,--verbose", [&to](std::int64_t count) { to.verbosity += static_cast<int>(count); },
         "log what is done; twice: in detail")
      ->group(kGeneral);
  add_switch(app, {"-q,--quiet", "", kGeneral, "only results and errors"}, to.quiet);
  add_file_name(app, {"--log-file", "FILE", kGeneral, "append the log to FILE as well"},
                to.log_file);
  add_choice(app,
             {"--color", "auto|always|never", kGeneral,
              "colours; auto: on a terminal, unless NO_COLOR is set"},
             {"auto", "always", "never"}, to.color);
  app.set_help_flag("-h,--help", "print this help")->group(kGeneral);
}

void add_ledger_option(CLI::App& app, std::string& to) {
  const std::string from_environment = environment("DETRUN_LEDGER");
  to = from_environment.empty() ? "detrun.db" : from_environment;
  add_file_name(app, {"--ledger", "FILE", "Ledger", "the ledger [$DETRUN_LEDGER or detrun.db]"},
                to);
}

void add_model_option(CLI::App& app, std::string& to) {
  to = environment("DETRUN_MODEL");
  add_text(app, {"-m,--model", "MODEL", "Model", "the model file, GGUF [$DETRUN_MODEL]"}, to);
}

void add_engine_options(CLI::App& app, EngineOptions& to) {
  add_number(app, {"--threads", "N", "Engine", "threads [all cores]; no influence on any bit"}, 1,
             1024, [&to](std::uint64_t n) { to.threads = static_cast<std::uint32_t>(n); });
  add_choice(app,
             {"--backend", "auto|cpu|cuda", "Engine",
              "where to compute [auto: CUDA where it can]; no influence on any portable bit"},
             backend_names(), to.backend);
  add_text(app,
           {"--device", "DEVICE", "Engine",
            "which GPU, by index or UUID [0]; no influence on any portable bit"},
           to.device);
  add_switch(app,
             {"--no-graph", "", "Engine",
              "CUDA: launch the kernels of a step one by one; no influence on any bit"},
             to.no_graph);
}

void add_chunk_option(CLI::App& app, EngineOptions& to) {
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max());
  add_number(
      app,
      {"--chunk", "N", "Engine",
       "tokens computed at once [by cache size, on a GPU 512]; no influence on any portable bit"},
      1, kMax, [&to](std::uint64_t n) { to.chunk = static_cast<std::uint32_t>(n); });
}

void add_run_options(CLI::App& app, RecordOptions& to) {
  for (const RunOption& option : run_options()) {
    const std::string names =
        (*option.short_name != '\0' ? std::string("-") + option.short_name + "," : std::string()) +
        "--" + option.name;
    const OptionText text{names.c_str(), option.metavar, option.group, option.doc};
    if (option.set_number != nullptr) {
      add_number(app, text, option.low, option.high,
                 [&to, set = option.set_number](std::uint64_t value) { set(to, value); });
    } else {
      add_choice(app, text, option.choices, to.*option.word);
    }
  }
}

void add_json_switch(CLI::App& app, bool& to) {
  add_switch(app, {"--json", "", "Output", "print a JSON document instead of text"}, to);
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

void require_model(const std::string& path) {
  if (path.empty()) throw_usage("no model given", "use -m FILE, or set DETRUN_MODEL");
}

}  // namespace detrun::cli
