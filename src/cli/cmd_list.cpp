// `detrun list`: a line a run. Every cell comes from the ledger, so every cell is escaped.
#include <memory>

#include "cli/options.h"
#include "detrun/run.h"

namespace detrun::cli {
namespace {

constexpr std::size_t kIdWidth = 14, kModelWidth = 24, kPromptWidth = 44;

struct ListArguments {
  std::string ledger_path;
  bool json = false;
};

std::string number_or_dash(const std::optional<std::int64_t>& number) {
  return number ? std::to_string(*number) : "-";
}

std::string model_of(const FieldMap& fields) {
  std::string name = field_text(fields, field::model_name).value_or("");
  if (!name.empty()) return name;
  const std::string path = field_blob(fields, field::model_path).value_or("-");
  return path.substr(path.rfind('/') + 1);
}

std::string prompt_of(const FieldMap& fields) {
  if (const auto prompt = field_blob(fields, field::prompt)) {
    return shortened(*prompt, kPromptWidth);
  }
  const auto tokens = field_blob(fields, field::prompt_tokens);
  return tokens ? "(" + counted(tokens->size() / 4, "token") + ")" : "-";
}

std::string table_text(const std::vector<ShowReport>& runs) {
  Table table(
      {{"RUN", true}, {"ID"}, {"STARTED"}, {"STATUS"}, {"STEPS", true}, {"MODEL"}, {"PROMPT"}});
  for (const ShowReport& report : runs) {
    const RunRecord& run = report.run;
    const FieldMap& fields = run.fields;
    // An id is cut without an ellipsis: what is left is a selector.
    const std::string id = field_text(fields, field::id).value_or("-").substr(0, kIdWidth - 1);
    const std::string started = field_text(fields, field::started_at).value_or("-");
    table.add({number_or_dash(field_i64(fields, field::number)), shown(id),
               shown(started.substr(0, 19)), shown(run_status(run)),
               number_or_dash(field_i64(fields, field::step_count)),
               shortened(model_of(fields), kModelWidth), prompt_of(fields)});
  }
  return table.text();
}

ExitCode run_list(const ListArguments& arguments, Session& session) {
  const std::vector<ShowReport> runs = list_runs(arguments.ledger_path);
  if (arguments.json) {
    for (const ShowReport& run : runs) {
      if (!session.console.write(show_to_json(run, false).dump() + "\n")) break;
    }
  } else if (!runs.empty()) {
    session.console.write(table_text(runs));
  } else if (!session.common.quiet) {
    session.console.note("no runs in " + shown(arguments.ledger_path) + "\n");
  }
  return ExitCode::kOk;
}

}  // namespace

Runner build_list(CLI::App& app) {
  auto arguments = std::make_shared<ListArguments>();
  add_ledger_option(app, arguments->ledger_path);
  add_json_switch(app, arguments->json);
  return [arguments](Session& session) { return run_list(*arguments, session); };
}

}  // namespace detrun::cli
