// `record --prompts` as a user meets it: what is on which output, exit codes, Ctrl-C, and that a
// line knows the options of the command line.
#include <regex>
#include <thread>

#include "tests/cli/cli_support.h"

namespace detrun::test {
namespace {

std::vector<std::string> words_of(const ScratchFolder& folder, const std::string& lines,
                                  const std::vector<std::string>& more = {}) {
  write_bytes(folder / "p.jsonl", lines);
  std::vector<std::string> words = {
      "record",        "-m", model_path(), "--prompts", folder / "p.jsonl", "--ledger",
      folder / "l.db", "-n", "4"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

constexpr const char* kTwo = "{\"prompt\": \"Claim 17\"}\n{\"prompt\": \"Claim 18\", \"n\": 2}\n";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST_CASE("a line a run goes to standard error and a summary follows, standard output is empty") {
  const ScratchFolder folder;
  const CliResult first = run_cli(words_of(folder, kTwo));
  INFO(first.err);
  CHECK(first.code == 0);
  CHECK(first.out.empty());
  CHECK(contains(first.err, "line 1: run 1, 4 tokens, stop: length\n"));
  CHECK(contains(first.err, "line 2: run 2, 2 tokens, stop: length\n"));
  CHECK(contains(first.err, "2 lines: 2 recorded, in " + folder / "l.db"));
  const CliResult again = run_cli(words_of(folder, kTwo));
  CHECK(again.code == 0);
  CHECK(contains(again.err, "2 of 2 lines recorded before\n"));
  CHECK(contains(again.err, "2 lines: 0 recorded, 2 were there before"));
  CHECK(run_cli(words_of(folder, kTwo, {"-q"})).err.empty());
  CHECK(run_cli({"replay", "--all", "--ledger", folder / "l.db"}).code == 0);
}

TEST_CASE("with --json each run is a line, the document that show prints") {
  const ScratchFolder folder;
  const CliResult result = run_cli(words_of(folder, kTwo, {"--json"}));
  CHECK(result.code == 0);
  const std::vector<std::string> lines = lines_of(result.out);
  REQUIRE(lines.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const CliResult shown =
        run_cli({"show", std::to_string(i + 1), "--json", "--ledger", folder / "l.db"});
    CHECK(shown.out == lines[i] + "\n");
    CHECK(at_path(parse_line(lines[i]), "prompts.line").as_i64() ==
          static_cast<std::int64_t>(i + 1));
  }
  CHECK(run_cli(words_of(folder, kTwo, {"--json"})).out.empty());  // nothing was recorded
}

TEST_CASE("the prompts may come through a pipe") {
  const ScratchFolder folder;
  CliRun run;
  run.arguments = words_of(folder, "");
  run.arguments[4] = "-";
  run.input = kTwo;
  const CliResult result = run_cli(run);
  INFO(result.err);
  CHECK(result.code == 0);
  CHECK(contains(result.err, "2 recorded"));
}

TEST_CASE("bad lines are told by number on standard error and end in exit code 2") {
  const ScratchFolder folder;
  const std::string lines = std::string(kTwo) + "{\"promt\": \"x\x1b[2J\"}\n{\"prompt\": 1}\n";
  const CliResult result = run_cli(words_of(folder, lines, {"-q"}));
  CHECK(result.code == 2);
  CHECK(contains(result.err, "error: line 3 of " + folder / "p.jsonl" + ": "));
  CHECK(contains(result.err, "error: line 4 of "));
  CHECK_FALSE(contains(result.err, "\x1b"));
  CHECK(lines_of(run_cli({"list", "--json", "--ledger", folder / "l.db"}).out).size() == 2);
  const ScratchFolder other;
  const CliResult strict = run_cli(words_of(other, lines, {"--strict"}));
  CHECK(strict.code == 2);
  CHECK(contains(strict.err, "line 3"));
  CHECK_FALSE(contains(strict.err, "line 4"));
  CHECK_FALSE(std::filesystem::exists(other / "l.db"));
}

TEST_CASE("options that do not go together are usage errors") {
  const ScratchFolder folder;
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
           {"-p", "x"}, {"-f", "x"}, {"--tokens", "1"}, {"-"}, {"--echo"}}) {
    CAPTURE(more.front());
    const CliResult result = run_cli(words_of(folder, kTwo, more));
    CHECK(result.code == 2);
    CHECK(contains(result.err, "--prompts"));
  }
  const CliResult strict = run_cli(record_words(folder / "s.db", {"-p", "x", "--strict"}));
  CHECK(strict.code == 2);
  CHECK(contains(strict.err, "--strict"));
  CHECK_FALSE(std::filesystem::exists(folder / "l.db"));
  CHECK(run_cli({"record", "-m", model_path(), "--prompts", folder / "none"}).code == 2);
  CHECK(run_cli({"record", "-m", model_path(), "--prompts", ""}).code == 2);
}

TEST_CASE("a reader that closes its pipe ends the recording quietly") {
  const ScratchFolder folder;
  std::string lines;
  for (int i = 0; i < 40; ++i) lines += "{\"prompt\": \"Claim " + std::to_string(i) + "\"}\n";
  CliRun run;
  run.arguments = words_of(folder, lines, {"--json", "-q"});
  run.close_out_at_once = true;
  const CliResult result = run_cli(run);
  CHECK(result.code == 0);
  CHECK(result.err.empty());
  CHECK(lines_of(run_cli({"list", "--json", "--ledger", folder / "l.db"}).out).size() == 1);
}

TEST_CASE("Ctrl-C seals the running line as cancelled, and the command goes on from there") {
  const ScratchFolder folder;
  std::string prompt;
  for (int i = 0; i < 40; ++i) prompt += "Claim 17: water damage. ";
  std::string lines = "{\"prompt\": \"first\", \"n\": 1}\n";
  for (int i = 0; i < 3; ++i) {
    lines += "{\"prompt\": \"" + prompt + "\", \"ctx\": 4000, \"n\": 400}\n";
  }
  CliRun run;
  run.arguments = words_of(folder, lines, {"-v", "--threads", "1"});
  run.env["DETRUN_CPU_ISA"] = "scalar";
  run.interrupt_when_err = "run 2 ";
  const CliResult result = run_cli(run);
  INFO(result.err);
  REQUIRE_FALSE(result.timed_out);
  CHECK(result.code == 130);
  CHECK(contains(result.err, "4 lines: 1 recorded, 3 left"));
  const CliResult shown = run_cli({"show", "2", "--json", "--ledger", folder / "l.db"});
  CHECK(at_path(parse_line(shown.out), "status").as_string() == "cancelled");
  CHECK(run_cli({"verify", "--ledger", folder / "l.db"}).code == 0);
  const CliResult rest = run_cli(words_of(folder, lines));
  INFO(rest.err);
  CHECK(rest.code == 0);
  CHECK(contains(rest.err, "1 of 4 lines recorded before"));
  CHECK(contains(rest.err, "4 lines: 3 recorded, 1 were there before"));
}

TEST_CASE("two processes record one file into one ledger, and every line is there once") {
  const ScratchFolder folder;
  std::string lines;
  for (int i = 0; i < 30; ++i) lines += "{\"prompt\": \"Claim " + std::to_string(i) + "\"}\n";
  const std::vector<std::string> words = words_of(folder, lines, {"--threads", "1"});
  CliResult results[2];
  std::thread other([&] { results[1] = run_cli(words); });
  results[0] = run_cli(words);
  other.join();
  for (const CliResult& result : results) {
    INFO(result.err);
    CHECK(result.code == 0);
  }
  std::vector<bool> seen(31);
  for (const std::string& line :
       lines_of(run_cli({"list", "--json", "--ledger", folder / "l.db"}).out)) {
    const auto number =
        static_cast<std::size_t>(at_path(parse_line(line), "prompts.line").as_i64());
    CHECK_FALSE(seen.at(number));
    seen.at(number) = true;
  }
  CHECK(std::count(seen.begin(), seen.end(), true) == 30);
  CHECK(run_cli({"verify", "--ledger", folder / "l.db"}).code == 0);
}

TEST_CASE("a line knows every option of --help: its own, or one of the whole recording") {
  const ScratchFolder folder;
  const std::string help = run_cli({"record", "--help"}).out;
  const std::regex option("--([a-z][a-z-]*)");
  std::size_t n_options = 0;
  std::string lines;
  for (std::sregex_iterator i(help.begin(), help.end(), option), end; i != end; ++i) {
    if ((*i)[1] == "prompt" || (*i)[1] == "tokens") continue;
    lines += "{\"prompt\": \"x\", \"" + (*i)[1].str() + "\": true}\n";
    ++n_options;
  }
  CHECK(n_options > 15);
  const CliResult result = run_cli(words_of(folder, lines));
  CHECK(result.code == 2);
  CHECK(contains(result.err, "is an option of the whole recording"));
  CHECK(contains(result.err, "'kv' is not a string"));
  CHECK_FALSE(contains(result.err, "unknown member"));
  INFO(result.err);
  CHECK(contains(result.err, std::to_string(n_options) + " bad"));
}

}  // namespace
}  // namespace detrun::test
