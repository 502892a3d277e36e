// The use case `replay`: every verdict, reached by the thing that must cause it.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/unit/run/scene.h"

namespace detrun {
namespace {

using test::Scene;
using test::Thrown;
using test::thrown_by;

bool says(const ReplayRun& run, std::string_view part) {
  return run.reason.find(part) != std::string::npos;
}

TEST_CASE("a run replays to the same bits on other threads") {
  Scene scene;
  scene.record();
  scene.replay_options.engine.threads = 2;
  const ReplayRun run = scene.replay_one();
  CAPTURE(run.reason);
  CHECK(run.verdict == Verdict::kReproduced);
  CHECK(run.complete);
  CHECK(run.steps_checked == 12);
  CHECK(run.id == scene.observer.id);
  CHECK_FALSE(run.first_token_difference.has_value());
}

/// Changes bytes of the ledger's file itself, as an editor of files would.
void edit_ledger(const Scene& scene, const std::string& from, const std::string& to) {
  std::ifstream in(scene.options.ledger_path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const std::size_t at = bytes.find(from);
  REQUIRE(at != std::string::npos);
  REQUIRE(from.size() == to.size());
  bytes.replace(at, from.size(), to);
  std::ofstream(scene.options.ledger_path, std::ios::binary) << bytes;
}

TEST_CASE("an edited run is tampered with and is not executed, unless forced") {
  Scene scene;
  scene.options.tags = {{"case", "approved-by-4711"}};
  scene.record();
  edit_ledger(scene, "approved-by-4711", "approved-by-0815");
  const ReplayRun run = scene.replay_one();
  CHECK(run.verdict == Verdict::kTampered);
  CHECK_FALSE(run.complete);  // not known
  CHECK(run.steps_checked == 0);
  CHECK(says(run, "tag.case"));
  CHECK(says(run, "--force"));
  scene.replay_options.force = true;
  const ReplayRun forced = scene.replay_one();
  CHECK(forced.verdict == Verdict::kReproduced);
  CHECK(says(forced, "forced"));
  CHECK(says(forced, "tag.case"));
}

TEST_CASE("replay reports the first step whose token was forged, although every seal is right") {
  Scene scene;
  scene.record();
  RunRecord run = scene.read(1);
  const std::int32_t true_token = run.steps[7].token;
  run.steps[7].token = true_token == 270 ? 271 : 270;
  scene.forge(run);
  CHECK(verify(scene.options.ledger_path).ok);
  const ReplayRun replayed = scene.replay_one();
  CHECK(replayed.verdict == Verdict::kDiverged);
  CHECK(replayed.first_token_difference == 7U);
  CHECK_FALSE(replayed.first_logits_difference.has_value());
  CHECK(replayed.recorded_token == run.steps[7].token);
  CHECK(replayed.replayed_token == true_token);
  CHECK(replayed.steps_checked == 8);
  const auto prompt = field_blob(run.fields, field::prompt_tokens);
  CHECK(replayed.position == prompt->size() / 4 + 7);
  CHECK(says(replayed, "step 7"));
}

TEST_CASE("a forged logit hash is named and the replay goes on to the end") {
  Scene scene;
  scene.record();
  RunRecord run = scene.read(1);
  run.steps[3].logits_xxh3[0] ^= 1;
  scene.forge(run);
  const ReplayRun replayed = scene.replay_one();
  CHECK(replayed.verdict == Verdict::kDiverged);
  CHECK(replayed.first_logits_difference == 3U);
  CHECK_FALSE(replayed.first_token_difference.has_value());
  CHECK(replayed.steps_checked == 12);
}

TEST_CASE("one bit of a margin, of a log probability or of a piece is a difference") {
  for (int which = 0; which < 3; ++which) {
    CAPTURE(which);
    Scene scene;
    scene.record();
    RunRecord run = scene.read(1);
    if (which == 0) run.steps[5].margin_bits ^= 1;
    if (which == 1) run.steps[5].logprob_bits ^= 1;
    if (which == 2) run.steps[5].piece += "!";
    scene.forge(run);
    const ReplayRun replayed = scene.replay_one();
    CHECK(replayed.verdict == Verdict::kDiverged);
    CHECK(says(replayed, "step 5"));
  }
}

TEST_CASE("steps cut from the end are missed: the replay goes on") {
  Scene scene;
  scene.record();
  RunRecord run = scene.read(1);
  run.steps.resize(9);
  scene.forge(run);
  const ReplayRun replayed = scene.replay_one();
  CHECK(replayed.verdict == Verdict::kDiverged);
  CHECK(replayed.first_token_difference == 9U);
  CHECK_FALSE(replayed.recorded_token.has_value());
  CHECK(replayed.replayed_token.has_value());
}

TEST_CASE("steps added beyond -n are surplus: the replay ends before them") {
  Scene scene;
  scene.record();
  RunRecord run = scene.read(1);
  StepRecord extra = run.steps.back();
  extra.index = 12;
  run.steps.push_back(extra);
  scene.forge(run);
  const ReplayRun replayed = scene.replay_one();
  CHECK(replayed.verdict == Verdict::kDiverged);
  CHECK(replayed.first_token_difference == 12U);
  CHECK(replayed.recorded_token == extra.token);
  CHECK_FALSE(replayed.replayed_token.has_value());
}

TEST_CASE("a stop reason that is not the true one is a difference") {
  Scene scene;
  scene.record();
  RunRecord run = scene.read(1);
  run.fields[std::string(field::stop_reason)] = "end";
  scene.forge(run);
  const ReplayRun replayed = scene.replay_one();
  CHECK(replayed.verdict == Verdict::kDiverged);
  CHECK(says(replayed, "'end'"));
  CHECK(says(replayed, "'length'"));
}

TEST_CASE("a prompt that does not give the recorded tokens is a difference by position") {
  Scene scene;
  scene.record();
  RunRecord run = scene.read(1);
  run.fields[std::string(field::prompt)] = Blob{"hellp"};
  scene.forge(run);
  const ReplayRun replayed = scene.replay_one();
  CHECK(replayed.verdict == Verdict::kDiverged);
  CHECK(replayed.steps_checked == 0);
  CHECK(says(replayed, "position 6"));  // <s>, the space mark, h e l l o
  CHECK(replayed.position == 6U);
}

TEST_CASE("values that no honest run has are verdicts, never crashes") {
  struct Row {
    Verdict verdict;
    std::string_view name;
    FieldValue value;
  };
  for (const Row& row : {
           Row{Verdict::kDiverged, field::prompt_tokens, tokens_to_blob({1, 99999})},
           Row{Verdict::kDiverged, field::prompt_tokens, tokens_to_blob({-5})},
           Row{Verdict::kInconclusive, field::prompt_tokens, Blob{"abc"}},
           Row{Verdict::kInconclusive, field::prompt_tokens, Blob{""}},
           Row{Verdict::kDiverged, field::params_ctx, std::int64_t{2}},
           Row{Verdict::kInconclusive, field::params_ctx, std::int64_t{0}},
           Row{Verdict::kInconclusive, field::params_ctx, std::int64_t{1} << 40},
           Row{Verdict::kReproduced, field::params_ctx, std::int64_t{4294967295}},
           Row{Verdict::kInconclusive, field::params_n, std::int64_t{-1}},
           Row{Verdict::kInconclusive, field::params_kv, std::string("q4")},
           Row{Verdict::kInconclusive, field::params_temp, std::string("0.8")},
           Row{Verdict::kInconclusive, field::numerics_version, std::int64_t{2}},
           Row{Verdict::kInconclusive, field::numerics_profile, std::string("cublas")},
           Row{Verdict::kInconclusive, field::model_path, std::string("text, not bytes")},
       }) {
    Scene scene;
    scene.record();
    RunRecord run = scene.read(1);
    run.fields[std::string(row.name)] = row.value;
    scene.forge(run);
    const ReplayRun replayed = scene.replay_one();
    CAPTURE(row.name);
    CAPTURE(replayed.reason);
    CHECK(replayed.verdict == row.verdict);
  }
}

TEST_CASE("a forged list of tokens that the model cannot have seen is a difference") {
  Scene scene;
  scene.options.tokens = std::vector<std::int32_t>{1, 270};
  scene.record();
  RunRecord run = scene.read(1);
  run.fields[std::string(field::prompt_tokens)] = tokens_to_blob({1, 99999});
  scene.forge(run);
  const ReplayRun replayed = scene.replay_one();
  CHECK(replayed.verdict == Verdict::kDiverged);
  CHECK(replayed.position == 1U);
  CHECK(says(replayed, "99999"));
}

TEST_CASE("another type of the KV cache gives other logits, and the recorded one is used") {
  Scene scene;
  scene.options.kv = "f32";
  scene.record();
  CHECK(scene.replay_one().verdict == Verdict::kReproduced);
  RunRecord run = scene.read(1);
  run.fields[std::string(field::params_kv)] = "f16";
  scene.forge(run);
  CHECK(scene.replay_one().verdict == Verdict::kDiverged);
}

TEST_CASE("what a forger says about the model is compared with the model") {
  const std::pair<std::string_view, FieldValue> forgeries[] = {
      {field::model_name, FieldValue("another-model")},
      {field::model_arch, FieldValue("qwen2")},
      {field::model_quantization, FieldValue("F32-exact")},
      {field::model_size_bytes, FieldValue(std::int64_t{17})},
      {field::model_provenance, FieldValue("{}")},
      {field::model_tokenizer_sha256, FieldValue(Blob{std::string(32, 'x')})},
      {field::stack_digest, FieldValue(Blob{std::string(32, 'x')})}};
  for (const auto& forgery : forgeries) {
    const std::string_view name = forgery.first;
    Scene scene;
    scene.record();
    RunRecord run = scene.read(1);
    run.fields.insert_or_assign(std::string(name), forgery.second);
    scene.forge(run);
    CHECK(verify(scene.options.ledger_path).ok);
    const ReplayRun replayed = scene.replay_one();
    CAPTURE(name);
    CHECK(replayed.verdict == Verdict::kDiverged);
    CHECK(says(replayed, name));
    CHECK(replayed.steps_checked == 0);
  }
}

TEST_CASE("a model of another digest is refused by both digests before anything is executed") {
  Scene scene;
  scene.record();
  const std::string other = scene.folder().write("other.gguf", test::tiny_run_model(2).bytes());
  scene.replay_options.model_path = other;
  scene.replay_options.force = true;  // even so
  const ReplayRun run = scene.replay_one();
  CHECK(run.verdict == Verdict::kInconclusive);
  CHECK(run.steps_checked == 0);
  CHECK(says(run, to_hex(sha256_file(other))));
  CHECK(says(run, to_hex(sha256_file(scene.options.model_path))));
}

TEST_CASE("a model that moved is found by --model, one that is gone is inconclusive") {
  Scene scene;
  scene.record();
  const std::string moved = scene.folder().file("moved.gguf");
  std::filesystem::rename(scene.options.model_path, moved);
  const ReplayRun gone = scene.replay_one();
  CHECK(gone.verdict == Verdict::kInconclusive);
  CHECK(says(gone, "--model"));
  CHECK(says(gone, scene.options.model_path));
  scene.replay_options.model_path = moved;
  CHECK(scene.replay_one().verdict == Verdict::kReproduced);
}

TEST_CASE("a run recorded with a relative path replays from another folder") {
  Scene scene;
  const std::string absolute = scene.options.model_path;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(scene.folder().path());
  scene.options.model_path = "tiny.gguf";
  const Thrown error = thrown_by([&] { scene.record(); });
  std::filesystem::current_path(before);
  CHECK(error.kind == ExitCode::kOk);
  CHECK(std::filesystem::path(*field_blob(scene.read(1).fields, field::model_path)).is_absolute());
  const ReplayRun run = scene.replay_one();
  CAPTURE(run.reason);
  CHECK(run.verdict == Verdict::kReproduced);
  CHECK(std::filesystem::exists(absolute));
}

TEST_CASE("a damaged model file is inconclusive, not a failure") {
  Scene scene;
  scene.record();
  scene.folder().write("tiny.gguf", "GGUF");
  CHECK(scene.replay_one().verdict == Verdict::kInconclusive);
}

TEST_CASE("a replay leaves no trace in the ledger") {
  Scene scene;
  scene.record();
  const Sha256Digest before = sha256_file(scene.options.ledger_path);
  scene.replay_one();
  CHECK(sha256_file(scene.options.ledger_path) == before);
}

}  // namespace
}  // namespace detrun
