// SIGKILL at random moments: the ledger opens, verifies, its committed prefix is readable, and it
// takes new runs. The moments come from a fixed seed; their distance to the child's own speed is
// what chance remains.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <random>
#include <thread>

#include "unit/ledger/helpers.h"

using namespace detrun;
using namespace detrun::test;

namespace {

/// Records runs of 200 steps in batches until killed. After every committed batch the parent is
/// told how far it got.
[[noreturn]] void record_for_ever(const std::string& path, int report) {
  try {
    const auto ledger = Ledger::open_for_recording(path);
    for (;;) {
      const auto writer = ledger->begin_run(start_fields());
      for (std::uint64_t at = 0; at < 200; at += 10) {
        writer->add_steps(make_steps(at, 10));
        const std::int64_t done[2] = {writer->number(), static_cast<std::int64_t>(at + 10)};
        if (::write(report, done, sizeof(done)) != sizeof(done)) ::_exit(3);
      }
      writer->finish(end_fields());
    }
  } catch (const Error&) {
    ::_exit(2);
  }
}

/// What the child last said it had committed.
struct Progress {
  std::int64_t run = 0, steps = 0;
};

Progress kill_after(const std::string& path, std::chrono::milliseconds wait) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    record_for_ever(path, ends[1]);
  }
  ::close(ends[1]);
  std::this_thread::sleep_for(wait);
  REQUIRE(::kill(child, SIGKILL) == 0);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  Progress last;
  std::int64_t done[2];
  while (::read(ends[0], done, sizeof(done)) == sizeof(done)) last = {done[0], done[1]};
  ::close(ends[0]);
  return last;
}

}  // namespace

TEST_CASE("a writer killed at twenty random moments loses nothing it had committed") {
  const TempDir dir;
  const std::string path = dir.file("l");
  std::mt19937 random(20261129);
  std::uniform_int_distribution<int> moment_ms(1, 250);
  int interrupted = 0;
  for (int round = 0; round < 20; ++round) {
    CAPTURE(round);
    const std::int64_t before =
        std::filesystem::exists(path) && std::filesystem::file_size(path) > 0
            ? static_cast<std::int64_t>(Ledger::open_for_reading(path)->runs().size())
            : 0;
    const Progress last = kill_after(path, std::chrono::milliseconds(moment_ms(random)));
    if (!std::filesystem::exists(path) || std::filesystem::file_size(path) == 0) continue;
    {
      // As it was left: read with its log, nothing repaired yet.
      const auto reading = Ledger::open_for_reading(path);
      const VerifyReport report = reading->verify();
      CHECK(report.ok);
      if (last.run > 0) {
        const RunRecord run = reading->read(last.run, true);
        CHECK(run.steps.size() >= static_cast<std::size_t>(last.steps));
        CHECK(run.steps.size() % 10 == 0);
        if (!run.sealed) {
          ++interrupted;
          CHECK(contains(report.not_checked,
                         "run " + std::to_string(last.run) + ": interrupted, not yet sealed"));
        }
      }
    }
    const auto ledger = Ledger::open_for_recording(path);
    const std::int64_t number = record_run(*ledger, 70);
    CHECK(number > before);
    CHECK(number >= last.run + 1);
    const VerifyReport report = ledger->verify();
    CHECK(report.ok);
    CHECK(report.runs_checked == static_cast<std::uint64_t>(number));
    CHECK(report.not_checked.size() == 1);
  }
  CHECK(interrupted >= 5);
}
