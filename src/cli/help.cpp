// Laid out here and not by CLI11's formatter: it neither wraps nor lines up short and long names.
#include "cli/help.h"

#include <CLI/CLI.hpp>

#include "detrun/run.h"

namespace detrun::cli {
namespace {

constexpr std::size_t kNamesWidth = 26, kLineWidth = 80;

// Appends `names`, then the words of `doc` in the right-hand column.
void add_entry(std::string& out, const std::string& names, std::string_view doc) {
  std::string line = "  " + names;
  if (line.size() + 2 > kNamesWidth) {
    out += line + "\n";
    line.clear();
  }
  line.resize(kNamesWidth, ' ');
  bool fresh = true;
  while (!doc.empty()) {
    const std::size_t end = std::min(doc.find(' '), doc.size());
    if (!fresh && line.size() + 1 + end > kLineWidth) {
      out += line + "\n";
      line.assign(kNamesWidth, ' ');
      fresh = true;
    }
    if (!fresh) line += ' ';
    line += doc.substr(0, end);
    doc.remove_prefix(std::min(end + 1, doc.size()));
    fresh = false;
  }
  out += line + "\n";
}

// "-p, --prompt TEXT"; a positional is shown by its metavar.
std::string names_of(const CLI::Option& option) {
  if (option.get_positional()) return option.get_type_name();
  std::string names;
  for (const std::string& name : option.get_snames()) names += "-" + name + ", ";
  if (names.empty()) names = "    ";
  for (const std::string& name : option.get_lnames()) names += "--" + name;
  const std::string metavar = option.get_type_name();
  const bool takes_value = option.get_items_expected_max() > 0;
  return takes_value ? names + " " + metavar : names;
}

std::string options_text(const CLI::App& app) {
  std::string out;
  for (const std::string& group : app.get_groups()) {
    const auto options = app.get_options(
        [&group](const CLI::Option* option) { return option->get_group() == group; });
    if (options.empty()) continue;
    out += "\n" + group + ":\n";
    for (const CLI::Option* option : options) {
      add_entry(out, names_of(*option), option->get_description());
    }
  }
  return out;
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

}  // namespace

std::string root_help(const CLI::App& root) {
  std::string out =
      "detrun - run a language model on pinned arithmetic, log the run, replay it\n"
      "\n"
      "Usage: detrun COMMAND [options]\n"
      "\n"
      "Commands:\n";
  for (const CommandInfo& command : commands()) {
    add_entry(out, std::string(command.name), command.summary);
  }
  add_entry(out, "help", "print the help of a command: detrun help record");
  out += options_text(root);
  out +=
      "\n"
      "Environment:\n";
  add_entry(out, "DETRUN_LEDGER", "the ledger, instead of detrun.db");
  add_entry(out, "DETRUN_MODEL", "the model file");
  add_entry(out, "DETRUN_CPU_ISA", "the instruction set: scalar, avx2; no influence on any bit");
  add_entry(out, "NO_COLOR", "no colours");
  out +=
      "\n"
      "Examples:\n"
      "  detrun record -m model.gguf -p 'Claim 17: water damage.' -n 64\n"
      "  detrun replay latest\n"
      "\n"
      "Exit status: 0 ok or REPRODUCED, 1 DIVERGED, 2 usage, 3 INCONCLUSIVE,\n"
      "  4 TAMPERED, 5 failed, 130 ended by Ctrl-C or SIGTERM\n"
      "Manual: man detrun\n";
  return out;
}

std::string command_help(const CommandInfo& command, const CLI::App& app) {
  const std::string name(command.name);
  std::string out = "detrun " + name + " - " + std::string(command.summary) + "\n\n";
  out += "Usage: detrun " + name + " " + std::string(command.usage) + "\n";
  out += options_text(app);
  out += "\nExamples:\n" + std::string(command.examples);
  out += "\nExit status: " + std::string(command.exit_status) + "\n";
  out += "Manual: man detrun-" + name + "\n";
  return out;
}

std::string version_text() {
  const VersionReport version = version_report();
  std::string out = "detrun " + version.version + "\n";
  out += "build type: " + version.build_type + "\n";
  out += "compiler: " + version.compiler + "\n";
  out += "backend cpu: " + joined(version.cpu_isas) + "\n";
  const std::string kernels = version.cuda.empty() ? "" : "kernels: " + version.cuda;
  out += "backend " + version.cuda_backend + ": ";
  if (version.cuda_usable) {
    out += version.cuda_device + (kernels.empty() ? "" : " (" + kernels + ")") + "\n";
  } else {
    out += "none (" + version.cuda_device + (kernels.empty() ? "" : "; " + kernels) + ")\n";
  }
  out += "numerics: " + version.numerics_profile + ", contract version " +
         std::to_string(version.numerics_version) + "\n";
  out += "ledger schema: " + std::to_string(version.ledger_schema) + "\n";
  out += "seal version: " + std::to_string(version.seal_version) + "\n";
  return out;
}

}  // namespace detrun::cli
