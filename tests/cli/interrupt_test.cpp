// Ctrl-C. The run is held in a long prefill on the scalar kernels, so that the signal never comes
// too late; standard error tells when it began.
#include <csignal>

#include "tests/cli/cli_support.h"

namespace detrun::test {
namespace {

CliRun long_run(const std::string& ledger, int repetitions = 60) {
  CliRun run;
  std::string prompt;
  for (int i = 0; i < repetitions; ++i) prompt += "Claim 17: water damage. ";
  run.arguments = {"record", "-m",   model_path(), "--ledger", ledger, "-v",
                   "--ctx",  "4000", "--threads",  "1",        "-p",   prompt};
  run.env["DETRUN_CPU_ISA"] = "scalar";
  run.interrupt_when_err = "started";
  return run;
}

TEST_CASE("Ctrl-C ends the run as cancelled, sealed, exit 130") {
  const ScratchFolder folder;
  const std::string ledger = folder / "l.db";
  const CliResult result = run_cli(long_run(ledger));
  INFO(result.err);
  REQUIRE_FALSE(result.timed_out);
  CHECK(result.code == 130);
  CHECK(contains(result.err, "stop: cancelled"));
  const CliResult verified = run_cli({"verify", "--ledger", ledger});
  CHECK(verified.code == 0);
  const CliResult shown = run_cli({"show", "1", "--json", "--ledger", ledger});
  const Json document = parse_line(shown.out);
  CHECK(at_path(document, "status").as_string() == "cancelled");
  CHECK(at_path(document, "stop_reason").as_string() == "cancelled");
  CHECK(at_path(document, "seal").is_string());
}

TEST_CASE("Ctrl-C ends a run whose reader does not read") {
  const ScratchFolder folder;
  CliRun run = long_run(folder / "l.db", 400);
  run.arguments.push_back("--echo");  // more than the pipe holds
  run.read_out = false;
  const CliResult result = run_cli(run);
  REQUIRE_FALSE(result.timed_out);
  CHECK(result.code == 130);
  CHECK(run_cli({"verify", "--ledger", folder / "l.db"}).code == 0);
}

TEST_CASE("a second Ctrl-C kills, and what was committed verifies as interrupted") {
  const ScratchFolder folder;
  CliRun run = long_run(folder / "l.db", 400);
  run.arguments.push_back("--echo");
  run.read_out = false;
  run.interrupts = 2;
  const CliResult result = run_cli(run);
  REQUIRE_FALSE(result.timed_out);
  // The first one may have been enough: both come close together.
  if (result.code != 130) CHECK(result.signal == SIGINT);
  CHECK(run_cli({"verify", "--ledger", folder / "l.db"}).code == 0);
}

TEST_CASE("Ctrl-C ends a replay with exit 130") {
  const ScratchFolder folder;
  CliRun record = long_run(folder / "l.db");
  record.interrupt_when_err.clear();
  record.env.clear();
  record.arguments.insert(record.arguments.end(), {"-n", "2"});
  REQUIRE(run_cli(record).code == 0);
  CliRun replay;
  replay.arguments = {"replay", "1", "--ledger", folder / "l.db", "-v", "--threads", "1"};
  replay.env["DETRUN_CPU_ISA"] = "scalar";
  replay.interrupt_when_err = "info: model ";  // loaded; the prefill takes a second or more
  const CliResult result = run_cli(replay);
  INFO(result.err);
  REQUIRE_FALSE(result.timed_out);
  CHECK(result.code == 130);
}

}  // namespace
}  // namespace detrun::test
