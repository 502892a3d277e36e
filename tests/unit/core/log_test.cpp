// The log: what reaches it from a file can drive no terminal.
#include "detrun/log.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "detrun/error.h"

namespace detrun {

TEST_CASE("a log line is escaped, braces in it are no format, and the file is 0600") {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("detrun-log-test." + std::to_string(::getpid()));
  LogOptions options;
  options.level = LogLevel::kWarning;
  options.file = path;
  log_setup(options);
  log_warning("model \x1B[2J {} \xFF end");
  log_info("not at this level");
  log_setup({});  // closes the file
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  CHECK(text.find("model \\x1b[2J {} \\xff end\n") != std::string::npos);
  CHECK(text.find("not at this level") == std::string::npos);
  CHECK((std::filesystem::status(path).permissions() & std::filesystem::perms::all) ==
        (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write));
  std::filesystem::remove(path);
}

TEST_CASE("a log is never appended to a ledger or a model") {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("detrun-log-test." + std::to_string(::getpid()));
  for (const std::string content : {"SQLite format 3\n...", "GGUF...."}) {
    std::ofstream(path, std::ios::binary) << content;
    LogOptions options;
    options.file = path;
    try {
      log_setup(options);
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.kind() == ExitCode::kUsage);
    }
    CHECK(std::filesystem::file_size(path) == content.size());
  }
  std::filesystem::remove(path);
}

}  // namespace detrun
