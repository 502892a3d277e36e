// Which runs `replay` takes, and how many verdicts become one.
#include <doctest/doctest.h>

#include <string>

#include "tests/unit/run/scene.h"

namespace detrun {
namespace {

using test::Scene;
using test::thrown_by;

bool says(const ReplayRun& run, std::string_view part) {
  return run.reason.find(part) != std::string::npos;
}

TEST_CASE("an error inside one run is that run's verdict and the next is replayed") {
  Scene scene;
  test::TinyFile file = test::tiny_run_model();
  std::string& norm = file.tensor("output_norm.weight").data;
  for (std::size_t i = 0; i < norm.size(); i += 4) test::patch_le(norm, i, 3e38F);
  const std::string good = scene.options.model_path;
  scene.record();
  RunRecord run = scene.read(1);
  scene.options.model_path = scene.folder().write("hot.gguf", file.bytes());
  CHECK(thrown_by([&] { scene.record(); }).kind == ExitCode::kInternal);
  for (const std::string_view name : {field::model_path, field::model_sha256}) {
    run.fields[std::string(name)] = scene.read(2).fields.at(std::string(name));
  }
  scene.forge(run);
  scene.options.model_path = good;
  scene.record();
  scene.replay_options.selectors = {"3", "4"};
  const ReplayReport report = scene.replay();
  REQUIRE(report.runs.size() == 2);
  CHECK(report.verdict == Verdict::kInternal);
  CHECK(report.runs[0].verdict == Verdict::kInternal);
  CHECK_FALSE(report.runs[0].complete);
  CHECK(report.runs[1].complete);
  CHECK(says(report.runs[0], "finite"));
  CHECK(report.runs[1].verdict == Verdict::kReproduced);
}

TEST_CASE("what is not there is inconclusive and says what to do") {
  Scene scene;
  scene.record();
  scene.replay_options.selectors = {"99"};
  const ReplayRun missing = scene.replay_one();
  CHECK(missing.verdict == Verdict::kInconclusive);
  CHECK(says(missing, "detrun list"));
  CHECK(says(missing, "'99'"));
  CHECK_FALSE(missing.complete);
  CHECK(replay_to_json(scene.replay()).find("runs")->as_array()[0].find("id")->is_null());
  scene.replay_options.selectors = {"99", "1", "latest"};
  const ReplayReport both = scene.replay();
  CHECK(both.verdict == Verdict::kInconclusive);
  CHECK(both.runs.size() == 2);  // 1 and latest are one run
}

TEST_CASE("all runs of an empty ledger are no proof of anything") {
  Scene scene;
  Ledger::open_for_recording(scene.options.ledger_path);
  scene.replay_options.selectors.clear();
  scene.replay_options.all = true;
  const ReplayReport report = scene.replay();
  CHECK(report.verdict == Verdict::kInconclusive);
  CHECK(report.runs.empty());
  CHECK_FALSE(report.reason.empty());
}

TEST_CASE("of many runs the worst verdict wins, and fail-fast ends at the first that is not good") {
  Scene scene;
  scene.record();
  RunRecord forged = scene.read(1);
  forged.steps[0].logits_xxh3[5] ^= 1;
  scene.forge(forged);
  RunRecord later = scene.read(1);
  later.fields[std::string(field::numerics_version)] = std::int64_t{9};
  scene.forge(later);
  scene.record();
  scene.replay_options.selectors.clear();
  scene.replay_options.all = true;
  const ReplayReport report = scene.replay();
  CHECK(report.verdict == Verdict::kDiverged);
  REQUIRE(report.runs.size() == 4);
  CHECK(report.runs[0].verdict == Verdict::kReproduced);
  CHECK(report.runs[1].verdict == Verdict::kDiverged);
  CHECK(report.runs[2].verdict == Verdict::kInconclusive);
  CHECK(report.runs[3].verdict == Verdict::kReproduced);
  scene.replay_options.fail_fast = true;
  CHECK(scene.replay().runs.size() == 2);
}

TEST_CASE("a cancelled replay is inconclusive and ends the list") {
  Scene scene;
  scene.record();
  scene.record();
  scene.replay_options.selectors.clear();
  scene.replay_options.all = true;
  scene.cancel = true;
  const ReplayReport report = scene.replay();
  CHECK(report.verdict == Verdict::kInconclusive);
  CHECK(report.runs.size() == 1);
}

TEST_CASE("bad replay options are usage errors") {
  Scene scene;
  scene.record();
  scene.replay_options.mode = "quick";
  CHECK(thrown_by([&] { scene.replay(); }).kind == ExitCode::kUsage);
  CHECK(thrown_by([&] { scene.replay(); }).says("'quick'"));
  scene.replay_options.mode = "step";
  scene.replay_options.all = true;
  CHECK(thrown_by([&] { scene.replay(); }).kind == ExitCode::kUsage);
  scene.replay_options.all = false;
  scene.replay_options.selectors.clear();
  CHECK(thrown_by([&] { scene.replay(); }).kind == ExitCode::kUsage);
  scene.replay_options.selectors = {"latest"};
  scene.replay_options.ledger_path = scene.folder().file("none.db");
  CHECK(thrown_by([&] { scene.replay(); }).kind == ExitCode::kUsage);
}

}  // namespace
}  // namespace detrun
