// What reaches a terminal: nothing that drives it, no half characters, a progress line only there.
#include "tests/cli/cli_support.h"

namespace detrun::test {
namespace {

// Clear screen, window title, clipboard, a link, C1 forms of CSI and OSC, carriage return, bidi.
const std::string kHostile =
    "\x1b[2J\x1b]0;title\x07\x1b]52;c;AAAA\x07\x1b]8;;http://x\x1b\\l\x1b]8;;\x1b\\"
    "\xc2\x9b\x32J\xc2\x9d\x30;t\xc2\x9c\rforged\xe2\x80\xae\x9b\x7f";

// True when no byte of the text can drive a terminal.
bool harmless(const std::string& text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f) return false;
    const std::string_view rest = std::string_view(text).substr(i);
    if (byte == 0xc2 && rest.size() > 1 && static_cast<unsigned char>(rest[1]) < 0xa0) return false;
    if (rest.starts_with("\xe2\x80\xae")) return false;
    if (byte == 0x9b && (i == 0 || static_cast<unsigned char>(text[i - 1]) < 0x80)) return false;
  }
  return true;
}

// Standard error without what the progress line itself writes.
std::string without_progress(std::string text) {
  for (const std::string_view wipe : {"\r\x1b[K", "\x1b[K", "\r"}) {
    for (std::size_t at = 0; (at = text.find(wipe, at)) != std::string::npos;) {
      text.erase(at, wipe.size());
    }
  }
  return text;
}

CliRun on_terminal(std::vector<std::string> arguments) {
  CliRun run;
  run.arguments = std::move(arguments);
  run.out_terminal = run.err_terminal = true;
  run.env["NO_COLOR"] = "1";
  return run;
}

TEST_CASE("hostile prompts and tags are escaped by list, show and the echo on a terminal") {
  const ScratchFolder folder;
  const std::string ledger = folder / "l.db";
  write_bytes(folder / "prompt", kHostile + " and text");
  const std::vector<std::string> words{
      "-f", folder / "prompt", "-n", "4", "--tag", "note=\x1b[2J\xc2\x9b\r\xe2\x80\xae", "--echo"};
  const std::string raw = record_into(ledger, words);
  CHECK(contains(raw, kHostile));  // a pipe receives the bytes
  const CliResult shown_live = run_cli(on_terminal(record_words(ledger, words)));
  CHECK(shown_live.code == 0);
  CHECK(contains(shown_live.out, "\\x1b[2J"));
  CHECK(harmless(shown_live.out));
  for (const bool terminal : {true, false}) {
    for (std::vector<std::string> arguments :
         {std::vector<std::string>{"list"}, {"show", "1"}, {"verify"}, {"replay", "1"}}) {
      arguments.insert(arguments.end(), {"--ledger", ledger});
      CliRun run = on_terminal(arguments);
      run.out_terminal = terminal;
      const CliResult result = run_cli(run);
      CAPTURE(arguments.front());
      CHECK(result.code == 0);
      CHECK(harmless(result.out));
    }
  }
  const CliResult json = run_cli({"show", "1", "--json", "--ledger", ledger});
  CHECK(at_path(parse_line(json.out), "tags.note").as_string() == "\x1b[2J\xc2\x9b\r\xe2\x80\xae");
}

TEST_CASE("hostile file names are escaped in messages") {
  const ScratchFolder folder;
  const std::string name = folder / ("m" + std::string("\x1b[2J\r\xe2\x80\xae") + ".gguf");
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"record", "-m", name, "-p", "x", "--no-ledger"},
        {"tokenize", "-m", name, "-p", "x"},
        {"tokenize", "-m", model_path(), "-f", name},
        {"verify", "--ledger", name},
        {"replay", "1", "--ledger", name},
        {"record", "-m", model_path(), "-p", "x", "--no-ledger", "--kv", name},
        {"record", "-m", model_path(), name},
        {name}}) {
    CAPTURE(arguments.front());
    const CliResult result = run_cli(on_terminal(arguments));
    CAPTURE(result.err);
    CHECK(result.code == 2);
    CHECK(contains(result.err, "\\x1b[2J"));
    CHECK(harmless(result.err));
  }
}

