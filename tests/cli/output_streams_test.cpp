// Standard output that is closed, full, missing or slow; the locale.
#include <sys/stat.h>

#include "tests/cli/cli_support.h"

namespace detrun::test {
namespace {

TEST_CASE("a closed pipe ends the run quietly and the run is sealed") {
  const ScratchFolder folder;
  CliRun run;
  run.arguments = record_words(folder / "l.db");
  run.close_out_at_once = true;
  const CliResult result = run_cli(run);
  CHECK(result.code == 0);
  CHECK(result.signal == 0);
  CHECK_FALSE(contains(result.err, "error"));
  CHECK(contains(result.err, "stop: closed"));
  const CliResult shown = run_cli({"show", "1", "--json", "--ledger", folder / "l.db"});
  CHECK(at_path(parse_line(shown.out), "stop_reason").as_string() == "closed");
  CHECK(run_cli({"replay", "1", "--ledger", folder / "l.db"}).code == 0);
}

TEST_CASE("a closed pipe changes no verdict") {
  const ScratchFolder folder;
  record_into(folder / "l.db");
  forge(folder / "l.db", folder / "forged.db", 2, false);
  for (const char* command : {"list", "show", "verify", "replay"}) {
    CliRun run;
    run.arguments = {command, "--ledger", folder / "l.db"};
    if (*command == 's' || *command == 'r') run.arguments.emplace_back("1");
    run.close_out_at_once = true;
    CAPTURE(command);
    const CliResult result = run_cli(run);
    CHECK(result.code == 0);
    CHECK(result.err.empty());
  }
  CliRun run;
  run.arguments = {"verify", "--json", "--ledger", folder / "forged.db"};
  run.close_out_at_once = true;
  CHECK(run_cli(run).code == 4);
}

TEST_CASE("a full disk behind standard output is exit 5 for every command") {
  const ScratchFolder folder;
  const std::string ledger = folder / "l.db";
  record_into(ledger);
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"list", "--ledger", ledger},
        {"list", "--json", "--ledger", ledger},
        {"show", "1", "--ledger", ledger},
        {"verify", "--ledger", ledger},
        {"replay", "1", "--json", "--ledger", ledger},
        record_words(ledger, {"-p", "x", "-n", "2", "--json"}),
        {"fingerprint"},
        {"tokenize", "-m", model_path(), "-p", "x"},
        {"--version"},
        {"--help"}}) {
    CliRun run;
    run.arguments = arguments;
    run.out_path = "/dev/full";
    CAPTURE(arguments.front());
    const CliResult result = run_cli(run);
    CHECK(result.code == 5);
    CHECK(contains(result.err, "cannot write to standard output"));
  }
  // The run whose document could not be printed is in the ledger all the same.
  CHECK(run_cli({"verify", "--ledger", ledger}).code == 0);
  CHECK(contains(run_cli({"list", "--ledger", ledger}).out, "\n  2  "));
}

TEST_CASE("a missing standard output is an error and no file is taken for it") {
  const ScratchFolder folder;
  CliRun run;
  run.arguments = record_words(folder / "l.db");
  run.out_missing = true;
  const CliResult result = run_cli(run);
  CHECK(result.code == 5);
  CHECK(contains(result.err, "cannot write to standard output"));
  CHECK(run_cli({"verify", "--ledger", folder / "l.db"}).code == 0);
}

TEST_CASE("ledger and log file are created for the owner only") {
  const ScratchFolder folder;
  ::umask(0);
  record_into(folder / "l.db", {"-p", "x", "-n", "1", "-v", "--log-file", folder / "log"});
  for (const char* name : {"l.db", "log"}) {
    struct stat facts = {};
    REQUIRE(::stat((folder / name).c_str(), &facts) == 0);
    CAPTURE(name);
    CHECK((facts.st_mode & 0777) == 0600);
  }
}

TEST_CASE("a decimal-comma locale changes no byte") {
  const ScratchFolder folder;
  const std::string locale = folder / "de_DE.UTF-8";
  const std::string command = "localedef -i de_DE -f UTF-8 '" + locale + "' 2>/dev/null";
  if (std::system(command.c_str()) != 0 && !std::filesystem::exists(locale)) {
    MESSAGE("SKIPPED: the locale de_DE.UTF-8 cannot be made here");
    return;
  }
  const std::string ledger = folder / "l.db";
  record_into(ledger);
  const auto german = [&](std::vector<std::string> arguments) {
    CliRun run;
    run.arguments = std::move(arguments);
    run.env["LC_ALL"] = "de_DE.UTF-8";
    run.env["LOCPATH"] = folder / "";
    return run_cli(run);
  };
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"show", "1", "--ledger", ledger},
        {"show", "1", "--json", "--ledger", ledger},
        {"list", "--ledger", ledger},
        {"replay", "1", "--json", "--ledger", ledger}}) {
    CAPTURE(arguments.front());
    CHECK(german(arguments).out == run_cli(arguments).out);
  }
  const CliResult recorded = german(record_words(ledger));
  CHECK(recorded.code == 0);
  CHECK(recorded.err.find(',', recorded.err.find("tokens/s") - 4) > recorded.err.find("tokens/s"));
}

}  // namespace
}  // namespace detrun::test
