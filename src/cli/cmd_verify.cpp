// `detrun verify`: the integrity of a ledger in words; the first broken field of every broken run.
#include <memory>

#include "cli/options.h"
#include "detrun/run.h"

namespace detrun::cli {
namespace {

struct VerifyArguments {
  std::string ledger_path;
  bool json = false;
};

std::string broken_line(const BrokenEntry& broken, const Console& console) {
  std::string out = console.paint_out(Color::kRed, "TAMPERED") + "  ";
  out += broken.entry ? "run " + std::to_string(*broken.entry) : std::string("ledger");
  if (!broken.id.empty()) out += " (" + shown(broken.id) + ")";
  if (!broken.field.empty()) out += ": " + shown(broken.field);
  return out + ": " + shown(broken.why) + "\n";
}

std::string report_text(const VerifyReport& report, const std::string& path,
                        const Console& console) {
  std::string out;
  for (const BrokenEntry& broken : report.broken) out += broken_line(broken, console);
  const std::string checked = counted(report.runs_checked, "run") + ", " +
                              counted(report.steps_checked, "step") + ", " +
                              counted(report.fields_checked, "field") + " checked";
  if (report.ok) {
    out += console.paint_out(Color::kGreen, "ok") + "  " + shown(path) + ": " + checked + "\n";
  } else {
    out += shown(path) + ": " + checked + "\n";
  }
  for (const std::string& what : report.not_checked) out += "not checked: " + shown(what) + "\n";
  return out;
}

ExitCode run_verify(const VerifyArguments& arguments, Session& session) {
  const VerifyReport report = verify(arguments.ledger_path);
  session.console.write(arguments.json
                            ? verify_to_json(report).dump() + "\n"
                            : report_text(report, arguments.ledger_path, session.console));
  return report.ok ? ExitCode::kOk : ExitCode::kTampered;
}

}  // namespace

Runner build_verify(CLI::App& app) {
  auto arguments = std::make_shared<VerifyArguments>();
  add_ledger_option(app, arguments->ledger_path);
  add_json_switch(app, arguments->json);
  return [arguments](Session& session) { return run_verify(*arguments, session); };
}

}  // namespace detrun::cli
