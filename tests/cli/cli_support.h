// What the tests of the whole program share: the bundled model, a ledger with one run, changes to
// a file's header.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "detrun/json.h"
#include "tests/support/cli_runner.h"

namespace detrun::test {

/// DETRUN_TEST_MODEL puts another model in the place of the bundled one.
inline std::string model_path() {
  const char* other = std::getenv("DETRUN_TEST_MODEL");
  if (other != nullptr) return other;
  return DETRUN_SOURCE_DIR "/fixtures/models/detrun-decisions-q8_0.gguf";
}

inline constexpr const char* kPrompt = "Claim 17: water damage.";

/// `detrun record` of `kPrompt`, eight tokens, plus `more`.
inline std::vector<std::string> record_words(const std::string& ledger,
                                             const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{"record", "-m", model_path(), "--ledger", ledger};
  const std::vector<std::string> usual{"-p", kPrompt, "-n", "8"};
  const auto& rest = more.empty() ? usual : more;
  words.insert(words.end(), rest.begin(), rest.end());
  return words;
}

/// Records and demands success; returns the text.
inline std::string record_into(const std::string& ledger,
                               const std::vector<std::string>& more = {}) {
  const CliResult result = run_cli(record_words(ledger, more));
  INFO(result.err);
  REQUIRE(result.code == 0);
  return result.out;
}

/// A bundled model with weights of this type.
inline std::string fixture_model(const std::string& type) {
  return DETRUN_SOURCE_DIR "/fixtures/models/detrun-decisions-" + type + ".gguf";
}

/// The program with the emulated GPU.
inline CliResult run_emulated(std::vector<std::string> words,
                              std::map<std::string, std::string> env = {}) {
  CliRun run;
  run.program = DETRUN_BINARY_DIR "/bin/detrun_emulated";
  run.arguments = std::move(words);
  run.env = std::move(env);
  return run_cli(run);
}

inline Json parse_line(const std::string& text) { return Json::parse(text, "output"); }

inline bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// The member at a dotted path; null when there is none.
inline Json at_path(const Json& document, std::string_view dotted) {
  const Json* value = &document;
  while (value != nullptr && !dotted.empty()) {
    const std::size_t dot = dotted.find('.');
    value = value->is_object() ? value->find(dotted.substr(0, dot)) : nullptr;
    dotted.remove_prefix(dot == std::string_view::npos ? dotted.size() : dot + 1);
  }
  return value == nullptr ? Json() : *value;
}

/// Puts a big-endian u32 into a file: fields of SQLite's header.
inline void patch_u32(const std::string& path, std::size_t offset, std::uint32_t value) {
  std::string bytes = read_bytes(path);
  for (int i = 0; i < 4; ++i) {
    bytes[offset + static_cast<std::size_t>(i)] = static_cast<char>(value >> (24 - 8 * i));
  }
  write_bytes(path, bytes);
}

/// A copy of a ledger whose recorded token of one step is another one; with `reseal` its forger
/// also recomputed the seal.
inline void forge(const std::string& from, const std::string& to, int step, bool reseal) {
  std::string command = DETRUN_BINARY_DIR "/bin/forge_ledger '" + from + "' '" + to +
                        "' --run 1 --token 5 --step " + std::to_string(step);
  if (reseal) command += " --reseal";
  REQUIRE(std::system((command + " > /dev/null").c_str()) == 0);
}

}  // namespace detrun::test
