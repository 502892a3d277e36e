// A ledger recorded before the fields of --prompts existed: everything still works on it.
#include <doctest/doctest.h>

#include <filesystem>

#include "tests/unit/run/scene.h"

namespace detrun {
namespace {

TEST_CASE("a ledger of before --prompts verifies, replays and takes new runs") {
  test::Scene scene;
  const std::string source = DETRUN_SOURCE_DIR;
  std::filesystem::copy_file(source + "/fixtures/ledgers/before_prompts.db",
                             scene.options.ledger_path);
  std::filesystem::permissions(scene.options.ledger_path, std::filesystem::perms::owner_all);
  CHECK(verify(scene.options.ledger_path).ok);
  CHECK_FALSE(scene.read(1).fields.contains(field::prompts_sha256));
  scene.replay_options.selectors.clear();
  scene.replay_options.all = true;
  scene.replay_options.model_path = source + "/fixtures/models/detrun-decisions-q8_0.gguf";
  const ReplayReport old = scene.replay();
  REQUIRE(old.runs.size() == 2);
  CHECK(old.verdict == Verdict::kReproduced);

  PromptsOptions prompts;
  prompts.path = scene.folder().write("prompts.jsonl", "{\"prompt\": \"a\"}\n");
  PromptsObserver nobody;
  CHECK(record_prompts(scene.options, prompts, scene.cancel, nobody).recorded == 1);
  CHECK(record_prompts(scene.options, prompts, scene.cancel, nobody).done == 1);
  CHECK(verify(scene.options.ledger_path).ok);
  CHECK(field_i64(scene.read(3).fields, field::prompts_line) == 1);
}

}  // namespace
}  // namespace detrun
