// A prompt's way into a run: bytes as given, tokens as given, what does not fit is refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "detrun/text.h"
#include "tests/unit/run/scene.h"

namespace detrun {
namespace {

using test::Scene;
using test::Thrown;
using test::thrown_by;

TEST_CASE("the prompt's bytes are recorded as given: newline, backslashes, invalid UTF-8, NUL") {
  for (const std::string& prompt :
       {std::string("a\n"), std::string("a\\nb"), std::string("\xff\xfe\x80 x"),
        std::string("a\0b", 3), std::string("</s><s>")}) {
    CAPTURE(escape_for_terminal(prompt));
    Scene scene;
    scene.options.prompt = prompt;
    scene.options.n = 3;
    scene.record();
    CHECK(field_blob(scene.read(1).fields, field::prompt) == prompt);
    CHECK(scene.replay_one().verdict == Verdict::kReproduced);
  }
}

TEST_CASE("control tokens spelled in a prompt stay text") {
  Scene scene;
  scene.options.prompt = "</s>";
  scene.record();
  const auto tokens = field_blob(scene.read(1).fields, field::prompt_tokens);
  const auto ids = blob_to_tokens(tokens.value());
  REQUIRE(ids.has_value());
  CHECK(std::count(ids->begin(), ids->end(), 2) == 0);  // </s>
  CHECK(ids->size() > 4);
}

TEST_CASE("an empty prompt is the begin token alone") {
  Scene scene;
  scene.options.prompt = "";
  scene.record();
  const RunRecord run = scene.read(1);
  CHECK(field_blob(run.fields, field::prompt_tokens) == tokens_to_blob({1}).bytes);
  CHECK(field_blob(run.fields, field::prompt) == "");
}

TEST_CASE("given tokens are used as they are, without a begin token") {
  Scene scene;
  scene.options.tokens = std::vector<std::int32_t>{270, 271, 272};
  scene.record();
  const RunRecord run = scene.read(1);
  CHECK(field_blob(run.fields, field::prompt_tokens) == tokens_to_blob({270, 271, 272}).bytes);
  CHECK(field_i64(run.fields, field::params_bos) == 0);
  CHECK(field_text(run.fields, field::prompt_source) == "tokens");
  CHECK(run.fields.count(field::prompt) == 0);
}

TEST_CASE("a token outside the vocabulary is refused by place and id") {
  Scene scene;
  scene.options.tokens = std::vector<std::int32_t>{1, 286};
  Thrown error = thrown_by([&] { scene.record(); });
  CHECK(error.kind == ExitCode::kUsage);
  CHECK(error.says("token 1 "));
  CHECK(error.says("286"));
  scene.options.tokens = std::vector<std::int32_t>{-1};
  CHECK(thrown_by([&] { scene.record(); }).says("-1"));
  scene.options.tokens = std::vector<std::int32_t>{};
  error = thrown_by([&] { scene.record(); });
  CHECK(error.kind == ExitCode::kUsage);
  CHECK_FALSE(error.hint.empty());
}

TEST_CASE("a prompt longer than the context is refused with both numbers and no run begins") {
  Scene scene;
  scene.options.tokens = std::vector<std::int32_t>(9, 270);
  scene.options.ctx = 8;
  const Thrown error = thrown_by([&] { scene.record(); });
  CHECK(error.kind == ExitCode::kUsage);
  CHECK(error.says("9 tokens"));
  CHECK(error.says("holds 8"));
  CHECK_FALSE(error.hint.empty());
  CHECK(list_runs(scene.options.ledger_path).empty());
}

TEST_CASE("a prompt that fills the context exactly gives one step, then the context is full") {
  Scene scene;
  scene.options.tokens = std::vector<std::int32_t>(8, 270);
  scene.options.ctx = 8;
  const RecordReport report = scene.record();
  CHECK(report.steps == 1);
  CHECK(report.stop_reason == "context");
  CHECK(scene.replay_one().verdict == Verdict::kReproduced);
}

}  // namespace
}  // namespace detrun
