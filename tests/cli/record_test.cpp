// `record` and `tokenize` as a user meets them: what is on which output, and where options come
// from.
#include "tests/cli/cli_support.h"

namespace detrun::test {
namespace {

TEST_CASE("standard output is exactly the text, standard error says what was recorded") {
  const ScratchFolder folder;
  const std::string ledger = folder / "l.db";
  const CliResult result = run_cli(record_words(ledger));
  CHECK(result.code == 0);
  const CliResult shown = run_cli({"show", "1", "--json", "--ledger", ledger});
  const Json document = parse_line(shown.out);
  CHECK(at_path(document, "text").as_string() == result.out);
  CHECK(at_path(document, "steps").as_array().size() == 8);
  CHECK(at_path(document, "tokens").as_array().size() == 8);
  CHECK(at_path(document, "prompt").as_string() == kPrompt);
  const std::string id = at_path(document, "id").as_string();
  const std::string seal = at_path(document, "seal").as_string();
  CHECK(contains(result.err, "run 1 (" + id + ") in " + ledger));
  CHECK(contains(result.err, "8 tokens, "));
  CHECK(contains(result.err, " tokens/s, stop: length\n"));
  CHECK(contains(result.err, "seal " + seal.substr(0, 16) + "\n"));
  CHECK(contains(result.err, "next: detrun replay 1 --ledger " + ledger + "\n"));
}

TEST_CASE("--json prints one document and nothing else") {
  const ScratchFolder folder;
  const CliResult result =
      run_cli(record_words(folder / "l.db", {"-p", kPrompt, "-n", "8", "--json", "--echo", "-q"}));
  CHECK(result.code == 0);
  CHECK(result.err.empty());
  CHECK(result.out.find('\n') == result.out.size() - 1);
  const Json document = parse_line(result.out);
  CHECK(at_path(document, "schema").as_string() == "detrun.run/1");
  const CliResult shown = run_cli({"show", "1", "--json", "--ledger", folder / "l.db"});
  CHECK(shown.out == result.out);
}

TEST_CASE("--echo prints the prompt before the text") {
  const ScratchFolder folder;
  const std::string plain = record_into(folder / "l.db");
  const std::string echoed = record_into(folder / "l.db", {"-p", kPrompt, "-n", "8", "--echo"});
  CHECK(echoed == kPrompt + plain);
}

TEST_CASE("a prompt is the same from -p, a file, standard input and as tokens") {
  const ScratchFolder folder;
  const std::string ledger = folder / "l.db";
  const std::string text = record_into(ledger);
  write_bytes(folder / "prompt", kPrompt);
  CHECK(record_into(ledger, {"-f", folder / "prompt", "-n", "8"}) == text);
  for (const std::vector<std::string>& source : {std::vector<std::string>{"-"}, {"-f", "-"}}) {
    CliRun run;
    run.arguments = {"record", "-m", model_path(), "--ledger", ledger, "-n", "8"};
    run.arguments.insert(run.arguments.end(), source.begin(), source.end());
    run.input = kPrompt;
    CHECK(run_cli(run).out == text);
  }
  const CliResult shown = run_cli({"show", "1", "--json", "--ledger", ledger});
  const Json prompt_tokens = at_path(parse_line(shown.out), "prompt_tokens");
  std::string ids;
  for (const Json& id : prompt_tokens.as_array()) {
    ids += (ids.empty() ? "" : ",") + id.dump();
  }
  CHECK(record_into(ledger, {"--tokens", ids, "-n", "8"}) == text);
  const CliResult sources = run_cli({"list", "--json", "--ledger", ledger});
  std::string seen, rest = sources.out;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    seen += at_path(parse_line(rest.substr(0, end)), "prompt_source").as_string() + " ";
    rest.erase(0, end + 1);
  }
  CHECK(seen == "text file stdin stdin tokens ");
}

TEST_CASE("an empty prompt is valid, in every spelling") {
  const ScratchFolder folder;
  const std::string text = record_into(folder / "l.db", {"-p", "", "-n", "4"});
  CHECK(record_into(folder / "l.db", {"--prompt=", "-n", "4"}) == text);
  CHECK(run_cli({"replay", "--all", "--ledger", folder / "l.db"}).code == 0);
}

TEST_CASE("a prompt that is not UTF-8 is kept byte for byte and replays") {
  const ScratchFolder folder;
  const std::string ledger = folder / "l.db";
  write_bytes(folder / "prompt", "\xe6\xad then \xff\xfe\xed\xa0\x80\n");
  record_into(ledger, {"-f", folder / "prompt", "-n", "4"});
  const CliResult shown = run_cli({"show", "1", "--json", "--ledger", ledger});
  CHECK(at_path(parse_line(shown.out), "prompt.b64").as_string() == "5q0gdGhlbiD//u2ggAo=");
  CHECK(run_cli({"replay", "1", "--ledger", ledger}).code == 0);
}

TEST_CASE("tags arrive as they were written") {
  const ScratchFolder folder;
  record_into(folder / "l.db", {"-p", "x", "-n", "1", "--tag", "k=[a,b]", "--tag",
                                "empty=", "--tag", "a=1", "--tag", "a.b=x=y"});
  const CliResult shown = run_cli({"show", "1", "--json", "--ledger", folder / "l.db"});
  const Json document = parse_line(shown.out);
  const Json tags = at_path(document, "tags");
  CHECK(at_path(tags, "k").as_string() == "[a,b]");
  CHECK(at_path(tags, "empty").as_string().empty());
  CHECK(at_path(tags, "a").as_string() == "1");
  REQUIRE(tags.find("a.b") != nullptr);
  CHECK(tags.find("a.b")->as_string() == "x=y");
}

TEST_CASE("--no-ledger leaves no file behind") {
  const ScratchFolder folder;
  CliRun run;
  run.arguments = {"record", "-p", kPrompt, "-n", "8", "--no-ledger"};
  run.env["DETRUN_LEDGER"] = folder / "l.db";
  run.env["DETRUN_MODEL"] = model_path();
  const CliResult result = run_cli(run);
  CHECK(result.code == 0);
  CHECK(result.out == record_into(folder / "other.db"));
  CHECK(contains(result.err, "not recorded (--no-ledger)"));
  CHECK_FALSE(std::filesystem::exists(folder / "l.db"));
}

TEST_CASE("DETRUN_LEDGER and DETRUN_MODEL are defaults that options overrule") {
  const ScratchFolder folder;
  CliRun run;
  run.env["DETRUN_LEDGER"] = folder / "env.db";
  run.env["DETRUN_MODEL"] = model_path();
  run.arguments = {"record", "-p", kPrompt, "-n", "2"};
  const CliResult result = run_cli(run);
  CHECK(result.code == 0);
  CHECK(contains(result.err, "next: detrun replay 1\n"));
  run.arguments = {"record", "-p", kPrompt, "-n", "2", "--ledger", folder / "option.db"};
  CHECK(run_cli(run).code == 0);
  CHECK(std::filesystem::exists(folder / "option.db"));
  run.arguments = {"replay", "--all"};
  CHECK(contains(run_cli(run).out, "run 1 ("));
}

TEST_CASE("-q says nothing but errors, --log-file keeps the log") {
  const ScratchFolder folder;
  const CliResult quiet = run_cli(record_words(folder / "l.db", {"-p", kPrompt, "-n", "2", "-q"}));
  CHECK(quiet.code == 0);
  CHECK(quiet.err.empty());
  const CliResult logged = run_cli(record_words(
      folder / "l.db", {"-p", kPrompt, "-n", "2", "-v", "--log-file", folder / "log"}));
  CHECK(logged.code == 0);
  CHECK(contains(logged.err, "run 2 ("));
  CHECK(contains(read_bytes(folder / "log"), "run 2 ("));
}

TEST_CASE("tokenize prints the ids on one line") {
  const CliResult plain = run_cli({"tokenize", "-m", model_path(), "-p", kPrompt});
  CHECK(plain.code == 0);
  CHECK(plain.err.empty());
  CHECK(plain.out.find('\n') == plain.out.size() - 1);
  CHECK(plain.out.find_first_not_of("0123456789 \n") == std::string::npos);
  const CliResult bos = run_cli({"tokenize", "-m", model_path(), "--bos", "-p", kPrompt});
  CHECK(bos.out.ends_with(" " + plain.out));
  CHECK(run_cli({"tokenize", "-m", model_path(), "-p", ""}).out == "\n");
}

TEST_CASE("36,000 times one character is tokenized on a small stack") {
  for (const char* letter : {"a", ".", " ", "\n", "\xe6\xad\xaa"}) {
    CliRun run;
    run.arguments = {"tokenize", "-m", model_path(), "-"};
    for (int i = 0; i < 36000; ++i) run.input += letter;
    CAPTURE(letter);
    CHECK(run_cli(run).code == 0);
  }
}

TEST_CASE("the program is found by its words: help and version") {
  const CliResult version = run_cli({"--version"});
  CHECK(version.code == 0);
  CHECK(version.out.starts_with("detrun "));
  for (const char* line :
       {"\nbuild type: ", "\ncompiler: ", "\nbackend cpu: ", "\nbackend cuda: ",
        "\nnumerics: portable, contract version ", "\nledger schema: ", "\nseal version: "}) {
    CAPTURE(line);
    CHECK(contains(version.out, line));
  }
  const CliResult root = run_cli({"--help"});
  CHECK(root.code == 0);
  CHECK(run_cli({"help"}).out == root.out);
  for (const char* command : {"record", "replay", "verify", "list", "show", "stress", "bench",
                              "fingerprint", "tokenize"}) {
    CAPTURE(command);
    CHECK(contains(root.out, std::string("\n  ") + command + " "));
    const CliResult help = run_cli({command, "--help"});
    CHECK(help.code == 0);
    CHECK(help.err.empty());
    CHECK(contains(help.out, std::string("Usage: detrun ") + command));
    CHECK(contains(help.out, "\nExamples:\n"));
    CHECK(contains(help.out, std::string("Manual: man detrun-") + command + "\n"));
    CHECK(run_cli({"help", command}).out == help.out);
    for (std::size_t at = 0; at < help.out.size();) {
      const std::size_t end = help.out.find('\n', at);
      CHECK(end - at <= 80);
      at = end + 1;
    }
  }
}

}  // namespace
}  // namespace detrun::test
