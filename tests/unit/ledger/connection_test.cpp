// How a file is opened: modes, strangers, damage, read-only places, several processes.
#include "ledger/connection.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <thread>

#include "helpers.h"

using namespace detrun;
using namespace detrun::test;

namespace {

constexpr uid_t kNobody = 65534;

/// Exit code of `work` in a child process; as root the child first becomes nobody.
int in_child(bool as_nobody, const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (as_nobody && ::geteuid() == 0 && (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0))
      ::_exit(99);
    int code = 98;
    try {
      code = work();
    } catch (const Error& error) {
      code = static_cast<int>(error.kind());
    } catch (...) {
    }
    ::_exit(code);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

mode_t mode_of(const std::string& path) {
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  return info.st_mode & 07777;
}

ExitCode reading(const std::string& path, std::string* message = nullptr) {
  return exit_code_of([&] { Ledger::open_for_reading(path); }, message);
}

ExitCode recording(const std::string& path, std::string* message = nullptr) {
  return exit_code_of([&] { Ledger::open_for_recording(path); }, message);
}

std::vector<std::string> files_in(const TempDir& dir) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(dir.path()))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("files of a ledger are for their owner alone, whatever the umask") {
  const TempDir dir;
  for (const mode_t mask : {mode_t{0}, mode_t{0077}, mode_t{0777}}) {
    const std::string path = dir.file("l" + std::to_string(mask));
    const mode_t before = ::umask(mask);
    {
      const auto ledger = Ledger::open_for_recording(path);
      const auto writer = ledger->begin_run(start_fields());
      for (const char* suffix : {"", "-wal", "-shm", "-lock"})
        CHECK_MESSAGE(mode_of(path + suffix) == 0600, suffix);
    }
    ::umask(before);
  }
}

TEST_CASE("a clean exit leaves everything in the main file") {
  const TempDir dir;
  record_three(dir.file("l"));
  CHECK(files_in(dir) == std::vector<std::string>{"l", "l-lock"});
  std::filesystem::copy_file(dir.file("l"), dir.file("copy"));
  CHECK(verify_file(dir.file("copy")).runs_checked == 3);
}

TEST_CASE("reading changes nothing and leaves no file behind") {
  const TempDir dir;
  record_three(dir.file("l"));
  std::filesystem::remove(dir.file("l-lock"));
  const std::string before = read_bytes(dir.file("l"));
  const auto time = std::filesystem::last_write_time(dir.file("l"));
  {
    const auto ledger = Ledger::open_for_reading(dir.file("l"));
    CHECK(ledger->verify().ok);
    CHECK(ledger->read(2, true).steps.size() == 130);
  }
  CHECK(files_in(dir) == std::vector<std::string>{"l"});
  CHECK(read_bytes(dir.file("l")) == before);
  CHECK(std::filesystem::last_write_time(dir.file("l")) == time);
}

TEST_CASE("a reader sees what a live writer has committed, log included") {
  const TempDir dir;
  const auto ledger = Ledger::open_for_recording(dir.file("l"));
  record_run(*ledger, 5);
  const auto writer = ledger->begin_run(start_fields());
  writer->add_steps(make_steps(0, 3));
  REQUIRE(std::filesystem::file_size(dir.file("l-wal")) > 0);
  const auto reader = Ledger::open_for_reading(dir.file("l"));
  CHECK(reader->runs().size() == 2);
  CHECK(reader->read(2, true).steps.size() == 3);
  writer->add_steps(make_steps(3, 1));
  CHECK(reader->read(2, true).steps.size() == 4);
}

TEST_CASE("the log of a dead writer is read and left as it is") {
  const TempDir dir;
  const std::string path = dir.file("l");
  CHECK(in_child(false, [&] {
          const auto ledger = Ledger::open_for_recording(path);
          record_run(*ledger, 5);
          const auto writer = ledger->begin_run(start_fields());
          writer->add_steps(make_steps(0, 3));
          ::_exit(0);  // no destructor: as after a SIGKILL
          return 0;
        }) == 0);
  REQUIRE(std::filesystem::file_size(path + "-wal") > 0);
  const std::string main = read_bytes(path), wal = read_bytes(path + "-wal");
  {
    const auto ledger = Ledger::open_for_reading(path);
    CHECK(ledger->verify().ok);
    CHECK(ledger->read(2, true).steps.size() == 3);
    CHECK(!ledger->read(2, true).live);
  }
  CHECK(read_bytes(path) == main);
  CHECK(read_bytes(path + "-wal") == wal);
  // Without its log the copy is an older ledger, or none yet.
  std::filesystem::copy_file(path, dir.file("copy"));
  const ExitCode copied = reading(dir.file("copy"));
  CHECK((copied == ExitCode::kOk || copied == ExitCode::kUsage));
}

TEST_CASE("a path may hold any character") {
  const TempDir dir;
  for (const char* name :
       {"a b", "a?mode=memory", "a#b", "a%41", "\xff\xfe", "file:x", ":memory:"}) {
    CAPTURE(name);
    record_three(dir.file(name));
    CHECK(verify_file(dir.file(name)).runs_checked == 3);
    CHECK(std::filesystem::exists(dir.file(name)));
  }
}

TEST_CASE("a symbolic link leads to the same ledger and the same lock file") {
  const TempDir dir;
  std::filesystem::create_directory(dir.file("real"));
  record_three(dir.file("real/l"));
  std::filesystem::create_symlink(dir.file("real/l"), dir.file("link"));
  const auto ledger = Ledger::open_for_recording(dir.file("link"));
  const auto writer = ledger->begin_run({});
  CHECK(Ledger::open_for_reading(dir.file("real/l"))->read(4, false).live);
  CHECK(!std::filesystem::exists(dir.file("link-lock")));
}

TEST_CASE("what is no ledger is a usage error that says what it is") {
  const TempDir dir;
  std::string message;
  CHECK(reading(dir.file("absent"), &message) == ExitCode::kUsage);
  CHECK(message.find("does not exist") != std::string::npos);
  CHECK(!std::filesystem::exists(dir.file("absent")));
  CHECK(reading(dir.path().string()) == ExitCode::kUsage);
  CHECK(recording(dir.path().string()) == ExitCode::kUsage);
  CHECK(recording("/dev/null") == ExitCode::kUsage);
  CHECK(reading("/dev/null") == ExitCode::kUsage);
  CHECK(recording("") == ExitCode::kUsage);
  CHECK(recording(dir.file("no/such/folder/l")) == ExitCode::kUsage);
  const std::string long_text(5000, 'x');
  for (const std::string& bytes : {std::string("GGUF"), long_text, std::string(4096, '\0')}) {
    write_bytes(dir.file("other"), bytes);
    CHECK(reading(dir.file("other"), &message) == ExitCode::kUsage);
    CHECK(message.find("not an SQLite database") != std::string::npos);
    CHECK(recording(dir.file("other")) == ExitCode::kUsage);
    CHECK(read_bytes(dir.file("other")) == bytes);
  }
  write_bytes(dir.file("empty"), "");
  CHECK(reading(dir.file("empty")) == ExitCode::kUsage);
}

TEST_CASE("an empty file becomes a ledger") {
  const TempDir dir;
  write_bytes(dir.file("l"), "");
  record_three(dir.file("l"));
  CHECK(verify_file(dir.file("l")).runs_checked == 3);
}

TEST_CASE("a database of another application is refused, named and left alone") {
  const TempDir dir;
  const std::string path = dir.file("other");
  {
    const ledger::Db db(path, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    db.exec("CREATE TABLE t (a); PRAGMA application_id = 0x47504B47");
  }
  const std::string before = read_bytes(path);
  std::string message;
  CHECK(reading(path, &message) == ExitCode::kUsage);
  CHECK(message.find("'GPKG'") != std::string::npos);
  CHECK(recording(path) == ExitCode::kUsage);
  CHECK(read_bytes(path) == before);
  raw_db(path).exec("PRAGMA application_id = 0");
  CHECK(reading(path, &message) == ExitCode::kUsage);
  CHECK(message.find("application_id none") != std::string::npos);
}

TEST_CASE("a damaged database of another application is no ledger that was tampered with") {
  const TempDir dir;
  const std::string path = dir.file("other");
  {
    const ledger::Db db(path, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    db.exec("PRAGMA application_id = 7; CREATE TABLE t (a)");
    db.exec("INSERT INTO t VALUES (zeroblob(100000))");
  }
  std::string message;
  for (const std::size_t size : {std::size_t{20000}, std::size_t{99}}) {
    std::filesystem::resize_file(path, size);
    CHECK(reading(path, &message) == ExitCode::kUsage);
    CHECK(recording(path) == ExitCode::kUsage);
  }
}

TEST_CASE("a newer schema is refused with both versions, an impossible one is TAMPERED") {
  const TempDir dir;
  record_three(dir.file("l"));
  raw_db(dir.file("l")).exec("PRAGMA user_version = 7");
  std::string message;
  CHECK(reading(dir.file("l"), &message) == ExitCode::kUsage);
  CHECK(message.find("version 7") != std::string::npos);
  CHECK(message.find("up to 1") != std::string::npos);
  CHECK(recording(dir.file("l")) == ExitCode::kUsage);
  raw_db(dir.file("l")).exec("PRAGMA user_version = 0");
  CHECK(reading(dir.file("l")) == ExitCode::kTampered);
  CHECK(recording(dir.file("l")) == ExitCode::kTampered);
}

TEST_CASE("a ledger in a place that cannot be written is read, and not recorded into") {
  const TempDir dir;
  std::filesystem::permissions(dir.path(), std::filesystem::perms::all);
  std::filesystem::create_directory(dir.file("d"));
  const std::string path = dir.file("d/l");
  record_three(path);
  std::filesystem::remove(path + "-lock");
  REQUIRE(::chmod(path.c_str(), 0444) == 0);
  REQUIRE(::chmod(dir.file("d").c_str(), 0555) == 0);
  CHECK(in_child(true, [&] {
          const auto ledger = Ledger::open_for_reading(path);
          return ledger->verify().ok && ledger->read(2, true).steps.size() == 130 ? 0 : 1;
        }) == 0);
  CHECK(in_child(true, [&] {
          Ledger::open_for_recording(path);
          return 0;
        }) == static_cast<int>(ExitCode::kUsage));
  CHECK(in_child(true, [&] {
          Ledger::open_for_recording(dir.file("d/new"));
          return 0;
        }) == static_cast<int>(ExitCode::kUsage));
  REQUIRE(::chmod(dir.file("d").c_str(), 0755) == 0);
  CHECK(std::distance(std::filesystem::directory_iterator(dir.file("d")), {}) == 1);
}

TEST_CASE("a log that cannot be read in a place without write permission is a usage error") {
  const TempDir dir;
  std::filesystem::permissions(dir.path(), std::filesystem::perms::all);
  const auto ledger = Ledger::open_for_recording(dir.file("l"));
  record_run(*ledger, 3);
  std::filesystem::create_directory(dir.file("d"));
  std::filesystem::copy_file(dir.file("l"), dir.file("d/l"));
  std::filesystem::copy_file(dir.file("l-wal"), dir.file("d/l-wal"));
  for (const char* name : {"d/l", "d/l-wal"}) REQUIRE(::chmod(dir.file(name).c_str(), 0444) == 0);
  REQUIRE(::chmod(dir.file("d").c_str(), 0555) == 0);
  CHECK(in_child(true, [&] {
          std::string message;
          const ExitCode code = reading(dir.file("d/l"), &message);
          if (message.find("write-ahead log") == std::string::npos) return 97;
          return static_cast<int>(code);
        }) == static_cast<int>(ExitCode::kUsage));
  REQUIRE(::chmod(dir.file("d").c_str(), 0755) == 0);
  // In a folder of one's own the same two files are read.
  CHECK(verify_file(dir.file("d/l")).runs_checked == 1);
}

TEST_CASE("several processes record into one new ledger at once and lose nothing") {
  const TempDir dir;
  const std::string path = dir.file("l");
  constexpr int kProcesses = 4, kRuns = 20;
  std::vector<pid_t> children;
  for (int process = 0; process < kProcesses; ++process) {
    const pid_t child = ::fork();
    if (child == 0) {
      try {
        const auto ledger = Ledger::open_for_recording(path);
        for (int run = 0; run < kRuns; ++run) {
          const auto writer = ledger->begin_run(start_fields());
          writer->add_steps(make_steps(0, 5));
          writer->add_steps(make_steps(5, 65));
          writer->finish(end_fields());
        }
      } catch (const Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        ::_exit(1);
      }
      ::_exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  const VerifyReport report = verify_file(path);
  CHECK(report.ok);
  CHECK(report.runs_checked == kProcesses * kRuns);
  CHECK(report.steps_checked == kProcesses * kRuns * 70);
}

TEST_CASE("a writer waits for another that holds the file") {
  const TempDir dir;
  const auto ledger = Ledger::open_for_recording(dir.file("l"));
  const ledger::Db other = raw_db(dir.file("l"));
  other.exec("BEGIN IMMEDIATE");
  std::thread release([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    other.exec("COMMIT");
  });
  CHECK(record_run(*ledger, 1) == 1);
  release.join();
}

TEST_CASE("a write that fails leaves nothing and can be tried again") {
  const TempDir dir;
  ledger::Connection connection = ledger::Connection::for_recording(dir.file("l"));
  int calls = 0;
  CHECK(exit_code_of([&] {
          connection.write([&] {
            ++calls;
            connection.db().exec("INSERT INTO run VALUES (1, 'x')");
            throw_internal("stop");
          });
        }) == ExitCode::kInternal);
  CHECK(calls == 1);
  CHECK(connection.db().integer("SELECT count(*) FROM run") == 0);
  connection.write([&] {
    if (++calls == 2) throw ledger::SqliteError(SQLITE_BUSY_SNAPSHOT, ExitCode::kInternal, "busy");
    connection.db().exec("INSERT INTO run VALUES (1, 'x')");
  });
  CHECK(calls == 3);
  CHECK(connection.db().integer("SELECT count(*) FROM run") == 1);
}
