// The use cases that read: verify, list, show, fingerprint, tokenize; and the JSON documents of
// replay and verify. A ledger may hold anybody's bytes: every string from it passes Json::bytes.
#include <string>
#include <utility>

#include "detrun/error.h"
#include "detrun/host.h"
#include "detrun/run.h"
#include "run/loaded_model.h"
#include "run/prompt.h"

namespace detrun {
namespace {

Json replay_run_to_json(const ReplayRun& run) {
  Json out = Json::object();
  out.set("id", run.id.empty() ? Json() : Json::bytes(run.id));
  out.set("number", run.number == 0 ? Json() : Json(run.number));
  out.set("verdict", verdict_name(run.verdict));
  out.set("mode", run.mode.empty() ? Json() : Json(run.mode));
  out.set("complete", run.complete);
  out.set("steps_checked", run.steps_checked);
  out.set("first_logits_difference", Json::or_null(run.first_logits_difference));
  out.set("first_token_difference", Json::or_null(run.first_token_difference));
  out.set("recorded_token", Json::or_null(run.recorded_token));
  out.set("replayed_token", Json::or_null(run.replayed_token));
  out.set("recorded_piece", run.recorded_token ? Json::bytes(run.recorded_piece) : Json());
  out.set("replayed_piece", run.replayed_token ? Json::bytes(run.replayed_piece) : Json());
  out.set("position", Json::or_null(run.position));
  out.set("reason", Json::bytes(run.reason));
  return out;
}

Json broken_to_json(const BrokenEntry& broken) {
  Json out = Json::object();
  out.set("entry", Json::or_null(broken.entry));
  out.set("id", broken.id.empty() ? Json() : Json::bytes(broken.id));
  out.set("field", Json::bytes(broken.field));
  out.set("why", Json::bytes(broken.why));
  return out;
}

}  // namespace

Json replay_to_json(const ReplayReport& report) {
  Json runs = Json::array();
  for (const ReplayRun& run : report.runs) runs.push_back(replay_run_to_json(run));
  Json out = Json::object();
  out.set("schema", "detrun.replay/1");
  out.set("verdict", verdict_name(report.verdict));
  out.set("runs", std::move(runs));
  if (!report.reason.empty()) out.set("reason", Json::bytes(report.reason));
  return out;
}

VerifyReport verify(const std::string& ledger_path) {
  try {
    return Ledger::open_for_reading(ledger_path)->verify();
  } catch (const Error& error) {
    // A damaged or cut file is a finding about the ledger, not a failure to look at it.
    if (error.kind() != ExitCode::kTampered) throw;
    VerifyReport report;
    report.ok = false;
    report.broken.push_back({std::nullopt, {}, "database", error.what()});
    report.not_checked.emplace_back("completeness: self-attested");
    return report;
  }
}

Json verify_to_json(const VerifyReport& report) {
  Json checked = Json::object();
  checked.set("runs", report.runs_checked);
  checked.set("steps", report.steps_checked);
  checked.set("fields", report.fields_checked);
  Json not_checked = Json::array();
  for (const std::string& line : report.not_checked) not_checked.push_back(Json::bytes(line));
  Json broken = Json::array();
  for (const BrokenEntry& entry : report.broken) broken.push_back(broken_to_json(entry));
  Json out = Json::object();
  out.set("schema", "detrun.verify/1");
  out.set("verdict", report.ok ? std::string_view("ok") : verdict_name(Verdict::kTampered));
  out.set("trust", "self-attested");
  out.set("checked", std::move(checked));
  out.set("not_checked", std::move(not_checked));
  out.set("first_broken", report.broken.empty() ? Json() : broken_to_json(report.broken.front()));
  out.set("broken", std::move(broken));
  return out;
}

std::vector<ShowReport> list_runs(const std::string& ledger_path) {
  const std::unique_ptr<Ledger> ledger = Ledger::open_for_reading(ledger_path);
  std::vector<ShowReport> runs;
  for (const RunRef& ref : ledger->runs()) {
    // The run before its seal: a run sealed in between is then shown as it was, never half of it.
    RunRecord run = ledger->read(ref.number, /*with_steps=*/false);
    std::optional<Sha256Digest> seal;
    if (run.sealed) seal = ledger->seal(ref.number);
    runs.push_back({std::move(run), seal});
  }
  return runs;
}

ShowReport show_run(const std::string& ledger_path, const std::string& selector) {
  const std::unique_ptr<Ledger> ledger = Ledger::open_for_reading(ledger_path);
  const std::optional<RunRef> ref = ledger->resolve(selector);
  if (!ref) {
    throw Error(ExitCode::kInconclusive, "no run '" + selector + "' in " + ledger_path,
                "detrun list shows what the ledger holds");
  }
  return {ledger->read(ref->number, /*with_steps=*/true), ledger->seal(ref->number)};
}

Json show_to_json(const ShowReport& report, bool with_steps) {
  Json out = run_to_json(report.run, with_steps);
  out.set("seal", report.seal ? Json(to_hex(*report.seal)) : Json());
  return out;
}

Json fingerprint(const EngineOptions& engine) {
  return collect_fingerprint(open_backend(engine)->info());
}

std::vector<std::int32_t> tokenize(const TokenizeOptions& options) {
  const std::unique_ptr<ModelFile> file = ModelFile::open(options.model_path);
  const std::unique_ptr<Tokenizer> tokenizer = Tokenizer::create(*file);
  if (options.bos && !tokenizer->bos()) {
    throw_usage("the vocabulary of " + options.model_path + " has no begin token",
                "leave out --bos");
  }
  return encode_prompt(*tokenizer, options.text, options.bos, options.special);
}

}  // namespace detrun
