// The words of the command line before CLI11 sees them, and what CLI11 makes of them.
#include "cli/args.h"

#include <doctest/doctest.h>

#include <CLI/CLI.hpp>

#include "cli/options.h"
#include "detrun/error.h"

namespace detrun::cli {
namespace {

using Words = std::vector<std::string>;

struct Sample {
  CLI::App root;
  CommonOptions common;
  std::string prompt, model = "unset";
  Words tags, runs;
  std::uint64_t n = 0;

  Sample() {
    add_common_options(root, common);
    CLI::App* sub = root.add_subcommand("record");
    root.add_subcommand("replay");
    root.require_subcommand(0, 1);
    add_common_options(*sub, common);
    add_text(*sub, {"-p,--prompt", "TEXT", "Prompt", ""}, prompt);
    add_text(*sub, {"-m,--model", "MODEL", "Model", ""}, model);
    add_texts(*sub, {"--tag", "K=V", "Ledger", ""}, tags);
    add_texts(*sub, {"run", "RUN", "Selection", ""}, runs);
    add_number(*sub, {"-n,--n", "N", "Generation", ""}, 0, 100, [this](std::uint64_t v) { n = v; });
  }

  Words normalized(const std::vector<const char*>& words) {
    return normalize_arguments(root, words);
  }
  void parse(const std::vector<const char*>& words) {
    Words normal = normalized(words);
    std::reverse(normal.begin(), normal.end());
    root.parse(std::move(normal));
  }
  // Message and hint of the Error that these words raise.
  std::string complaint(const std::vector<const char*>& words) {
    try {
      parse(words);
    } catch (const Error& error) {
      CHECK(error.kind() == ExitCode::kUsage);
      return std::string(error.what()) + " | " + error.hint();
    }
    return "accepted";
  }
};

TEST_CASE("long and short spellings come to the same words") {
  Sample sample;
  CHECK(sample.normalized({"record", "--prompt=a=b", "-n5", "-qm", "x", "--", "-p"}) ==
        Words{"record", "--prompt", "a=b", "-n", "5", "-q", "-m", "x", "--", "-p"});
}

TEST_CASE("an empty value after = does not eat the next option") {
  Sample sample;
  sample.prompt = "unset";
  sample.parse({"record", "--prompt=", "-n", "7"});
  CHECK(sample.prompt.empty());
  CHECK(sample.n == 7);
}

TEST_CASE("a value may look like an option, a command or a bracketed list") {
  Sample sample;
  sample.parse({"record", "-p", "--help", "-m", "replay", "--tag", "[a=1,2]", "--tag", "k=[a,b]",
                "--tag={}", "latest", "{}"});
  CHECK(sample.prompt == "--help");
  CHECK(sample.model == "replay");
  CHECK(sample.tags == Words{"[a=1,2]", "k=[a,b]", "{}"});
  CHECK(sample.runs == Words{"latest", "{}"});
  CHECK(sample.complaint({"record", "[3,4]"}).starts_with("unexpected argument '[3,4]'"));
  CHECK(sample.complaint({"record", "--", "[3,4]"}).starts_with("unexpected argument '[3,4]'"));
}

TEST_CASE("one value of a list option does not swallow what follows it") {
  Sample sample;
  sample.parse({"record", "--tag", "a=1", "3", "--tag", "b=2", "4"});
  CHECK(sample.tags == Words{"a=1", "b=2"});
  CHECK(sample.runs == Words{"3", "4"});
}

TEST_CASE("an empty word is a word") {
  Sample sample;
  sample.parse({"record", "-p", "", "--tag", ""});
  CHECK(sample.prompt.empty());
  CHECK(sample.tags == Words{""});
}

TEST_CASE("common options are accepted before and after the command") {
  Sample sample;
  sample.parse({"-v", "--color", "never", "record", "-v", "--log-file", "x"});
  CHECK(sample.common.verbosity == 2);
  CHECK(sample.common.color == "never");
  CHECK(sample.common.log_file == "x");
}

TEST_CASE("unknown options and commands are named with the nearest known one") {
  Sample sample;
  CHECK(sample.complaint({"record", "--promt", "x"}) ==
        "unknown option '--promt' | did you mean --prompt? see 'detrun record --help'");
  CHECK(sample.complaint({"record", "--zzzzzz"}) ==
        "unknown option '--zzzzzz' | see 'detrun record --help'");
  CHECK(sample.complaint({"record", "-qx"}) == "unknown option '-x' | see 'detrun record --help'");
  CHECK(sample.complaint({"recrod"}) ==
        "unknown command 'recrod' | did you mean 'record'? see 'detrun --help'");
  CHECK(sample.complaint({"record", "--tagg", "a=b"}).starts_with("unknown option '--tagg'"));
}

TEST_CASE("missing, surplus and repeated values are refused") {
  Sample sample;
  CHECK(sample.complaint({"record", "-p"}) ==
        "-p needs a value: TEXT | see 'detrun record --help'");
  CHECK(sample.complaint({"record", "--quiet=1"}) ==
        "--quiet takes no value | see 'detrun record --help'");
  CHECK(sample.complaint({"record", "-p", "a", "--prompt", "b"}) ==
        "--prompt was given twice | see 'detrun record --help'");
}

TEST_CASE("numbers are decimal, whole and in range") {
  Sample sample;
  for (const char* bad :
       {"", "-1", "+1", "1.5", "0x10", "101", "1e2", " 1", "99999999999999999999"}) {
    CAPTURE(bad);
    CHECK(sample.complaint({"record", "-n", bad})
              .starts_with("--n: expected a whole number from 0 to 100, found '"));
  }
  sample.parse({"record", "-n", "010"});
  CHECK(sample.n == 10);
}

TEST_CASE("the nearest word is near or none") {
  CHECK(nearest("--ledgr", {"--ledger", "--log-file"}) == "--ledger");
  CHECK(nearest("--comp", {"--compare", "--color"}) == "--compare");
  CHECK(nearest("xyz", {"record", "replay"}).empty());
  CHECK(nearest(std::string(1000, 'x'), {"record"}).empty());
}

}  // namespace
}  // namespace detrun::cli
