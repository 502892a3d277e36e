// The command `stress` as a child process: its report, its document, its exit codes.
#include "tests/cli/cli_support.h"

namespace detrun::test {
namespace {

CliResult run_stress(const std::vector<std::string>& more) {
  std::vector<std::string> words{"stress", "-m", model_path(), "-p", kPrompt, "-n", "3"};
  words.insert(words.end(), more.begin(), more.end());
  return run_cli(words);
}

TEST_CASE("stress finds one output and says so on standard output") {
  const CliResult result = run_stress({"--runs", "12", "--threads", "1,2", "--chunk", "1,7"});
  CHECK(result.code == 0);
  CHECK(result.err.empty());
  CHECK(result.out.starts_with("1 distinct output in 12 runs of 3 steps under "));
  CHECK(contains(result.out, "\n  chain "));
  CHECK(contains(result.out, "  12 runs, first run 0 ("));
  CHECK(contains(result.out, ", 1 thread, chunk 1, fresh context, step)\n"));
}

TEST_CASE("stress --json prints the document, and its chain is the same under every seed") {
  const auto chain = [](const std::string& seed) {
    const CliResult result = run_stress({"--runs", "6", "--seed", seed, "--json"});
    REQUIRE(result.code == 0);
    const Json document = parse_line(result.out);
    CHECK(at_path(document, "schema").as_string() == "detrun.stress/1");
    CHECK(at_path(document, "runs").as_i64() == 6);
    CHECK(at_path(document, "distinct_outputs").as_i64() == 1);
    return at_path(document, "outputs").as_array()[0].find("chain")->as_string();
  };
  CHECK(chain("1") == chain("18446744073709551615"));
}

TEST_CASE("stress with another number of outputs than expected exits with 1") {
  const CliResult result = run_stress({"--runs", "2", "--expect", "2"});
  CHECK(result.code == 1);
  CHECK(result.out.starts_with("1 distinct output in 2 runs"));
  CHECK(contains(result.out, ", expected 2\n"));
}

TEST_CASE("stress refuses lists and values that mean nothing") {
  const auto refused = [](const std::vector<std::string>& more, const std::string& part) {
    const CliResult result = run_stress(more);
    INFO(result.err);
    CHECK(result.code == 2);
    CHECK(result.out.empty());
    CHECK(contains(result.err, part));
  };
  refused({"--threads", "1,,2"}, "--threads: expected values separated by commas");
  refused({"--threads", "0"}, "--threads: expected whole numbers from 1 to 1024");
  refused({"--threads", "1025"}, "found '1025'");
  refused({"--chunk", "2,x"}, "--chunk: expected whole numbers");
  refused({"--chunk", ""}, "--chunk");
  refused({"--isa", "mmx"}, "mmx");
  refused({"--mode", "fast"}, "known are step, parallel");
  refused({"--state", "warm"}, "known are fresh, reused");
  refused({"--runs", "0"}, "--runs");
  refused({"--expect", "0"}, "--expect");
}

}  // namespace
}  // namespace detrun::test
