// What can happen to the ledger's file while somebody records: names, copies, creation by several.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tests/unit/ledger/helpers.h"

namespace detrun {
namespace {

using test::make_steps;
using test::TempDir;

FieldMap ended() { return {{"status", "finished"}}; }

/// The error of an attempt, or kOk.
ExitCode kind_of(const std::function<void()>& attempt) {
  try {
    attempt();
    return ExitCode::kOk;
  } catch (const Error& error) {
    return error.kind();
  }
}

TEST_CASE(
    "a ledger that is deleted or replaced while a run is recorded is an error, not a success") {
  for (const bool replaced : {false, true}) {
    const TempDir dir;
    const auto ledger = Ledger::open_for_recording(dir.file("l"));
    const auto writer = ledger->begin_run({});
    writer->add_steps(make_steps(0, 3));
    if (replaced) {
      Ledger::open_for_recording(dir.file("other"));
      std::filesystem::rename(dir.file("other"), dir.file("l"));
    } else {
      std::filesystem::remove(dir.file("l"));
    }
    CHECK(kind_of([&] { writer->add_steps(make_steps(3, 1)); }) == ExitCode::kInternal);
    CHECK(kind_of([&] { writer->finish(ended()); }) == ExitCode::kInternal);
  }
}

TEST_CASE("a ledger with a second name is not recorded into, and can be read") {
  const TempDir dir;
  Ledger::open_for_recording(dir.file("l"))->begin_run({})->finish(ended());
  std::filesystem::create_hard_link(dir.file("l"), dir.file("second"));
  CHECK(kind_of([&] { Ledger::open_for_recording(dir.file("second")); }) == ExitCode::kUsage);
  CHECK(kind_of([&] { Ledger::open_for_recording(dir.file("l")); }) == ExitCode::kUsage);
  CHECK(Ledger::open_for_reading(dir.file("second"))->verify().runs_checked == 1);
}

TEST_CASE("a copy without the log of a ledger's first run is a ledger without runs") {
  const TempDir dir;
  const auto ledger = Ledger::open_for_recording(dir.file("l"));
  const auto writer = ledger->begin_run({});
  std::filesystem::copy_file(dir.file("l"), dir.file("copy"));
  const auto copy = Ledger::open_for_reading(dir.file("copy"));
  CHECK(copy->runs().empty());
  CHECK(copy->verify().ok);
}

TEST_CASE("processes that create one ledger at the same moment all record into it") {
  constexpr int kRounds = 12, kProcesses = 8;
  for (int round = 0; round < kRounds; ++round) {
    const TempDir dir;
    std::vector<pid_t> children;
    for (int process = 0; process < kProcesses; ++process) {
      const pid_t child = ::fork();
      if (child == 0) {
        ::_exit(static_cast<int>(kind_of(
            [&] { Ledger::open_for_recording(dir.file("l"))->begin_run({})->finish(ended()); })));
      }
      children.push_back(child);
    }
    for (const pid_t child : children) {
      int status = -1;
      REQUIRE(::waitpid(child, &status, 0) == child);
      CHECK(status == 0);
    }
    CHECK(Ledger::open_for_reading(dir.file("l"))->verify().runs_checked == kProcesses);
  }
}

TEST_CASE("a run number that no ledger can hold is damage, for readers and writers") {
  for (const std::string number : {"-1", "0", "2147483648"}) {
    const TempDir dir;
    Ledger::open_for_recording(dir.file("l"))->begin_run({})->finish(ended());
    {
      const ledger::Db db(dir.file("l"), dir.file("l"), SQLITE_OPEN_READWRITE);
      db.exec("PRAGMA ignore_check_constraints = ON");
      db.exec("DROP TRIGGER run_insert");
      db.exec("INSERT INTO run VALUES (" + number + ", 'x')");
      db.exec(
          "CREATE TRIGGER run_insert BEFORE INSERT ON run BEGIN\n"
          "  SELECT RAISE(ABORT, 'detrun: a run number must be given and be the highest')\n"
          "    WHERE NEW.number < 1 OR NEW.number <= (SELECT max(number) FROM run);\n"
          "  SELECT RAISE(ABORT, 'detrun: this run id exists')\n"
          "    WHERE EXISTS (SELECT 1 FROM run WHERE id = NEW.id);\nEND");
    }
    CAPTURE(number);
    CHECK(kind_of([&] { Ledger::open_for_recording(dir.file("l")); }) == ExitCode::kTampered);
    CHECK(kind_of([&] { Ledger::open_for_reading(dir.file("l"))->runs(); }) == ExitCode::kTampered);
  }
}

TEST_CASE("bytes moved from one piece to the next are seen, although the text is the same") {
  const TempDir dir;
  {
    const auto writer = Ledger::open_for_recording(dir.file("l"))->begin_run({});
    writer->add_steps(make_steps(0, 10));
    writer->finish(ended());
  }
  {
    const ledger::Db db(dir.file("l"), dir.file("l"), SQLITE_OPEN_READWRITE);
    db.exec("DROP TRIGGER step_update");
    db.exec("UPDATE step SET piece = x'' WHERE idx = 5");
    db.exec("UPDATE step SET piece = x'70357036' WHERE idx = 6");
  }
  const VerifyReport report = Ledger::open_for_reading(dir.file("l"))->verify();
  REQUIRE(report.broken.size() == 1);
  CHECK(report.broken[0].field == "text");
}

}  // namespace
}  // namespace detrun
