// `detrun bench` as a whole program: the table, the document, bad options.
#include <filesystem>

#include "tests/cli/cli_support.h"

namespace detrun::test {
namespace {

std::vector<std::string> bench_words(const std::vector<std::string>& more) {
  std::vector<std::string> words{"bench", "-m", model_path(), "--repeat", "1", "-n", "2"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST_CASE("bench prints the model, the ceilings and a line a result") {
  const CliResult result = run_cli(bench_words({"--threads", "2"}));
  INFO(result.err);
  REQUIRE(result.code == 0);
  CHECK(result.out.starts_with("model     detrun-decisions, llama, Q8_0, "));
  CHECK(contains(result.out, "\nengine    2 threads, context 512, "));
  CHECK(contains(result.out, "\nceilings  read "));
  for (const char* name : {"\ndecode ", "\nprefill ", "\nprefill_128 ", "\nrecord ",
                           "\nreplay_step ", "\nreplay_parallel "}) {
    CHECK(contains(result.out, name));
  }
  CHECK(contains(result.out, "\nrecord: the ledger costs "));
}

TEST_CASE("bench --json is one document with the results that were asked for") {
  const CliResult result =
      run_cli(bench_words({"--json", "--only", "decode,replay_parallel", "--threads", "1"}));
  INFO(result.err);
  REQUIRE(result.code == 0);
  const Json document = parse_line(result.out);
  CHECK(at_path(document, "schema").as_string() == "detrun.bench/1");
  CHECK(at_path(document, "threads").as_i64() == 1);
  CHECK(at_path(document, "machine.cpu").is_object());
  CHECK(at_path(document, "model.name").as_string() == "detrun-decisions");
  const Json results = at_path(document, "results");
  REQUIRE(results.as_array().size() == 2);
  CHECK(at_path(results.as_array()[0], "name").as_string() == "decode");
  CHECK(at_path(results.as_array()[0], "runs").as_i64() == 1);
  CHECK(at_path(results.as_array()[1], "name").as_string() == "replay_parallel");
  CHECK(at_path(results.as_array()[1], "rows").as_i64() > 128);  // the model ends early
}

TEST_CASE("bench leaves nothing behind, neither a ledger nor a temporary folder") {
  const ScratchFolder folder;
  CliRun run;
  run.arguments = bench_words({"--only", "record"});
  run.env["DETRUN_LEDGER"] = folder / "own.db";  // of other commands
  run.env["TMPDIR"] = folder / "";
  const CliResult result = run_cli(run);
  INFO(result.err);
  REQUIRE(result.code == 0);
  CHECK(std::filesystem::is_empty(folder / ""));
}

TEST_CASE("bench refuses what it does not know, with a way out") {
  const auto refused = [](const std::vector<std::string>& words, const char* hint) {
    const CliResult result = run_cli(words);
    CAPTURE(result.err);
    CHECK(result.code == 2);
    CHECK(result.out.empty());
    CHECK(contains(result.err, hint));
  };
  refused({"bench"}, "--shape");
  refused({"bench", "--shape", "1.1b"}, "--type");
  refused({"bench", "--type", "q8_0"}, "--shape");
  refused({"bench", "--shape", "2b", "--type", "q8_0"}, "135m");
  refused({"bench", "--shape", "8B", "--type", "Q9"}, "q4_k_m");
  refused({"bench", "--shape", "135m", "--type", "q8_0", "-m", model_path()}, "one of them");
  refused(bench_words({"--only", "decode,"}), "replay_parallel");
  refused(bench_words({"--only", ""}), "replay_parallel");
  refused({"bench", "-m", model_path(), "--repeat", "0"}, "from 1");
  refused({"bench", "-m", model_path(), "-n", "1"}, "from 2");
  refused(bench_words({"--ctx", "100"}), "512");
  refused({"bench", "-m", "no-such-file.gguf"}, "no-such-file");
}

TEST_CASE("bench takes the model of the environment, unless a shape is given") {
  CliRun run;
  run.env["DETRUN_MODEL"] = model_path();
  run.arguments = {"bench", "--repeat", "1", "-n", "2", "--only", "decode"};
  CHECK(run_cli(run).code == 0);
  run.arguments = {"bench", "--shape", "135m", "--type", "q0"};
  const CliResult shape = run_cli(run);
  CHECK(shape.code == 2);
  CHECK(contains(shape.err, "q0"));
}

}  // namespace
}  // namespace detrun::test
