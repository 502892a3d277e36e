// The reading use cases and the shapes of their documents.
#include <doctest/doctest.h>

#include <string>

#include "tests/unit/run/scene.h"

namespace detrun {
namespace {

using test::Scene;
using test::thrown_by;

TEST_CASE("list gives heads by number, without steps") {
  Scene scene;
  scene.record();
  scene.record();
  RunRecord open = scene.read(1);
  open.sealed = false;
  scene.forge(open);
  const std::vector<ShowReport> runs = list_runs(scene.options.ledger_path);
  REQUIRE(runs.size() == 3);
  CHECK(field_i64(runs[0].run.fields, field::number) == 1);
  CHECK(field_i64(runs[1].run.fields, field::number) == 2);
  CHECK(runs[0].run.steps.empty());
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(runs[i].seal.has_value());
    CHECK(runs[i].seal == show_run(scene.options.ledger_path, std::to_string(i + 1)).seal);
  }
  CHECK_FALSE(runs[2].seal.has_value());
}

TEST_CASE("show gives one run with its seal, and no run is inconclusive") {
  Scene scene;
  const RecordReport recorded = scene.record();
  const ShowReport shown = show_run(scene.options.ledger_path, "latest");
  CHECK(shown.seal == recorded.seal);
  const Json document = show_to_json(shown, true);
  CHECK(document.find("schema")->as_string() == "detrun.run/1");
  CHECK(document.find("seal")->as_string() == to_hex(*recorded.seal));
  CHECK(document.find("steps")->as_array().size() == 12);
  CHECK(show_to_json(shown, false).find("steps") == nullptr);
  CHECK(thrown_by([&] { show_run(scene.options.ledger_path, "7"); }).kind ==
        ExitCode::kInconclusive);
}

TEST_CASE("record and show print the same document") {
  Scene scene;
  const RecordReport recorded = scene.record();
  CHECK(show_to_json({recorded.run, recorded.seal}, true).dump() ==
        show_to_json(show_run(scene.options.ledger_path, "1"), true).dump());
}

TEST_CASE("the document of verify") {
  VerifyReport report;
  report.runs_checked = 3;
  report.steps_checked = 40;
  report.fields_checked = 50;
  report.not_checked = {"run 3: live"};
  CHECK(verify_to_json(report).dump() ==
        R"({"schema":"detrun.verify/1","verdict":"ok","trust":"self-attested",)"
        R"("checked":{"runs":3,"steps":40,"fields":50},"not_checked":["run 3: live"],)"
        R"("first_broken":null,"broken":[]})");
  report.ok = false;
  report.broken = {{2, "abcd", "model.sha256", "\xff"}, {std::nullopt, "", "ledger.id", "x"}};
  const Json broken = verify_to_json(report);
  CHECK(broken.find("verdict")->as_string() == "TAMPERED");
  CHECK(broken.find("first_broken")->dump() ==
        R"({"entry":2,"id":"abcd","field":"model.sha256","why":{"b64":"/w=="}})");
  CHECK(broken.find("broken")->as_array()[1].dump() ==
        R"({"entry":null,"id":null,"field":"ledger.id","why":"x"})");
}

TEST_CASE("the document of replay") {
  ReplayReport report;
  report.verdict = Verdict::kDiverged;
  ReplayRun run;
  run.id = "0190";
  run.number = 4;
  run.complete = true;
  run.mode = "step";
  run.verdict = Verdict::kDiverged;
  run.steps_checked = 16;
  run.first_logits_difference = 12;
  run.first_token_difference = 15;
  run.recorded_token = 5;
  run.replayed_token = 9;
  run.recorded_piece = "a";
  run.replayed_piece = "\xff";
  run.position = 18;
  run.reason = "why";
  report.runs = {run, ReplayRun{}};
  const Json document = replay_to_json(report);
  CHECK(document.find("schema")->as_string() == "detrun.replay/1");
  CHECK(document.find("verdict")->as_string() == "DIVERGED");
  CHECK(document.find("runs")->as_array()[0].dump() ==
        R"({"id":"0190","number":4,"verdict":"DIVERGED","mode":"step","complete":true,)"
        R"("steps_checked":16,"first_logits_difference":12,"first_token_difference":15,)"
        R"("recorded_token":5,"replayed_token":9,"recorded_piece":"a",)"
        R"("replayed_piece":{"b64":"/w=="},"position":18,"reason":"why"})");
  const Json& empty = document.find("runs")->as_array()[1];
  CHECK(empty.find("first_logits_difference")->is_null());
  CHECK(empty.find("recorded_token")->is_null());
  CHECK(empty.find("number")->is_null());
  CHECK(empty.find("id")->is_null());
  CHECK(empty.find("complete")->dump() == "false");
}

TEST_CASE("a damaged ledger is a finding of verify, a file that is no ledger is a usage error") {
  Scene scene;
  scene.record();
  scene.folder().write("text.db", "this is not a database at all, but a text of some length\n");
  CHECK(thrown_by([&] { verify(scene.folder().file("text.db")); }).kind == ExitCode::kUsage);
  CHECK(thrown_by([&] { verify(scene.folder().file("none.db")); }).kind == ExitCode::kUsage);
}

TEST_CASE("the fingerprint names the backend that would run") {
  const Json stack = fingerprint({.threads = 1, .backend = "cpu"});
  const Json* backend = stack.find("informational")->find("backend");
  CHECK(backend->find("name")->as_string() == "cpu");
  CHECK(backend->find("threads")->as_i64() == 1);
  const EngineOptions no_such{.threads = 1, .backend = "cuda", .device = "no such"};
  CHECK(thrown_by([&] { fingerprint(no_such); }).kind == ExitCode::kUsage);
}

TEST_CASE("tokenize refuses a begin token that the vocabulary does not have") {
  Scene scene;
  test::TinyFile file = test::tiny_run_model();
  file.drop_key("tokenizer.ggml.bos_token_id");
  file.drop_key("tokenizer.ggml.tokens");
  std::vector<std::string> tokens = test::tiny_vocab();
  tokens[1] = "<other>";
  file.key("tokenizer.ggml.tokens",
           [=](test::GgufBuilder& b) { b.strings("tokenizer.ggml.tokens", tokens); });
  TokenizeOptions options;
  options.model_path = scene.folder().write("nobos.gguf", file.bytes());
  options.bos = true;
  const test::Thrown error = thrown_by([&] { tokenize(options); });
  CHECK(error.kind == ExitCode::kUsage);
  CHECK(error.says("no begin token"));
  CHECK(error.hint == "leave out --bos");
}

TEST_CASE("tokenize gives bare ids, a begin token only when asked") {
  Scene scene;
  TokenizeOptions options;
  options.model_path = scene.options.model_path;
  options.text = "ab";
  CHECK(tokenize(options) == std::vector<std::int32_t>{259, 260, 261});
  options.bos = true;
  CHECK(tokenize(options) == std::vector<std::int32_t>{1, 259, 260, 261});
  options.bos = false;
  options.text = "</s>";
  CHECK(tokenize(options).size() > 1);
  options.special = true;
  CHECK(tokenize(options) == std::vector<std::int32_t>{2});
}

}  // namespace
}  // namespace detrun
