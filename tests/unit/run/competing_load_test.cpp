// A process beside this one: started, waited for, noticed when it ends, ended.
#include "run/competing_load.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "detrun/error.h"
#include "tests/support/gguf_builder.h"

namespace detrun {
namespace {

std::vector<std::string> shell(const std::string& script) { return {"/bin/sh", "-c", script}; }

std::string failure_of(const std::string& script) {
  try {
    CompetingLoad load(shell(script), "ready");
    load.check_running();
  } catch (const Error& error) {
    CHECK(error.kind() == ExitCode::kInternal);
    return error.what();
  }
  return {};
}

/// The number that a load wrote into a file.
pid_t number_in(const std::string& path) {
  long number = 0;
  std::ifstream(path) >> number;
  return static_cast<pid_t>(number);
}

TEST_CASE("a load runs from its word until it is let go") {
  const test::TempFolder folder;
  const std::string path = folder.file("pid");
  pid_t process = 0;
  {
    CompetingLoad load(shell("echo $$ > " + path +
                             "; echo almost >&2; echo all ready now >&2; "
                             "echo much more; exec sleep 600"),
                       "ready");
    process = number_in(path);
    CHECK(kill(process, 0) == 0);
    CHECK(getpgid(process) == process);  // what a terminal sends to this group does not end it
    load.check_running();
  }
  CHECK(kill(process, 0) != 0);
}

TEST_CASE("a load that does not come up is an error with its last words") {
  CHECK(failure_of("echo first >&2; echo no GPU here >&2; exit 3")
            .find("does not run: its last words: no GPU here") != std::string::npos);
  CHECK(failure_of("exit 0").find("does not run: it said nothing") != std::string::npos);
  // The word without the end of its line may be the beginning of another one.
  CHECK(failure_of("printf ready >&2; exit 0").find("its last words: ready") != std::string::npos);
}

TEST_CASE("a program that is not there is an error") {
  CHECK_THROWS_AS(CompetingLoad({"/nonexistent/program"}, "ready"), Error);
}

TEST_CASE("a load that ended early is no load") {
  CompetingLoad load(shell("echo ready >&2"), "ready");
  std::string why;
  for (int i = 0; i < 1000 && why.empty(); ++i) {
    try {
      load.check_running();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    } catch (const Error& error) {
      why = error.what();
    }
  }
  CHECK(why.find("ended before") != std::string::npos);
}

}  // namespace
}  // namespace detrun
