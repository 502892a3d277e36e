// The use case `replay` on runs that never came to their end, or have not yet.
#include <doctest/doctest.h>

#include <string>

#include "tests/unit/run/scene.h"

namespace detrun {
namespace {

using test::Scene;

bool says(const ReplayRun& run, std::string_view part) {
  return run.reason.find(part) != std::string::npos;
}

TEST_CASE("an interrupted run replays its committed prefix, and is inconclusive when strict") {
  Scene scene;
  scene.record();
  RunRecord run = scene.read(1);
  run.sealed = false;  // its writer ends without a seal
  run.steps.resize(6);
  scene.forge(run);
  const ReplayRun prefix = scene.replay_one();
  CAPTURE(prefix.reason);
  CHECK(prefix.verdict == Verdict::kReproduced);
  CHECK_FALSE(prefix.complete);
  CHECK(prefix.steps_checked == 6);
  scene.replay_options.strict = true;
  CHECK(scene.replay_one().verdict == Verdict::kInconclusive);
  scene.replay_options.selectors = {"1"};
  CHECK(scene.replay_one().verdict == Verdict::kReproduced);
  scene.replay_options.strict = false;
  scene.replay_options.selectors = {"latest"};
  Ledger::open_for_recording(scene.options.ledger_path);  // seals what the dead writer left
  const ReplayRun sealed = scene.replay_one();
  CHECK(sealed.verdict == Verdict::kReproduced);
  CHECK_FALSE(sealed.complete);
  CHECK(sealed.steps_checked == 6);
}

TEST_CASE("an interrupted run without its model's digest replays only when forced") {
  Scene scene;
  scene.record();
  RunRecord run = scene.read(1);
  run.sealed = false;
  run.fields.erase(std::string(field::model_sha256));
  scene.forge(run);
  const ReplayRun refused = scene.replay_one();
  CHECK(refused.verdict == Verdict::kInconclusive);
  CHECK(says(refused, "--force"));
  scene.replay_options.force = true;
  const ReplayRun forced = scene.replay_one();
  CHECK(forced.verdict == Verdict::kReproduced);
  CHECK(says(forced, "forced"));
}

TEST_CASE("a run that is still being recorded is inconclusive") {
  Scene scene;
  scene.record();
  const RunRecord run = scene.read(1);
  const auto ledger = Ledger::open_for_recording(scene.options.ledger_path);
  FieldMap start;
  for (const auto& [name, value] : run.fields) {
    if (name.starts_with("params.")) start.emplace(name, value);
  }
  const auto writer = ledger->begin_run(start);
  const ReplayRun live = scene.replay_one();
  CHECK(live.verdict == Verdict::kInconclusive);
  CHECK(says(live, "still being recorded"));
}

}  // namespace
}  // namespace detrun
