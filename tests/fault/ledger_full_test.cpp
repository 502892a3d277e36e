// A disk that is full: a clear error, nothing recorded before is lost, and the ledger goes on once
// there is room.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "unit/ledger/helpers.h"

using namespace detrun;
using namespace detrun::test;

namespace {

struct Outcome {
  int code = -1;           ///< exit code of the Error, 0 when none came
  std::int64_t runs = 0;   ///< finished
  std::int64_t steps = 0;  ///< committed in the run that failed
  char message[512] = {};
};

/// Records until the file size limit stops it.
Outcome record_under_limit(const std::string& path, rlim_t bytes) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    Outcome outcome;
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, bytes};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      const auto ledger = Ledger::open_for_recording(path);
      for (int run = 0; run < 1000; ++run) {
        outcome.steps = 0;
        const auto writer = ledger->begin_run(start_fields());
        for (std::uint64_t at = 0; at < 500; at += 50) {
          writer->add_steps(make_steps(at, 50));
          outcome.steps += 50;
        }
        writer->finish(end_fields());
        ++outcome.runs;
      }
      outcome.code = 0;
    } catch (const Error& error) {
      outcome.code = static_cast<int>(error.kind());
      std::strncpy(outcome.message, error.what(), sizeof(outcome.message) - 1);
    }
    const bool told = ::write(ends[1], &outcome, sizeof(outcome)) == sizeof(outcome);
    ::_exit(told ? 0 : 1);
  }
  ::close(ends[1]);
  Outcome outcome;
  const ssize_t got = ::read(ends[0], &outcome, sizeof(outcome));
  ::close(ends[0]);
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(got == sizeof(outcome));
  return outcome;
}

}  // namespace

TEST_CASE("a full disk is exit 5, says so, and loses nothing recorded") {
  for (const rlim_t limit : {rlim_t{20'000}, rlim_t{200'000}, rlim_t{1'000'000}}) {
    CAPTURE(limit);
    const TempDir dir;
    const std::string path = dir.file("l");
    const Outcome outcome = record_under_limit(path, limit);
    CHECK(outcome.code == static_cast<int>(ExitCode::kInternal));
    CAPTURE(outcome.message);
    CHECK(std::string(outcome.message).find("disk full") != std::string::npos);
    const auto ledger = Ledger::open_for_recording(path);  // there is room again
    const auto runs = static_cast<std::int64_t>(ledger->runs().size());
    CHECK(runs >= outcome.runs);
    CHECK(runs <= outcome.runs + 1);
    for (std::int64_t number = 1; number <= outcome.runs; ++number)
      CHECK(ledger->read(number, true).steps.size() == 500);
    if (runs > outcome.runs) {
      const RunRecord last = ledger->read(runs, true);
      CHECK(last.steps.size() >= static_cast<std::size_t>(outcome.steps));
      CHECK(field_text(last.fields, field::status) == "interrupted");
    }
    record_run(*ledger, 100);
    const VerifyReport report = ledger->verify();
    CHECK(report.ok);
    CHECK(report.runs_checked == static_cast<std::uint64_t>(runs + 1));
  }
}

TEST_CASE("a batch that does not fit can be given again once there is room") {
  const TempDir dir;
  const auto ledger = Ledger::open_for_recording(dir.file("l"));
  const auto writer = ledger->begin_run(start_fields());
  writer->add_steps(make_steps(0, 10));
  const std::uintmax_t size = std::filesystem::file_size(dir.file("l-wal"));
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto previous = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{size + 100, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const ExitCode code = exit_code_of([&] { writer->add_steps(make_steps(10, 5000)); });
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  ::signal(SIGXFSZ, previous);
  CHECK(code == ExitCode::kInternal);
  CHECK(ledger->read(1, true).steps.size() == 10);
  writer->add_steps(make_steps(10, 5000));
  writer->finish(end_fields());
  CHECK(ledger->verify().ok);
  CHECK(ledger->read(1, true).steps.size() == 5010);
}