TEST_CASE("a hostile model name is escaped") {
  const ScratchFolder folder;
  std::string bytes = read_bytes(model_path());
  const std::string key = "general.name";
  const std::size_t at = bytes.find(key);
  REQUIRE(at != std::string::npos);
  const std::size_t length_at = at + key.size() + 4;
  const auto length = static_cast<unsigned char>(bytes[length_at]);
  REQUIRE(length >= 9);
  bytes.replace(length_at + 8, 9, "\x1b[2J\r\xe2\x80\xae!");
  write_bytes(folder / "m.gguf", bytes);
  const std::string ledger = folder / "l.db";
  const CliResult recorded = run_cli(on_terminal(
      {"record", "-m", folder / "m.gguf", "-p", "x", "-n", "1", "-vv", "--ledger", ledger}));
  CHECK(recorded.code == 0);
  CHECK(harmless(recorded.out));
  CAPTURE(recorded.err);
  CHECK(harmless(without_progress(recorded.err)));
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"list", "--ledger", ledger}, {"show", "1", "--ledger", ledger}}) {
    const CliResult result = run_cli(on_terminal(arguments));
    CHECK(result.code == 0);
    CHECK(contains(result.out, "\\x1b[2J\\r\\u{202e}!"));
    CHECK(harmless(result.out));
  }
}

TEST_CASE("a terminal gets a newline after the text, a pipe does not") {
  const ScratchFolder folder;
  const std::string piped = record_into(folder / "l.db");
  CHECK_FALSE(piped.ends_with('\n'));
  const CliResult shown = run_cli(on_terminal(record_words(folder / "l.db")));
  CHECK(shown.out == piped + "\n");
}

TEST_CASE("a progress line is drawn on a terminal only, and never with -q") {
  const ScratchFolder folder;
  std::string prompt;
  for (int i = 0; i < 40; ++i) prompt += "Claim 17: water damage. ";
  std::vector<std::string> words =
      record_words(folder / "l.db", {"-p", prompt, "-n", "1", "--threads", "1", "--ctx", "1000"});
  CliRun run = on_terminal(words);
  run.env["DETRUN_CPU_ISA"] = "scalar";
  const CliResult drawn = run_cli(run);
  CHECK(drawn.code == 0);
  CHECK(contains(drawn.err, "\r\x1b[K"));
  CHECK(contains(drawn.err, "prefill  ["));
  CHECK_FALSE(contains(drawn.out, "prefill"));
  run.err_terminal = false;
  CHECK_FALSE(contains(run_cli(run).err, "prefill  ["));
  run.err_terminal = true;
  run.arguments.push_back("-q");
  CHECK_FALSE(contains(run_cli(run).err, "prefill  ["));
}

TEST_CASE("colour follows --color, NO_COLOR and the terminal") {
  const ScratchFolder folder;
  record_into(folder / "l.db");
  CliRun run;
  run.arguments = {"verify", "--ledger", folder / "l.db"};
  CHECK(run_cli(run).out.find('\x1b') == std::string::npos);
  run.out_terminal = true;
  CHECK(run_cli(run).out.starts_with("\x1b[32mok\x1b[0m"));
  run.env["NO_COLOR"] = "1";
  CHECK(run_cli(run).out.find('\x1b') == std::string::npos);
  run.arguments.insert(run.arguments.end(), {"--color", "always"});
  CHECK(run_cli(run).out.starts_with("\x1b[32mok\x1b[0m"));
  run.env.clear();
  run.env["TERM"] = "dumb";
  run.arguments = {"verify", "--ledger", folder / "l.db"};
  CHECK(run_cli(run).out.find('\x1b') == std::string::npos);
}

}  // namespace
}  // namespace detrun::test
