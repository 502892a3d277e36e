// The use case `replay` in both modes: whatever was planted, one teacher-forced pass says the same
// as computing one token after the other, whatever the chunk.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/unit/run/replay_both.h"

namespace detrun {
namespace {

using test::kChunks;
using test::LongScene;
using test::replay_both;
using test::Scene;

/// A run of 100 steps that a forger changed, resealed.
ReplayRun replay_forged(const std::function<void(RunRecord&)>& change,
                        const std::vector<std::uint32_t>& chunks = kChunks) {
  LongScene scene;
  scene.record();
  RunRecord run = scene.read(1);
  REQUIRE(run.steps.size() == 100);
  change(run);
  scene.forge(run);
  CHECK(verify(scene.options.ledger_path).ok);
  return replay_both(scene, chunks);
}

TEST_CASE("auto is parallel, and both modes reproduce an honest run") {
  LongScene scene;
  scene.record();
  CHECK(scene.replay_one().mode == "parallel");
  const ReplayRun run = replay_both(scene);
  CHECK(run.verdict == Verdict::kReproduced);
  CHECK(run.steps_checked == 100);
}

TEST_CASE("a recorded chunk is of no consequence for any bit") {
  Scene scene;
  scene.options.prompt = "a somewhat longer prompt that crosses the borders of chunks";
  scene.options.n = 40;
  const RunRecord base = scene.record().run;
  for (const std::uint32_t chunk : kChunks) {
    scene.options.engine.chunk = chunk;
    CHECK(test::same_steps(scene.record().run.steps, base.steps));
  }
}

TEST_CASE("a forged token, hash, margin or piece is named at the same step") {
  for (const std::size_t at : {0U, 1U, 6U, 57U, 58U, 99U}) {
    CAPTURE(at);
    const ReplayRun token = replay_forged([&](RunRecord& run) { run.steps[at].token ^= 1; });
    CHECK(token.verdict == Verdict::kDiverged);
    CHECK(token.first_token_difference == at);
    CHECK(token.steps_checked == at + 1);
    const ReplayRun hash =
        replay_forged([&](RunRecord& run) { run.steps[at].logits_xxh3[3] ^= 9; });
    CHECK(hash.verdict == Verdict::kDiverged);
    CHECK(hash.first_logits_difference == at);
    CHECK(hash.steps_checked == 100);
    for (const int bit : {0, 31}) {
      const ReplayRun margin =
          replay_forged([&](RunRecord& run) { run.steps[at].margin_bits ^= 1U << bit; }, {64});
      CHECK(margin.verdict == Verdict::kDiverged);
    }
    CHECK(replay_forged([&](RunRecord& run) { run.steps[at].piece += "!"; }, {64}).verdict ==
          Verdict::kDiverged);
  }
}

TEST_CASE("tokens that the vocabulary does not have are differences, never crashes") {
  for (const std::int32_t foreign : {-1, 286, 2147483647, -2147483647 - 1}) {
    const ReplayRun run = replay_forged([&](RunRecord& r) { r.steps[70].token = foreign; });
    CHECK(run.verdict == Verdict::kDiverged);
    CHECK(run.first_token_difference == 70U);
    CHECK(run.recorded_token == foreign);
    CHECK(run.recorded_piece.empty());
  }
}

TEST_CASE("steps cut off and surplus steps are named at the same step") {
  for (const std::size_t kept : {0U, 1U, 63U, 64U, 99U}) {
    const ReplayRun run = replay_forged([&](RunRecord& r) { r.steps.resize(kept); });
    CHECK(run.verdict == Verdict::kDiverged);
    CHECK(run.first_token_difference == kept);
    CHECK_FALSE(run.recorded_token.has_value());
  }
  const ReplayRun surplus = replay_forged([](RunRecord& run) {
    for (std::uint64_t i = 100; i < 105; ++i) {
      run.steps.push_back(run.steps[5]);
      run.steps.back().index = i;
    }
  });
  CHECK(surplus.first_token_difference == 100U);
  CHECK_FALSE(surplus.replayed_token.has_value());
}

TEST_CASE("a changed prompt token differs from the first step on") {
  Scene scene;
  scene.options.tokens = std::vector<std::int32_t>{1, 260, 261, 262};
  scene.options.n = 60;
  scene.record();
  RunRecord run = scene.read(1);
  run.fields[std::string(field::prompt_tokens)] = tokens_to_blob({1, 260, 270, 262});
  scene.forge(run);
  const ReplayRun replayed = replay_both(scene);
  CHECK(replayed.verdict == Verdict::kDiverged);
  CHECK(replayed.first_logits_difference == 0U);
}

/// The first token of the recorded run at `from` or after it that occurs nowhere before.
std::size_t first_new_token(const std::vector<StepRecord>& steps, std::size_t from) {
  for (std::size_t i = from; i < steps.size(); ++i) {
    if (std::none_of(steps.begin(), steps.begin() + static_cast<long>(i),
                     [&](const StepRecord& step) { return step.token == steps[i].token; })) {
      return i;
    }
  }
  return steps.size();
}

TEST_CASE("a run that its end token ends: honest, cut, and longer than its end") {
  LongScene scene;
  const RunRecord free_run = scene.record().run;
  const std::size_t end = first_new_token(free_run.steps, 3);
  REQUIRE(end < 100);
  test::TinyFile file = test::tiny_run_model();
  file.u32("tokenizer.ggml.eos_token_id", static_cast<std::uint32_t>(free_run.steps[end].token));
  scene.options.model_path = scene.folder().write("ends.gguf", file.bytes());
  scene.options.n.reset();
  const RecordReport report = scene.record();
  CHECK(report.stop_reason == "end");
  CHECK(report.steps == end + 1);
  CHECK(replay_both(scene).verdict == Verdict::kReproduced);

  RunRecord run = scene.read(2);
  run.steps.pop_back();
  scene.forge(run);
  const ReplayRun cut = replay_both(scene);
  CHECK(cut.verdict == Verdict::kDiverged);
  CHECK(cut.first_token_difference == end);

  run = scene.read(2);
  for (int i = 0; i < 3; ++i) {
    run.steps.push_back(run.steps[1]);
    run.steps.back().index = run.steps.size() - 1;
  }
  scene.forge(run);
  const ReplayRun longer = replay_both(scene);
  CHECK(longer.verdict == Verdict::kDiverged);
  CHECK(longer.first_token_difference == end + 1);
  CHECK_FALSE(longer.replayed_token.has_value());
}

TEST_CASE("every other end: a full context, no step at all, interrupted, cancelled, wrong reason") {
  Scene full;
  full.options.n.reset();
  full.options.ctx = 40;
  CHECK(full.record().stop_reason == "context");
  CHECK(replay_both(full).verdict == Verdict::kReproduced);

  Scene none;
  none.options.n = 0;
  none.record();
  CHECK(replay_both(none).verdict == Verdict::kReproduced);

  const auto interrupted = [](RunRecord& run) {
    run.sealed = false;
    run.steps.resize(77);
  };
  const ReplayRun prefix = replay_forged(interrupted);
  CHECK(prefix.verdict == Verdict::kReproduced);
  CHECK_FALSE(prefix.complete);
  CHECK(prefix.steps_checked == 77);

  Scene closed;
  closed.observer.close_after = 3;
  CHECK(closed.record().stop_reason == "closed");
  CHECK(replay_both(closed).verdict == Verdict::kReproduced);

  const ReplayRun wrong = replay_forged(
      [](RunRecord& run) { run.fields[std::string(field::stop_reason)] = "context"; });
  CHECK(wrong.verdict == Verdict::kDiverged);
}

TEST_CASE("a flipped weight bit is another model; with its digest forged the steps tell") {
  LongScene scene;
  scene.record();
  test::TinyFile flipped = test::tiny_run_model();
  flipped.tensor("blk.0.attn_q.weight").data[401] ^= 0x40;
  scene.folder().write("tiny.gguf", flipped.bytes());
  const ReplayRun refused = replay_both(scene, {64});
  CHECK(refused.verdict == Verdict::kInconclusive);
  CHECK(refused.steps_checked == 0);
  RunRecord run = scene.read(1);
  run.fields[std::string(field::model_sha256)] = to_blob(sha256_file(scene.options.model_path));
  scene.forge(run);
  const ReplayRun told = replay_both(scene);
  CHECK(told.verdict == Verdict::kDiverged);
  CHECK(told.first_logits_difference.has_value());
}

/// Makes the model unable to compute a position that holds this token.
void spoil_token(test::TinyFile& file, std::int32_t token) {
  std::string& rows = file.tensor("token_embd.weight").data;
  const std::size_t row_bytes = rows.size() / test::tiny_vocab().size();
  for (std::size_t i = 0; i < row_bytes; i += sizeof(float)) {
    test::patch_le(rows, static_cast<std::size_t>(token) * row_bytes + i, 3e38F);
  }
}

TEST_CASE("a forged token that cannot be computed with is still only a forged token") {
  constexpr std::int32_t kSpoiled = 0;
  LongScene scene;
  test::TinyFile file = test::tiny_run_model();
  spoil_token(file, kSpoiled);
  scene.folder().write("tiny.gguf", file.bytes());
  scene.record();
  for (const std::size_t at : {0U, 40U, 99U}) {
    RunRecord run = scene.read(1);
    REQUIRE(run.steps.size() == 100);
    run.steps[at].token = kSpoiled;
    scene.forge(run);
    const ReplayRun found = replay_both(scene);
    CHECK(found.verdict == Verdict::kDiverged);
    CHECK(found.first_token_difference == at);
  }
}

TEST_CASE("a step that cannot be computed is named by both modes in the same words") {
  LongScene scene;
  const RunRecord good = scene.record().run;
  const std::size_t last = first_new_token(good.steps, 3);
  test::TinyFile file = test::tiny_run_model();
  spoil_token(file, good.steps.at(last).token);
  scene.options.model_path = scene.folder().write("spoiled.gguf", file.bytes());
  const test::Thrown error = test::thrown_by([&] { scene.record(); });
  CHECK(error.kind == ExitCode::kInternal);
  CHECK(replay_both(scene).verdict == Verdict::kReproduced);
  RunRecord run = scene.read(2);
  REQUIRE(run.steps.size() == last + 1);
  for (std::size_t i = last + 1; i < 20; ++i) run.steps.push_back(good.steps[i]);
  scene.forge(run);
  const ReplayRun failed = replay_both(scene);
  CHECK(failed.verdict == Verdict::kInternal);
  CHECK(failed.reason == error.message);
}

/// Longer runs of trained models: several chunks of the largest size.
void check_long_run(const std::string& model, const std::string& prompt, std::uint64_t n) {
  if (model.empty()) return;
  CAPTURE(model);
  Scene scene;
  scene.options.model_path = model;
  scene.options.prompt = prompt;
  scene.options.n = n;
  const RecordReport report = scene.record();
  CHECK(replay_both(scene).verdict == Verdict::kReproduced);
  for (const std::size_t at : {std::size_t{0}, report.steps / 2, report.steps - 1}) {
    RunRecord run = scene.read(1);
    run.steps[at].token = run.steps[at].token == 300 ? 301 : 300;
    run.steps[at / 2].logits_xxh3[0] ^= 1;
    scene.forge(run);
    const ReplayRun found = replay_both(scene, {7, 64, 512});
    CHECK(found.verdict == Verdict::kDiverged);
    CHECK(found.first_token_difference == at);
    CHECK(found.first_logits_difference == at / 2);
  }
}

TEST_CASE("long runs of trained models say the same in both modes") {
  const std::string folder = std::string(DETRUN_SOURCE_DIR) + "/fixtures/models/";
  for (const char* name : {"detrun-decisions-f16.gguf", "detrun-decisions-q8_0.gguf",
                           "detrun-decisions-q4_k_m.gguf"}) {
    check_long_run(folder + name,
                   "Credit application. Applicant: Maria Lopez. Income: 4,200 EUR a month. "
                   "Requested: 12,000 EUR over 36 months. Missed payments: none.\nDecision:",
                   200);
  }
  for (const char* name : {"stories260K-f32.gguf", "stories260K-q8_0.gguf"}) {
    check_long_run(test::shared_model(name), "Once upon a time", 350);
  }
}

}  // namespace
}  // namespace detrun
