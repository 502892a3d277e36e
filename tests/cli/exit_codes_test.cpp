// Every exit code of the manual, reached by the real program; with --json standard output is one
// document or empty.
#include <algorithm>

#include "tests/cli/cli_support.h"

namespace detrun::test {
namespace {

TEST_CASE("0: a recorded run is reproduced, verified, listed and shown") {
  const ScratchFolder folder;
  const std::string ledger = folder / "l.db";
  record_into(ledger);
  const CliResult replayed = run_cli({"replay", "latest", "--ledger", ledger});
  CHECK(replayed.code == 0);
  CHECK(replayed.out.starts_with("REPRODUCED  run 1 ("));
  const CliResult verified = run_cli({"verify", "--ledger", ledger});
  CHECK(verified.code == 0);
  CHECK(verified.out.starts_with("ok  "));
  CHECK(run_cli({"list", "--ledger", ledger}).code == 0);
  CHECK(run_cli({"show", "1", "--ledger", ledger}).code == 0);
}

TEST_CASE("1: a forger who recomputed the seals passes verify and diverges on replay") {
  const ScratchFolder folder;
  record_into(folder / "l.db");
  forge(folder / "l.db", folder / "forged.db", 2, true);
  const std::string forged = folder / "forged.db";
  CHECK(run_cli({"verify", "--ledger", forged}).code == 0);
  const CliResult replayed = run_cli({"replay", "1", "--ledger", forged});
  CHECK(replayed.code == 1);
  CHECK(replayed.out.starts_with("DIVERGED  run 1 ("));
  CHECK(std::count(replayed.out.begin(), replayed.out.end(), '\n') == 1);
  CHECK(contains(replayed.out, "): token first differs at step 2 (recorded 5, replayed "));
  CHECK(contains(replayed.out, "; as text: recorded \""));
  CHECK(contains(replayed.out, "\", replayed \""));
  const CliResult json = run_cli({"replay", "1", "--json", "--ledger", forged});
  CHECK(json.code == 1);
  const Json runs = at_path(parse_line(json.out), "runs");
  const Json& run = runs.as_array().at(0);
  const std::string position = std::to_string(run.find("position")->as_i64());
  CHECK(contains(replayed.out, "; first difference at position " + position + ";"));
  const std::string reason = run.find("reason")->as_string();
  CHECK(replayed.out.find(reason) == replayed.out.rfind(reason));
  CHECK(at_path(parse_line(json.out), "verdict").as_string() == "DIVERGED");
  CHECK(run.find("first_token_difference")->as_i64() == 2);
}

TEST_CASE("2: usage") {
  const CliResult result = run_cli({"record", "--bogus"});
  CHECK(result.code == 2);
  CHECK(result.out.empty());
  CHECK(contains(result.err, "detrun: error: unknown option '--bogus'"));
  CHECK(contains(result.err, "hint: see 'detrun record --help'"));
}

TEST_CASE("3: a run that is not there and a model that is not there are inconclusive") {
  const ScratchFolder folder;
  const std::string ledger = folder / "l.db", moved = folder / "moved.gguf";
  std::filesystem::copy_file(model_path(), moved);
  const CliResult recorded =
      run_cli({"record", "-m", moved, "-p", kPrompt, "-n", "4", "--ledger", ledger});
  REQUIRE(recorded.code == 0);
  std::filesystem::remove(moved);
  const CliResult replayed = run_cli({"replay", "1", "--ledger", ledger});
  CHECK(replayed.code == 3);
  CHECK(contains(replayed.out + replayed.err, "moved.gguf"));
  CHECK(run_cli({"replay", "1", "--ledger", ledger, "-m", model_path()}).code == 0);
  CHECK(run_cli({"show", "17", "--ledger", ledger}).code == 3);
  const CliResult none = run_cli({"replay", "17", "--ledger", ledger});
  CHECK(none.code == 3);
  CHECK(none.out.starts_with("INCONCLUSIVE  no run '17' in "));
}

TEST_CASE("4: a changed token is named by verify and replay executes nothing") {
  const ScratchFolder folder;
  record_into(folder / "l.db");
  forge(folder / "l.db", folder / "forged.db", 2, false);
  const std::string forged = folder / "forged.db";
  const CliResult verified = run_cli({"verify", "--ledger", forged});
  CHECK(verified.code == 4);
  CHECK(verified.out.starts_with("TAMPERED  run 1 ("));
  CHECK(contains(verified.out, "steps["));
  const CliResult json = run_cli({"verify", "--json", "--ledger", forged});
  CHECK(json.code == 4);
  CHECK(at_path(parse_line(json.out), "verdict").as_string() == "TAMPERED");
  CHECK(at_path(parse_line(json.out), "first_broken.entry").as_i64() == 1);
  const CliResult replayed = run_cli({"replay", "1", "--ledger", forged});
  CHECK(replayed.code == 4);
  CHECK(replayed.out.starts_with("TAMPERED  run 1 ("));
}

TEST_CASE("4 before 0: among several runs the worst verdict wins") {
  const ScratchFolder folder;
  record_into(folder / "l.db");
  record_into(folder / "l.db");
  forge(folder / "l.db", folder / "forged.db", 2, false);
  const CliResult all = run_cli({"replay", "--all", "--ledger", folder / "forged.db"});
  CHECK(all.code == 4);
  CHECK(contains(all.out, "2 runs: 1 TAMPERED, 1 REPRODUCED\n"));
  CHECK(run_cli({"replay", "--all", "--json", "--ledger", folder / "forged.db"}).code == 4);
  CHECK(run_cli({"replay", "2", "--ledger", folder / "forged.db"}).code == 0);
}

TEST_CASE("1 with --force: a broken seal is stepped over and the verdict says so") {
  const ScratchFolder folder;
  record_into(folder / "l.db");
  forge(folder / "l.db", folder / "forged.db", 2, false);
  const CliResult forced = run_cli({"replay", "1", "--force", "--ledger", folder / "forged.db"});
  CHECK(forced.code == 1);
  CHECK(contains(forced.out, "): forced past a broken seal ("));
  CHECK(contains(forced.out, "; token first differs at step 2 "));
  CHECK(std::count(forced.out.begin(), forced.out.end(), '\n') == 1);
}

TEST_CASE("5: standard output that cannot be written") {
  const ScratchFolder folder;
  CliRun run;
  run.arguments = record_words(folder / "l.db");
  run.out_path = "/dev/full";
  const CliResult result = run_cli(run);
  CHECK(result.code == 5);
  CHECK(contains(result.err, "cannot write to standard output: No space left on device"));
  const CliResult shown = run_cli({"show", "1", "--json", "--ledger", folder / "l.db"});
  CHECK(at_path(parse_line(shown.out), "status").as_string() == "failed");
}

TEST_CASE("the empty ledger: all of nothing is inconclusive, a list of nothing is fine") {
  const ScratchFolder folder;
  const std::string ledger = folder / "l.db";
  CHECK(run_cli({"record", "-m", "missing.gguf", "-p", "x", "--ledger", ledger}).code == 2);
  REQUIRE(std::filesystem::exists(ledger));
  const CliResult listed = run_cli({"list", "--ledger", ledger});
  CHECK(listed.code == 0);
  CHECK(listed.out.empty());
  CHECK(contains(listed.err, "no runs in "));
  CHECK(run_cli({"replay", "--all", "--ledger", ledger}).code == 3);
  CHECK(run_cli({"replay", "latest", "--ledger", ledger}).code == 3);
  CHECK(run_cli({"verify", "--ledger", ledger}).code == 0);
}

}  // namespace
}  // namespace detrun::test
