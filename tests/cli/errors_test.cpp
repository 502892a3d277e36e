// Bad input: exit 2, a message that names what and where, nothing on standard output.
#include "tests/cli/cli_support.h"

namespace detrun::test {
namespace {

// Runs and demands exit 2 with an empty standard output; returns standard error.
std::string refused(const CliRun& run) {
  const CliResult result = run_cli(run);
  INFO(result.err);
  CHECK(result.code == 2);
  CHECK(result.out.empty());
  CHECK(contains(result.err, "detrun: error: "));
  return result.err;
}
std::string refused(std::vector<std::string> arguments) {
  CliRun run;
  run.arguments = std::move(arguments);
  return refused(run);
}

TEST_CASE("a missing model file is named") {
  const ScratchFolder folder;
  const std::string text = refused(
      {"record", "-m", folder / "none.gguf", "-p", "x", "--ledger", folder / "l.db", "--json"});
  CHECK(contains(text, "none.gguf"));
}

TEST_CASE("a damaged model file is refused by record and tokenize") {
  const ScratchFolder folder;
  const std::string bytes = read_bytes(model_path());
  write_bytes(folder / "cut.gguf", bytes.substr(0, bytes.size() - 100));
  write_bytes(folder / "text.gguf", "this is no model\n");
  write_bytes(folder / "empty.gguf", "");
  for (const char* name : {"cut.gguf", "text.gguf", "empty.gguf"}) {
    CAPTURE(name);
    CHECK(contains(refused({"record", "-m", folder / name, "-p", "x", "--no-ledger"}), name));
    CHECK(contains(refused({"tokenize", "-m", folder / name, "-p", "x"}), name));
  }
}

TEST_CASE("an unwritable ledger is refused before the model is looked at") {
  const ScratchFolder folder;
  for (const std::string& ledger : {folder / "no/such/folder/l.db", folder / ""}) {
    const std::string text =
        refused({"record", "-m", "missing.gguf", "-p", "x", "--ledger", ledger});
    CHECK_FALSE(contains(text, "missing.gguf"));
  }
}

TEST_CASE("a file that is no ledger is refused by every command that opens one") {
  const ScratchFolder folder;
  const std::string text = folder / "text.db", other = folder / "other.db",
                    newer = folder / "newer.db", none = folder / "none.db";
  write_bytes(text, std::string(5000, 'x'));
  record_into(other);
  std::filesystem::copy_file(other, newer);
  patch_u32(other, 68, 0x12345678);  // application_id
  patch_u32(newer, 60, 99);          // user_version
  for (const std::string& ledger : {text, other, newer, none}) {
    CAPTURE(ledger);
    const std::string before = std::filesystem::exists(ledger) ? read_bytes(ledger) : "";
    for (const char* command : {"verify", "list"}) {
      CHECK(contains(refused({command, "--ledger", ledger}), ledger));
      CHECK(contains(refused({command, "--json", "--ledger", ledger}), ledger));
    }
    refused({"show", "1", "--ledger", ledger});
    refused({"replay", "1", "--ledger", ledger});
    if (ledger != none) refused(record_words(ledger));
    CHECK((std::filesystem::exists(ledger) ? read_bytes(ledger) : "") == before);
  }
  CHECK(contains(refused({"verify", "--ledger", newer}), "99"));
}

TEST_CASE("a prompt longer than the context is refused, however long") {
  const ScratchFolder folder;
  CliRun run;
  run.arguments = {"record", "-m", model_path(), "--ledger", folder / "l.db", "-"};
  for (int i = 0; i < 100000; ++i) run.input += "water damage ";
  CHECK(contains(refused(run), "context"));
  CHECK(run_cli({"list", "--ledger", folder / "l.db"}).out.empty());
}

TEST_CASE("prompt sources: none, several, empty, unreadable") {
  const std::string model = model_path();
  CHECK(contains(refused({"record", "-m", model, "--no-ledger"}), "-p TEXT, -f FILE, -"));
  CHECK(contains(refused({"record", "-m", model, "--no-ledger", "-p", "a", "-f", "b"}),
                 "several prompts given: -p and -f"));
  CHECK(contains(refused({"record", "-m", model, "--no-ledger", "-f", ""}), "empty"));
  CHECK(contains(refused({"record", "-m", model, "--no-ledger", "-f", "/"}), "directory"));
  CHECK(contains(refused({"tokenize", "-m", model}), "-p TEXT, -f FILE or -"));
}

TEST_CASE("options: values that are none are named with what is known") {
  const std::string model = model_path();
  const std::vector<std::string> start{"record", "-m", model, "-p", "x", "--no-ledger"};
  const auto with = [&start](std::vector<std::string> more) {
    more.insert(more.begin(), start.begin(), start.end());
    return more;
  };
  CHECK(contains(refused(with({"--kv", "f64"})), "known: f16, f32"));
  CHECK(contains(refused(with({"--backend", "tpu"})), "known: auto, cpu, cuda"));
  CHECK(contains(refused(with({"--numerics", "cublas"})), "cublas"));
  CHECK(contains(refused(with({"--ctx", "0"})), "--ctx"));
  CHECK(contains(refused(with({"--threads", "many"})), "--threads"));
  CHECK(contains(refused(with({"--tag", "novalue"})), "KEY=VALUE"));
  CHECK(contains(refused(with({"--tag", "a=1", "--tag", "a=2"})), "twice"));
  CHECK(contains(refused(with({"--tag", "=1"})), "no name"));
  CHECK(contains(refused(with({"--tag", "a=\xff"})), "UTF-8"));
  CHECK(contains(refused(with({"-q", "-v"})), "exclude"));
  CHECK(contains(refused(with({"--log-file", ""})), "empty"));
  CHECK(contains(refused({"verify", "--ledger="}), "empty"));
  CHECK(contains(refused(with({"--log-file", "/no/such/folder/log"})), "log file"));
  CHECK(contains(refused({"record", "-m", model, "--tokens", "1,x", "--no-ledger"}), "'x'"));
  CHECK(contains(refused({"record", "-m", model, "--tokens", "2000000000", "--no-ledger"}),
                 "2000000000"));
  CHECK(contains(refused({"record", "-p", "x", "--no-ledger"}), "no model given"));
  CHECK(contains(refused({"replay", "--ledger", "x"}), "no run is given"));
  CHECK(contains(refused({"replay", "1", "--all"}), "--all and a run are given together"));
  CHECK(contains(refused({"replay", "1", "--mode", "sideways"}), "auto, step"));
  CHECK(contains(refused({"show", "1", "2"}), "more than one run"));
  CHECK(contains(refused({"verify", "extra"}), "unexpected argument 'extra'"));
  CHECK(contains(refused({"recrod"}), "did you mean 'record'?"));
  CHECK(contains(refused(std::vector<std::string>{}), "no command given"));
  CHECK(contains(refused({"help", "recrod"}), "did you mean 'record'?"));
}

TEST_CASE("an instruction set that is not here is refused") {
  CliRun run;
  run.arguments = {"record", "-m", model_path(), "-p", "x", "--no-ledger"};
  run.env["DETRUN_CPU_ISA"] = "mmx";
  CHECK(contains(refused(run), "mmx"));
}

}  // namespace
}  // namespace detrun::test
