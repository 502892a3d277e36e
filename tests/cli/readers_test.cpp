// What list, show, verify, replay and fingerprint print.
#include <algorithm>

#include "tests/cli/cli_support.h"

namespace detrun::test {
namespace {

struct Recorded {
  ScratchFolder folder;
  std::string ledger = folder / "l.db";
  Recorded() {
    record_into(ledger);
    record_into(ledger, {"-p", "Line one\nline two", "-n", "3", "--tag", "case=17"});
  }
};

TEST_CASE("list prints a line a run under a header") {
  const Recorded recorded;
  const CliResult result = run_cli({"list", "--ledger", recorded.ledger});
  CHECK(result.code == 0);
  CHECK(result.err.empty());
  CHECK(result.out.starts_with("RUN  ID "));
  CHECK(std::count(result.out.begin(), result.out.end(), '\n') == 3);
  CHECK(contains(result.out, "\n  1  "));
  CHECK(contains(result.out, "  finished "));
  CHECK(contains(result.out, std::string("  ") + kPrompt + "\n"));
  CHECK(contains(result.out, "  Line one line two\n"));
}

TEST_CASE("the ids that list shows select their runs") {
  const Recorded recorded;
  const CliResult listed = run_cli({"list", "--ledger", recorded.ledger});
  const std::size_t at = listed.out.find("\n  2  ") + 6;
  const std::string id = listed.out.substr(at, 13);
  const CliResult shown = run_cli({"show", id, "--json", "--ledger", recorded.ledger});
  REQUIRE(shown.code == 0);
  CHECK(at_path(parse_line(shown.out), "number").as_i64() == 2);
}

TEST_CASE("list --json prints a head a line, without steps") {
  const Recorded recorded;
  std::string rest = run_cli({"list", "--json", "--ledger", recorded.ledger}).out;
  int n = 0;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    const Json head = parse_line(rest.substr(0, end));
    rest.erase(0, end + 1);
    CHECK(at_path(head, "schema").as_string() == "detrun.run/1");
    CHECK(at_path(head, "number").as_i64() == ++n);
    CHECK(head.find("steps") == nullptr);
    const CliResult shown =
        run_cli({"show", std::to_string(n), "--json", "--ledger", recorded.ledger});
    REQUIRE(head.find("seal") != nullptr);
    CHECK(at_path(head, "seal").as_string() == at_path(parse_line(shown.out), "seal").as_string());
  }
  CHECK(n == 2);
}

TEST_CASE("show prints fields, a row a step and the stack") {
  const Recorded recorded;
  const CliResult result = run_cli({"show", "#2", "--ledger", recorded.ledger});
  CHECK(result.code == 0);
  for (const std::string part :
       {"\nstatus                  finished\n", "\nmodel.sha256            ", "\nparams.kv ",
        "\ntag.case                17\n", "\nseal                    ", "\nSTEP  TOKEN ",
        "\n   2  ", "\nstack, what the result depends on\n", "\n  numerics.profile      portable\n",
        "\nprompt\n  | Line one\n  | line two\n"}) {
    CAPTURE(part);
    CHECK(contains(result.out, part));
  }
}

TEST_CASE("replay --json has the members of the manual") {
  const Recorded recorded;
  const CliResult result = run_cli({"replay", "--all", "--json", "--ledger", recorded.ledger});
  CHECK(result.code == 0);
  const Json document = parse_line(result.out);
  CHECK(at_path(document, "schema").as_string() == "detrun.replay/1");
  CHECK(at_path(document, "verdict").as_string() == "REPRODUCED");
  const auto& runs = document.find("runs")->as_array();
  REQUIRE(runs.size() == 2);
  for (const char* name :
       {"id", "verdict", "mode", "complete", "steps_checked", "first_logits_difference",
        "first_token_difference", "recorded_token", "replayed_token", "reason"}) {
    CAPTURE(name);
    CHECK(runs[0].find(name) != nullptr);
  }
}

TEST_CASE("several replayed runs get a line each and a summary") {
  const Recorded recorded;
  const CliResult result = run_cli({"replay", "1", "2", "--ledger", recorded.ledger});
  CHECK(result.code == 0);
  CHECK(result.out.starts_with("REPRODUCED  run 1 ("));
  CHECK(contains(result.out, "): 8 steps, every token and every logit hash equal\n"));
  CHECK(contains(result.out, "\nREPRODUCED  run 2 ("));
  CHECK(result.out.ends_with("\n2 runs: 2 REPRODUCED\n"));
}

TEST_CASE("verify says what it checked and what it did not") {
  const Recorded recorded;
  const CliResult result = run_cli({"verify", "--ledger", recorded.ledger});
  CHECK(contains(result.out, ": 2 runs, 11 steps, "));
  const CliResult json = run_cli({"verify", "--json", "--ledger", recorded.ledger});
  const Json document = parse_line(json.out);
  CHECK(at_path(document, "schema").as_string() == "detrun.verify/1");
  CHECK(at_path(document, "verdict").as_string() == "ok");
  CHECK(at_path(document, "checked.runs").as_i64() == 2);
  CHECK(at_path(document, "checked.steps").as_i64() == 11);
}

TEST_CASE("fingerprint prints canonical JSON on one line, the same each time") {
  const CliResult result = run_cli({"fingerprint"});
  CHECK(result.code == 0);
  const Json document = parse_line(result.out);
  CHECK(result.out == document.canonical() + "\n");
  CHECK(document.find("binding") != nullptr);
  CHECK(document.find("informational") != nullptr);
  const CliResult pretty = run_cli({"fingerprint", "--pretty"});
  CHECK(parse_line(pretty.out).canonical() + "\n" == result.out);
}

}  // namespace
}  // namespace detrun::test
