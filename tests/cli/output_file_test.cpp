// A file written as a whole: known to be writable before, never half there.
#include "cli/output_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>

#include "detrun/error.h"
#include "tests/support/cli_runner.h"

namespace detrun::cli {
namespace {

using test::read_bytes;
using test::ScratchFolder;
using test::write_bytes;

std::size_t n_files(const ScratchFolder& folder) {
  const std::filesystem::directory_iterator all(folder / "");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

TEST_CASE("a file appears with its bytes and mode 0600, and nothing stays beside it") {
  const ScratchFolder folder;
  {
    OutputFile file(folder / "a.xml", "--junit");
    CHECK_FALSE(std::filesystem::exists(folder / "a.xml"));
    file.commit("hello");
  }
  CHECK(read_bytes(folder / "a.xml") == "hello");
  struct stat info {};
  REQUIRE(::stat((folder / "a.xml").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  CHECK(n_files(folder) == 1);
}

TEST_CASE("without a commit the old file stays") {
  const ScratchFolder folder;
  write_bytes(folder / "a.xml", "old");
  { const OutputFile file(folder / "a.xml", "--junit"); }
  CHECK(read_bytes(folder / "a.xml") == "old");
  CHECK(n_files(folder) == 1);
  OutputFile(folder / "a.xml", "--junit").commit("new");
  CHECK(read_bytes(folder / "a.xml") == "new");
}

TEST_CASE("what a symbolic link names is replaced, not the link") {
  const ScratchFolder folder;
  write_bytes(folder / "real", "old");
  std::filesystem::create_symlink(folder / "real", folder / "link");
  OutputFile(folder / "link", "--junit").commit("new");
  CHECK(std::filesystem::is_symlink(folder / "link"));
  CHECK(read_bytes(folder / "real") == "new");
}

TEST_CASE("a device is written as it is and stays a device") {
  OutputFile("/dev/null", "--junit").commit("x");
  struct stat info {};
  REQUIRE(::stat("/dev/null", &info) == 0);
  CHECK(S_ISCHR(info.st_mode));
}

TEST_CASE("a place that cannot be written is a usage error that names option and place") {
  const ScratchFolder folder;
  for (const std::string& path :
       {std::string(), folder / "", folder / "no/such", std::string("/proc/x")}) {
    CAPTURE(path);
    try {
      const OutputFile file(path, "--junit");
      FAIL("it was opened");
    } catch (const Error& error) {
      CHECK(error.kind() == ExitCode::kUsage);
      CHECK(std::string(error.what()).find("--junit") != std::string::npos);
    }
  }
}

TEST_CASE("a full disk is an internal error") {
  OutputFile file("/dev/full", "--junit");
  try {
    file.commit("x");
    FAIL("it was written");
  } catch (const Error& error) {
    CHECK(error.kind() == ExitCode::kInternal);
  }
}

}  // namespace
}  // namespace detrun::cli
