// `replay` of many runs as a user meets it: filters, shards, jobs, JUnit files, progress.
#include <sys/stat.h>

#include <set>

#include "tests/cli/cli_support.h"

namespace detrun::test {
namespace {

/// Six runs with the tag n=0 to 5, odd ones with desk=b as well.
class ManyRuns {
 public:
  ManyRuns() {
    std::string lines;
    for (int i = 0; i < 6; ++i) {
      lines += "{\"prompt\": \"Claim " + std::to_string(i) + "\", \"tags\": {\"n\": \"" +
               std::to_string(i) + "\"" + (i % 2 == 1 ? ", \"desk\": \"b\"" : "") + "}}\n";
    }
    write_bytes(folder / "p.jsonl", lines);
    const CliResult result = run_cli({"record", "-m", model_path(), "--prompts", folder / "p.jsonl",
                                      "--ledger", ledger, "-n", "4", "-q"});
    REQUIRE(result.code == 0);
  }
  CliResult replay(std::vector<std::string> words) {
    words.insert(words.begin(), "replay");
    words.insert(words.end(), {"--ledger", ledger});
    return run_cli(words);
  }
  std::set<std::int64_t> numbers(std::vector<std::string> words) {
    words.emplace_back("--json");
    const CliResult result = replay(std::move(words));
    INFO(result.err);
    std::set<std::int64_t> found;
    const Json all = at_path(parse_line(result.out), "runs");
    for (const Json& run : all.as_array()) {
      CHECK(found.insert(at_path(run, "number").as_i64()).second);
    }
    return found;
  }

  ScratchFolder folder;
  std::string ledger = folder / "l.db";
};

using Numbers = std::set<std::int64_t>;

TEST_CASE("filters choose runs, and what is left of nothing is inconclusive") {
  ManyRuns runs;
  CHECK(runs.numbers({"--all"}) == Numbers{1, 2, 3, 4, 5, 6});
  CHECK(runs.numbers({"--tag", "desk=b"}) == Numbers{2, 4, 6});
  CHECK(runs.numbers({"--tag", "desk=b", "--tag", "n=3"}) == Numbers{4});
  CHECK(runs.numbers({"--since", "1h"}).size() == 6);
  CHECK(runs.numbers({"--sample", "100%"}).size() == 6);
  CHECK(runs.numbers({"--sample=40%", "--seed=1"}) ==
        runs.numbers({"--sample", "40", "--seed", "1"}));
  const CliResult none = runs.replay({"--tag", "desk=c"});
  CHECK(none.code == 3);
  CHECK(contains(none.out, "INCONCLUSIVE"));
  for (const std::vector<std::string>& bad :
       std::vector<std::vector<std::string>>{{"--tag", "x"},
                                             {"--since", ""},
                                             {"--since", "x"},
                                             {"--sample", "0%", "--all"},
                                             {"--sample", ""},
                                             {"--shard", "0/2", "--all"},
                                             {"--shard", "", "--all"},
                                             {"--jobs", "0", "--all"},
                                             {"--seed", "1", "--all"},
                                             {"--seed", "-1", "--all"},
                                             {"--shard", "1/2"}}) {
    CAPTURE(bad.front());
    CHECK(runs.replay(bad).code == 2);
  }
}

TEST_CASE("an empty shard is no run and no failure, with exit code 0") {
  ManyRuns runs;
  bool seen = false;
  for (int i = 1; i <= 40 && !seen; ++i) {
    const std::string shard = std::to_string(i) + "/40";
    if (!runs.numbers({"--all", "--shard", shard}).empty()) continue;
    seen = true;
    const CliResult empty = runs.replay({"--all", "--shard", shard});
    CHECK(empty.code == 0);
    CHECK(empty.out == "shard " + shard + " has none of the 6 runs selected\n");
    CHECK(runs.replay({"--all", "--shard", shard, "--json"}).code == 0);
  }
  CHECK(seen);
}

TEST_CASE("jobs change no byte of the document") {
  ManyRuns runs;
  const CliResult one = runs.replay({"--all", "--json"});
  CHECK(one.code == 0);
  CHECK(runs.replay({"--all", "--json", "--jobs", "2"}).out == one.out);
  CHECK(runs.replay({"--all", "--json", "--jobs", "5", "--threads", "5"}).out == one.out);
}

TEST_CASE("the JUnit file is there beside the usual output, mode 0600, whatever the verdict") {
  ManyRuns runs;
  const std::string file = runs.folder / "r.xml";
  forge(runs.ledger, runs.folder / "f.db", 2, /*reseal=*/true);
  const CliResult result =
      run_cli({"replay", "--all", "--ledger", runs.folder / "f.db", "--junit", file});
  CHECK(result.code == 1);
  CHECK(contains(result.out, "DIVERGED"));
  const std::string xml = read_bytes(file);
  CHECK(contains(xml, "tests=\"6\" failures=\"1\" errors=\"0\" skipped=\"0\""));
  struct stat info {};
  REQUIRE(::stat(file.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  CHECK(
      run_cli({"replay", "--all", "--ledger", runs.folder / "f.db", "--junit", file, "--fail-fast"})
          .code == 1);
  CHECK(contains(read_bytes(file), "skipped=\"5\""));
  const CliResult bad = runs.replay({"--all", "--junit", runs.folder / "no/such.xml"});
  CHECK(bad.code == 2);
  CHECK(bad.out.empty());
}

TEST_CASE("on a terminal the progress of many runs is shown in runs") {
  ManyRuns runs;
  CliRun run;
  run.arguments = {"replay", "--all", "--ledger", runs.ledger, "--threads", "1"};
  run.env["DETRUN_CPU_ISA"] = "scalar";
  run.err_terminal = true;
  const CliResult result = run_cli(run);
  CHECK(result.code == 0);
  CHECK_FALSE(contains(result.err, "tokens"));
}

}  // namespace
}  // namespace detrun::test
